//! Former names of methods: futures without the ending `_async`, and blocking methods with the ending `_sync`.

#[cfg(not(target_arch = "wasm32"))]
use crate::batch::{Argument, Program};
use crate::batch::{BufferId, GpuCommandBatch};
#[cfg(not(target_arch = "wasm32"))]
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
#[cfg(not(target_arch = "wasm32"))]
use crate::graph::Explanation;

/// The futures of trueno's `GpuCommandBatch`.
impl GpuCommandBatch {
    /// The former name of [`GpuCommandBatch::execute_async`].
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::execute_async`].
    #[deprecated(note = "use `execute_async`, or `execute_sync`, which blocks")]
    pub async fn execute(&mut self) -> Result<()> {
        self.execute_async().await
    }

    /// The former name of [`GpuCommandBatch::read_async`].
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::read_async`].
    #[deprecated(note = "use `read_async`, or `read_sync`, which blocks")]
    pub async fn read(&self, id: BufferId) -> Result<Vec<f32>> {
        self.read_async(id).await
    }
}

/// Former names.
#[cfg(not(target_arch = "wasm32"))]
impl GpuCommandBatch {
    /// The former name of [`GpuCommandBatch::compile`].
    #[deprecated(note = "use `compile`")]
    pub fn compile_sync(&self, outputs: &[BufferId]) -> Result<Program> {
        self.compile(outputs)
    }
}

/// Former names.
#[cfg(not(target_arch = "wasm32"))]
impl Program {
    /// The former name of [`Program::run`].
    #[deprecated(note = "use `run`")]
    pub fn run_sync(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        self.run(arguments)
    }

    /// The former name of [`Program::read`].
    #[deprecated(note = "use `read`")]
    pub fn read_sync(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        self.read(arguments)
    }

    /// The former name of [`Program::time`].
    #[deprecated(note = "use `time`")]
    pub fn time_sync(&self, arguments: &[Argument<'_>]) -> Result<Explanation> {
        self.time(arguments)
    }

    /// The former name of [`Program::run_n`].
    #[deprecated(note = "use `run_n`")]
    pub fn run_n_sync(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        self.run_n(arguments, times, feedback)
    }
}
