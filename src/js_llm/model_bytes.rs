//! Collects a model's file in this module's memory.

use super::model::Model;
use super::{get, integer, set, to_js};
use crate::device::{Backend, GpuDevice};
use crate::error::Error;
use crate::llm::{
    CacheType, Gguf, HeadProgress, HeadReader, Inspection, LanguageModel, LoadOptions,
    chat_template,
};
use js_sys::{Array, Object, Uint8Array};
use wasm_bindgen::prelude::*;

/// The number of bytes by which a file's memory grows if its size is not known.
const STEP: usize = 16 << 20;

/// The bytes of a model's files, which arrive piece by piece and are not copied again for `load`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ModelBytes {
    /// The files before the last one: parts of a model that is split.
    before: Vec<Vec<u8>>,
    pub(super) bytes: Vec<u8>,
    /// The reader of the last file's head.
    head: Option<HeadReader>,
}

#[wasm_bindgen]
impl ModelBytes {
    /// Allocates memory for a file of about `length` bytes.
    #[wasm_bindgen(constructor)]
    pub fn new(length: f64) -> Result<Self, JsValue> {
        let mut file = Self {
            before: Vec::new(),
            bytes: Vec::new(),
            head: None,
        };
        file.reserve(length as usize)?;
        Ok(file)
    }

    /// Begins another part, of about `length` bytes.
    #[wasm_bindgen(js_name = addPart)]
    pub fn add_part(&mut self, length: f64) -> Result<(), JsValue> {
        self.before.push(std::mem::take(&mut self.bytes));
        self.head = None;
        self.reserve(length as usize)
    }

    fn reserve(&mut self, more: usize) -> Result<(), JsValue> {
        let reserved = self.bytes.try_reserve_exact(more);
        let bytes = (self.bytes.len() + more) as u64;
        reserved.map_err(|_| to_js(&Error::OutOfMemory { bytes }))
    }

    /// Appends a piece of the file.
    pub fn write(&mut self, piece: &Uint8Array) -> Result<(), JsValue> {
        let len = piece.length() as usize;
        if len > self.bytes.capacity() - self.bytes.len() {
            self.reserve(len.max(STEP))?;
        }
        piece.copy_to_uninit(&mut self.bytes.spare_capacity_mut()[..len]);
        // SAFETY: the piece has filled as many bytes of the capacity.
        unsafe { self.bytes.set_len(self.bytes.len() + len) };
        Ok(())
    }

    /// Returns whether the bytes of the last part, of a file of this size, have all that stands before the weights, or
    /// are damaged. A call reads only the bytes that arrived since the previous call.
    #[wasm_bindgen(js_name = hasHead)]
    pub fn has_head(&mut self, size: f64) -> bool {
        let new = || HeadReader::new(file_size(size));
        let progress = self.head.get_or_insert_with(new).read(&self.bytes);
        !matches!(progress, Ok(HeadProgress::Needs(_)))
    }

    /// Returns the properties of JavaScript's `ModelInspection`, of the first bytes of files of these sizes, 0 where one
    /// is not known.
    pub fn inspect(&self, sizes: Vec<f64>, options: &JsValue) -> Result<Object, JsValue> {
        let heads = self.before.iter().chain([&self.bytes]).cloned();
        let sizes = sizes.into_iter().map(file_size);
        let context = integer(options, "contextLength");
        let inspection = LanguageModel::inspect_heads(heads.zip(sizes).collect(), context);
        let inspection = inspection.map(|found| found.with_cache_type(cache_type(options)));
        let inspection = inspection.map_err(|error| to_js(&renamed(error)))?;
        Ok(inspection_object(&inspection))
    }

    /// Reads the metadata of the whole file.
    pub fn finish(mut self) -> Result<ModelFile, JsValue> {
        self.before.push(self.bytes);
        let file = Gguf::from_parts(self.before);
        file.map(ModelFile).map_err(|error| to_js(&error))
    }
}

/// A model's file, whose metadata have been read.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ModelFile(Gguf);

#[wasm_bindgen]
impl ModelFile {
    /// Returns whether the file has a chat template.
    #[wasm_bindgen(js_name = hasChatTemplate)]
    pub fn has_chat_template(&self) -> bool {
        chat_template(&self.0).is_some()
    }

    /// Makes a model of the file. `device` is `simd`, `gpu`, or `auto`: a hardware GPU that can hold
    /// the weights if there is one, else SIMD.
    pub async fn load(self, options: JsValue) -> Result<Model, JsValue> {
        let model = LanguageModel::from_file_async(self.0, load_options(&options)).await;
        let mut model = model.map_err(|error| to_js(&renamed(error)))?;
        let device = get(&options, "device").as_string();
        let reason = match device.as_deref() {
            Some("simd") => Ok("SIMD was asked for".to_owned()),
            Some("gpu") => move_to_gpu(&mut model, Backend::Gpu).await,
            _ => {
                let moved = move_to_gpu(&mut model, Backend::Auto).await;
                moved.or_else(|error| Ok(format!("the GPU cannot run this model: {error}")))
            }
        };
        let reason = reason.map_err(|error| to_js(&error))?;
        Ok(Model::new(model, reason))
    }
}

/// Returns the options of a model, without a device.
pub(super) fn load_options(options: &JsValue) -> LoadOptions {
    LoadOptions {
        context_length: integer(options, "contextLength"),
        cache_type: cache_type(options),
        ..LoadOptions::default()
    }
}

fn cache_type(options: &JsValue) -> CacheType {
    match get(options, "cacheType").as_string().as_deref() {
        Some("f16") => CacheType::F16,
        Some("q8_0") => CacheType::Q8_0,
        _ => CacheType::F32,
    }
}

/// The size of a file that scripts have, which is 0 where it is not known.
pub(super) fn file_size(size: f64) -> u64 {
    match size {
        0.0 => u64::MAX,
        size => size as u64,
    }
}

fn inspection_object(inspection: &Inspection) -> Object {
    let object = Object::new();
    set(&object, "architecture", inspection.architecture.as_str());
    set(&object, "name", inspection.name.as_str());
    for (key, value) in [
        ("parameters", inspection.parameters),
        ("vocabulary", inspection.vocabulary as u64),
        ("maxContextLength", inspection.max_context_length as u64),
        ("contextLength", inspection.context_length as u64),
        ("fileBytes", inspection.file_bytes),
        ("sessionBytes", inspection.session_bytes),
        ("simdBytes", inspection.simd_bytes),
        ("gpuBytes", inspection.gpu_bytes),
    ] {
        set(&object, key, value as f64);
    }
    set(&object, "hasChatTemplate", inspection.has_chat_template);
    let types = inspection.weight_types.iter().map(|(kind, bytes)| {
        let object = Object::new();
        set(&object, "type", format!("{kind:?}"));
        set(&object, "bytes", *bytes as f64);
        object
    });
    set(&object, "weightTypes", types.collect::<Array>());
    object
}

/// Moves a model to the GPU that the browser offers; returns why it is on the back-end that it is on.
async fn move_to_gpu(model: &mut LanguageModel, backend: Backend) -> Result<String, Error> {
    let device = GpuDevice::builder().backend(backend).build_async().await?;
    model.move_to_async(&device).await?;
    Ok(device.info().reason)
}

/// Gives the option in an error the name that JavaScript has for it.
pub(super) fn renamed(error: Error) -> Error {
    match error {
        Error::InvalidArgument {
            what: "context_length",
            value,
            requirement,
        } => Error::invalid("contextLength", value, requirement),
        other => other,
    }
}
