//! Several cheap functions of one number after each other, on a few vectors that stay in registers
//! between them.

use super::InstructionSet;
use super::elementwise::{Abs, Clip, GentleRelu, LeakyRelu, Neg, Relu, Scale, Unary};
use super::isa::{AHEAD, Isa, Kernel, MAX_LANES, dispatch};
use crate::ops::Op;

/// Vectors that are worked on at a time: as many as registers hold beside a few others.
const FEW: usize = 8;
const MANY: usize = 16;

/// Whether code may be larger for speed. In the browser, chains that matter get code of their own.
pub(crate) const NATIVE: bool = cfg!(not(target_arch = "wasm32"));

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

/// Applies operations that [`is_swept`] to `x`, the first one first; to the values where their
/// results go, if there is no `x`.
pub(crate) fn sweep(isa: InstructionSet, ops: &[&Op], x: Option<&[f32]>, y: &mut [f32]) {
    const GROUP: usize = MANY * MAX_LANES;
    let whole = y.len() / GROUP * GROUP;
    let (values, tail) = y.split_at_mut(whole);
    let (x, x_tail) = x.map(|x| x.split_at(whole)).unzip();
    let y = values;
    dispatch(isa, Sweep { ops, x, y });
    if !tail.is_empty() {
        let mut values = [0.0; GROUP];
        let y = &mut values;
        y[..tail.len()].copy_from_slice(x_tail.unwrap_or(tail));
        dispatch(isa, Sweep { ops, x: None, y });
        tail.copy_from_slice(&values[..tail.len()]);
    }
}

/// Of whole groups. Values are read as they are needed, so that memory is waited for while others
/// are computed.
struct Sweep<'a> {
    ops: &'a [&'a Op],
    x: Option<&'a [f32]>,
    y: &'a mut [f32],
}

impl Kernel for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if I::MANY_REGISTERS {
            self.groups::<I, MANY>(isa);
        } else {
            self.groups::<I, FEW>(isa);
        }
    }
}

impl Sweep<'_> {
    #[inline(always)]
    fn groups<I: Isa, const VECTORS: usize>(self, isa: I) {
        let group = VECTORS * I::LANES;
        for (place, y) in self.y.chunks_exact_mut(group).enumerate() {
            let x = self.x.map_or(&*y, |x| &x[place * group..][..group]);
            for vector in 0..VECTORS {
                let ahead = AHEAD + vector * I::LANES;
                isa.prefetch(x.as_ptr().wrapping_add(ahead));
                isa.prefetch(y.as_ptr().wrapping_add(ahead));
            }
            let mut vectors = [isa.splat(0.0); VECTORS];
            for (vector, x) in vectors.iter_mut().zip(x.chunks_exact(I::LANES)) {
                *vector = isa.load(x);
            }
            for op in self.ops {
                match **op {
                    Op::Relu {} => each(isa, Relu {}, &mut vectors),
                    Op::LeakyRelu { negative_slope } => match GentleRelu::of(op) {
                        Some(gentle) if NATIVE => each(isa, gentle, &mut vectors),
                        _ => each(isa, LeakyRelu { negative_slope }, &mut vectors),
                    },
                    Op::Clip { min, max } => each(isa, Clip { min, max }, &mut vectors),
                    Op::Abs {} => each(isa, Abs {}, &mut vectors),
                    Op::Neg {} => each(isa, Neg {}, &mut vectors),
                    Op::Scale { factor } => each(isa, Scale { factor }, &mut vectors),
                    _ => debug_assert!(false, "{} is not cheap", op.name()),
                }
            }
            for (vector, y) in vectors.into_iter().zip(y.chunks_exact_mut(I::LANES)) {
                isa.store(vector, y);
            }
        }
    }
}

#[inline(always)]
fn each<I: Isa, F: Unary, const N: usize>(isa: I, f: F, vectors: &mut [I::F32; N]) {
    for vector in vectors {
        *vector = f.eval(isa, *vector);
    }
}
