//! The driver's context of a GPU, and the properties of that GPU.

use super::driver::{check, init};
use super::error::{Error, Result};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use relampago_ptx::Target;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A GPU's primary context, and the properties that do not change.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) ordinal: usize,
    pub(super) name: String,
    pub(super) capability: (u32, u32),
    pub(super) target: Target,
    pub(super) multiprocessors: u32,
    /// The highest clock rates of the multiprocessors and the memory, in kHz.
    pub(super) clocks: [u32; 2],
    pub(super) handle: sys::CUcontext,
    device: sys::CUdevice,
    /// Serialises submissions: reading the pending uses of memory, submitting work and recording
    /// its uses.
    turns: Mutex<()>,
}

// SAFETY: the driver's functions may be called from any thread, each of which makes the context
// current first (`Context::enter`); nothing here changes but a lock.
unsafe impl Send for Context {}
// SAFETY: see `Send`.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once, when this was made. A failure leaves it retained.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Returns the number of GPUs.
pub(super) fn count() -> Result<usize> {
    init()?;
    let mut count = 0;
    // SAFETY: the pointer is to a living integer.
    check("cuDeviceGetCount", unsafe {
        sys::cuDeviceGetCount(&raw mut count)
    })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

impl Context {
    pub(super) fn open(ordinal: usize) -> Result<Self> {
        let count = count()?;
        let none = |reason: String| Error::NoDevice { ordinal, reason };
        if ordinal >= count {
            return Err(none(format!("there are {count}")));
        }
        let mut device = 0;
        // SAFETY: the pointer is to a living handle, and the number is below the count.
        check("cuDeviceGet", unsafe {
            sys::cuDeviceGet(&raw mut device, ordinal as i32)
        })?;
        let ask = |what| attribute(device, what);
        let capability = (
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let (major, minor) = capability;
        let old = || {
            none(format!(
                "its compute capability is {major}.{minor}, below 7.0"
            ))
        };
        let target = Target::for_capability(major, minor).ok_or_else(old)?;
        let multiprocessors = ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let clocks = [
            ask(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        ];
        let name = name_of(device)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a living handle; the context is released on drop.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut handle, device)
        })?;
        Ok(Context {
            ordinal,
            name,
            capability,
            target,
            multiprocessors,
            clocks,
            handle,
            device,
            turns: Mutex::default(),
        })
    }

    /// Makes this the current context of the calling thread.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        check("cuCtxSetCurrent", unsafe {
            sys::cuCtxSetCurrent(self.handle)
        })
    }

    /// Locks submission of work on this context's memory.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this GPU can access the other GPU's memory directly.
    pub(super) fn reaches(&self, other: &Context) -> Result<bool> {
        if self.device == other.device {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: the pointer is to a living integer, and both devices exist.
        check("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(&raw mut can, self.device, other.device)
        })?;
        Ok(can != 0)
    }

    /// Enables access to the other context's memory if the GPUs support it. Makes this the current
    /// context.
    pub(super) fn reach(&self, other: &Context) -> Result<()> {
        self.enter()?;
        if self.device == other.device || !self.reaches(other)? {
            return Ok(());
        }
        // SAFETY: the other context lives; access ends with either of them.
        match unsafe { sys::cuCtxEnablePeerAccess(other.handle, 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => check("cuCtxEnablePeerAccess", code),
        }
    }

    /// Returns the free and the total memory, in bytes.
    pub(super) fn memory(&self) -> Result<(usize, usize)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to living integers.
        check("cuMemGetInfo", unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok((free, total))
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
    // SAFETY: the driver writes at most that many bytes, including a final zero.
    check("cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device)
    })?;
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}
