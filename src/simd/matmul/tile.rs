//! The innermost loop: a tile of `C` in the registers.

use crate::simd::isa::{Isa, MAX_LANES};

/// A tile of `ROWS` rows and `VECTORS` vectors of columns.
pub(in crate::simd) trait Tile {
    const ROWS: usize;
    const VECTORS: usize;

    /// Writes the product of a packed strip of `A` (`ROWS` values for each step of the depth)
    /// and a packed strip of `B` (`VECTORS · LANES` values for each) to the first `rows × cols`
    /// values of `c`, or adds it to them.
    fn multiply<I: Isa>(
        isa: I,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        c_stride: usize,
        size: [usize; 2],
        accumulate: bool,
    );
}

/// The tile whose sums are held in `ROWS · VECTORS` registers.
pub(in crate::simd) struct RegisterTile<const ROWS: usize, const VECTORS: usize>;

impl<const ROWS: usize, const VECTORS: usize> Tile for RegisterTile<ROWS, VECTORS> {
    const ROWS: usize = ROWS;
    const VECTORS: usize = VECTORS;

    #[inline(always)]
    fn multiply<I: Isa>(
        isa: I,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        c_stride: usize,
        [rows, cols]: [usize; 2],
        accumulate: bool,
    ) {
        let sums = sums::<I, ROWS, VECTORS>(isa, a, b);
        if rows == ROWS && cols == VECTORS * I::LANES {
            for (i, sums) in sums.into_iter().enumerate() {
                let c = &mut c[i * c_stride..][..VECTORS * I::LANES];
                for (j, sum) in sums.into_iter().enumerate() {
                    let c = &mut c[j * I::LANES..][..I::LANES];
                    let value = if accumulate {
                        isa.add(isa.load(c), sum)
                    } else {
                        sum
                    };
                    isa.store(value, c);
                }
            }
        } else {
            store_edge(isa, &sums, c, c_stride, [rows, cols], accumulate);
        }
    }
}

#[inline(always)]
fn sums<I: Isa, const ROWS: usize, const VECTORS: usize>(
    isa: I,
    a: &[f32],
    b: &[f32],
) -> [[I::F32; VECTORS]; ROWS] {
    let mut sums = [[isa.splat(0.0); VECTORS]; ROWS];
    for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(VECTORS * I::LANES)) {
        let mut columns = [isa.splat(0.0); VECTORS];
        for (j, column) in columns.iter_mut().enumerate() {
            *column = isa.load(&b[j * I::LANES..]);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = isa.splat(a[i]);
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = isa.mul_add(a, column, *sum);
            }
        }
    }
    sums
}

/// Writes the part of a tile that lies within `C`.
#[inline(always)]
fn store_edge<I: Isa, const ROWS: usize, const VECTORS: usize>(
    isa: I,
    sums: &[[I::F32; VECTORS]; ROWS],
    c: &mut [f32],
    c_stride: usize,
    [rows, cols]: [usize; 2],
    accumulate: bool,
) {
    let mut buffer = [[[0.0; MAX_LANES]; VECTORS]; ROWS];
    for (lanes, &sum) in buffer
        .as_flattened_mut()
        .iter_mut()
        .zip(sums.as_flattened())
    {
        *lanes = isa.to_array(sum);
    }
    for (i, row) in buffer.iter().enumerate().take(rows) {
        for (j, c) in c[i * c_stride..].iter_mut().enumerate().take(cols) {
            let sum = row[j / I::LANES][j % I::LANES];
            *c = if accumulate { *c + sum } else { sum };
        }
    }
}
