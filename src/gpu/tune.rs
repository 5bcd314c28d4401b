//! Which of several kernels is the fastest on this very device: measured once, and remembered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cache;
use super::context::Gpu;
use super::matmul;
use super::recorder::{GpuBuffer, Recorder};
use crate::device::Tuning;
use crate::error::Result;
use crate::ops::{Matmul, Op};

/// Turns of the candidates, the shortest of which counts for each.
const ROUNDS: usize = 5;
/// How long a turn should last at least, so that a submission's own time does not count, and most
/// products of a turn.
const TURN: Duration = Duration::from_millis(2);
const MOST: usize = 64;
/// What is remembered at most; more shapes replace the first ones.
const MAX_CHOICES: usize = 4096;

/// The shape `[m, k, n]` of a product, and what computes it.
type Choice = ([usize; 3], &'static str);

/// The kernels that were found to be the fastest.
#[derive(Default)]
pub(super) struct Tuned {
    choices: Mutex<Vec<Choice>>,
    /// Where they are kept from one process to the next.
    path: Option<PathBuf>,
}

impl Tuned {
    /// The choices of a device that are kept in a folder.
    pub(super) fn open(device: &wgpu::Device, folder: &Path) -> Self {
        Self::read(folder.join(cache::file_name(&device.adapter_info(), "choices")))
    }

    /// No choices where the file is not there or not whole.
    fn read(path: PathBuf) -> Self {
        let read = fs::read(&path).ok();
        let whole = read.and_then(|file| cache::unwrapped(&file));
        let text = whole.and_then(|text| String::from_utf8(text).ok());
        let choices = text.map(|text| text.lines().filter_map(parsed).collect());
        Self {
            choices: Mutex::new(choices.unwrap_or_default()),
            path: Some(path),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Choice>> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What computes products of a shape, if that was measured.
    pub(super) fn of(&self, shape: [usize; 3]) -> Option<&'static str> {
        let choices = self.lock();
        let found = choices.iter().find(|(other, _)| *other == shape);
        found.map(|&(_, name)| name)
    }

    pub(super) fn remember(&self, shape: [usize; 3], name: &'static str) {
        let mut choices = self.lock();
        choices.retain(|(other, _)| *other != shape);
        if choices.len() >= MAX_CHOICES {
            choices.remove(0);
        }
        choices.push((shape, name));
    }

    fn save(&self) {
        let Some(path) = &self.path else {
            return;
        };
        let lines = self.lock();
        let lines = lines
            .iter()
            .map(|([m, k, n], name)| format!("matmul {m} {k} {n} {name}\n"));
        let text: String = lines.collect();
        if let Err(error) = cache::write(path, text.as_bytes()) {
            log::warn!("{} cannot be written: {error}", path.display());
        }
    }
}

/// A line of the file, unless it names what there is not.
fn parsed(line: &str) -> Option<Choice> {
    let mut words = line.split(' ');
    let ("matmul", m, k, n, name) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    ) else {
        return None;
    };
    let shape = [m.parse().ok()?, k.parse().ok()?, n.parse().ok()?];
    Some((shape, matmul::named(name)?))
}

impl Gpu {
    /// Measures what could compute an operation and remembers the fastest; `None` where there is
    /// no choice.
    pub(crate) async fn tune(self: &Arc<Self>, op: &Op) -> Result<Option<Tuning>> {
        let (Op::Matmul { m, k, n }
        | Op::MatmulWith {
            options: Matmul { m, k, n, .. },
        }) = *op
        else {
            return Ok(None);
        };
        let candidates = matmul::candidates(self, [m, k, n]);
        if candidates.len() < 2 {
            return Ok(None);
        }
        let seconds = self.race(&candidates, [m, k, n]).await?;
        let mut times: Vec<_> = candidates.into_iter().zip(seconds).collect();
        times.sort_by(|a, b| a.1.total_cmp(&b.1));
        self.tuned.remember([m, k, n], times[0].0);
        self.tuned.save();
        let op = op.clone();
        Ok(Some(Tuning { op, times }))
    }

    /// The seconds of a product by each of the candidates, in turns.
    async fn race(
        self: &Arc<Self>,
        candidates: &[&'static str],
        [m, k, n]: [usize; 3],
    ) -> Result<Vec<f64>> {
        let noise = |len: usize| -> Vec<f32> {
            let value = |i: usize| ((i * 7_919) % 1_009) as f32 / 504.5 - 1.0;
            (0..len).map(value).collect()
        };
        let operands = [
            self.upload(&noise(m * k)).await?,
            self.upload(&noise(k * n)).await?,
        ];
        let mut times = 1;
        let mut shortest = vec![f64::INFINITY; candidates.len()];
        // The first round makes pipelines, the second finds out how many products fill a turn.
        for round in 0..ROUNDS + 2 {
            let mut longest = Duration::ZERO;
            for (&name, shortest) in candidates.iter().zip(&mut shortest) {
                let took = self.turn(name, &operands, [m, k, n], times).await?;
                longest = longest.max(took);
                if round > 1 {
                    *shortest = shortest.min(took.as_secs_f64() / times as f64);
                }
            }
            if round == 1 {
                let wanted = TURN.as_secs_f64() / longest.as_secs_f64().max(1e-9);
                times = (wanted.ceil() as usize).clamp(1, MOST);
            }
        }
        Ok(shortest)
    }

    /// How long so many products take, from their submission until they are done.
    async fn turn(
        self: &Arc<Self>,
        name: &'static str,
        [a, b]: &[GpuBuffer; 2],
        [m, k, n]: [usize; 3],
        times: usize,
    ) -> Result<Duration> {
        let (start, done) = {
            let mut recorder = Recorder::new(self)?;
            let c = recorder.allocate(m * n)?;
            for _ in 0..times {
                matmul::by(name, &mut recorder, [a, b], &c, [m, k, n])?;
            }
            // A single value tells as well that all of them are there.
            (Instant::now(), recorder.submit(&[c.with_len(1)])?)
        };
        done.await?;
        Ok(start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_remembered_unless_the_file_is_damaged() {
        let folder = std::env::temp_dir().join(format!("relampago-tune-{}", std::process::id()));
        let path = folder.join("some.choices");
        let tuned = Tuned::read(path.clone());
        assert_eq!(tuned.of([1, 2, 3]), None);
        let [small, large] = ["matmul_32", "matmul_128"].map(|name| matmul::named(name).unwrap());
        tuned.remember([1, 2, 3], large);
        tuned.remember([4, 5, 6], large);
        tuned.remember([1, 2, 3], small);
        tuned.save();
        let again = Tuned::read(path.clone());
        assert_eq!(again.of([1, 2, 3]), Some("matmul_32"));
        assert_eq!(again.of([4, 5, 6]), Some("matmul_128"));
        let file = fs::read(&path).unwrap();
        for place in [0, 8, file.len() - 1] {
            let mut changed = file.clone();
            changed[place] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(Tuned::read(path.clone()).of([1, 2, 3]), None, "at {place}");
        }
        // A kernel of another version is no kernel.
        let text = b"matmul 7 8 9 matmul_77\nmatmul 7 8\nmatmul 9 8 7 matmul_direct\n";
        cache::write(&path, text).unwrap();
        let other = Tuned::read(path);
        assert_eq!(other.of([7, 8, 9]), None);
        assert_eq!(other.of([9, 8, 7]), Some("matmul_direct"));
        fs::remove_dir_all(folder).unwrap();
    }
}
