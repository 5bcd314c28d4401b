//! The threads of a module whose memory is shared: workers that JavaScript starts, each with an instance of the module.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::{ThreadBuilder, ThreadPoolBuildError, ThreadPoolBuilder};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsError, JsValue};

/// Threads of the pool that no worker runs yet.
static WAITING: Mutex<VecDeque<ThreadBuilder>> = Mutex::new(VecDeque::new());
static ARRIVED: Condvar = Condvar::new();

/// Makes the caller and `count − 1` workers the threads that share large operations. These workers have called
/// `runThread`, or are about to: a new worker starts only while the one that made it returns to its event loop.
///
/// # Errors
/// Throws if the module has threads already.
#[wasm_bindgen(js_name = startThreads)]
pub fn start_threads(count: usize) -> Result<(), JsValue> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(count)
        .use_current_thread()
        .spawn_handler(hand_over);
    let failed = |error: ThreadPoolBuildError| JsError::new(&error.to_string()).into();
    pool.build_global().map_err(failed)
}

/// Runs a thread of the pool, in a worker. It never returns.
#[wasm_bindgen(js_name = runThread)]
pub fn run_thread() {
    let mut waiting = waiting();
    let thread = loop {
        match waiting.pop_front() {
            Some(thread) => break thread,
            None => {
                waiting = ARRIVED
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner)
            }
        }
    };
    drop(waiting);
    thread.run();
}

/// Leaves a thread to one of the workers that wait.
fn hand_over(thread: ThreadBuilder) -> io::Result<()> {
    waiting().push_back(thread);
    ARRIVED.notify_one();
    Ok(())
}

fn waiting() -> MutexGuard<'static, VecDeque<ThreadBuilder>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
