//! A GPU: its properties, its memory, and the kernels loaded on it.

use super::buffer::{CudaBuffer, Element};
use super::driver::{check, init};
use super::error::{Error, Result};
use super::launch::CudaKernel;
use crate::ptx::{Kernel, Target};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An NVIDIA GPU. Clones share it.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ordinal: usize,
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: (u32, u32),
    target: Target,
    multiprocessors: u32,
    /// Loaded kernels by name: a kernel's name says all that its text depends on but the target.
    kernels: Mutex<HashMap<String, CudaKernel>>,
}

// SAFETY: the driver's functions may be called from any thread, each of which makes the context
// current first (`CudaDevice::enter`).
unsafe impl Send for Inner {}
// SAFETY: as above; what changes is behind a mutex.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the context was retained once, when this was made. A failure leaves it retained.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

impl CudaDevice {
    /// How many GPUs there are.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver.
    pub fn count() -> Result<usize> {
        init()?;
        let mut count = 0;
        // SAFETY: the pointer is to a living integer.
        check("cuDeviceGetCount", unsafe {
            sys::cuDeviceGetCount(&raw mut count)
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The GPU of this number, from 0 on.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without a driver, [`Error::NoDevice`] if there is no such GPU or it is
    /// older than Volta.
    pub fn open(ordinal: usize) -> Result<Self> {
        let count = Self::count()?;
        let none = |reason: String| Error::NoDevice { ordinal, reason };
        if ordinal >= count {
            return Err(none(format!("there are {count}")));
        }
        let mut device = 0;
        // SAFETY: the pointer is to a living handle, and the number is below the count.
        check("cuDeviceGet", unsafe {
            sys::cuDeviceGet(&raw mut device, ordinal as i32)
        })?;
        let major = attribute(
            device,
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        )?;
        let minor = attribute(
            device,
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )?;
        let target = Target::for_capability(major, minor).ok_or_else(|| {
            none(format!(
                "its compute capability is {major}.{minor}, below 7.0"
            ))
        })?;
        let multiprocessors =
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let name = name_of(device)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is to a living handle; the context is released on drop.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut context, device)
        })?;
        Ok(CudaDevice {
            inner: Arc::new(Inner {
                ordinal,
                device,
                context,
                name,
                capability: (major, minor),
                target,
                multiprocessors,
                kernels: Mutex::new(HashMap::new()),
            }),
        })
    }

    /// The GPU's number.
    pub fn ordinal(&self) -> usize {
        self.inner.ordinal
    }

    /// What its maker calls it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Compute capability, major and minor.
    pub fn capability(&self) -> (u32, u32) {
        self.inner.capability
    }

    /// What kernels are written for on this GPU.
    pub fn target(&self) -> Target {
        self.inner.target
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors
    }

    /// Free and total memory, in bytes.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses to say.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to living integers.
        check("cuMemGetInfo", unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok((free, total))
    }

    /// Whether both are of one GPU, opened once.
    pub(super) fn is(&self, other: &CudaDevice) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Makes the GPU's context the calling thread's.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as `inner`.
        check("cuCtxSetCurrent", unsafe {
            sys::cuCtxSetCurrent(self.inner.context)
        })
    }

    /// Waits for everything asked of the GPU so far.
    ///
    /// # Errors
    /// [`Error::Driver`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: no preconditions beyond a current context.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// A buffer with a copy of `values`.
    ///
    /// # Errors
    /// [`Error::Driver`] if there is not enough memory.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<CudaBuffer<T>> {
        let mut buffer = CudaBuffer::uninitialised(self, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// [`Error::Driver`] if there is not enough memory.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<CudaBuffer<T>> {
        let buffer = CudaBuffer::uninitialised(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// A kernel, written for this GPU and compiled; the second time it is at hand.
    ///
    /// # Errors
    /// [`Error::Ptx`] if this GPU does not have what the kernel needs, [`Error::Compile`] with the
    /// compiler's log if the driver refuses it.
    pub fn load(&self, kernel: &dyn Kernel) -> Result<CudaKernel> {
        let name = kernel.name();
        let kernels = || {
            self.inner
                .kernels
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(loaded) = kernels().get(&name) {
            return Ok(loaded.clone());
        }
        // Not under the lock: others may load while this compiles.
        let loaded = CudaKernel::compile(self, kernel.build(self.target())?)?;
        kernels().insert(name, loaded.clone());
        Ok(loaded)
    }
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the pointer is to a living integer, and the device exists.
    check("cuDeviceGetAttribute", unsafe {
        sys::cuDeviceGetAttribute(&raw mut value, attribute, device)
    })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

fn name_of(device: sys::CUdevice) -> Result<String> {
    let mut name = [0u8; 256];
    // SAFETY: the driver writes at most so many bytes, the last of them zero.
    check("cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device)
    })?;
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}
