//! `GpuDevice` and `DeviceBuffer`.

use std::cell::RefCell;

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use super::batch::JsBatch;
use super::convert::{self, Parameter, get, invalid, set};
use super::error::{Signal, promise, to_js};
use super::types::*;
use crate::buffer::DeviceBuffer;
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::graph::GpuCommandBatch;
use crate::ops::{Conv2d, Op, for_each_op};

/// A compute device: a GPU, or the CPU's vector instructions where there is no GPU worth using.
#[wasm_bindgen(js_name = GpuDevice)]
pub struct JsDevice {
    /// `None` once it was disposed of.
    device: RefCell<Option<GpuDevice>>,
}

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// The best device there is; never fails for lack of a GPU unless `backend` is `'gpu'`.
    pub fn create(options: Option<DeviceOptions>) -> PromiseOfDevice {
        let options: JsValue = options.map_or(JsValue::UNDEFINED, Into::into);
        let signal = Signal::of(Some(options.unchecked_ref()));
        promise(signal, async move {
            let builder = GpuDevice::builder().backend(backend(&get(&options, "backend"))?);
            let policy = convert::policy(&get(&options, "policy"))?;
            Ok(Self::from(builder.policy(policy).build_async().await?))
        })
        .unchecked_into()
    }

    /// Whether there is a real GPU; software adapters do not count.
    #[wasm_bindgen(js_name = isAvailable)]
    pub fn is_available() -> PromiseOfBool {
        promise(Signal::of(None), async { Ok(GpuDevice::is_available_async().await) }).unchecked_into()
    }

    /// A device like this one was when it was created, for use after a loss.
    pub fn rebuild(&self, options: Option<AbortOptions>) -> PromiseOfDevice {
        self.with_device(options, |device| async move {
            Ok(Self::from(device.rebuild_async().await?))
        })
        .unchecked_into()
    }

    /// What was chosen.
    #[wasm_bindgen(getter)]
    pub fn backend(&self) -> Result<BackendName, JsValue> {
        Ok(JsValue::from(backend_name(self.get()?.backend())).unchecked_into())
    }

    /// What was chosen, of what kind it is, and why.
    #[wasm_bindgen(getter)]
    pub fn info(&self) -> Result<JsDeviceInfo, JsValue> {
        let info = self.get()?.info();
        let object = js_sys::Object::new();
        set(&object, "backend", backend_name(info.backend));
        set(&object, "reason", info.reason);
        set(&object, "adapter", info.adapter);
        set(&object, "software", info.software);
        set(&object, "instructionSet", info.instruction_set.name());
        set(&object, "maxBufferLength", info.max_buffer_len.map(|len| len as f64));
        Ok(object.unchecked_into())
    }

    /// When single operations go to the GPU.
    #[wasm_bindgen(getter)]
    pub fn policy(&self) -> Result<JsPolicy, JsValue> {
        Ok(convert::policy_to_js(self.get()?.policy()).unchecked_into())
    }

    /// The browser's device behind this one, for other code to share; undefined on SIMD.
    #[wasm_bindgen(getter, js_name = gpuDevice)]
    pub fn gpu_device(&self) -> Result<RawDevice, JsValue> {
        let device = self.get()?;
        let raw = device.as_wgpu().and_then(wgpu::Device::as_webgpu).map(JsValue::from);
        Ok(raw.unwrap_or_default().unchecked_into())
    }

    /// Copies values to a buffer that stays on the device.
    pub fn upload(&self, values: Values, options: Option<AbortOptions>) -> PromiseOfBuffer {
        let values = convert::values(&values, "values");
        self.with_device(options, |device| async move {
            let buffer = device.upload_async(&values?).await?;
            Ok(JsBuffer::from(buffer))
        })
        .unchecked_into()
    }

    /// An empty batch: operations recorded first and then run together.
    pub fn batch(&self) -> Result<JsBatch, JsValue> {
        Ok(JsBatch::from(GpuCommandBatch::new(self.get()?)))
    }

    /// Gives the device's memory back. Buffers and batches keep what they need until they are
    /// disposed of as well. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.device.take();
    }
}

impl From<GpuDevice> for JsDevice {
    fn from(device: GpuDevice) -> Self {
        let device = RefCell::new(Some(device));
        Self { device }
    }
}

impl JsDevice {
    fn handle(&self) -> Result<GpuDevice> {
        let what = "GpuDevice";
        self.device.borrow().clone().ok_or(Error::Disposed { what })
    }

    fn get(&self) -> Result<GpuDevice, JsValue> {
        self.handle().map_err(|error| to_js(&error))
    }

    /// A promise of what `work` does with the device.
    fn with_device<T, F>(
        &self,
        options: Option<AbortOptions>,
        work: impl FnOnce(GpuDevice) -> F + 'static,
    ) -> js_sys::Promise
    where
        T: Into<JsValue>,
        F: Future<Output = Result<T>>,
    {
        let device = self.handle();
        promise(Signal::of(options.as_ref()), async move { work(device?).await })
    }

    /// Runs an operation whose result is an array.
    fn vector(
        &self,
        op: Result<Op>,
        inputs: Result<Vec<Vec<f32>>>,
        options: Option<AbortOptions>,
    ) -> PromiseOfValues {
        self.with_device(options, |device| async move {
            let inputs = inputs?;
            let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
            let values = device.run_async(&op?, &inputs).await?;
            Ok(Float32Array::from(&values[..]))
        })
        .unchecked_into()
    }
}

fn backend(choice: &JsValue) -> Result<Backend> {
    match choice.as_string().as_deref() {
        None if choice.is_undefined() => Ok(Backend::Auto),
        Some("auto") => Ok(Backend::Auto),
        Some("gpu") => Ok(Backend::Gpu),
        Some("simd") => Ok(Backend::Simd),
        _ => Err(invalid("backend", choice, "'auto', 'gpu' or 'simd'")),
    }
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Simd => "simd",
        _ => "webgpu",
    }
}

macro_rules! define_js_methods {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident { $($vp:ident: $vt:ty),* } $vclass:ident, $vulp:literal; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ty { $($sp:ident: $st:ty),* } $sclass:ident, $sulp:literal; )* }
    ) => {
        #[wasm_bindgen(js_class = GpuDevice)]
        impl JsDevice {
            $(
                $(#[$vdoc])*
                #[wasm_bindgen(js_name = $vjs)]
                pub fn $vname(&self, $($vin: Values,)+ $($vp: <$vt as Parameter>::Js,)* options: Option<AbortOptions>) -> PromiseOfValues {
                    let inputs = [$((stringify!($vin), $vin)),+];
                    let inputs = inputs.iter().map(|(what, array)| convert::values(array, what)).collect();
                    let op = || Ok(Op::$vop { $($vp: <$vt>::from_js($vp.as_ref(), stringify!($vp))?),* });
                    self.vector(op(), inputs, options)
                }
            )*
            $(
                $(#[$sdoc])*
                #[wasm_bindgen(js_name = $sjs)]
                pub fn $sname(&self, $($sin: Values,)+ options: Option<AbortOptions>) -> PromiseOfNumber {
                    $( let $sin = convert::values(&$sin, stringify!($sin)); )+
                    self.with_device(options, |device| async move {
                        Ok(device.$sasync($(&$sin?),+).await? as f64)
                    })
                    .unchecked_into()
                }
            )*
        }
    };
}
for_each_op!(define_js_methods);

/// Values that stay on a device, for use by any of its batches.
#[wasm_bindgen(js_name = DeviceBuffer)]
pub struct JsBuffer {
    /// `None` once it was disposed of.
    buffer: RefCell<Option<DeviceBuffer>>,
}

#[wasm_bindgen(js_class = DeviceBuffer)]
impl JsBuffer {
    /// The number of values.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> Result<usize, JsValue> {
        Ok(self.get()?.len())
    }

    /// The browser's buffer behind this one, at least as long as the values; undefined on SIMD.
    #[wasm_bindgen(getter, js_name = gpuBuffer)]
    pub fn gpu_buffer(&self) -> Result<RawBuffer, JsValue> {
        let buffer = self.get()?;
        let raw = buffer.as_wgpu().and_then(wgpu::Buffer::as_webgpu).map(JsValue::from);
        Ok(raw.unwrap_or_default().unchecked_into())
    }

    /// Copies the values back.
    pub fn read(&self, options: Option<AbortOptions>) -> PromiseOfValues {
        let buffer = self.handle();
        promise(Signal::of(options.as_ref()), async move {
            let values = buffer?.read_async().await?;
            Ok(Float32Array::from(&values[..]))
        })
        .unchecked_into()
    }

    /// Gives the memory back, once no batch uses it. Later calls fail with code `DISPOSED`.
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
