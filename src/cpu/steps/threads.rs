//! The threads of passes, which all sequences of the process share.

use crate::runtime::seconds;
use crate::simd::Cpu;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of seconds for which a sequence counts as running after a part of a pass, because it chooses a token and
/// continues.
const LINGER: f64 = 0.01;

/// The largest number of threads of pools that wait, as a multiple of those of rayon's pool.
const WAITING: usize = 4;

static PASSES: Mutex<Passes> = Mutex::new(Passes::new());
static TEAMS: Mutex<Teams> = Mutex::new(Teams(Vec::new()));

/// The threads of a model's passes. As many sequences as run at the same time share the threads of rayon's pool evenly: on
/// two cores, two sequences with a thread each answer twice as fast as one after the other with both.
#[derive(Debug)]
pub(super) struct Threads {
    most: usize,
}

impl Threads {
    pub(super) fn new(cpu: Cpu) -> Self {
        Self { most: cpu.threads }
    }

    /// Runs a part of a sequence's pass with the number of its threads.
    ///
    /// With more than one, the part runs on one of them, so that they share each product in microseconds: any other
    /// thread would sleep while they work and be woken after each product. No two parts run on the same threads, since one
    /// that waits for its share of a product would take up the other part and finish that first.
    pub(super) fn run<T: Send>(&self, sequence: u64, part: impl FnOnce(usize) -> T + Send) -> T {
        let running = Running::enter(sequence);
        let all = rayon::current_num_threads();
        let count = (all / running.count).clamp(1, self.most);
        // A caller that is on a thread of a pool stays there.
        if count == 1 || rayon::current_thread_index().is_some() {
            return part(count);
        }
        // Only one sequence runs then.
        if count == all {
            return rayon::scope(|_| part(count));
        }
        let Some(team) = lock(&TEAMS).take(count) else {
            return part(1);
        };
        let result = team.install(|| part(count));
        lock(&TEAMS).put(team, WAITING * all);
        result
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sequence while a part of its pass runs.
struct Running {
    sequence: u64,
    /// The number of sequences that run.
    count: usize,
}

impl Running {
    fn enter(sequence: u64) -> Self {
        let count = lock(&PASSES).begin(sequence, seconds());
        Self { sequence, count }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&PASSES).end(self.sequence, seconds());
    }
}

/// The sequences that run.
#[derive(Debug)]
struct Passes {
    running: usize,
    /// Sequences that ran a moment ago, with the times of their ends.
    ended: Vec<(u64, f64)>,
}

impl Passes {
    const fn new() -> Self {
        Self {
            running: 0,
            ended: Vec::new(),
        }
    }

    /// Adds a sequence. Returns the number of running sequences.
    fn begin(&mut self, sequence: u64, now: f64) -> usize {
        let is_recent = |&(other, end): &(u64, f64)| other != sequence && now - end < LINGER;
        self.ended.retain(is_recent);
        self.running += 1;
        self.running + self.ended.len()
    }

    fn end(&mut self, sequence: u64, now: f64) {
        self.running -= 1;
        self.ended.push((sequence, now));
    }
}

/// Pools that wait for parts of passes, the last used ones last.
#[derive(Debug)]
struct Teams(Vec<ThreadPool>);

impl Teams {
    /// Takes an existing or a new pool with this number of threads. Returns `None` if the system has no more threads.
    fn take(&mut self, threads: usize) -> Option<ThreadPool> {
        let has_threads = |pool: &ThreadPool| pool.current_num_threads() == threads;
        match self.0.iter().rposition(has_threads) {
            Some(at) => Some(self.0.remove(at)),
            None => ThreadPoolBuilder::new().num_threads(threads).build().ok(),
        }
    }

    /// Keeps a pool for later parts; drops the first ones where more than `most` threads wait.
    fn put(&mut self, team: ThreadPool, most: usize) {
        self.0.push(team);
        let mut waiting: usize = self.0.iter().map(ThreadPool::current_num_threads).sum();
        while waiting > most {
            waiting -= self.0.remove(0).current_num_threads();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINGER, Passes, Teams, Threads};
    use crate::instruction_set::InstructionSet;
    use crate::simd::Cpu;
    use rayon::ThreadPool;

    #[test]
    fn sequences_that_run_or_ran_a_moment_ago_are_counted() {
        let mut passes = Passes::new();
        assert_eq!(passes.begin(1, 0.0), 1);
        passes.end(1, 1.0);
        assert_eq!(passes.begin(1, 1.0), 1, "a sequence is counted once");
        assert_eq!(passes.begin(2, 1.0), 2);
        passes.end(2, 2.0);
        assert_eq!(passes.begin(3, 2.0 + LINGER / 2.0), 3);
        passes.end(3, 2.5);
        assert_eq!(passes.begin(2, 2.5 + 2.0 * LINGER), 2);
    }

    #[test]
    fn few_teams_wait() {
        let mut teams = Teams(Vec::new());
        for threads in [2, 3, 2, 1, 4] {
            let team = teams.take(threads).unwrap();
            assert_eq!(team.current_num_threads(), threads);
            teams.put(team, 6);
        }
        let waiting = teams.0.iter().map(ThreadPool::current_num_threads);
        assert_eq!(waiting.collect::<Vec<_>>(), [1, 4]);
    }

    /// The number of threads that a part has, and the number of threads that share its work.
    fn place(count: usize) -> (usize, usize) {
        (count, rayon::current_num_threads())
    }

    #[test]
    fn parts_of_passes_have_at_most_their_models_threads() {
        let all = rayon::current_num_threads();
        for most in [1, 2, all] {
            let cpu = Cpu::new(InstructionSet::best(), Some(most));
            let threads = Threads::new(cpu);
            let (count, shared) = threads.run(u64::MAX, place);
            assert!(count <= most.min(all), "{count} of {most}");
            assert!(count == 1 || count == shared);
            // In a pool of the caller's.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
            let (count, shared) = pool.unwrap().install(|| threads.run(u64::MAX, place));
            assert!(count <= most && shared == 3);
        }
    }
}
