//! Several cheap functions of one number after each other, on a few vectors that stay in registers
//! between them.

use super::InstructionSet;
use super::elementwise::{Abs, Clip, LeakyRelu, Neg, Relu, Scale, Unary};
use super::isa::{Isa, Kernel, MAX_LANES, dispatch};
use crate::ops::Op;

/// Vectors that are worked on at a time.
const VECTORS: usize = 8;

/// Whether [`sweep`] can do an operation: less of it than there is to a load and a store.
pub(crate) fn is_swept(op: &Op) -> bool {
    matches!(
        op,
        Op::Relu {}
            | Op::LeakyRelu { .. }
            | Op::Clip { .. }
            | Op::Abs {}
            | Op::Neg {}
            | Op::Scale { .. }
    )
}

/// Applies operations that [`is_swept`] to values where they lie, the first one first.
pub(crate) fn sweep(isa: InstructionSet, ops: &[&Op], values: &mut [f32]) {
    const GROUP: usize = VECTORS * MAX_LANES;
    let whole = values.len() / GROUP * GROUP;
    let (values, tail) = values.split_at_mut(whole);
    dispatch(isa, Sweep { ops, values });
    if !tail.is_empty() {
        let mut values = [0.0; GROUP];
        values[..tail.len()].copy_from_slice(tail);
        dispatch(
            isa,
            Sweep {
                ops,
                values: &mut values,
            },
        );
        tail.copy_from_slice(&values[..tail.len()]);
    }
}

/// Of whole groups.
struct Sweep<'a> {
    ops: &'a [&'a Op],
    values: &'a mut [f32],
}

impl Kernel for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for values in self.values.chunks_exact_mut(VECTORS * I::LANES) {
            let mut vectors = [isa.splat(0.0); VECTORS];
            for (vector, values) in vectors.iter_mut().zip(values.chunks_exact(I::LANES)) {
                *vector = isa.load(values);
            }
            for op in self.ops {
                match **op {
                    Op::Relu {} => each(isa, Relu {}, &mut vectors),
                    Op::LeakyRelu { negative_slope } => {
                        each(isa, LeakyRelu { negative_slope }, &mut vectors);
                    }
                    Op::Clip { min, max } => each(isa, Clip { min, max }, &mut vectors),
                    Op::Abs {} => each(isa, Abs {}, &mut vectors),
                    Op::Neg {} => each(isa, Neg {}, &mut vectors),
                    Op::Scale { factor } => each(isa, Scale { factor }, &mut vectors),
                    _ => debug_assert!(false, "{} is not cheap", op.name()),
                }
            }
            for (vector, values) in vectors.into_iter().zip(values.chunks_exact_mut(I::LANES)) {
                isa.store(vector, values);
            }
        }
    }
}

#[inline(always)]
fn each<I: Isa, F: Unary>(isa: I, f: F, vectors: &mut [I::F32; VECTORS]) {
    for vector in vectors {
        *vector = f.eval(isa, *vector);
    }
}
