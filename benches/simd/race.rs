//! Contestants take turns in one process, so that whatever else the machine does falls on all.

use std::time::{Duration, Instant};

/// A sample repeats short work for about so long; the clock's own cost then vanishes.
const SAMPLE: Duration = Duration::from_millis(2);

/// Seconds for one run.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) lower_quartile: f64,
    pub(crate) median: f64,
    pub(crate) upper_quartile: f64,
}

/// One way of doing a row's work.
pub(crate) struct Contestant<'a> {
    pub(crate) name: &'a str,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(name: &'a str, run: impl FnMut() + 'a) -> Self {
        let run = Box::new(run);
        Self { name, run }
    }
}

/// Samples every contestant `rounds` times, each round starting with another one.
pub(crate) fn race(mut contestants: Vec<Contestant<'_>>, rounds: usize) -> Vec<(String, Times)> {
    let repetitions: Vec<u32> = contestants.iter_mut().map(repetitions).collect();
    let mut samples = vec![Vec::with_capacity(rounds); contestants.len()];
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            let i = (round + turn) % contestants.len();
            let time = sample(&mut contestants[i], repetitions[i]);
            samples[i].push(time.as_secs_f64() / f64::from(repetitions[i]));
        }
    }
    let names = contestants.iter().map(|c| c.name.to_owned());
    names.zip(samples.into_iter().map(quartiles)).collect()
}

fn repetitions(contestant: &mut Contestant<'_>) -> u32 {
    sample(contestant, 1);
    let once = sample(contestant, 1).as_secs_f64();
    (SAMPLE.as_secs_f64() / once).clamp(1.0, 1e6) as u32
}

fn sample(contestant: &mut Contestant<'_>, repetitions: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..repetitions {
        (contestant.run)();
    }
    start.elapsed()
}

fn quartiles(mut samples: Vec<f64>) -> Times {
    samples.sort_by(f64::total_cmp);
    let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize];
    Times {
        lower_quartile: at(0.25),
        median: at(0.5),
        upper_quartile: at(0.75),
    }
}
