//! `GpuMatmulCache`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::batch::{JsBatch, buffer_id};
use super::convert::{self, Parameter, get, invalid, set};
use super::device::JsDevice;
use super::error::promise;
use super::types::*;
use crate::alloc::js_array as array;
use crate::alloc::try_zeros;
use crate::device::GpuDevice;
use crate::device::executor::Placed;
use crate::device::matmul_cache::GpuMatmulCache;
use crate::error::{Error, Result};
use crate::ops::shape::{check_len, product};
use crate::tensor::TensorView;
use crate::tensor::quantized::{QuantizedWeights, WeightFormat};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/**
 * The storage format of weights: `f32`, `f16`, or blocks of 32 integers with a scale, of 8 or of
 * 4 bits each.
 */
export type WeightFormat = 'f32' | 'f16' | 'q8_0' | 'q4_0';

/** The shape and storage of a `k × n` matrix of weights, row-major. */
export interface WeightOptions {
    k: number;
    n: number;
    /** The format; the default is `'f32'`. */
    format?: WeightFormat | undefined;
    /** Whether the weights are stored as an `n × k` matrix, as the weights of most models are. */
    transposed?: boolean | undefined;
}

/** The shape and format of ggml's blocks: a `k × n` matrix of weights, stored as an `n × k` matrix. */
export interface BlockOptions {
    k: number;
    n: number;
    format: 'q8_0' | 'q4_0';
}

/** The weights of one name in a cache. */
export interface CachedWeights {
    readonly name: string;
    readonly k: number;
    readonly n: number;
    readonly format: WeightFormat;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "string")]
    pub type Name;
    #[wasm_bindgen(typescript_type = "Uint8Array")]
    pub type Blocks;
    #[wasm_bindgen(typescript_type = "WeightOptions")]
    pub type WeightOptions;
    #[wasm_bindgen(typescript_type = "BlockOptions")]
    pub type BlockOptions;
    #[wasm_bindgen(typescript_type = "Promise<CachedWeights[]>")]
    pub type PromiseOfWeights;
}

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Creates an empty cache of weights for matmuls on this device.
    #[wasm_bindgen(js_name = matmulCache)]
    pub fn matmul_cache(&self) -> Result<JsMatmulCache, JsValue> {
        let cache = GpuMatmulCache::new(self.get()?);
        let cache = Rc::new(RefCell::new(Some(cache)));
        Ok(JsMatmulCache { cache })
    }
}

#[wasm_bindgen(js_class = GpuCommandBatch)]
impl JsBatch {
    /// Records `input · weights`, an `m × k` matrix times the `k × n` weights of that name in a cache of this device,
    /// in whatever format the cache has them. The batch and its programs have these weights even if the cache replaces
    /// or removes them later.
    #[wasm_bindgen(js_name = matmulCached)]
    pub fn matmul_cached(
        &self,
        cache: &JsMatmulCache,
        name: Name,
        input: Id,
        m: Count,
    ) -> Result<Id, JsValue> {
        let call = || -> Result<_> {
            let (name, input) = (convert::text(&name, "name")?, buffer_id(&input, "input")?);
            Ok((name, input, usize::from_js(&m, "m")?))
        };
        let call = call();
        self.record(|batch| {
            let (name, input, m) = call?;
            cache.with(|cache| batch.try_matmul_cached(cache, &cache.find(&name)?, input, m))
        })
    }
}

/// Named weight matrices for matmuls with changing inputs: packed once on SIMD, resident on a GPU,
/// in 32, 16, 9 or 5 bits each.
#[wasm_bindgen(js_name = GpuMatmulCache)]
pub struct JsMatmulCache {
    /// The cache; `None` after `dispose`.
    cache: Rc<RefCell<Option<GpuMatmulCache>>>,
}

#[wasm_bindgen(js_class = GpuMatmulCache)]
impl JsMatmulCache {
    /// Stores weights under a name, rounded to the format, and replaces any that have this name.
    pub fn insert(
        &self,
        name: Name,
        weights: Values,
        options: WeightOptions,
        abort: Option<AbortOptions>,
    ) -> PromiseOfNothing {
        let call = || -> Result<_> {
            let values = convert::copied(weights.into(), "weights")?;
            let options = Options::of(&options)?;
            check_len(
                "weights",
                product("weights", options.k, options.n)?,
                values.len(),
            )?;
            Ok((self.device()?, values, options))
        };
        let call = call();
        let placed = async move {
            let (device, values, options) = call?;
            let view = options.view()?;
            Placed::of_view(&device, &view.bind(&values)?, options.format).await
        };
        self.keep(&name, placed, abort.as_ref())
    }

    /// Stores weights that are already quantized: ggml's blocks of `'q8_0'` or `'q4_0'`, of a
    /// transposed matrix, as in GGUF files.
    #[wasm_bindgen(js_name = insertBlocks)]
    pub fn insert_blocks(
        &self,
        name: Name,
        blocks: Blocks,
        options: BlockOptions,
        abort: Option<AbortOptions>,
    ) -> PromiseOfNothing {
        let call = || -> Result<_> {
            let blocks = bytes(blocks.into(), "blocks")?;
            let Options { k, n, format, .. } = Options::of(&options)?;
            let weights = QuantizedWeights::from_blocks(&blocks, k, n, format)?;
            Ok((self.device()?, weights))
        };
        let call = call();
        let placed = async move {
            let (device, weights) = call?;
            Placed::of_quantized(&device, weights).await
        };
        self.keep(&name, placed, abort.as_ref())
    }

    /// Computes `input · weights`, an `m × k` matrix times the `k × n` weights of that name, all
    /// row-major.
    #[wasm_bindgen(js_name = matmulCached)]
    pub fn matmul_cached(
        &self,
        name: Name,
        input: Values,
        m: Count,
        abort: Option<AbortOptions>,
    ) -> PromiseOfValues {
        let call = || -> Result<_> {
            let input = convert::copied(input.into(), "input")?;
            let m = usize::from_js(&m, "m")?;
            let name = convert::text(&name, "name")?;
            let weights = self.with(|cache| cache.find(&name))?;
            let [k, n] = weights.shape;
            check_len("input", product("input", m, k)?, input.len())?;
            Ok((self.device()?, weights, input, m, product("out", m, n)?))
        };
        let call = call();
        let work = async move {
            let (device, weights, input, m, len) = call?;
            device.check()?;
            let mut out = try_zeros(len)?;
            weights.multiply(&device, &input, &mut out, m).await?;
            Ok(array::of(&out)?.into())
        };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// Removes the weights of a name. Returns whether there were any.
    pub fn remove(&self, name: Name) -> PromiseOfBool {
        let removed = convert::text(&name, "name")
            .and_then(|name| self.with(|cache| Ok(cache.remove(&name))));
        promise(None, Box::pin(async { Ok(removed?.into()) })).unchecked_into()
    }

    /// Returns the name, shape and format of all weights, in alphabetical order.
    pub fn weights(&self) -> PromiseOfWeights {
        let list = self.with(|cache| Ok(cache.iter().map(entry).collect::<Array>()));
        promise(None, Box::pin(async { Ok(list?.into()) })).unchecked_into()
    }

    /// Releases the weights' memory. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.cache.take();
    }
}

impl JsMatmulCache {
    fn with<T>(&self, f: impl FnOnce(&mut GpuMatmulCache) -> Result<T>) -> Result<T> {
        with(&self.cache, f)
    }

    fn device(&self) -> Result<GpuDevice> {
        self.with(|cache| Ok(cache.device().clone()))
    }

    /// Stores weights under a name, once they are prepared.
    fn keep(
        &self,
        name: &Name,
        placed: impl Future<Output = Result<Placed>> + 'static,
        abort: Option<&AbortOptions>,
    ) -> PromiseOfNothing {
        let (cache, name) = (self.cache.clone(), convert::text(name, "name"));
        let work = async move {
            let (name, weights) = (name?, placed.await?);
            with(&cache, |cache| {
                cache.keep(&name, weights);
                Ok(JsValue::UNDEFINED)
            })
        };
        promise(abort, Box::pin(work)).unchecked_into()
    }
}

fn with<T>(
    cache: &RefCell<Option<GpuMatmulCache>>,
    f: impl FnOnce(&mut GpuMatmulCache) -> Result<T>,
) -> Result<T> {
    let what = "GpuMatmulCache";
    f(cache
        .borrow_mut()
        .as_mut()
        .ok_or(Error::Disposed { what })?)
}

/// Copies an argument that must be a `Uint8Array`.
fn bytes(value: JsValue, what: &'static str) -> Result<Vec<u8>> {
    let len = convert::checked(&value, what, true)?;
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(len);
    reserved.map_err(|_| Error::OutOfMemory { bytes: len as u64 })?;
    bytes.resize(len, 0);
    let whole = array::read_bytes(&value, 0, &mut bytes);
    whole.then_some(bytes).ok_or_else(array::lost)
}

fn entry((name, [k, n], format): (&str, [usize; 2], WeightFormat)) -> js_sys::Object {
    let entry = js_sys::Object::new();
    set(&entry, "name", name);
    set(&entry, "k", k as f64);
    set(&entry, "n", n as f64);
    set(&entry, "format", format_name(format));
    entry
}

struct Options {
    k: usize,
    n: usize,
    format: WeightFormat,
    transposed: bool,
}

impl Options {
    fn of(options: &JsValue) -> Result<Self> {
        Ok(Self {
            k: usize::from_js(&get(options, "k"), "k")?,
            n: usize::from_js(&get(options, "n"), "n")?,
            format: format(&get(options, "format"))?,
            transposed: convert::flag(options, "transposed")?,
        })
    }

    /// Returns the view of the `k × n` matrix over the values as they are stored.
    fn view(&self) -> Result<TensorView> {
        if self.transposed {
            return TensorView::new_2d(self.n, self.k)?.transpose(0, 1);
        }
        TensorView::new_2d(self.k, self.n)
    }
}

const FORMATS: [(&str, WeightFormat); 4] = [
    ("f32", WeightFormat::F32),
    ("f16", WeightFormat::F16),
    ("q8_0", WeightFormat::Q8_0),
    ("q4_0", WeightFormat::Q4_0),
];

fn format(value: &JsValue) -> Result<WeightFormat> {
    let name = value.as_string();
    let name = name
        .as_deref()
        .or(value.is_undefined().then_some(FORMATS[0].0));
    let found = FORMATS.iter().find(|(known, _)| Some(*known) == name);
    let (_, format) =
        found.ok_or_else(|| invalid("format", value, "'f32', 'f16', 'q8_0' or 'q4_0'"))?;
    Ok(*format)
}

fn format_name(format: WeightFormat) -> &'static str {
    let known = FORMATS.iter().find(|(_, known)| *known == format);
    known.map_or("", |(name, _)| name)
}
