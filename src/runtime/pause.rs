//! Pauses of long work on the caller's thread, so that its executor can run or drop other futures.

use super::seconds;
#[cfg(not(all(target_arch = "wasm32", feature = "js-llm")))]
use std::task::Poll;

/// The seconds of work between two pauses: dropping a future ends its work within twice as many, if no step takes longer.
const SLICE: f64 = 0.02;

/// The time since the last pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    start: f64,
}

impl Slice {
    pub(crate) fn new() -> Self {
        Self { start: seconds() }
    }

    /// Whether it is time for a pause.
    pub(crate) fn is_over(self) -> bool {
        seconds() - self.start > SLICE
    }
}

/// Is pending once, so that the executor can run other futures before it polls this one again.
#[cfg(not(all(target_arch = "wasm32", feature = "js-llm")))]
pub(crate) async fn pause() {
    let mut is_over = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use script::pause;

/// For the npm package, in which scripts implement the pause: a browser's executor polls a woken future before it
/// handles messages.
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
mod script {
    use js_sys::Promise;
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::JsFuture;

    #[wasm_bindgen(module = "/js/common/pause.js")]
    extern "C" {
        #[wasm_bindgen(js_name = pause)]
        fn task() -> Promise;
    }

    /// Lets this thread hear messages.
    pub(crate) async fn pause() {
        let _ = JsFuture::from(task()).await; // It never rejects.
    }
}
