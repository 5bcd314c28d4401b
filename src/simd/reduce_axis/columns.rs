//! Reductions of columns: rows are gone through once, in the order in which they lie.

use crate::ops::AxisFold;
use crate::simd::InstructionSet;
use crate::simd::isa::{Isa, Kernel, dispatch};
use crate::simd::ranking::is_above;

/// The largest number of columns that are reduced together.
pub(super) const COLUMNS: usize = 256;

/// Vectors of columns whose indices are found together: in WebAssembly, a cache line.
const VECTORS: usize = 4;

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
            AxisFold::Mean => self.sums(self.rows().count() as f64, out),
            AxisFold::Max => self.extremes(1.0, out),
            AxisFold::Min => self.extremes(-1.0, out),
            AxisFold::Argmax => self.indices(isa, 1.0, out),
            AxisFold::Argmin => self.indices(isa, -1.0, out),
        }
    }

    fn rows(self) -> impl Iterator<Item = &'a [f32]> {
        let Self { x, stride, width } = self;
        x.chunks(stride).map(move |row| &row[..width])
    }

    /// Returns several rows at a time where one follows the other, as many as [`COLUMNS`] elements
    /// hold; the last ones may be fewer. Few columns would keep a loop over them from getting up to
    /// speed.
    fn joined_rows(self) -> impl Iterator<Item = &'a [f32]> {
        let Self { x, stride, width } = self;
        let (step, joined) = if stride == width {
            let all = COLUMNS / width * width;
            (all, all)
        } else {
            (stride, width)
        };
        x.chunks(step)
            .map(move |rows| &rows[..joined.min(rows.len())])
    }

    /// The sums of columns in `f64`, divided by `divisor`.
    fn sums(self, divisor: f64, out: &mut [f32]) {
        let mut sums = [0.0; COLUMNS];
        for row in self.joined_rows() {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += f64::from(value);
            }
        }
        let (totals, others) = sums.split_at_mut(self.width);
        for sums in others.chunks(self.width) {
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total += sum;
            }
        }
        for (out, total) in out.iter_mut().zip(totals) {
            *out = (*total / divisor) as f32;
        }
    }

    /// The largest elements of columns times `sign`, which is 1 or −1.
    fn extremes(self, sign: f32, out: &mut [f32]) {
        let mut best = [f32::NEG_INFINITY; COLUMNS];
        for row in self.joined_rows() {
            for (best, &value) in best.iter_mut().zip(row) {
                *best = larger(*best, sign * value);
            }
        }
        let (totals, others) = best.split_at_mut(self.width);
        for best in others.chunks(self.width) {
            for (total, &best) in totals.iter_mut().zip(best) {
                *total = larger(*total, best);
            }
        }
        for (out, total) in out.iter_mut().zip(totals) {
            *out = sign * *total;
        }
    }

    /// The indices of the largest elements of columns times `sign`, which is 1 or −1.
    fn indices(self, isa: InstructionSet, sign: f32, out: &mut [f32]) {
        let columns = self;
        dispatch(isa, Indices { columns, sign, out });
    }
}

/// The larger number; a NaN stays, because nothing is above it.
fn larger(best: f32, value: f32) -> f32 {
    if value > best || value.is_nan() {
        value
    } else {
        best
    }
}

/// The index of each column's first NaN or, without any, of the first largest element times `sign`.
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
        while column + VECTORS * I::LANES <= out.len() {
            vectors::<I, VECTORS>(isa, columns, sign, column, out);
            column += VECTORS * I::LANES;
        }
        while column + I::LANES <= out.len() {
            vectors::<I, 1>(isa, columns, sign, column, out);
            column += I::LANES;
        }
        if column < out.len() && out.len() >= I::LANES {
            // Some columns a second time.
            let last = out.len() - I::LANES;
            return vectors::<I, 1>(isa, columns, sign, last, out);
        }
        for (column, out) in out.iter_mut().enumerate().skip(column) {
            *out = one_column(columns, sign, column) as f32;
        }
    }
}

/// Finds the indices of `V` vectors of columns.
#[inline(always)]
fn vectors<I: Isa, const V: usize>(
    isa: I,
    columns: Columns<'_>,
    sign: f32,
    column: usize,
    out: &mut [f32],
) {
    let sign = isa.splat(sign);
    let mut best = [isa.splat(f32::NEG_INFINITY); V];
    let mut indices = [isa.splat(0.0); V];
    for (row, x) in columns.x.chunks(columns.stride).enumerate() {
        let (row, x) = (isa.splat(row as f32), &x[column..][..V * I::LANES]);
        for v in 0..V {
            let value = isa.mul(sign, isa.load(&x[v * I::LANES..]));
            let larger = isa.max(best[v], value);
            let (is_number, is_same) = (isa.eq(best[v], best[v]), isa.eq(larger, best[v]));
            // A NaN is equal to nothing, and the first one stays.
            let index = isa.select(is_number, row, indices[v]);
            indices[v] = isa.select(is_same, indices[v], index);
            best[v] = larger;
        }
    }
    for (v, &indices) in indices.iter().enumerate() {
        isa.store(indices, &mut out[column + v * I::LANES..]);
    }
}

fn one_column(columns: Columns<'_>, sign: f32, column: usize) -> usize {
    let (mut best, mut index) = (f32::NEG_INFINITY, 0);
    for (row, x) in columns.x.chunks(columns.stride).enumerate() {
        if is_above(sign * x[column], Some(best)) {
            (best, index) = (sign * x[column], row);
        }
    }
    index
}
