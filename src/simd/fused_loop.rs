//! Runs of several cheap functions on a few vectors that stay in registers. Functions of two
//! operands read the other operand from memory.

#[cfg_attr(target_arch = "wasm32", path = "fused_loop/absent.rs")]
mod pairs;

use super::InstructionSet;
use super::elementwise::{Binary, GentleRelu, Unary, Visitor, padded};
use super::functions::{is_light, with_light_function};
use super::isa::{AHEAD, Isa, Kernel, MAX_LANES, dispatch};
use crate::ops::Op;
use crate::runtime::NATIVE;
pub(crate) use pairs::Other;

/// The number of vectors that are worked on at a time: as many as registers hold beside a few others.
const FEW: usize = 8;
const MANY: usize = 16;

/// An operation of a sweep.
#[derive(Clone, Copy)]
pub(crate) struct Swept<'a> {
    pub(crate) op: &'a Op,
    /// The second operand, if the operation has two.
    pub(crate) other: Option<Other<'a>>,
}

/// Whether [`sweep`] can do an operation: its function is light.
pub(crate) fn is_swept(op: &Op) -> bool {
    is_light(op) && (op.inputs().len() == 1 || NATIVE)
}

/// The number of values of a whole group on any instruction set.
const GROUP: usize = MANY * MAX_LANES;

/// Applies operations that [`is_swept`] to `x`, the first one first; to the values where their
/// results go, if there is no `x`.
pub(crate) fn sweep(isa: InstructionSet, steps: &[Swept], x: Option<&[f32]>, y: &mut [f32]) {
    let whole = y.len() / GROUP * GROUP;
    let (values, tail) = y.split_at_mut(whole);
    let (x, x_tail) = x.map(|x| x.split_at(whole)).unzip();
    let y = values;
    dispatch(isa, Sweep { steps, x, y });
    if !tail.is_empty() {
        let mut y: [f32; GROUP] = padded(x_tail.unwrap_or(tail));
        // The others' last values have to be filled up, too.
        if steps.iter().any(|step| step.other.is_some()) {
            for step in steps {
                step.sweep_last(isa, whole, &mut y);
            }
        } else {
            let y = &mut y;
            dispatch(isa, Sweep { steps, x: None, y });
        }
        tail.copy_from_slice(&y[..tail.len()]);
    }
}

impl<'a> Swept<'a> {
    pub(crate) fn alone(op: &'a Op) -> Self {
        Swept { op, other: None }
    }

    /// Applies this operation to vectors in registers, whose first element is at `at`.
    #[inline(always)]
    fn apply<I: Isa, const N: usize>(self, isa: I, at: usize, vectors: &mut [I::F32; N]) {
        let registers = Registers {
            isa,
            other: self.other,
            at,
            vectors,
        };
        match GentleRelu::of(self.op) {
            Some(gentle) if NATIVE => registers.unary(gentle),
            _ => {
                let done = with_light_function(self.op, registers);
                debug_assert!(done.is_some(), "{} is not light", self.op.name());
            }
        }
    }

    /// Applies this operation alone to the elements from `at` on, fewer than a group.
    fn sweep_last(self, isa: InstructionSet, at: usize, y: &mut [f32; GROUP]) {
        let others: Option<[f32; GROUP]> = self.other.map(|other| padded(other.values(at..)));
        let other = self.other.zip(others.as_ref());
        let other = other.and_then(|(other, values)| other.with(values));
        let steps = &[Swept { other, ..self }];
        dispatch(isa, Sweep { steps, x: None, y });
    }
}

/// The loop over whole groups. Elements are loaded as they are needed, so that memory latency
/// overlaps with computation.
struct Sweep<'a> {
    steps: &'a [Swept<'a>],
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
            for step in self.steps {
                step.apply(isa, place * group, &mut vectors);
            }
            for (vector, y) in vectors.into_iter().zip(y.chunks_exact_mut(I::LANES)) {
                isa.store(vector, y);
            }
        }
    }
}

/// Vectors in registers, with the position of their first element.
struct Registers<'a, I: Isa, const N: usize> {
    isa: I,
    other: Option<Other<'a>>,
    at: usize,
    vectors: &'a mut [I::F32; N],
}

impl<I: Isa, const N: usize> Visitor for Registers<'_, I, N> {
    type Output = ();

    #[inline(always)]
    fn unary<F: Unary>(self, f: F) {
        for vector in self.vectors {
            *vector = f.eval(self.isa, *vector);
        }
    }

    #[inline(always)]
    fn binary<F: Binary>(self, f: F) {
        if let Some(other) = self.other {
            other.each(self.isa, f, self.at, self.vectors);
        }
    }
}
