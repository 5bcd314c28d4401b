//! Asynchronous methods under the names that they had before all of those ended in `_async`.

use crate::batch::{Argument, BufferId, GpuCommandBatch, Program};
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;

/// Former names.
impl GpuCommandBatch {
    /// The former name of [`GpuCommandBatch::compile_async`].
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::compile_async`].
    #[deprecated(note = "use `compile_async`")]
    pub async fn compile(&self, outputs: &[BufferId]) -> Result<Program> {
        self.compile_async(outputs).await
    }

    /// The former name of [`GpuCommandBatch::execute_async`].
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::execute_async`].
    #[deprecated(note = "use `execute_async`")]
    pub async fn execute(&mut self) -> Result<()> {
        self.execute_async().await
    }

    /// The former name of [`GpuCommandBatch::read_async`].
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::read_async`].
    #[deprecated(note = "use `read_async`")]
    pub async fn read(&self, id: BufferId) -> Result<Vec<f32>> {
        self.read_async(id).await
    }
}

/// Former names.
impl Program {
    /// The former name of [`Program::run_async`].
    ///
    /// # Errors
    /// The errors of [`Program::run_async`].
    #[deprecated(note = "use `run_async`")]
    pub async fn run(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        self.run_async(arguments).await
    }

    /// The former name of [`Program::read_async`].
    ///
    /// # Errors
    /// The errors of [`Program::read_async`].
    #[deprecated(note = "use `read_async`")]
    pub async fn read(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        self.read_async(arguments).await
    }

    /// The former name of [`Program::run_n_async`].
    ///
    /// # Errors
    /// The errors of [`Program::run_n_async`].
    #[deprecated(note = "use `run_n_async`")]
    pub async fn run_n(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        self.run_n_async(arguments, times, feedback).await
    }
}
