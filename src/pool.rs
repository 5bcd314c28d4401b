//! [`GpuDevicePool`]: several devices as one.

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
use crate::ops::shape::{check_len, output_len};

/// Devices that share the work: every GPU there is, or those that one is given.
///
/// A graph whose outputs can be computed by rows is divided among all of them; any other runs on
/// the one that has least to do. Where it is divided depends on its shape alone, and no sum is:
/// the result is the same however many devices there are, bit for bit where they are alike. What
/// a lost device was doing is done again by another one.
///
/// Clones share the devices.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuCommandBatch, GpuDevicePool, Op};
///
/// let pool = GpuDevicePool::new()?;
/// assert_eq!(pool.run(&Op::Relu {}, &[&[1.0, -2.0]])?, [1.0, 0.0]);
///
/// let device = pool.device()?;
/// let mut batch = GpuCommandBatch::new(device.clone());
/// let (x, w) = (batch.placeholder(6), batch.upload(&[1.0, 2.0]));
/// let y = batch.matmul(x, w, 3, 2, 1);
/// let program = pool.compile(&batch, &[y])?;
/// assert_eq!(program.read(&[&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]])?, [[1.0, 2.0, 3.0]]);
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
    /// Leases that have not come back.
    leases: AtomicUsize,
    /// What was the first sign of the device's loss, where it did not tell by itself.
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

    /// `DeviceLost` if the device is.
    fn check(&self) -> Result<()> {
        self.device.check()?;
        match self.lost.get().cloned() {
            Some(reason) => Err(Error::DeviceLost { reason }),
            None => Ok(()),
        }
    }

    /// Sends a value and brings it back.
    async fn round_trip(&self) -> Result<Vec<f32>> {
        self.device.upload_async(&[0.0]).await?.read_async().await
    }

    /// The error, unless it comes of the device's loss. A driver may tell what came of a loss
    /// before the loss itself, but then nothing else works either.
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

/// Values that a part of a divided graph reads or writes at least: so many keep a GPU busy longer
/// than it takes to send them.
const LEAST_VALUES: usize = 1 << 21;
/// Parts that a GPU has at a time: one is computed while values of others are on their way.
const IN_FLIGHT: usize = 2;
const MAX_IN_FLIGHT: usize = 64;

impl GpuDevicePool {
    /// A pool of all real GPUs, or else of SIMD alone. Does not fail for lack of a GPU.
    pub async fn new_async() -> Result<Self> {
        GpuDevice::builder().build_pool_async().await
    }

    /// [`GpuDevicePool::new_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<Self> {
        crate::runtime::block_on(Self::new_async())
    }

    /// A pool of devices that there are already.
    ///
    /// # Errors
    /// `InvalidArgument` for none.
    pub fn from_devices(devices: impl IntoIterator<Item = GpuDevice>) -> Result<Self> {
        let members: Arc<[Member]> = devices.into_iter().map(Member::new).collect();
        if members.is_empty() {
            return Err(Error::invalid("devices", "[]", "at least one"));
        }
        Ok(Self {
            members,
            least_values: LEAST_VALUES,
            in_flight: IN_FLIGHT,
        })
    }

    /// Divides smaller graphs, too, or larger ones only: a part reads or writes at least `values`
    /// values. Two million unless this says otherwise. A part has at least 128 rows, too.
    #[must_use]
    pub fn least_values(self, values: usize) -> Self {
        let least_values = values;
        Self {
            least_values,
            ..self
        }
    }

    /// How many parts a GPU has at a time, at least 1 and at most 64: so that some are computed while
    /// others are on their way. Two unless this says otherwise. More take more memory: the values of so many
    /// parts, on the host and on the device.
    #[must_use]
    pub fn in_flight(self, parts: usize) -> Self {
        let in_flight = parts.clamp(1, MAX_IN_FLIGHT);
        Self { in_flight, ..self }
    }

    /// The devices, those that were lost among them.
    pub fn devices(&self) -> impl Iterator<Item = &GpuDevice> {
        self.members.iter().map(|member| &member.device)
    }

    /// The device that has least to do: the one that fewest leases are of. It counts as busy
    /// until the lease is dropped.
    ///
    /// # Errors
    /// `DeviceLost` where all of them are.
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

    /// The error for when no device is left.
    fn all_lost(&self) -> Error {
        let last = self.members.last().map(Member::check);
        let last = match last {
            Some(Err(Error::DeviceLost { reason })) => reason,
            _ => "the graph was compiled for none of those that are left".to_owned(),
        };
        let reason = format!("all {} devices of the pool: {last}", self.members.len());
        Error::DeviceLost { reason }
    }

    /// Plans how to compute some values of a batch, which may be of any device: on all of the
    /// pool's devices at once, in parts, if they can be computed by rows, and else on one.
    /// Uploads go to every device now; placeholders are the program's arguments.
    ///
    /// By rows go elementwise operations, products by the rows of an `A` that is not transposed,
    /// `bias_add`, softmaxes and norms of rows, and convolutions of arguments or uploads without
    /// padding.
    ///
    /// # Errors
    /// As [`GpuCommandBatch::compile`].
    pub async fn compile_async(
        &self,
        batch: &GpuCommandBatch,
        outputs: &[BufferId],
    ) -> Result<PoolProgram> {
        PoolProgram::new(self.clone(), batch, outputs).await
    }

    /// [`GpuDevicePool::compile_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn compile(&self, batch: &GpuCommandBatch, outputs: &[BufferId]) -> Result<PoolProgram> {
        crate::runtime::block_on(self.compile_async(batch, outputs))
    }

    /// Runs one operation, divided where that is possible and there is enough of it.
    ///
    /// # Errors
    /// What is wrong with its inputs, and what the devices have to say.
    pub async fn run_async(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        output_len(op, &lens)?;
        let mut batch = GpuCommandBatch::new(self.device()?.clone());
        let arguments = lens.iter().map(|&len| batch.placeholder(len));
        let arguments: Vec<BufferId> = arguments.collect();
        let result = batch.record(op.clone(), &arguments);
        let program = self.compile_async(&batch, &[result]).await?;
        Ok(program.read_async(inputs).await?.swap_remove(0))
    }

    /// [`GpuDevicePool::run_async`], waited for.
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
    /// A pool with a device like this for every GPU: for [`Backend::Gpu`](crate::Backend::Gpu)
    /// every real one, or software adapters if there are no others. In WebAssembly, and on SIMD,
    /// the pool is of one.
    ///
    /// # Errors
    /// As [`DeviceBuilder::build_async`].
    pub async fn build_pool_async(self) -> Result<GpuDevicePool> {
        #[cfg(not(target_arch = "wasm32"))]
        let devices = self.build_all().await?;
        #[cfg(target_arch = "wasm32")]
        let devices = [self.build_async().await?];
        GpuDevicePool::from_devices(devices)
    }

    /// [`DeviceBuilder::build_pool_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build_pool(self) -> Result<GpuDevicePool> {
        crate::runtime::block_on(self.build_pool_async())
    }
}

/// A device of a pool, which counts as busy until this is dropped.
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
