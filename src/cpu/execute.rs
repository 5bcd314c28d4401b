//! A plan on SIMD.

use crate::alloc::{try_reserved, try_zeros};
use crate::cpu::chain::{BLOCK, Runner, Scratch};
use crate::cpu::packed_weights::{Factor, Weights};
use crate::error::Result;
use crate::graph::fuse::{Chain, Kernel};
use crate::graph::plan::Plan;
use crate::ops::Op;
use crate::simd::stream::{self, Stream};
use crate::simd::{self, Cpu, share_out};

/// The number of values of whole rows that are worked on at a time: they stay in a second-level cache.
const ROWS: usize = 8 * BLOCK;

/// The memory of a plan's slots, reused from run to run: fresh pages cost more than most kernels.
pub(crate) type Slots = Vec<Vec<f32>>;

/// Runs a plan's kernels with those weights that are packed, which may be in two lists. `outside` has the
/// values of nodes that no kernel computes. Calls `finished` after each kernel.
pub(crate) fn run(
    plan: &Plan,
    (cpu, weights): (Cpu, [&Weights; 2]),
    outside: &[&[f32]],
    slots: &mut Slots,
    finished: &mut dyn FnMut(),
) -> Result<()> {
    slots.resize(plan.capacities.len(), Vec::new());
    for (place, kernel) in plan.kernels.iter().enumerate() {
        let slot = plan.slots[place];
        let mut out = std::mem::take(&mut slots[slot]);
        let mut inputs = Vec::new();
        for &input in &kernel.inputs {
            inputs.push(match plan.home(input) {
                Some(home) => &slots[home][..],
                None => outside[input],
            });
        }
        let run = KernelRun {
            plan,
            cpu,
            kernel,
            inputs: &inputs,
            factor: weights.iter().find_map(|list| list.get(place)?.as_ref()),
        };
        run.run(plan.len(kernel), &mut out)?;
        slots[slot] = out;
        finished();
    }
    Ok(())
}

/// A kernel with the values that it reads.
struct KernelRun<'a> {
    plan: &'a Plan,
    cpu: Cpu,
    kernel: &'a Kernel,
    inputs: &'a [&'a [f32]],
    /// The packed right operand of the kernel's matmul, if it is packed.
    factor: Option<&'a Factor>,
}

impl<'a> KernelRun<'a> {
    fn run(&self, len: usize, out: &mut Vec<f32>) -> Result<()> {
        let after = self.runner(&self.kernel.chain);
        let Some(head) = &self.kernel.head else {
            return self.elementwise(&after, len, out);
        };
        let Some((op, _)) = self.plan.nodes[head.node].operation() else {
            return Ok(());
        };
        fit(out, len)?;
        let (mut operands, mut plain) = (Vec::new(), Vec::new());
        for chain in &head.operands {
            let operand = self.runner(chain);
            operands.push(operand);
            plain.extend(operand.plain());
        }
        let fused = plain.len() < operands.len() || !after.chain.steps.is_empty();
        if let (true, Some([_, cols])) = (fused, op.by_rows()) {
            // All but the rows themselves are as they lie.
            let shared = &plain[plain.len() + 1 - operands.len()..];
            return self.rows(op, cols, (&operands[0], shared), &after, out);
        }
        match *op {
            _ if fused && stream::is_streamable(op) => self.stream(op, &operands, after, out),
            _ => {
                match self.factor {
                    Some(factor) => factor.multiply(self.cpu, plain[0], out)?,
                    None => simd::execute(self.cpu, op, &plain, out)?,
                }
                self.in_place(&after, out)
            }
        }
    }

    fn runner(&self, chain: &'a Chain) -> Runner<'a> {
        Runner {
            isa: self.cpu.isa,
            chain,
            inputs: self.inputs,
        }
    }

    fn elementwise(&self, chain: &Runner<'_>, len: usize, out: &mut Vec<f32>) -> Result<()> {
        let pieces = self.pieces(chain, len);
        if out.len() != len && pieces == 1 {
            return append(chain, len, out);
        }
        fit(out, len)?;
        share_out(pieces, BLOCK, out, |at, out| {
            chain.run(&mut chain.scratch(out.len())?, at, &[], out);
            Ok(())
        })
    }

    /// Applies the chain in place to the head's result.
    fn in_place(&self, chain: &Runner<'_>, out: &mut [f32]) -> Result<()> {
        if chain.chain.steps.is_empty() {
            return Ok(());
        }
        share_out(self.pieces(chain, out.len()), BLOCK, out, |at, out| {
            chain.run_in_place(&mut chain.scratch(out.len())?, at, out);
            Ok(())
        })
    }

    /// Runs a softmax or a norm of rows, some rows at a time together with its fused operations;
    /// operands shared by all rows are computed once.
    fn rows(
        &self,
        op: &Op,
        cols: usize,
        (before, shared): (&Runner<'_>, &[&[f32]]),
        after: &Runner<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let block = (ROWS / cols).max(1) * cols;
        let pieces = self.cpu.split(out.len() as u64, op.class());
        let one = Cpu {
            threads: 1,
            ..self.cpu
        };
        share_out(pieces, block, out, |start, out| {
            let mut scratch = [before.scratch(block)?, after.scratch(block)?];
            let mut x = try_zeros(block.min(out.len()))?;
            for (place, out) in out.chunks_mut(block).enumerate() {
                let (at, x) = (start + place * block, &mut x[..out.len()]);
                before.run(&mut scratch[0], at, &[], x);
                let x: &[f32] = x;
                simd::execute(one, op, &[&[x], shared].concat(), out)?;
                after.run_in_place(&mut scratch[1], at, out);
            }
            Ok(())
        })
    }

    /// A reduction or the softmax of one vector, which never sees its operands as a whole.
    fn stream(
        &self,
        op: &Op,
        operands: &[Runner<'_>],
        after: Runner<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let len = self.plan.operand_len(self.kernel);
        let mut scratch = Vec::new();
        for operand in operands {
            scratch.push(operand.scratch(BLOCK)?);
        }
        let mut stream = Chains {
            operands,
            scratch,
            len,
            after,
            after_scratch: after.scratch(BLOCK)?,
            out,
        };
        let value = stream::run(self.cpu.isa, op, &mut stream)?;
        if !op.is_scalar() {
            return Ok(());
        }
        out[0] = value as f32;
        self.in_place(&after, out)
    }

    fn pieces(&self, chain: &Runner<'_>, len: usize) -> usize {
        let work = len as u64 * chain.chain.steps.len() as u64;
        self.cpu.split(work, chain.class())
    }
}

/// Operands that are computed when they are read, and results that continue through a chain.
struct Chains<'a> {
    operands: &'a [Runner<'a>],
    scratch: Vec<Scratch>,
    /// The length of each operand.
    len: usize,
    after: Runner<'a>,
    after_scratch: Scratch,
    out: &'a mut [f32],
}

impl Stream for Chains<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn load(&mut self, input: usize, at: usize, to: &mut [f32]) {
        self.operands[input].run(&mut self.scratch[input], at, &[], to);
    }

    fn store(&mut self, at: usize, from: &[f32]) {
        let out = &mut self.out[at..at + from.len()];
        self.after.run(&mut self.after_scratch, at, from, out);
    }

    fn draft(&mut self, at: usize, len: usize) -> &mut [f32] {
        &mut self.out[at..at + len]
    }

    fn settle(&mut self, at: usize, len: usize) {
        let out = &mut self.out[at..at + len];
        self.after.run_in_place(&mut self.after_scratch, at, out);
    }
}

/// Sets the length of `out` to `len`. The contents are arbitrary.
fn fit(out: &mut Vec<f32>, len: usize) -> Result<()> {
    reserve(out, len)?;
    out.resize(len, 0.0);
    Ok(())
}

/// Room for `len` values.
fn reserve(out: &mut Vec<f32>, len: usize) -> Result<()> {
    if out.capacity() < len {
        *out = try_reserved(len)?;
    }
    Ok(())
}

/// A chain's values, in memory that is not written before.
fn append(chain: &Runner<'_>, len: usize, out: &mut Vec<f32>) -> Result<()> {
    reserve(out, len)?;
    out.clear();
    let mut scratch = chain.scratch(len)?;
    let done = chain.run_compiled(&scratch, 0, &mut out.spare_capacity_mut()[..len]);
    // SAFETY: so many were written.
    unsafe { out.set_len(done) };
    let mut block = [0.0; BLOCK];
    for at in (done..len).step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(len - at)];
        chain.run(&mut scratch, at, &[], block);
        out.extend_from_slice(block);
    }
    Ok(())
}
