//! The parts of the back-end for native targets. `browser/` has the same interface for browsers.

pub(super) mod cache;
mod choices_file;
mod idle;
mod instance;
mod open;
mod outcome;
mod state;
mod timestamps;
mod wait;
mod warmup;

pub(super) use cache::PipelineFile;
pub(super) use open::adapter_name;
pub(super) use outcome::Outcome;
pub(super) use state::TargetState;
pub use timestamps::KernelTime;
pub(super) use timestamps::Submission as Profiled;
