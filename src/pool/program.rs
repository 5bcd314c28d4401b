//! [`PoolProgram`]: a compiled graph that several devices compute together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::alloc::try_zeros;
use crate::batch::{Argument, BufferId, GpuCommandBatch, Program};
use crate::device::buffer::DeviceBuffer;
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::graph::node::live;
use crate::graph::{Division, Given, IndexArgument, Node, Source};
use crate::ops::Op;
use crate::pool::work::{Job, Part, Queue, at_once};
use crate::pool::{GpuDevicePool, Lease};

/// A batch compiled for all devices of a pool ([`GpuDevicePool::compile_async`]), which runs with
/// new arguments each time.
pub struct PoolProgram {
    pub(super) pool: GpuDevicePool,
    pub(super) division: Division,
    /// The graph. Its leaves refer to no device's buffers.
    nodes: Vec<Node>,
    /// The lengths of the arguments, and the node of each.
    pub(super) placeholders: Vec<usize>,
    /// The arguments that are indices.
    indices: Vec<IndexArgument>,
    /// Rows of each part.
    pub(super) sizes: Sizes,
    /// The programs of each device, by number of rows; `None` if the device is lost.
    programs: Vec<Option<BTreeMap<usize, Program>>>,
}

/// The number of parts to aim for (enough for several devices of different speed), and the number
/// of elements above which a part is not enlarged (so that it is allocated quickly).
const ENOUGH_PARTS: usize = 16;
const ENOUGH_VALUES: usize = 1 << 22;
/// The numbers of rows in parts are multiples of this: whole tiles of every kernel.
const TILE_ROWS: usize = 128;

impl PoolProgram {
    pub(super) async fn new(
        pool: GpuDevicePool,
        batch: &GpuCommandBatch,
        outputs: &[BufferId],
    ) -> Result<Self> {
        let (nodes, outputs, placeholders) = batch.recorded(outputs)?;
        check_weights(nodes)?;
        let placeholders = placeholders.to_vec();
        let division = Division::new(nodes, &outputs);
        let live = live(nodes, &outputs);
        let needed = (0..nodes.len()).filter(|&node| live[node]);
        let indices = IndexArgument::all(nodes, needed);
        let nodes = leave_devices(nodes, batch.inputs()).await?;
        let sizes = Sizes::new(&division, pool.least_values);
        let mut program = Self {
            programs: pool.devices().map(|_| None).collect(),
            pool,
            division,
            nodes,
            placeholders,
            indices,
            sizes,
        };
        for (place, device) in program.pool.devices().enumerate() {
            match program.compile(device).await {
                Ok(compiled) => program.programs[place] = Some(compiled),
                Err(error) => program.pool.members[place].blame(error).await?,
            }
        }
        program.workers().map(|_| program)
    }

    /// Compiles the programs of a device, by number of rows.
    async fn compile(&self, device: &GpuDevice) -> Result<BTreeMap<usize, Program>> {
        let (mut constants, mut buffers) = (BTreeMap::new(), Vec::new());
        for leaf in self.division.constants() {
            if let Source::Upload(values) = &self.nodes[leaf].source {
                constants.insert(leaf, buffers.len());
                buffers.push(device.upload_async(values).await?);
            }
        }
        let constant = |leaf: usize| constants[&leaf];
        let mut programs = BTreeMap::new();
        // All parts but the last are alike.
        let ends = [0, self.sizes.len() - 1].into_iter();
        for rows in ends.filter_map(|place| self.sizes.get(place)) {
            if let Entry::Vacant(missing) = programs.entry(rows) {
                let (nodes, outputs, given) = self.division.part(&self.nodes, rows, &constant);
                let program =
                    Program::of_graph(device, &nodes, &outputs, buffers.clone(), given).await?;
                missing.insert(program);
            }
        }
        Ok(programs)
    }

    /// Returns the number of parts into which the outputs are divided; 1 if they are not.
    pub fn parts(&self) -> usize {
        self.sizes.len()
    }

    /// Runs with one argument for each placeholder, in the order in which they were recorded, and
    /// returns the outputs. A buffer may belong to any device; it is copied to the host first,
    /// because each device gets rows of it.
    ///
    /// # Errors
    /// `LengthMismatch` for a wrong number or length of arguments, `InvalidArgument` for an index
    /// beyond its limit in an argument, `DeviceLost` if no device is left, and other device errors.
    pub async fn read_async(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        let arguments = on_host(arguments).await?;
        let arguments: Vec<&[f32]> = arguments.iter().map(AsRef::as_ref).collect();
        self.read_slices(&arguments).await
    }

    /// Runs with arguments in host memory.
    pub(super) async fn read_slices(&self, arguments: &[&[f32]]) -> Result<Vec<Vec<f32>>> {
        GpuDevicePool::check_arguments(&self.placeholders, arguments)?;
        for indices in &self.indices {
            indices.check(arguments[indices.placeholder])?;
        }
        let mut results = Vec::new();
        for width in self.division.widths() {
            results.push(try_zeros(width * self.division.rows)?);
        }
        let queue = Queue::new(self.sizes, &mut results, self.division.widths());
        let program = self;
        let slices = Slices {
            program,
            arguments,
            queue,
        };
        self.run(&slices).await?;
        drop(slices);
        Ok(results)
    }

    /// Runs a job on the devices.
    pub(super) async fn run<J: Job>(&self, job: &J) -> Result<()> {
        // Once again for what lost devices have left.
        while !job.is_done()? {
            let works = self.workers()?.into_iter();
            at_once(works.map(|lease| self.work(lease, job)).collect()).await;
        }
        Ok(())
    }

    /// Blocking version of [`PoolProgram::read_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.read_async(arguments))
    }

    /// Returns the workers of a job: every device, or the least busy one if the job is undivided.
    fn workers(&self) -> Result<Vec<Lease>> {
        let compiled = (0..self.programs.len()).filter(|&place| self.programs[place].is_some());
        let first = self.pool.least_busy(compiled.clone())?;
        if self.parts() == 1 {
            return Ok(vec![first]);
        }
        let healthy = compiled.filter(|&place| self.pool.is_healthy(place));
        Ok(healthy.map(|place| self.pool.lease(place)).collect())
    }

    /// Works on parts until none are left or the device is lost.
    async fn work<J: Job>(&self, lease: Lease, job: &J) {
        match self.on_device(&lease, job).await {
            Ok(whole) => {
                let gpu = lease.backend() == Backend::Gpu && self.parts() > 1;
                let lanes = if gpu || J::COMES_AND_GOES {
                    self.pool.in_flight
                } else {
                    1
                };
                let lane = || self.lane(&lease, &whole, job);
                at_once((0..lanes.min(self.parts())).map(|_| lane()).collect()).await;
            }
            Err(error) => {
                if let Err(error) = self.pool.members[lease.place].blame(error).await {
                    job.fail(error);
                }
            }
        }
    }

    /// Uploads the arguments that every part reads as a whole.
    async fn on_device<J: Job>(
        &self,
        device: &GpuDevice,
        job: &J,
    ) -> Result<Vec<Option<DeviceBuffer>>> {
        let mut buffers = Vec::new();
        for given in &self.division.given {
            buffers.push(match given {
                // For one part there is nothing to be shared.
                Given::Whole(leaf) if self.parts() > 1 => {
                    Some(device.upload_async(job.whole(*leaf)).await?)
                }
                _ => None,
            });
        }
        Ok(buffers)
    }

    async fn lane<J: Job>(&self, lease: &Lease, whole: &[Option<DeviceBuffer>], job: &J) {
        let Some(programs) = &self.programs[lease.place] else {
            return;
        };
        let _ends = EndsJob(job);
        while let Some(mut part) = poll_fn(|context| job.take(context)).await {
            let program = &programs[&job.rows(&part).len()];
            let (values, mut outputs) = job.bind(&mut part);
            let given = values.into_iter().zip(whole);
            let arguments = given.map(|(values, buffer)| match buffer {
                Some(buffer) => Argument::Buffer(buffer),
                None => Argument::Values(values),
            });
            let arguments: Vec<Argument<'_>> = arguments.collect();
            let done = program.read_into(&arguments, &mut outputs).await;
            drop((arguments, outputs));
            match done {
                Ok(()) => job.finish(part),
                Err(error) => {
                    job.give_back(part);
                    if let Err(error) = self.pool.members[lease.place].blame(error).await {
                        job.fail(error);
                    }
                    return;
                }
            }
        }
    }

    /// Returns the argument that a part reads; `None` if it reads an upload.
    pub(super) fn argument(&self, given: &Given) -> Option<usize> {
        let (Given::Whole(leaf) | Given::Rows(leaf, _)) = given;
        match &self.nodes[*leaf].source {
            Source::Placeholder(place) => Some(*place),
            _ => None,
        }
    }

    /// The values of a leaf that is an upload.
    pub(super) fn upload(&self, leaf: usize) -> Option<&[f32]> {
        match &self.nodes[leaf].source {
            Source::Upload(values) => Some(values),
            _ => None,
        }
    }
}

/// Ends a job if one of its tasks panics: other tasks may wait for its part.
struct EndsJob<'a, J: Job>(&'a J);

impl<J: Job> Drop for EndsJob<'_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Aborted);
        }
    }
}

/// A job that reads and writes slices.
struct Slices<'a> {
    program: &'a PoolProgram,
    arguments: &'a [&'a [f32]],
    queue: Queue<'a>,
}

impl<'a> Job for Slices<'a> {
    type Part = Part<'a>;
    const COMES_AND_GOES: bool = false;

    fn take(&self, _: &mut Context<'_>) -> Poll<Option<Part<'a>>> {
        Poll::Ready(self.queue.take())
    }

    fn rows(&self, part: &Part<'a>) -> Range<usize> {
        part.rows.clone()
    }

    fn bind<'p>(&'p self, part: &'p mut Part<'a>) -> (Vec<&'p [f32]>, Vec<&'p mut [f32]>) {
        let rows = part.rows.clone();
        let values = self.program.division.given.iter().map(|given| match given {
            Given::Whole(leaf) => self.whole(*leaf),
            Given::Rows(leaf, window) => &self.whole(*leaf)[window.range(rows.clone())],
        });
        let outputs = part.outputs.iter_mut().map(|output| &mut **output);
        (values.collect(), outputs.collect())
    }

    fn whole(&self, leaf: usize) -> &[f32] {
        match &self.program.nodes[leaf].source {
            Source::Placeholder(place) => self.arguments[*place],
            Source::Upload(values) => values,
            Source::Input(_) | Source::Op { .. } => &[],
        }
    }

    fn finish(&self, _: Part<'a>) {}

    fn give_back(&self, part: Part<'a>) {
        self.queue.give_back(part);
    }

    fn fail(&self, error: Error) {
        self.queue.fail(error);
    }

    fn is_done(&self) -> Result<bool> {
        self.queue.is_done()
    }
}

impl std::fmt::Debug for PoolProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("PoolProgram");
        debug
            .field("pool", &self.pool)
            .field("parts", &self.parts());
        debug.finish_non_exhaustive()
    }
}

/// Returns the elements of arguments in host memory.
async fn on_host<'a>(arguments: &[Argument<'a>]) -> Result<Vec<Cow<'a, [f32]>>> {
    let mut values = Vec::new();
    for argument in arguments {
        values.push(match *argument {
            Argument::Values(values) => Cow::Borrowed(values),
            Argument::Buffer(buffer) => match buffer.host() {
                Some(values) => Cow::Borrowed(values),
                None => Cow::Owned(buffer.read_async().await?),
            },
            #[cfg(all(target_arch = "wasm32", feature = "js"))]
            Argument::Array(values) => Cow::Owned(values.to_vec()),
        });
    }
    Ok(values)
}

/// Copies a graph so that its leaves belong to no device.
async fn leave_devices(nodes: &[Node], inputs: &[DeviceBuffer]) -> Result<Vec<Node>> {
    let mut nodes = nodes.to_vec();
    for node in &mut nodes {
        if let Source::Input(index) = &node.source {
            node.source = Source::Upload(Arc::new(inputs[*index].read_async().await?));
        }
    }
    Ok(nodes)
}

/// The number of rows of each part. It is computed and not a list: a stream may have more parts
/// than memory holds entries.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The rows of all parts but the last.
    rows: usize,
    last: usize,
    parts: usize,
}

impl Sizes {
    /// Divides a graph into as few parts as have enough rows each; the last part has the remainder.
    /// The result depends on the graph alone, and not on the devices.
    fn new(division: &Division, least_values: usize) -> Self {
        let rows_of = |values: usize| values.div_ceil(division.width.max(1));
        let even = division.rows.div_ceil(ENOUGH_PARTS);
        let rows = even.min(rows_of(ENOUGH_VALUES)).max(rows_of(least_values));
        // More rows than there are make one part, as all of them do.
        let whole_tiles = rows.checked_next_multiple_of(TILE_ROWS);
        let rows = whole_tiles.map_or(division.rows, |rows| rows.min(division.rows));
        let parts = division.rows / rows;
        let last = division.rows - rows * (parts - 1);
        Self { rows, last, parts }
    }

    /// The number of parts, at least 1.
    pub(super) fn len(self) -> usize {
        self.parts
    }

    /// The rows of a part; `None` after the last.
    pub(super) fn get(self, place: usize) -> Option<usize> {
        let rows = if place + 1 == self.parts {
            self.last
        } else {
            self.rows
        };
        (place < self.parts).then_some(rows)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..self.parts).filter_map(move |place| self.get(place))
    }
}

/// Refuses weights of a cache, which are on one device.
fn check_weights(nodes: &[Node]) -> Result<()> {
    let is_cached = |node: &Node| matches!(node.operation(), Some((Op::MatmulCached(_), _)));
    if nodes.iter().any(is_cached) {
        let (what, owner) = ("cache", "pool");
        return Err(Error::Foreign { what, owner });
    }
    Ok(())
}
