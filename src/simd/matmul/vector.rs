//! Matmuls of few rows or few values, for which packing does not pay.

use crate::simd::isa::{Isa, Kernel};

/// The number of rows of `B` that are added up before their sum goes to the buffer.
const GROUP: usize = 8;

/// The number of rows of `B` whose sum is accumulated in the buffer before it is added to `C`, a multiple of `GROUP`.
/// The sum of the first ones is accumulated in `C`. This bounds the rounding error.
const DEPTH: usize = 256;

/// The number of columns of the buffer.
const COLS: usize = 4096;

/// A row of `C`, or some columns of it, as a sum of multiples of the rows of `B`, which are read
/// in order and lie `stride` apart.
pub(super) struct Row<'a> {
    pub(super) a: &'a [f32],
    pub(super) b: &'a [f32],
    pub(super) stride: usize,
    pub(super) c: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Row { a, b, stride, c } = self;
        c.fill(0.0); // Where there is nothing to add up.
        let mut memory;
        let buffer: &mut [f32] = if a.len() > DEPTH {
            memory = [0.0; COLS];
            &mut memory
        } else {
            &mut []
        };
        for (col, c) in (0..).step_by(COLS).zip(c.chunks_mut(COLS)) {
            for (part, (a, b)) in a.chunks(DEPTH).zip(b.chunks(DEPTH * stride)).enumerate() {
                let gathers = part > 0;
                let sums = if gathers {
                    &mut buffer[..c.len()]
                } else {
                    &mut *c
                };
                sums.fill(0.0);
                sum_of_multiples(isa, a, &b[col..], stride, sums);
                if gathers {
                    for (c, &mut sum) in c.iter_mut().zip(&mut *buffer) {
                        *c += sum;
                    }
                }
            }
        }
    }
}

/// Adds the rows of `b`, times the values of `a`, to `sums`.
#[inline(always)]
fn sum_of_multiples<I: Isa>(isa: I, a: &[f32], b: &[f32], stride: usize, sums: &mut [f32]) {
    let groups = a.chunks_exact(GROUP);
    let rest = groups.remainder();
    for (a, b) in groups.zip(b.chunks(GROUP * stride)) {
        add_multiples::<I, GROUP>(isa, a, b, stride, sums);
    }
    let rows = b.chunks(stride).skip(a.len() - rest.len());
    for (a, b) in rest.chunks_exact(1).zip(rows) {
        add_multiples::<I, 1>(isa, a, b, stride, sums);
    }
}

/// Adds `N` rows of `b`, times the `N` values of `a`, to `c`.
#[inline(always)]
fn add_multiples<I: Isa, const N: usize>(
    isa: I,
    a: &[f32],
    b: &[f32],
    stride: usize,
    c: &mut [f32],
) {
    let n = c.len();
    let mut factors = [isa.splat(0.0); N];
    for (factor, &a) in factors.iter_mut().zip(a) {
        *factor = isa.splat(a);
    }
    let whole = n / I::LANES * I::LANES;
    for j in (0..whole).step_by(I::LANES) {
        let mut sum = isa.mul(factors[0], isa.load(&b[j..]));
        for (i, &factor) in factors.iter().enumerate().skip(1) {
            sum = isa.mul_add(factor, isa.load(&b[i * stride + j..]), sum);
        }
        let c = &mut c[j..];
        isa.store(isa.add(isa.load(c), sum), c);
    }
    if whole < n {
        let mut sum = isa.splat(0.0);
        for (i, &factor) in factors.iter().enumerate() {
            let b = isa.load_first(&b[i * stride + whole..][..n - whole], 0.0);
            sum = isa.mul_add(factor, b, sum);
        }
        let c = &mut c[whole..];
        isa.store_first(isa.add(isa.load_first(c, 0.0), sum), c);
    }
}
