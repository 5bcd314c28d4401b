//! Tuning: measures which of several kernels is the fastest on this device, and remembers it.

mod choices;
mod thresholds;

use std::sync::Arc;

pub(super) use choices::{Choices, Key};
pub(super) use thresholds::Thresholds;

use super::context::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use super::convolve2d;
use super::recorder::{GpuBuffer, Recorder};
use super::{layer, lower, matmul, row_ops};
use crate::error::Result;
use crate::ops::shape::check_limit;
use crate::ops::{Matmul, Op};
use crate::runtime::{NATIVE, seconds};

/// The number of turns of each candidate; its shortest time counts.
const ROUNDS: usize = 5;
/// Seconds that a turn should last at least, so that a submission's own time does not count, nor
/// how rarely browsers look for results; and most operations of a turn.
const TURN: f64 = if NATIVE { 2e-3 } else { 10e-3 };
const MOST: usize = 64;

/// Kernels by name, and seconds.
type Times = Vec<(&'static str, f64)>;

/// Returns the key of an operation, and the kernels that can compute it.
fn candidates(gpu: &Gpu, op: &Op, lens: &[usize]) -> Option<(Key, Vec<&'static str>)> {
    let (key, names) = match *op {
        Op::Matmul { m, k, n }
        | Op::MatmulWith {
            options: Matmul { m, k, n, .. },
        } => (Key::matmul([m, k, n]), matmul::candidates(gpu, [m, k, n])),
        Op::Softmax | Op::LogSoftmax => row_ops::softmaxes(gpu, [1, lens[0]]),
        Op::SoftmaxRows { rows, cols } | Op::LogSoftmaxRows { rows, cols } => {
            row_ops::softmaxes(gpu, [rows, cols])
        }
        Op::LayerNorm { rows, cols, .. } | Op::RmsNorm { rows, cols, .. } => {
            row_ops::norms(gpu, [rows, cols])
        }
        #[cfg(not(target_arch = "wasm32"))]
        Op::Convolve2d { ref options } => {
            let key = Key::convolve2d(options);
            (key, convolve2d::candidates(gpu, lens, options))
        }
        Op::ConvolveLayer { ref options } if NATIVE => (
            Key::convolve_layer(options),
            layer::candidates(gpu, lens[0], options),
        ),
        _ => return None,
    };
    (names.len() > 1).then_some((key, names))
}

impl Gpu {
    /// Returns the thresholds that were measured beside a CPU, in the order of the classes.
    pub(crate) fn measured_thresholds(&self, cpu: &str) -> Option<[u64; 7]> {
        self.measured.of(cpu)
    }

    /// Stores measured thresholds as [`Gpu::tune`] stores its choices.
    pub(crate) fn remember_thresholds(&self, cpu: &str, thresholds: [u64; 7]) {
        self.measured.remember(cpu, thresholds);
        self.save_choices();
    }

    /// Returns the choices of kernels and the thresholds as text.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn measurements(&self) -> String {
        self.tuned.text() + &self.measured.text()
    }

    /// Adds the measurements of such a text to those of this device, which are later.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn adopt_measurements(&self, text: &str) {
        self.tuned.adopt(text);
        self.measured.adopt(text);
    }

    /// Measures the kernels for an operation on inputs of these lengths, whose result has `len`
    /// elements, and remembers the fastest. Returns each kernel's name and time in seconds, the
    /// fastest first; empty if there is no choice.
    pub(crate) async fn tune(
        self: &Arc<Self>,
        op: &Op,
        lens: &[usize],
        len: usize,
    ) -> Result<Times> {
        let mut times = Times::new();
        if len == 0 {
            return Ok(times);
        }
        let Some((key, names)) = candidates(self, op, lens) else {
            return Ok(times);
        };
        for (name, seconds) in self.race(names, op, lens, len).await? {
            let place = times.partition_point(|&(_, other)| other <= seconds);
            times.insert(place, (name, seconds));
        }
        self.tuned.remember(key, times[0].0);
        self.save_choices();
        Ok(times)
    }

    /// The seconds of an operation by each of the candidates, in turns.
    async fn race(
        self: &Arc<Self>,
        candidates: Vec<&'static str>,
        op: &Op,
        lens: &[usize],
        len: usize,
    ) -> Result<Times> {
        // The output, too: fresh memory for each turn would take longer than what is measured.
        let mut buffers = Vec::new();
        for &len in lens.iter().chain([&len]) {
            // Before there is any noise: memory may not hold it either.
            check_limit("the length of a GPU buffer", len, self.max_len())?;
            buffers.push(self.upload(&noise(len)).await?);
        }
        let infinite = |name| (name, f64::INFINITY);
        let mut shortest: Vec<_> = candidates.into_iter().map(infinite).collect();
        let mut times = vec![1; shortest.len()];
        // The first round makes pipelines, the second finds out how many runs fill a turn.
        for round in 0..ROUNDS + 2 {
            for ((name, shortest), times) in shortest.iter_mut().zip(&mut times) {
                let took = self.turn(name, op, &buffers, *times)?.await?;
                match round {
                    0 => {}
                    1 => *times = ((TURN / took).ceil() as usize).clamp(1, MOST),
                    _ => *shortest = shortest.min(took / *times as f64),
                }
            }
        }
        Ok(shortest)
    }

    /// Submits `runs` runs. Returns the number of seconds until they have finished.
    fn turn(
        self: &Arc<Self>,
        name: &'static str,
        op: &Op,
        buffers: &[GpuBuffer],
        times: usize,
    ) -> Result<impl Future<Output = Result<f64>> + use<>> {
        let (inputs, output) = (&buffers[..buffers.len() - 1], &buffers[buffers.len() - 1]);
        let mut recorder = Recorder::new(self)?;
        recorder.raced = Some(name);
        for _ in 0..times {
            lower::lower(&mut recorder, op, inputs, output)?;
        }
        let start = seconds();
        // A single value tells as well that all of them are there.
        let done = recorder.submit(&[output.with_len(1)])?;
        Ok(async move {
            done.finished().await?;
            Ok(seconds() - start)
        })
    }
}

fn noise(len: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7_919) % 1_009) as f32 / 504.5 - 1.0;
    (0..len).map(value).collect()
}
