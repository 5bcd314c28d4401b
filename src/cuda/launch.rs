//! Loaded kernels and their launch.

use super::compile;
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use crate::ptx::{self, Extent, ParamType, PtxKernel, PtxModule, PtxType, Sizes, TensorBox};
use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An address in the GPU's memory; for a tensor map, of the first matrix's first value.
    Pointer(u64),
    /// An integer.
    U32(u32),
    /// A number.
    F32(f32),
}

impl Sizes for &[Argument] {
    fn size(&self, index: usize) -> Option<u64> {
        match self.get(index) {
            Some(Argument::U32(value)) => Some((*value).into()),
            _ => None,
        }
    }
}

/// A kernel on a GPU. Clones share it.
#[derive(Clone, Debug)]
pub struct CudaKernel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: CudaDevice,
    kernel: PtxKernel,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: a loaded module never changes, and the driver takes calls from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: the module is this one's own, and is used no more.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

/// What lies in a parameter's place.
#[repr(C)]
union Slot {
    pointer: u64,
    word: u32,
    real: f32,
    map: sys::CUtensorMap,
}

impl CudaKernel {
    /// Compiles a kernel for a GPU, or finds it compiled.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log if the driver refuses it.
    pub fn compile(device: &CudaDevice, kernel: PtxKernel) -> Result<Self> {
        let text = PtxModule::new(kernel.target()).with(kernel.clone())?.emit();
        let code = compile::cubin(device, kernel.name(), &text)?;
        device.enter()?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the code is what the driver's own linker made for this GPU.
        check("cuModuleLoadData", unsafe {
            sys::cuModuleLoadData(&raw mut module, code.as_ptr().cast())
        })?;
        let mut inner = Inner {
            device: device.clone(),
            kernel,
            module,
            function: std::ptr::null_mut(),
        };
        let name = CString::new(inner.kernel.name()).unwrap_or_default();
        // SAFETY: the name ends with a zero, and the module is loaded.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&raw mut inner.function, module, name.as_ptr())
        })?;
        let shared = inner.kernel.dynamic_shared() as i32;
        // SAFETY: the function is the module's.
        check("cuFuncSetAttribute", unsafe {
            sys::cuFuncSetAttribute(
                inner.function,
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared,
            )
        })?;
        Ok(CudaKernel {
            inner: Arc::new(inner),
        })
    }

    /// The kernel, with its launch and its parameters.
    pub fn kernel(&self) -> &PtxKernel {
        &self.inner.kernel
    }

    /// Starts the kernel after everything asked of the GPU before; a grid without blocks does
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Ptx`] if arguments and parameters do not match, [`Error::Driver`] if the driver
    /// refuses the launch. What goes wrong while it runs is reported by later calls.
    ///
    /// # Safety
    /// Every address must be of as much memory of this GPU as the kernel's documentation asks
    /// for with these sizes, aligned as it asks, and written by nobody else at the time.
    pub unsafe fn launch(&self, arguments: &[Argument]) -> Result<()> {
        let Inner {
            device,
            kernel,
            function,
            ..
        } = &*self.inner;
        let mut slots = self.slots(arguments)?;
        let [x, y, z] = kernel.grid(&arguments, device.multiprocessors())?;
        if x == 0 || y == 0 || z == 0 {
            return Ok(());
        }
        let mut params: Vec<*mut c_void> = slots
            .iter_mut()
            .map(|slot| (&raw mut *slot).cast())
            .collect();
        let [across, down, deep] = kernel.launch().block;
        device.enter()?;
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
            sharedMemBytes: kernel.dynamic_shared(),
            hStream: std::ptr::null_mut(),
            attrs: &raw mut overlaps,
            numAttrs: kernel.launch().overlaps.into(),
        };
        // SAFETY: there is a pointer to a value of the right size for each parameter, which the
        // driver copies before it returns, as it does the attribute; what the values mean is the
        // caller's promise.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                *function,
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    fn slots(&self, arguments: &[Argument]) -> Result<Vec<Slot>> {
        let kernel = &self.inner.kernel;
        let params = kernel.params();
        let mismatch = |position: usize, found: String| {
            Error::Ptx(ptx::Error::Argument {
                kernel: kernel.name().to_owned(),
                position: position + 1,
                wanted: params.get(position).map_or("nothing".to_owned(), |param| {
                    format!("`{}`, {:?}", param.name, param.ty)
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
                (_, other) => return Err(mismatch(i, format!("{other:?}"))),
            })
        };
        params.iter().zip(arguments).enumerate().map(slot).collect()
    }

    /// What the copy engine has to know of a matrix, or of several.
    fn tensor_map(
        &self,
        tensor: TensorBox,
        address: u64,
        arguments: &[Argument],
    ) -> Result<sys::CUtensorMap> {
        let size = |name: &str| {
            let params = self.inner.kernel.params();
            let index = params.iter().position(|param| param.name == name);
            index
                .and_then(|index| (&arguments).size(index))
                .unwrap_or(0)
        };
        let [rows, cols] = tensor.shape.map(|extent| match extent {
            Extent::Param(name) => size(name),
            Extent::Fixed(size) => size.into(),
            Extent::Tiles(..) | Extent::Multiprocessors(_) => 0,
        });
        let planes = tensor.planes.iter().map(|name| size(name)).product::<u64>();
        let rank = if tensor.planes.is_empty() { 2 } else { 3 };
        let pitch = cols * u64::from(tensor.ty.bytes());
        // Maps have no empty dimensions; kernels without rows or depth load nothing.
        let sizes = [cols.max(1), rows.max(1), planes.max(1)];
        let pitches = [pitch.max(16), (pitch * rows).max(16)];
        let (boxes, ones) = ([tensor.cols, tensor.rows, 1], [1; 3]);
        let ty = match tensor.ty {
            PtxType::F32 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            PtxType::F16 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            _ => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        };
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        // SAFETY: all arrays have at least as many entries as the map has dimensions; the
        // address is only written down.
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
