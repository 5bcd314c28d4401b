//! Programs streamed over values that are not in this module's memory, such as JavaScript's arrays.
//! A program that is one elementwise kernel runs piece by piece, without a copy of the whole array.

use crate::batch::program::Program;
use crate::batch::run::Runtime;
use crate::cpu::chain::Runner;
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::graph::fuse::{Kernel, Step};
use crate::graph::node::{Node, Source};
use crate::ops::Op;
use crate::ops::OpClass;
use crate::simd::stream::{self, Stream};

/// Number of expensive functions (exponential, GELU and so on) up to which SIMD is faster than a
/// GPU for a million elements. In browsers with an NVIDIA H200 each takes 2 ms on SIMD; the copies
/// to and from the GPU take 3 ms each.
const MAX_FUNCTIONS: usize = 2;

impl Program {
    /// Returns the length of the inputs and the result of [`Program::stream`]; `None` if the
    /// program cannot be streamed. The number and lengths of placeholders are those of `run`.
    pub(crate) fn streamable(&self) -> Option<usize> {
        let plan = &self.runtime.plan;
        let ([kernel], [output]) = (&plan.kernels[..], &plan.outputs[..]) else {
            return None;
        };
        let len = plan.len(kernel);
        let as_long = |&input: &usize| plan.nodes[input].len == len;
        let elementwise = kernel.head.is_none() && kernel.root() == *output;
        let on_host = self.runtime.executor.is_cpu() || self.is_light(kernel);
        (elementwise && on_host && kernel.inputs.iter().all(as_long)).then_some(len)
    }

    /// Returns whether SIMD is faster than the copies to and from a GPU for an elementwise kernel:
    /// the policy leaves each operation to SIMD, and there are few expensive functions.
    fn is_light(&self, kernel: &Kernel) -> bool {
        let Runtime { plan, device, .. } = &self.runtime;
        let mut functions = 0;
        for Step { op, .. } in &kernel.chain.steps {
            if let Op::Custom(_) = op {
                return false;
            }
            functions += usize::from(op.class() == OpClass::Transcendental);
            let lens = vec![plan.len(kernel); op.inputs().len()];
            if functions > MAX_FUNCTIONS || device.uses_gpu(op, &lens) {
                return false;
            }
        }
        let given = |&input: &usize| matches!(plan.nodes[input].source, Source::Placeholder(_));
        kernel.inputs.iter().all(given)
    }

    /// Returns the number of arguments.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn placeholders(&self) -> usize {
        self.runtime.placeholders.len()
    }

    /// Runs with the inputs of `arguments` for the placeholders, and stores the only result there.
    ///
    /// # Errors
    /// `DeviceLost`, and `OutOfMemory` if there is no memory for pieces.
    pub(crate) fn stream(&self, arguments: &mut dyn Stream) -> Result<()> {
        self.runtime.device.check()?;
        let plan = &self.runtime.plan;
        let kernel = &plan.kernels[0];
        // A loop is compiled for as many inputs as there will be.
        let idle = Runner {
            isa: self.runtime.device.cpu().isa,
            chain: &kernel.chain,
            inputs: &vec![&[][..]; kernel.inputs.len()],
        };
        let mut scratch = idle.scratch(arguments.len())?;
        let mut values = Inputs {
            nodes: &plan.nodes,
            buffers: &self.runtime.inputs,
            kernel,
            arguments,
        };
        stream::piecewise(kernel.inputs.len(), &mut values, &mut |inputs, y| {
            let runner = Runner { inputs, ..idle };
            runner.run(&mut scratch, 0, &[], y);
        })?;
        plan.outcome()
    }
}

/// The inputs of a kernel: arguments, and constants of the batch.
struct Inputs<'a> {
    nodes: &'a [Node],
    buffers: &'a [DeviceBuffer],
    kernel: &'a Kernel,
    arguments: &'a mut dyn Stream,
}

impl Stream for Inputs<'_> {
    fn len(&self) -> usize {
        self.arguments.len()
    }

    fn load(&mut self, input: usize, at: usize, to: &mut [f32]) {
        let values: &[f32] = match &self.nodes[self.kernel.inputs[input]].source {
            Source::Placeholder(place) => return self.arguments.load(*place, at, to),
            Source::Upload(values) => values,
            Source::Input(index) => match self.buffers[*index].host() {
                Some(values) => values,
                None => return,
            },
            Source::Op { .. } => return,
        };
        to.copy_from_slice(&values[at..at + to.len()]);
    }

    fn store(&mut self, at: usize, from: &[f32]) {
        self.arguments.store(at, from);
    }

    /// Elementwise kernels need no draft.
    fn draft(&mut self, _: usize, _: usize) -> &mut [f32] {
        &mut []
    }

    fn settle(&mut self, _: usize, _: usize) {}
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::batch::{BufferId, GpuCommandBatch};
    use crate::device::{Backend, GpuDevice};
    use crate::simd::stream::Slices;

    fn program(record: impl FnOnce(&mut GpuCommandBatch) -> BufferId) -> Program {
        let device = GpuDevice::builder().backend(Backend::Simd).build();
        let mut batch = GpuCommandBatch::new(device.unwrap());
        let last = record(&mut batch);
        batch.compile(&[last]).unwrap()
    }

    #[test]
    fn streamed_program_matches_run() {
        for len in [0, 1, 1_023, 70_001] {
            let inputs: Vec<Vec<f32>> = (0..2)
                .map(|input| {
                    (0..len)
                        .map(|i| ((i * 7 + input) % 31) as f32 - 15.0)
                        .collect()
                })
                .collect();
            let constant: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let program = program(|batch| {
                let (x, c, y) = (
                    batch.placeholder(len),
                    batch.upload(&constant),
                    batch.placeholder(len),
                );
                let (relu, gelu) = (batch.relu(x), batch.gelu(y));
                let sum = batch.vec_add(relu, gelu);
                let biased = batch.bias_add(sum, c, 1, len);
                batch.mul(biased, x)
            });
            assert_eq!(program.streamable(), Some(len));
            let expected = program.read(&[(&inputs[0]).into(), (&inputs[1]).into()]);
            let inputs = [&inputs[0][..], &inputs[1]];
            let mut slices = Slices {
                inputs: &inputs,
                out: vec![0.0; len],
            };
            program.stream(&mut slices).unwrap();
            assert_eq!([slices.out], expected.unwrap()[..]);
        }
    }

    #[test]
    fn only_elementwise_kernels_stream() {
        let sum = program(|batch| {
            let x = batch.placeholder(4);
            batch.sum(x)
        });
        let product = program(|batch| {
            let x = batch.placeholder(4);
            let product = batch.matmul(x, x, 2, 2, 2);
            batch.relu(product)
        });
        let bias = program(|batch| {
            let (x, bias) = (batch.placeholder(4), batch.placeholder(2));
            batch.bias_add(x, bias, 2, 2)
        });
        let nothing = program(|batch| batch.placeholder(4));
        for program in [sum, product, bias, nothing] {
            assert_eq!(program.streamable(), None);
        }
    }
}
