//! Single operations for checks of the GPU, and the kernels that a failed check turns off.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::context::Gpu;
use super::recorder::{Recorder, Submitted};
use super::{lower, single};
use crate::error::Result;
use crate::graph::{Binding, Repeat};
use crate::ops::{HalfPrecision, KernelGroup, Op};

impl Gpu {
    /// Starts an operation from host memory. Returns its run, which brings the result to the host and fails if the driver
    /// refuses a kernel, and the names of its kernels. A hardware adapter uses the kernel named `raced`, if it exists there; otherwise the kernel is the one
    /// that every call of the operation uses.
    pub(crate) fn start(
        self: &Arc<Self>,
        op: &Op,
        inputs: &[&[f32]],
        len: usize,
        raced: Option<&'static str>,
    ) -> Result<(Result<Submitted>, Vec<&'static str>)> {
        if op.is_elementwise() {
            let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
            let (plan, texts) = single(op, &lens, len);
            let bindings = inputs.iter().copied().map(Binding::Values);
            let bindings = bindings.chain([Binding::Nothing]).collect();
            let running = self.run_plan((&plan, &texts), bindings, Repeat::ONCE, true);
            return Ok((running.map(|running| running.1), vec!["elementwise"]));
        }
        let mut recorder = Recorder::new(self)?;
        recorder.raced = raced.filter(|_| !self.adapter.software);
        let uploads = inputs.iter().map(|values| recorder.upload(values));
        let inputs = uploads.collect::<Result<Vec<_>>>()?;
        let output = recorder.allocate(len)?;
        lower::lower(&mut recorder, op, &inputs, &output)?;
        let names = recorder.names();
        Ok((recorder.submit(&[output]), names))
    }

    /// Turns a group of kernels on or off. Returns whether the GPU has the group and its state changed.
    pub(crate) fn switch(&self, group: KernelGroup, on: bool) -> bool {
        let (has, off) = match group {
            KernelGroup::F16 => (self.half_precision == HalfPrecision::Used, &self.f16_is_off),
            KernelGroup::Subgroups => {
                let limits = &self.limits;
                (limits.subgroups != [0; 2], &limits.subgroups_are_off)
            }
        };
        has && off.swap(!on, Ordering::Relaxed) == on
    }
}
