//! Streams: arguments and results that are read and written part by part, and are never in memory
//! as a whole.

use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::graph::Given;
use crate::pool::program::PoolProgram;
use crate::pool::work::Job;

/// Fills a slice with elements of an argument: `(argument index, first element, slice)`.
pub type StreamSource<'a> = dyn FnMut(usize, usize, &mut [f32]) -> io::Result<()> + Send + 'a;
/// Takes elements of a result: `(result index, first element, elements)`.
pub type StreamSink<'a> = dyn FnMut(usize, usize, &[f32]) -> io::Result<()> + Send + 'a;
/// Receives the progress of a stream and decides whether to continue.
pub type StreamWatch<'a> = dyn FnMut(StreamProgress) -> ControlFlow<()> + Send + 'a;

/// The progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamProgress {
    /// The number of rows that the sink has received.
    pub rows: usize,
    /// The total number of rows.
    pub of: usize,
}

/// The number of parts in memory, as a multiple of the parts that the devices work on. It limits
/// memory when a slow part keeps later ones from the sink.
const AHEAD: usize = 4;

impl PoolProgram {
    /// Runs with arguments that `source` supplies part by part, and passes the results to `sink`, so that neither must
    /// fit into memory. The results are bit-identical to those of [`PoolProgram::read_async`]. Reading, computing and
    /// writing of parts overlap: each device has [`GpuDevicePool::in_flight`] parts at a time. If one device is slow,
    /// the others continue until four times as many parts are in memory, and then wait.
    ///
    /// The source is asked for the elements of an argument in ascending order, with two exceptions:
    /// convolutions ask for a part's last rows again, and arguments that every element depends on
    /// are read as a whole, first. The sink receives the elements of each result in ascending
    /// order. A graph that cannot be divided by rows ([`PoolProgram::parts`] is 1) is one part.
    /// `watch` is called after each part and ends the stream by [`ControlFlow::Break`].
    ///
    /// # Errors
    /// `Stream` with the error of the source or the sink, `Aborted` if `watch` ended the stream,
    /// `OutOfMemory`, `DeviceLost` if no device is left, and other device errors.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuCommandBatch, GpuDevice, GpuDevicePool};
    /// use std::ops::ControlFlow;
    ///
    /// let pool = GpuDevicePool::from_devices([GpuDevice::new()?])?;
    /// let mut batch = GpuCommandBatch::new(pool.device()?.clone());
    /// let x = batch.placeholder(1_000_000); // or a thousand times as many
    /// let y = batch.scale(x, 0.5);
    /// let program = pool.compile(&batch, &[y])?;
    /// let mut total = 0.0;
    /// program.stream(
    ///     &mut |_, start, values| {
    ///         values.iter_mut().zip(start..).for_each(|(value, i)| *value = (i % 3) as f32);
    ///         Ok(())
    ///     },
    ///     &mut |_, _, values| {
    ///         total += values.iter().sum::<f32>();
    ///         Ok(())
    ///     },
    ///     &mut |_| ControlFlow::Continue(()),
    /// )?;
    /// assert_eq!(total, 499_999.5);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// [`GpuDevicePool::in_flight`]: crate::GpuDevicePool::in_flight
    pub async fn stream_async(
        &self,
        source: &mut StreamSource<'_>,
        sink: &mut StreamSink<'_>,
        watch: &mut StreamWatch<'_>,
    ) -> Result<()> {
        let stream = Stream::new(self, source, sink, watch)?;
        self.run(&stream).await
    }

    /// Blocking version of [`PoolProgram::stream_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn stream(
        &self,
        source: &mut StreamSource<'_>,
        sink: &mut StreamSink<'_>,
        watch: &mut StreamWatch<'_>,
    ) -> Result<()> {
        crate::runtime::block_on(self.stream_async(source, sink, watch))
    }
}

struct Stream<'a> {
    program: &'a PoolProgram,
    /// The arguments that every part has whole, by their nodes.
    whole: BTreeMap<usize, Vec<f32>>,
    /// The source. It is locked before the state, and so is the sink.
    source: Mutex<&'a mut StreamSource<'a>>,
    output: Mutex<Output<'a>>,
    state: Mutex<State>,
    /// The number of parts that may be running or done before the sink has received the first of them.
    ahead: usize,
}

#[derive(Default)]
struct State {
    /// The next part, and its first row.
    next: usize,
    row: usize,
    /// The number of parts that the sink has.
    written: usize,
    /// The tasks that wait for room for another part.
    waiting: Vec<Waker>,
    /// Parts that lost devices did not finish.
    returned: Vec<Chunk>,
    /// Buffers of finished parts, to be reused.
    free: Vec<Chunk>,
    error: Option<Error>,
}

struct Output<'a> {
    sink: &'a mut StreamSink<'a>,
    watch: &'a mut StreamWatch<'a>,
    /// The next part that the sink takes; later ones wait.
    next: usize,
    waiting: BTreeMap<usize, Chunk>,
}

/// A part with its values.
#[derive(Default)]
pub(super) struct Chunk {
    place: usize,
    rows: Range<usize>,
    /// Whether its arguments were read.
    is_filled: bool,
    /// The arguments of a part, in order; empty for arguments that are read as a whole.
    arguments: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
}

impl<'a> Stream<'a> {
    fn new(
        program: &'a PoolProgram,
        source: &'a mut StreamSource<'_>,
        sink: &'a mut StreamSink<'_>,
        watch: &'a mut StreamWatch<'_>,
    ) -> Result<Self> {
        let mut whole = BTreeMap::new();
        for given in &program.division.given {
            if let (Given::Whole(leaf), Some(argument)) = (given, program.argument(given)) {
                let mut values = try_zeros(program.placeholders[argument])?;
                source(argument, 0, &mut values).map_err(|error| told("source", &error))?;
                whole.insert(*leaf, values);
            }
        }
        let output = Output {
            sink,
            watch,
            next: 0,
            waiting: BTreeMap::new(),
        };
        Ok(Self {
            program,
            whole,
            source: Mutex::new(source),
            output: Mutex::new(output),
            state: Mutex::default(),
            ahead: AHEAD * program.pool.in_flight * program.pool.members.len(),
        })
    }

    /// Returns the next part that is free, or nothing once the stream has failed.
    fn next(&self, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let state = &mut *lock(&self.state);
        if state.error.is_some() {
            return Poll::Ready(None);
        }
        if let Some(chunk) = state.returned.pop() {
            return Poll::Ready(Some(chunk));
        }
        let Some(rows) = self.program.sizes.get(state.next) else {
            return Poll::Ready(None);
        };
        if state.next - state.written >= self.ahead {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        let mut chunk = state.free.pop().unwrap_or_default();
        (chunk.place, chunk.rows) = (state.next, state.row..state.row + rows);
        chunk.is_filled = false;
        (state.next, state.row) = (state.next + 1, chunk.rows.end);
        Poll::Ready(Some(chunk))
    }

    /// Changes the state and wakes the tasks that wait for a part.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Reads a part.
    fn fill(&self, chunk: &mut Chunk, source: &mut StreamSource<'_>) -> Result<()> {
        let division = &self.program.division;
        chunk.arguments.resize(division.given.len(), Vec::new());
        for (given, values) in division.given.iter().zip(&mut chunk.arguments) {
            let (Given::Rows(_, window), Some(argument)) = (given, self.program.argument(given))
            else {
                continue;
            };
            let range = window.range(chunk.rows.clone());
            fit(values, range.len())?;
            source(argument, range.start, values).map_err(|error| told("source", &error))?;
        }
        let widths: Vec<usize> = division.widths().collect();
        chunk.outputs.resize(widths.len(), Vec::new());
        for (output, width) in chunk.outputs.iter_mut().zip(widths) {
            fit(output, width * chunk.rows.len())?;
        }
        chunk.is_filled = true;
        Ok(())
    }

    /// Passes finished parts to the sink in order.
    fn write(&self, output: &mut Output<'_>, chunk: Chunk) -> Result<()> {
        // The sink sees nothing of what comes after a failure.
        if lock(&self.state).error.is_some() {
            return Ok(());
        }
        output.waiting.insert(chunk.place, chunk);
        while let Some(chunk) = output.waiting.remove(&output.next) {
            output.next += 1;
            let widths = self.program.division.widths();
            for ((place, values), width) in chunk.outputs.iter().enumerate().zip(widths) {
                let written = (output.sink)(place, chunk.rows.start * width, values);
                written.map_err(|error| told("sink", &error))?;
            }
            let progress = StreamProgress {
                rows: chunk.rows.end,
                of: self.program.division.rows,
            };
            self.change(|state| {
                state.free.push(chunk);
                state.written += 1;
            });
            if (output.watch)(progress).is_break() {
                return Err(Error::Aborted);
            }
        }
        Ok(())
    }
}

impl Job for Stream<'_> {
    type Part = Chunk;
    const COMES_AND_GOES: bool = true;

    fn take(&self, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let source = &mut *lock(&self.source);
        let Some(mut chunk) = ready!(self.next(context)) else {
            return Poll::Ready(None);
        };
        // One that was given back has its values.
        if chunk.is_filled {
            return Poll::Ready(Some(chunk));
        }
        Poll::Ready(match self.fill(&mut chunk, *source) {
            Ok(()) => Some(chunk),
            Err(error) => {
                self.fail(error);
                None
            }
        })
    }

    fn rows(&self, chunk: &Chunk) -> Range<usize> {
        chunk.rows.clone()
    }

    fn bind<'p>(&'p self, chunk: &'p mut Chunk) -> (Vec<&'p [f32]>, Vec<&'p mut [f32]>) {
        let given = self.program.division.given.iter().zip(&chunk.arguments);
        let values = given.map(|(given, values)| match *given {
            Given::Whole(leaf) => self.whole(leaf),
            Given::Rows(leaf, ref window) => match self.program.upload(leaf) {
                Some(constant) => &constant[window.range(chunk.rows.clone())],
                None => values,
            },
        });
        let outputs = chunk.outputs.iter_mut().map(Vec::as_mut_slice);
        (values.collect(), outputs.collect())
    }

    fn whole(&self, leaf: usize) -> &[f32] {
        let argument = self.whole.get(&leaf).map(Vec::as_slice);
        argument.or(self.program.upload(leaf)).unwrap_or_default()
    }

    fn finish(&self, chunk: Chunk) {
        // Held until a failure is known to whoever waits for it.
        let mut output = lock(&self.output);
        if let Err(error) = self.write(&mut output, chunk) {
            self.fail(error);
        }
    }

    fn give_back(&self, chunk: Chunk) {
        self.change(|state| state.returned.push(chunk));
    }

    fn fail(&self, error: Error) {
        self.change(|state| {
            state.error.get_or_insert(error);
        });
    }

    fn is_done(&self) -> Result<bool> {
        let state = lock(&self.state);
        state.error.clone().map_or(Ok(()), Err)?;
        Ok(state.next == self.program.sizes.len() && state.returned.is_empty())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(by: &'static str, error: &io::Error) -> Error {
    let message = error.to_string();
    Error::Stream { by, message }
}

/// Sets the length of `values`, and reuses its memory if it is large enough. The contents are
/// arbitrary.
fn fit(values: &mut Vec<f32>, len: usize) -> Result<()> {
    if values.capacity() < len {
        *values = try_zeros(len)?;
    }
    values.resize(len, 0.0);
    Ok(())
}
