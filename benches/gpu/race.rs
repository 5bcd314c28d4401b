//! Contestants that wait for a GPU, in turns.

use crate::median;
use std::time::Instant;

/// Runs of a contestant in its turn that count, and those before them.
const TURN: usize = 10;
const WARM: usize = 3;

pub(crate) type Contestant<'a> = &'a mut (dyn FnMut() -> relampago::Result<()> + Send);

/// Median seconds of contestants that take turns, a few runs each: two devices that alternate
/// would measure how long a GPU takes to switch between programs.
///
/// Each time they all have had one they go on to the processor's next core. A thread on the core that
/// handles the GPU's interrupts waits 30 µs longer, and the system may leave it there.
pub(crate) fn race<const N: usize>(
    contestants: [Contestant<'_>; N],
    rounds: usize,
) -> relampago::Result<[f64; N]> {
    // A thread of its own, since this one's threads would inherit its core.
    let times = std::thread::scope(|scope| {
        let racing = scope.spawn(|| turns(contestants, rounds));
        racing.join().expect("no contestant panics")
    })?;
    Ok(times.map(median))
}

fn turns<const N: usize>(
    mut contestants: [Contestant<'_>; N],
    rounds: usize,
) -> relampago::Result<[Vec<f64>; N]> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let mut times = [const { Vec::new() }; N];
    for round in 0..rounds.div_ceil(TURN) {
        if let Some(&core) = cores.get(round % cores.len().max(1)) {
            core_affinity::set_for_current(core);
        }
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            for run in 0..TURN + WARM {
                let start = Instant::now();
                contestant()?;
                if run >= WARM {
                    times.push(start.elapsed().as_secs_f64());
                }
            }
        }
    }
    Ok(times)
}
