//! Rotary position embedding (Su et al., 2021).

use super::Kernel;
use super::values::{check, first_target, load, store};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::types::PtxType::{self, F32, U32};
use crate::types::Target;

/// The number of pairs of a thread.
const WIDTH: u32 = 4;
const THREADS: u32 = 128;

/// The elements of a head that form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Pairs {
    /// Elements `i` and `i + dim/2`, as in the published weights of most models.
    Halves,
    /// Elements `2i` and `2i + 1`, as in the paper.
    Neighbours,
}

/// Rotates pair `i` of every head by the angle whose cosine and sine are in tables indexed by the
/// token's position: `(a, b)` becomes `(a · cos − b · sin, a · sin + b · cos)`.
///
/// Parameters: `x`, `y` (of the kernel's type, `tokens × heads × dim`, aligned to 16 bytes; may be the
/// same), `cos`, `sin` (f32, a row of `dim/2` for each position), `positions` (u32, one a token),
/// `tokens`, `heads` (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RopeKernel {
    dim: u32,
    pairs: Pairs,
    ty: PtxType,
}

impl RopeKernel {
    /// Creates a kernel for f32 heads of dimension `dim`, a multiple of 8 up to 1024.
    pub fn new(dim: u32, pairs: Pairs) -> Self {
        RopeKernel {
            dim,
            pairs,
            ty: F32,
        }
    }

    /// Sets the type of the elements: f16, bf16 or f32.
    #[must_use]
    pub fn of(self, ty: PtxType) -> Self {
        RopeKernel { ty, ..self }
    }
}

impl Kernel for RopeKernel {
    fn name(&self) -> String {
        let pairs = format!("{:?}", self.pairs).to_lowercase();
        format!("rope_{pairs}_{}_{}", self.dim, self.ty)
    }

    fn first_target(&self) -> Target {
        first_target(self.ty)
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        check(self.ty)?;
        let most = THREADS * WIDTH * 2;
        if !self.dim.is_multiple_of(2 * WIDTH) || !(1..=most).contains(&self.dim) {
            let dim = self.dim.to_string();
            return Err(Error::invalid("dim", dim, "a multiple of 8 up to 1024"));
        }
        let per_block = most / self.dim;
        let grid = [
            Extent::Param("tokens"),
            Extent::Tiles("heads", per_block),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, y] = ["x", "y"].map(|name| k.pointer(name, self.ty));
        let [cos, sin] = ["cos", "sin"].map(|name| k.pointer(name, F32));
        let positions = k.pointer("positions", U32);
        let _ = k.scalar("tokens", U32);
        let heads = k.scalar("heads", U32);
        let (token, group) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let thread = k.special(Special::TidX);
        let per_head = self.dim / (2 * WIDTH);
        let first = k.mul(group, per_block);
        let in_group = k.div(thread, per_head);
        let head = k.add(first, in_group);
        let pair = k.rem(thread, per_head);
        let pair = k.mul(pair, WIDTH);
        k.wait_for_grid();
        let mine = k.lt(in_group, per_block);
        let exists = k.lt(head, heads);
        let works = k.and(mine, exists);
        k.when(works, |k| {
            let at = k.at(positions, token, 4);
            let position = k.ld_global(U32, at, 0);
            let row = k.fma(position, self.dim / 2, pair);
            let [cos, sin] = [cos, sin].map(|table| {
                let at = k.at(table, row, 4);
                k.ld_vector(Op::LdGlobalNc, F32, WIDTH as usize, at, 0)
            });
            let head = k.fma(token, heads, head);
            self.turn(k, [x, y], [head, pair], [&cos, &sin]);
        });
        k.finish()
    }
}

impl RopeKernel {
    fn turn(
        self,
        k: &mut Builder,
        [x, y]: [Reg; 2],
        [head, pair]: [Reg; 2],
        [cos, sin]: [&[Reg]; 2],
    ) {
        let zero = k.value(U32, 0);
        let of_head = |k: &mut Builder, base| {
            let dim = k.value(U32, self.dim);
            k.at_2d(base, head, dim, zero, self.ty.bytes())
        };
        let (from, to) = (of_head(k, x), of_head(k, y));
        // Each thread loads two vectors of four: first and second elements separately, or
        // interleaved.
        let places = match self.pairs {
            Pairs::Halves => [pair, k.add(pair, self.dim / 2)],
            Pairs::Neighbours => {
                let first = k.mul(pair, 2);
                [first, k.add(first, WIDTH)]
            }
        };
        let mut values = Vec::new();
        for place in places {
            let at = k.at(from, place, self.ty.bytes());
            values.extend(load(k, self.ty, WIDTH as usize, at));
        }
        let index = |i: usize| match self.pairs {
            Pairs::Halves => (i, i + WIDTH as usize),
            Pairs::Neighbours => (2 * i, 2 * i + 1),
        };
        let mut results = values.clone();
        for i in 0..WIDTH as usize {
            let (first, second) = index(i);
            let (a, b) = (values[first], values[second]);
            let minus = k.neg(b);
            let product = k.mul(minus, sin[i]);
            results[first] = k.fma(a, cos[i], product);
            let product = k.mul(b, cos[i]);
            results[second] = k.fma(a, sin[i], product);
        }
        for (place, results) in places.into_iter().zip(results.chunks(WIDTH as usize)) {
            let at = k.at(to, place, self.ty.bytes());
            store(k, self.ty, results, at);
        }
    }
}
