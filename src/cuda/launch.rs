//! Loaded kernels and their launches.

use super::compile;
use super::context::Context;
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::event;
use super::ops::invalid;
use super::queue::Submission;
use cudarc::driver::sys;
use relampago_ptx as ptx;
use relampago_ptx::{
    Extent, LaunchArgument, ParamType, PtxKernel, PtxModule, PtxType, Sizes, TensorBox,
};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Argument {
    /// An address in GPU memory; for a tensor map, the address of the first matrix.
    Pointer(u64),
    /// An integer.
    U32(u32),
    /// A number.
    F32(f32),
}

/// Writes the argument for messages.
impl std::fmt::Display for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pointer(_) => f.write_str("a pointer"),
            Self::U32(value) => write!(f, "{value} of type u32"),
            Self::F32(value) => write!(f, "{value} of type f32"),
        }
    }
}

impl LaunchArgument for Argument {
    fn as_size(&self) -> Option<u64> {
        match self {
            Argument::U32(value) => Some((*value).into()),
            Argument::Pointer(_) | Argument::F32(_) => None,
        }
    }
}

/// A kernel loaded on a GPU. Launches go to the queue of the device that loaded it. Clones share
/// the loaded code.
#[derive(Clone, Debug)]
pub struct CudaKernel {
    device: CudaDevice,
    loaded: Arc<Loaded>,
}

/// A kernel's machine code in a context.
#[derive(Debug)]
pub(super) struct Loaded {
    context: Arc<Context>,
    kernel: PtxKernel,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: a loaded module never changes, and the driver takes calls from any thread.
unsafe impl Send for Loaded {}
// SAFETY: see `Send`.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // The kernel may have been launched on any stream. After a failure nothing runs any more,
        // so the result is ignored.
        let _ = event::synchronize(&self.context);
        if self.context.enter().is_ok() {
            // SAFETY: this owns the module, which is not used any more.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

/// The value of a parameter, as the driver reads it.
#[repr(C)]
union Slot {
    pointer: u64,
    word: u32,
    real: f32,
    map: sys::CUtensorMap,
}

/// The addresses of values, as the driver takes them.
fn pointers(slots: &mut [Slot]) -> Vec<*mut c_void> {
    let pointers = slots.iter_mut().map(|slot| (&raw mut *slot).cast());
    pointers.collect()
}

impl CudaKernel {
    /// Compiles a kernel for a GPU, or loads it from the cache.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log if the driver rejects the text.
    pub fn compile(device: &CudaDevice, kernel: PtxKernel) -> Result<Self> {
        let loaded = Loaded::compile(device.context(), kernel)?;
        Ok(Self::new(device, Arc::new(loaded)))
    }

    pub(super) fn new(device: &CudaDevice, loaded: Arc<Loaded>) -> Self {
        CudaKernel {
            device: device.clone(),
            loaded,
        }
    }

    /// Returns the kernel with its launch and its parameters.
    pub fn kernel(&self) -> &PtxKernel {
        &self.loaded.kernel
    }

    /// Submits the kernel to the queue. A grid without blocks does nothing.
    ///
    /// # Errors
    /// [`Error::Ptx`] if arguments and parameters do not match, [`Error::Driver`] if the launch
    /// fails, [`Error::CaptureEnded`] after a capture. Later calls report failures during
    /// execution.
    ///
    /// # Safety
    /// Every address must point to memory of this GPU with the size and alignment that the kernel's
    /// documentation states. No other work may write that memory at the same time: on a stream,
    /// wait for the other streams first. Memory used in a capture must outlive the graph.
    pub unsafe fn launch(&self, arguments: &[Argument]) -> Result<()> {
        // SAFETY: the caller guarantees the same.
        let launch = |turn: &mut Submission<'_>| unsafe { turn.launch(self, arguments) };
        self.device.ordered(&[], launch)
    }
}

#[cfg(feature = "llm-core")]
impl CudaKernel {
    /// Whether both are the same loaded code.
    pub(super) fn is(&self, other: &CudaKernel) -> bool {
        Arc::ptr_eq(&self.loaded, &other.loaded)
    }

    /// Calls `work` with the description of a launch as a node of a graph.
    pub(super) fn with_node_params(
        &self,
        arguments: &[Argument],
        work: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> Result<()>,
    ) -> Result<()> {
        let loaded = &self.loaded;
        let (mut slots, [x, y, z]) = loaded.values(arguments)?;
        let mut params = pointers(&mut slots);
        let [across, down, deep] = loaded.kernel.launch().block;
        work(&sys::CUDA_KERNEL_NODE_PARAMS {
            func: loaded.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: across,
            blockDimY: down,
            blockDimZ: deep,
            sharedMemBytes: loaded.kernel.dynamic_shared(),
            kernelParams: params.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        })
    }
}

impl Submission<'_> {
    /// Launches a kernel.
    ///
    /// # Safety
    /// See [`CudaKernel::launch`]. The submission is ordered with other streams only if it was made
    /// with all memory that the kernel uses.
    pub(super) unsafe fn launch(
        &mut self,
        kernel: &CudaKernel,
        arguments: &[Argument],
    ) -> Result<()> {
        let loaded = &kernel.loaded;
        let (mut slots, [x, y, z]) = loaded.values(arguments)?;
        if x == 0 || y == 0 || z == 0 {
            return Ok(());
        }
        self.keep(loaded);
        // SAFETY: there is a value for each parameter; the caller guarantees what the values mean.
        unsafe { loaded.launch(self.stream, &mut slots, [x, y, z]) }
    }
}

impl Loaded {
    pub(super) fn compile(context: &Arc<Context>, kernel: PtxKernel) -> Result<Self> {
        let text = PtxModule::new(kernel.target()).with(kernel.clone())?.emit();
        let code = compile::cubin(context, kernel.name(), &text)?;
        context.enter()?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the code is what the driver's own linker made for this GPU, to the last byte.
        check("cuModuleLoadData", unsafe {
            sys::cuModuleLoadData(&raw mut module, code.as_ptr().cast())
        })?;
        let mut loaded = Loaded {
            context: context.clone(),
            kernel,
            module,
            function: std::ptr::null_mut(),
        };
        let name = CString::new(loaded.kernel.name()).unwrap_or_default();
        // SAFETY: the name ends with a zero, and the module is loaded.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&raw mut loaded.function, module, name.as_ptr())
        })?;
        let shared = loaded.kernel.dynamic_shared() as i32;
        // SAFETY: the function is the module's.
        check("cuFuncSetAttribute", unsafe {
            sys::cuFuncSetAttribute(
                loaded.function,
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared,
            )
        })?;
        Ok(loaded)
    }

    /// # Safety
    /// There must be a value of the right meaning for each parameter.
    unsafe fn launch(
        &self,
        stream: sys::CUstream,
        slots: &mut [Slot],
        [x, y, z]: [u32; 3],
    ) -> Result<()> {
        let launch = self.kernel.launch();
        let mut params = pointers(slots);
        let [across, down, deep] = launch.block;
        let mut overlaps = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: across,
            blockDimY: down,
            blockDimZ: deep,
            sharedMemBytes: self.kernel.dynamic_shared(),
            hStream: stream,
            attrs: &raw mut overlaps,
            numAttrs: launch.overlaps.into(),
        };
        // SAFETY: there is a pointer to a value of the right size for each parameter. The driver
        // copies the values and the attribute before it returns. The caller guarantees what the
        // values mean.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                self.function,
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    /// Returns the values of the parameters, and the grid.
    fn values(&self, arguments: &[Argument]) -> Result<(Vec<Slot>, [u32; 3])> {
        let slots = self.slots(arguments)?;
        let multiprocessors = self.context.multiprocessors;
        Ok((slots, self.kernel.grid(&arguments, multiprocessors)?))
    }

    fn slots(&self, arguments: &[Argument]) -> Result<Vec<Slot>> {
        let kernel = &self.kernel;
        let params = kernel.params();
        let mismatch = |position: usize, found: String| {
            Error::Ptx(ptx::Error::Argument {
                kernel: kernel.name().to_owned(),
                position: position + 1,
                wanted: params.get(position).map_or("nothing".to_owned(), |param| {
                    format!("`{}`, {}", param.name, param.ty)
                }),
                found,
            })
        };
        if arguments.len() != params.len() {
            let position = arguments.len().min(params.len());
            return Err(mismatch(
                position,
                format!("{} arguments in all", arguments.len()),
            ));
        }
        let slot = |(i, (param, argument)): (usize, (&ptx::Param, &Argument))| {
            Ok(match (param.ty, *argument) {
                (ParamType::Pointer(_), Argument::Pointer(pointer)) => Slot { pointer },
                (ParamType::Scalar(PtxType::U32), Argument::U32(word)) => Slot { word },
                (ParamType::Scalar(PtxType::F32), Argument::F32(real)) => Slot { real },
                (ParamType::TensorMap(tensor), Argument::Pointer(pointer)) => Slot {
                    map: self.tensor_map(tensor, pointer, arguments)?,
                },
                (_, other) => return Err(mismatch(i, other.to_string())),
            })
        };
        params.iter().zip(arguments).enumerate().map(slot).collect()
    }

    /// Encodes the tensor map of one or several matrices.
    fn tensor_map(
        &self,
        tensor: TensorBox,
        address: u64,
        arguments: &[Argument],
    ) -> Result<sys::CUtensorMap> {
        let size = |name: &str| {
            let params = self.kernel.params();
            let index = params.iter().position(|param| param.name == name);
            index
                .and_then(|index| (&arguments).size(index))
                .unwrap_or(0)
        };
        let side = |extent: Extent| match extent {
            Extent::Param(name) => Ok(size(name)),
            Extent::Fixed(size) => Ok(size.into()),
            other => {
                let requirement = "a number or a parameter";
                Err(invalid("shape", other.to_string(), requirement))
            }
        };
        let [rows, cols] = tensor.shape;
        let (rows, cols) = (side(rows)?, side(cols)?);
        let planes = tensor.planes.iter().map(|name| size(name)).product::<u64>();
        let rank = if tensor.planes.is_empty() { 2 } else { 3 };
        let pitch = cols * u64::from(tensor.ty.bytes());
        // A map cannot have an empty dimension; kernels load nothing if there are no rows or `k` is
        // 0.
        let sizes = [cols.max(1), rows.max(1), planes.max(1)];
        let pitches = [pitch.max(16), (pitch * rows).max(16)];
        let (boxes, ones) = ([tensor.cols, tensor.rows, 1], [1; 3]);
        let ty = match tensor.ty {
            PtxType::F32 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            PtxType::F16 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            _ => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        };
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays have at least as many entries as the map has dimensions; the address
        // is stored, not accessed.
        check("cuTensorMapEncodeTiled", unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                ty,
                rank,
                address as *mut c_void,
                sizes.as_ptr(),
                pitches.as_ptr(),
                boxes.as_ptr(),
                ones.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        })?;
        Ok(map)
    }
}
