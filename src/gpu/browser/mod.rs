//! The parts of the back-end for browsers. `native/` has the same interface for native targets.

#[cfg(feature = "js")]
mod arrays;
mod choices;
mod open;
mod outcome;
mod state;
mod timestamps;

pub(super) use open::{adapter_name, is_firefox, navigator_gpu};
pub(super) use outcome::Outcome;
pub(super) use state::TargetState;
pub(super) use timestamps::Profiled;
