//! Reductions of columns: rows are gone through once, in the order in which they lie.

use crate::ops::AxisFold;
use crate::simd::InstructionSet;
use crate::simd::elementwise::Binary;
use crate::simd::functions::Maximum;
use crate::simd::isa::{Isa, Kernel, dispatch};
use crate::simd::ranking::is_above;

/// The largest number of columns that are reduced together.
pub(super) const COLUMNS: usize = 256;

/// Rows of `width` elements, at most [`COLUMNS`], that start `stride` elements apart; the last one
/// ends with `x`.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) x: &'a [f32],
    pub(super) stride: usize,
    pub(super) width: usize,
}

impl<'a> Columns<'a> {
    /// Reduces each column to an element of `out`, which has `width`.
    pub(super) fn reduce(self, isa: InstructionSet, which: AxisFold, out: &mut [f32]) {
        match which {
            AxisFold::Sum => self.sums(1.0, out),
            AxisFold::Mean => self.sums(self.rows().len() as f64, out),
            AxisFold::Max => self.extremes(isa, 1.0, out),
            AxisFold::Min => self.extremes(isa, -1.0, out),
            AxisFold::Argmax => self.indices(isa, 1.0, out),
            AxisFold::Argmin => self.indices(isa, -1.0, out),
        }
    }

    fn rows(self) -> impl ExactSizeIterator<Item = &'a [f32]> {
        let Self { x, stride, width } = self;
        x.chunks(stride).map(move |row| &row[..width])
    }

    /// The sums of columns in `f64`, divided by `divisor`.
    fn sums(self, divisor: f64, out: &mut [f32]) {
        let mut sums = [0.0; COLUMNS];
        for row in self.rows() {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += f64::from(value);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = (sum / divisor) as f32;
        }
    }

    /// The largest elements of columns times `sign`, which is 1 or −1.
    fn extremes(self, isa: InstructionSet, sign: f32, out: &mut [f32]) {
        let columns = self;
        dispatch(isa, Extremes { columns, sign, out });
    }

    /// The indices of the largest elements of columns times `sign`, which is 1 or −1.
    fn indices(self, isa: InstructionSet, sign: f32, out: &mut [f32]) {
        let columns = self;
        dispatch(isa, Indices { columns, sign, out });
    }

    /// The index in one column of the first NaN or, without any, of the first largest element times
    /// `sign`.
    pub(super) fn index(self, sign: f32, column: usize) -> usize {
        let (mut best, mut index) = (f32::NEG_INFINITY, 0);
        for (row, x) in self.x.chunks(self.stride).enumerate() {
            if is_above(sign * x[column], Some(best)) {
                (best, index) = (sign * x[column], row);
            }
        }
        index
    }
}

/// [`Columns::extremes`].
struct Extremes<'a> {
    columns: Columns<'a>,
    sign: f32,
    out: &'a mut [f32],
}

impl Kernel for Extremes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { columns, sign, out } = self;
        let whole = out.len() / I::LANES * I::LANES;
        let signs = isa.splat(sign);
        out.fill(f32::NEG_INFINITY);
        for row in columns.rows() {
            for at in (0..whole).step_by(I::LANES) {
                let x = isa.mul(signs, isa.load(&row[at..]));
                let best = Maximum.eval(isa, isa.load(&out[at..]), x);
                isa.store(best, &mut out[at..]);
            }
            for (best, &x) in out.iter_mut().zip(row).skip(whole) {
                // A NaN stays: nothing is above it.
                if sign * x > *best || x.is_nan() {
                    *best = sign * x;
                }
            }
        }
        for best in out {
            *best *= sign;
        }
    }
}

/// [`Columns::index`] of each column.
struct Indices<'a> {
    columns: Columns<'a>,
    sign: f32,
    out: &'a mut [f32],
}

impl Kernel for Indices<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { columns, sign, out } = self;
        let mut column = 0;
        while column + I::LANES <= out.len() {
            isa.store(vector(isa, columns, sign, column), &mut out[column..]);
            column += I::LANES;
        }
        for (column, out) in out.iter_mut().enumerate().skip(column) {
            *out = columns.index(sign, column) as f32;
        }
    }
}

/// Returns the indices of a vector of columns.
#[inline(always)]
fn vector<I: Isa>(isa: I, columns: Columns<'_>, sign: f32, column: usize) -> I::F32 {
    let sign = isa.splat(sign);
    let (mut best, mut indices) = (isa.splat(f32::NEG_INFINITY), isa.splat(0.0));
    for (row, x) in columns.x.chunks(columns.stride).enumerate() {
        let larger = isa.max(best, isa.mul(sign, isa.load(&x[column..])));
        // A NaN is equal to nothing, and the first one stays.
        let index = isa.select(isa.eq(best, best), isa.splat(row as f32), indices);
        indices = isa.select(isa.eq(larger, best), indices, index);
        best = larger;
    }
    indices
}
