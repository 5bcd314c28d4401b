//! `GpuDevice` and `DeviceBuffer`.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Float32Array, Promise};
use wasm_bindgen::prelude::*;

use super::batch::JsBatch;
use super::convert::{self, get, invalid, set};
use super::error::{Work, begun, promise, to_js};
use super::graph;
use super::ops;
use super::simd;
use super::tuning::turned_off;
use super::types::*;
use crate::batch::GpuCommandBatch;
use crate::device::buffer::DeviceBuffer;
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::ops::{Op, OpClass};
use crate::simd::pieces_among;

/// A compute device: a GPU, or the CPU's SIMD instructions if there is no suitable GPU.
#[wasm_bindgen(js_name = GpuDevice)]
pub struct JsDevice {
    /// The device; `None` after `dispose`.
    device: RefCell<Option<GpuDevice>>,
    /// The threads of another device, to which this one leaves what they divide; 1 without one.
    others: Cell<usize>,
}

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Opens the best device available. Does not fail for lack of a GPU unless `backend` is
    /// `'gpu'` or `'webgpu'`.
    pub fn create(options: Option<DeviceOptions>) -> PromiseOfDevice {
        let options: JsValue = options.map_or(JsValue::UNDEFINED, Into::into);
        let abort = options.clone();
        let work = async move {
            let builder = GpuDevice::builder().backend(backend(&get(&options, "backend"))?);
            let builder = builder.half_precision(convert::flag(&options, "halfPrecision")?);
            let policy = get(&options, "policy");
            let builder = if policy.is_undefined() || policy.is_null() {
                builder
            } else {
                builder.policy(convert::policy(&policy)?)
            };
            Ok(Self::from(builder.build_async().await?).into())
        };
        promise(Some(abort.unchecked_ref()), Box::pin(work)).unchecked_into()
    }

    /// Returns whether a hardware GPU is available; software adapters do not count.
    #[wasm_bindgen(js_name = isAvailable)]
    pub fn is_available() -> PromiseOfBool {
        let work = async { Ok(GpuDevice::is_available_async().await.into()) };
        promise(None, Box::pin(work)).unchecked_into()
    }

    /// Returns the bytes of all GPU buffers that are in use. `room.js` keeps them few.
    #[wasm_bindgen(skip_typescript, js_name = gpuBytes)]
    pub fn gpu_bytes() -> f64 {
        Gpu::bytes_in_use() as f64
    }

    /// Opens a new device with the options of this one, for use after a device loss.
    pub fn rebuild(&self, abort: Option<AbortOptions>) -> PromiseOfDevice {
        let device = self.handle();
        let work = async move { Ok(Self::from(device?.rebuild_async().await?).into()) };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// The back-end that was chosen.
    #[wasm_bindgen(getter)]
    pub fn backend(&self) -> Result<BackendName, JsValue> {
        Ok(JsValue::from(backend_name(self.get()?.backend())).unchecked_into())
    }

    /// The back-end, the adapter, their properties and the reason for the choice.
    #[wasm_bindgen(getter)]
    pub fn info(&self) -> Result<JsDeviceInfo, JsValue> {
        let info = self.get()?.info();
        let object = js_sys::Object::new();
        set(&object, "backend", backend_name(info.backend));
        set(&object, "reason", info.reason);
        set(&object, "adapter", info.adapter);
        set(&object, "software", info.software);
        set(&object, "instructionSet", info.instruction_set.name());
        set(&object, "worker", false);
        set(&object, "threads", info.threads as f64);
        set(
            &object,
            "maxBufferLength",
            info.max_buffer_len.map(|len| len as f64),
        );
        set(&object, "halfPrecision", info.half_precision.name());
        set(&object, "policy", convert::policy_to_js(info.policy));
        set(&object, "policySource", info.policy_source.name());
        set(&object, "turnedOff", turned_off(&info.turned_off));
        Ok(object.unchecked_into())
    }

    /// The thresholds from which single operations run on the GPU.
    #[wasm_bindgen(getter)]
    pub fn policy(&self) -> Result<JsPolicy, JsValue> {
        Ok(convert::policy_to_js(self.get()?.policy()).unchecked_into())
    }

    /// The browser's `GPUDevice`, for use by other code; undefined on SIMD.
    #[wasm_bindgen(getter, js_name = gpuDevice)]
    pub fn gpu_device(&self) -> Result<RawDevice, JsValue> {
        let device = self.get()?;
        let raw = device
            .as_wgpu()
            .and_then(wgpu::Device::as_webgpu)
            .map(JsValue::from);
        Ok(raw.unwrap_or_default().unchecked_into())
    }

    /// Copies values to a buffer that stays on the device.
    pub fn upload(&self, values: Values, abort: Option<AbortOptions>) -> PromiseOfBuffer {
        let values: JsValue = values.into();
        let mut begin = || -> Result<Work> {
            let device = self.handle()?;
            let values = convert::array(values.clone(), "values")?;
            let (storage, writing) = device.executor().upload_array(&values)?;
            let buffer = DeviceBuffer::new(device, storage);
            Ok(Box::pin(async {
                writing.finished().await?;
                Ok(JsBuffer::from(buffer).into())
            }))
        };
        begun(abort.as_ref(), &mut begin).unchecked_into()
    }

    /// Copies values to a buffer and waits for nothing. If a GPU has no memory for them, the first
    /// run that reads the buffer fails.
    #[wasm_bindgen(skip_typescript, js_name = uploadNow)]
    pub fn upload_now(&self, values: &Float32Array) -> Result<JsBuffer, JsValue> {
        let device = self.get()?;
        let storage = device.executor().upload_array(values);
        let (storage, _) = storage.map_err(|error| to_js(&error))?;
        Ok(DeviceBuffer::new(device, storage).into())
    }

    /// Runs the operation at an index in the op table at once if it runs on SIMD; otherwise returns
    /// undefined, and the caller uses `runOp`. `operations.js` makes a method of each operation.
    ///
    /// After `leaveTo`, it also returns undefined for an operation that the threads of another device divide. SIMD needs no
    /// event loop, and creating a promise here would take longer than a small operation. The result is written to `into` if
    /// that is an array of its length, otherwise to a new array.
    #[wasm_bindgen(skip_typescript, js_name = runNow)]
    pub fn run_now(
        &self,
        index: usize,
        arguments: Array,
        into: JsValue,
    ) -> Result<JsValue, JsValue> {
        let result = self.handle().and_then(|device| {
            let op = ops::build(index, &arguments)?;
            let arrays = convert::arrays(op.inputs(), &arguments)?;
            if self.leaves(&op, &arrays) {
                return Ok(JsValue::UNDEFINED);
            }
            simd::run(&device, &op, &arrays, into, &mut |_, _| Ok(()))
        });
        result.map_err(|error| to_js(&error))
    }

    /// Makes `runNow` leave a product or a convolution to another device if the `threads` of that device would divide it. Any
    /// other operation takes less time than copies of its values.
    #[wasm_bindgen(skip_typescript, js_name = leaveTo)]
    pub fn leave_to(&self, threads: usize) {
        self.others.set(threads);
    }

    /// Runs the operation at an index in the op table on the best back-end for it.
    #[wasm_bindgen(skip_typescript, js_name = runOp)]
    pub fn run(&self, index: usize, arguments: Array, abort: Option<AbortOptions>) -> Promise {
        let mut begin = || -> Result<Work> {
            let device = self.handle()?;
            let op = ops::build(index, &arguments)?;
            let arrays = convert::arrays(op.inputs(), &arguments)?;
            let mut running = None;
            let into = JsValue::UNDEFINED;
            let value = simd::run(&device, &op, &arrays, into, &mut |gpu, len| {
                running = Some(gpu.run_arrays(&op, &arrays, len)?);
                Ok(())
            })?;
            let scalar = op.is_scalar();
            Ok(Box::pin(async move {
                let Some(running) = running else {
                    return Ok(value);
                };
                let values = running.await?;
                Ok(if scalar {
                    values.get_index(0).into()
                } else {
                    values.into()
                })
            }))
        };
        begun(abort.as_ref(), &mut begin)
    }

    /// Returns whether a buffer is on this device.
    #[wasm_bindgen(skip_typescript)]
    pub fn owns(&self, buffer: &JsBuffer) -> Result<bool, JsValue> {
        Ok(buffer.get()?.device().same_device(&self.get()?))
    }

    /// Creates an empty batch: operations that are recorded first and then run together.
    pub fn batch(&self) -> Result<JsBatch, JsValue> {
        Ok(JsBatch::from(GpuCommandBatch::new(self.get()?)))
    }

    /// Plans the graph of tensors, as `tensor/node.js` describes it.
    #[wasm_bindgen(skip_typescript, js_name = planGraph)]
    pub fn plan_graph(&self, words: JsValue) -> Promise {
        let words = convert::copied(words, "words");
        let work = words.and_then(|words| graph::plan(self.handle()?, &words));
        promise(None, Box::pin(async move { work?.await }))
    }

    /// Releases the device's memory. Buffers and batches keep what they need until they are
    /// disposed of as well. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.device.take();
    }
}

/// Methods for the package's workers. The output of wasm-bindgen for bundlers has no workers, and cannot name its
/// module.
#[cfg(relampago_package)]
#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Returns the compiled module, for workers to share.
    #[wasm_bindgen(skip_typescript)]
    pub fn module() -> JsValue {
        wasm_bindgen::module()
    }
}

impl From<GpuDevice> for JsDevice {
    fn from(device: GpuDevice) -> Self {
        let device = RefCell::new(Some(device));
        let others = Cell::new(1);
        Self { device, others }
    }
}

impl JsDevice {
    fn leaves(&self, op: &Op, inputs: &[Float32Array]) -> bool {
        let threads = self.others.get();
        let lens = inputs.iter().map(|input| input.length() as usize);
        threads > 1
            && matches!(op.class(), OpClass::Matmul | OpClass::Convolution)
            && pieces_among(threads, op, lens) > 1
    }

    pub(super) fn handle(&self) -> Result<GpuDevice> {
        let what = "GpuDevice";
        self.device.borrow().clone().ok_or(Error::Disposed { what })
    }

    pub(super) fn get(&self) -> Result<GpuDevice, JsValue> {
        self.handle().map_err(|error| to_js(&error))
    }
}

fn backend(choice: &JsValue) -> Result<Backend> {
    match choice.as_string().as_deref() {
        None if choice.is_undefined() => Ok(Backend::Auto),
        Some("auto") => Ok(Backend::Auto),
        // The second is what `backend_name` returns for a GPU.
        Some("gpu" | "webgpu") => Ok(Backend::Gpu),
        Some("simd") => Ok(Backend::Simd),
        _ => {
            let known = "'auto', 'gpu', 'webgpu' or 'simd'";
            Err(invalid("backend", choice, known))
        }
    }
}

pub(super) fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Simd => "simd",
        _ => "webgpu",
    }
}

/// Returns a promise of a buffer's values. Values in host memory are written to `into` if that is an
/// array of their length; a GPU's are not, since the caller may abort until they arrive.
pub(super) fn read(
    buffer: Result<DeviceBuffer>,
    into: JsValue,
    options: Option<&AbortOptions>,
) -> Promise {
    let work = async move {
        let buffer = buffer?;
        buffer.device().check()?;
        if let Some(values) = buffer.host() {
            return Ok(simd::stored(values, simd::place(into, values.len()))?.into());
        }
        let executor = buffer.device().executor();
        Ok(executor.read_array(&buffer.storage).await?.into())
    };
    promise(options, Box::pin(work))
}

/// A buffer of values that stays on a device, for use by any of its batches.
#[wasm_bindgen(js_name = DeviceBuffer)]
pub struct JsBuffer {
    /// The buffer; `None` after `dispose`.
    buffer: RefCell<Option<DeviceBuffer>>,
}

#[wasm_bindgen(js_class = DeviceBuffer)]
impl JsBuffer {
    /// The number of values.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> Result<usize, JsValue> {
        Ok(self.get()?.len())
    }

    /// The browser's `GPUBuffer`, at least as long as the values; undefined on SIMD. Your own WebGPU code may use it for
    /// as long as it likes, also after `dispose`.
    #[wasm_bindgen(getter, js_name = gpuBuffer)]
    pub fn gpu_buffer(&self) -> Result<RawBuffer, JsValue> {
        let buffer = self.get()?;
        let raw = buffer
            .as_wgpu()
            .and_then(wgpu::Buffer::as_webgpu)
            .map(JsValue::from);
        Ok(raw.unwrap_or_default().unchecked_into())
    }

    /// Copies the values as `GpuCommandBatch.readValues` does. `device_buffer.js` makes `read` of it.
    #[wasm_bindgen(skip_typescript, js_name = readValues)]
    pub fn read_values(&self, into: JsValue, abort: Option<AbortOptions>) -> Promise {
        read(self.handle(), into, abort.as_ref())
    }

    /// Releases the memory once no batch uses it. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.buffer.take();
    }
}

impl From<DeviceBuffer> for JsBuffer {
    fn from(buffer: DeviceBuffer) -> Self {
        let buffer = RefCell::new(Some(buffer));
        Self { buffer }
    }
}

impl JsBuffer {
    pub(super) fn handle(&self) -> Result<DeviceBuffer> {
        let what = "DeviceBuffer";
        self.buffer.borrow().clone().ok_or(Error::Disposed { what })
    }

    fn get(&self) -> Result<DeviceBuffer, JsValue> {
        self.handle().map_err(|error| to_js(&error))
    }
}
