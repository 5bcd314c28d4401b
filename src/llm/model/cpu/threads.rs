//! The threads of a model's passes.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Mutex, OnceLock};

/// Threads that share each product of a pass in microseconds, since one of them runs the pass. Any other thread sleeps while
/// they work and is woken after each product: two threads would answer no faster than one.
#[derive(Debug)]
pub(in crate::llm) struct Threads {
    count: usize,
    /// Threads of the model's own, where it may not use all of rayon's pool.
    own: OnceLock<Option<ThreadPool>>,
    /// Held by the pass that runs on them.
    pass: Mutex<()>,
}

impl Threads {
    /// At most `count` threads, which start with the first pass.
    pub(in crate::llm) fn new(count: usize) -> Self {
        Self {
            count,
            own: OnceLock::new(),
            pass: Mutex::default(),
        }
    }

    /// Runs a pass on these threads. While there is another one, and for a caller that is on a thread of a pool already, it
    /// runs on the caller's thread: a thread that waits for a part of its product takes up what else there is to do, and a
    /// second pass would run on top of the first one's stack.
    pub(super) fn run<T: Send>(&self, pass: impl FnOnce() -> T + Send) -> T {
        let is_alone = self.count > 1 && rayon::current_thread_index().is_none();
        let turn = is_alone.then(|| self.pass.try_lock().ok()).flatten();
        if turn.is_none() {
            return pass();
        }
        if self.count == rayon::current_num_threads() {
            return rayon::scope(|_| pass());
        }
        let build = || ThreadPoolBuilder::new().num_threads(self.count).build();
        match self.own.get_or_init(|| build().ok()) {
            Some(pool) => pool.install(pass),
            None => pass(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Threads;

    /// Whether this is a thread of a pool, and the number of threads that share its work.
    fn place() -> (bool, usize) {
        let is_in_pool = rayon::current_thread_index().is_some();
        (is_in_pool, rayon::current_num_threads())
    }

    #[test]
    fn one_pass_at_a_time_has_the_threads() {
        let all = rayon::current_num_threads();
        for count in [all, all + 1] {
            let threads = Threads::new(count.max(2));
            let [first, within, beside] = threads.run(|| {
                let beside =
                    || std::thread::scope(|scope| scope.spawn(|| threads.run(place)).join());
                [place(), threads.run(place), beside().unwrap()]
            });
            assert_eq!(first, (true, count.max(2)));
            assert_eq!(within, first);
            assert_eq!(beside, (false, all));
            assert_eq!(threads.run(place), first);
        }
        assert_eq!(Threads::new(1).run(place), (false, all));
    }
}
