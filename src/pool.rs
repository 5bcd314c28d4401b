//! [`GpuDevicePool`]: several devices used as one.
//!
//! The files:
//!
//! - `program` compiles a graph for each, `work` distributes the parts, `stream` reads parts from a source and writes
//!   them to a sink.

mod program;
mod stream;
mod work;

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

pub use program::PoolProgram;
pub use stream::{StreamProgress, StreamSink, StreamSource, StreamWatch};

use crate::batch::{BufferId, GpuCommandBatch};
use crate::device::{DeviceBuilder, GpuDevice};
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::indices::check_indices;
use crate::ops::shape::{check_len, output_len};

/// Devices that share work: every GPU of the machine, or a given list.
///
/// A graph whose outputs can be computed by rows is divided among all devices. Any other graph runs
/// on the least busy device. The division depends on the graph's shape alone, and no sum is
/// divided: results do not depend on the number of devices, and are bit-identical on identical
/// devices. If a device is lost, another one repeats its work.
///
/// Clones share the devices.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuCommandBatch, GpuDevicePool, Op};
///
/// let pool = GpuDevicePool::new()?;
/// assert_eq!(pool.run(&Op::Relu, &[&[1.0, -2.0]])?, [1.0, 0.0]);
///
/// let device = pool.device()?;
/// let mut batch = GpuCommandBatch::new(device.clone());
/// let (x, w) = (batch.placeholder(6), batch.upload(&[1.0, 2.0]));
/// let y = batch.matmul(x, w, 3, 2, 1);
/// let program = pool.compile(&batch, &[y])?;
/// assert_eq!(program.read(&[(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]).into()])?, [[1.0, 2.0, 3.0]]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
pub struct GpuDevicePool {
    members: Arc<[Member]>,
    least_values: usize,
    in_flight: usize,
}

struct Member {
    device: GpuDevice,
    /// The number of leases in use.
    leases: AtomicUsize,
    /// The first sign of the device's loss, if the device did not report it itself.
    lost: OnceLock<String>,
}

impl Member {
    fn new(device: GpuDevice) -> Self {
        Self {
            device,
            leases: AtomicUsize::new(0),
            lost: OnceLock::new(),
        }
    }

    /// Returns `DeviceLost` if the device is lost.
    fn check(&self) -> Result<()> {
        self.device.check()?;
        match self.lost.get().cloned() {
            Some(reason) => Err(Error::DeviceLost { reason }),
            None => Ok(()),
        }
    }

    /// Sends one element to the device and reads it back.
    async fn round_trip(&self) -> Result<Vec<f32>> {
        self.device.upload_async(&[0.0]).await?.read_async().await
    }

    /// Returns the error, unless a device loss caused it. A driver may report consequences of a
    /// loss before the loss itself; a round trip fails then.
    async fn blame(&self, error: Error) -> Result<()> {
        let message = error.to_string();
        if matches!(error, Error::Gpu { .. }) && self.round_trip().await.is_err() {
            let _ = self.lost.set(message.clone());
        }
        if self.check().is_ok() {
            return Err(error);
        }
        log::warn!("a device of the pool is lost: {message}");
        Ok(())
    }
}

/// The default least number of elements that a part of a divided graph reads or writes. A GPU
/// computes this many for longer than it takes to send them.
const LEAST_VALUES: usize = 1 << 21;
/// The default number of parts in flight on a GPU: one is computed while another one is
/// transferred.
const IN_FLIGHT: usize = 2;
const MAX_IN_FLIGHT: usize = 64;

impl GpuDevicePool {
    /// Opens a pool of all hardware GPUs, or else of SIMD alone. Does not fail for lack of a GPU.
    pub async fn new_async() -> Result<Self> {
        GpuDevice::builder().build_pool_async().await
    }

    /// Blocking version of [`GpuDevicePool::new_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<Self> {
        crate::runtime::block_on(Self::new_async())
    }

    /// Creates a pool of devices that are already open.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty list.
    pub fn from_devices(devices: impl IntoIterator<Item = GpuDevice>) -> Result<Self> {
        let members: Arc<[Member]> = devices.into_iter().map(Member::new).collect();
        if members.is_empty() {
            return Err(Error::invalid("devices", "[]", "at least one device"));
        }
        Ok(Self {
            members,
            least_values: LEAST_VALUES,
            in_flight: IN_FLIGHT,
        })
    }

    /// Sets the least number of elements that a part of a divided graph reads or writes. The
    /// default is two million. A part also has at least 128 rows.
    #[must_use]
    pub fn least_values(self, values: usize) -> Self {
        let least_values = values;
        Self {
            least_values,
            ..self
        }
    }

    /// Sets the number of parts in flight on each GPU, from 1 to 64, so that some are computed
    /// while others are transferred. The default is two. Each part in flight takes memory for its
    /// elements, on the host and on the device.
    #[must_use]
    pub fn in_flight(self, parts: usize) -> Self {
        let in_flight = parts.clamp(1, MAX_IN_FLIGHT);
        Self { in_flight, ..self }
    }

    /// Iterates over all devices, including lost ones.
    pub fn devices(&self) -> impl Iterator<Item = &GpuDevice> {
        self.members.iter().map(|member| &member.device)
    }

    /// Returns the least busy device: the one with the fewest leases. It counts as busy until the
    /// lease is dropped.
    ///
    /// # Errors
    /// `DeviceLost` if all devices are lost.
    pub fn device(&self) -> Result<Lease> {
        self.least_busy(0..self.members.len())
    }

    fn least_busy(&self, places: impl IntoIterator<Item = usize>) -> Result<Lease> {
        let leases = |&place: &usize| self.members[place].leases.load(Ordering::Relaxed);
        let healthy = places.into_iter().filter(|&place| self.is_healthy(place));
        let place = healthy.min_by_key(leases);
        Ok(self.lease(place.ok_or_else(|| self.all_lost())?))
    }

    fn lease(&self, place: usize) -> Lease {
        self.members[place].leases.fetch_add(1, Ordering::Relaxed);
        let members = self.members.clone();
        Lease { members, place }
    }

    fn is_healthy(&self, place: usize) -> bool {
        self.members[place].check().is_ok()
    }

    /// Returns the error for a pool without a usable device.
    fn all_lost(&self) -> Error {
        let last = self.members.last().map(Member::check);
        let last = match last {
            Some(Err(Error::DeviceLost { reason })) => reason,
            _ => "the graph was compiled for none of those that are left".to_owned(),
        };
        let reason = format!("all {} devices of the pool: {last}", self.members.len());
        Error::DeviceLost { reason }
    }

    /// Compiles a program that computes outputs of a batch, which may belong to any device. The
    /// program runs on all devices of the pool, in parts, if its outputs can be computed by rows,
    /// and on one device otherwise. Uploads are copied to every device now; placeholders become the
    /// program's arguments.
    ///
    /// These can be computed by rows: elementwise operations, matmuls by the rows of an `A` that is
    /// not transposed, `bias_add`, softmaxes and norms of rows, `argmax_rows`, `top_k_rows`,
    /// `gather_rows`, `take_along_rows`, and, of arguments or uploads, `convolve_layer` and
    /// `convolve2d` without padding.
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::compile_async`]; `Foreign` for a `matmul_cached`, whose weights
    /// are on one device; `DeviceLost`.
    pub async fn compile_async(
        &self,
        batch: &GpuCommandBatch,
        outputs: &[BufferId],
    ) -> Result<PoolProgram> {
        PoolProgram::new(self.clone(), batch, outputs).await
    }

    /// Blocking version of [`GpuDevicePool::compile_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn compile(&self, batch: &GpuCommandBatch, outputs: &[BufferId]) -> Result<PoolProgram> {
        crate::runtime::block_on(self.compile_async(batch, outputs))
    }

    /// Runs one operation, divided among the devices if that is possible and it is large enough.
    ///
    /// # Errors
    /// Errors of the operation's inputs, and device errors.
    pub async fn run_async(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        output_len(op, &lens)?;
        check_indices(op, |input| inputs.get(input).copied())?;
        let mut batch = GpuCommandBatch::new(self.device()?.clone());
        let arguments = lens.iter().map(|&len| batch.placeholder(len));
        let arguments: Vec<BufferId> = arguments.collect();
        let result = batch.record(op.clone(), &arguments);
        let program = self.compile_async(&batch, &[result]).await?;
        Ok(program.read_slices(inputs).await?.swap_remove(0))
    }

    /// Blocking version of [`GpuDevicePool::run_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.run_async(op, inputs))
    }

    /// Checks arguments against the lengths of a program's placeholders.
    fn check_arguments(lens: &[usize], arguments: &[&[f32]]) -> Result<()> {
        check_len("arguments", lens.len(), arguments.len())?;
        let mut pairs = lens.iter().zip(arguments);
        pairs.try_for_each(|(&len, argument)| check_len("argument", len, argument.len()))
    }
}

impl std::fmt::Debug for GpuDevicePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.devices()).finish()
    }
}

impl DeviceBuilder {
    /// Builds a pool with a device for every GPU. [`Backend::Gpu`](crate::Backend::Gpu) takes every
    /// hardware GPU, or software adapters if there are none. In WebAssembly and on SIMD the pool
    /// has one device.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_async`].
    pub async fn build_pool_async(self) -> Result<GpuDevicePool> {
        #[cfg(not(target_arch = "wasm32"))]
        let devices = self.build_some(usize::MAX).await?;
        #[cfg(target_arch = "wasm32")]
        let devices = [self.build_async().await?];
        GpuDevicePool::from_devices(devices)
    }

    /// Blocking version of [`DeviceBuilder::build_pool_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build_pool(self) -> Result<GpuDevicePool> {
        crate::runtime::block_on(self.build_pool_async())
    }
}

/// A device borrowed from a pool, which counts as busy until the lease is dropped.
pub struct Lease {
    members: Arc<[Member]>,
    place: usize,
}

impl Deref for Lease {
    type Target = GpuDevice;

    fn deref(&self) -> &GpuDevice {
        &self.members[self.place].device
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let leases = &self.members[self.place].leases;
        leases.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lease").field(&**self).finish()
    }
}
