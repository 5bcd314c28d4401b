//! Copies of parts of `A` and `B` in the order in which the innermost loop reads them.

use crate::error::{Result, try_zeros};
use crate::simd::isa::Isa;

/// Values in a cache line.
const LINE: usize = 16;

/// Memory for packed values, at a cache line's alignment so that no vector straddles two.
pub(super) struct Scratch {
    values: Vec<f32>,
    start: usize,
}

impl Scratch {
    /// Memory for `width × depth` values.
    pub(super) fn new(width: usize, depth: usize) -> Result<Self> {
        let values = try_zeros(width.saturating_mul(depth).saturating_add(LINE))?;
        let offset = values.as_ptr().align_offset(LINE * size_of::<f32>());
        Ok(Self {
            values,
            start: offset.min(LINE),
        })
    }

    pub(super) fn values(&mut self) -> &mut [f32] {
        &mut self.values[self.start..]
    }
}

/// Packs `depth × cols` values of `B` in strips of `width` columns, the last filled up with
/// zeros.
#[inline(always)]
pub(super) fn columns<I: Isa>(
    isa: I,
    b: &[f32],
    stride: usize,
    [depth, cols]: [usize; 2],
    width: usize,
    packed: &mut [f32],
) {
    let strips = packed.chunks_exact_mut(depth * width);
    for (strip, col) in strips.zip((0..cols).step_by(width)) {
        let used = width.min(cols - col);
        for (p, packed) in strip.chunks_exact_mut(width).enumerate() {
            let b = &b[p * stride + col..][..used];
            if used == width {
                for (packed, b) in packed
                    .chunks_exact_mut(I::LANES)
                    .zip(b.chunks_exact(I::LANES))
                {
                    isa.store(isa.load(b), packed);
                }
            } else {
                packed[..used].copy_from_slice(b);
                packed[used..].fill(0.0);
            }
        }
    }
}

/// Packs `rows × depth` values of `A` in strips of `height` rows, column by column, the last
/// strip filled up with zeros.
#[inline(always)]
pub(super) fn rows<I: Isa>(
    isa: I,
    a: &[f32],
    stride: usize,
    [rows, depth]: [usize; 2],
    height: usize,
    packed: &mut [f32],
) {
    let strips = packed.chunks_exact_mut(depth * height);
    for (strip, row) in strips.zip((0..rows).step_by(height)) {
        let used = height.min(rows - row);
        let a = &a[row * stride..];
        if used < height {
            strip.fill(0.0);
        }
        let (quads, quad_depth) = (used / 4 * 4, depth / 4 * 4);
        for i in (0..quads).step_by(4) {
            let a = &a[i * stride..][..3 * stride + depth];
            for p in (0..quad_depth).step_by(4) {
                let to = &mut strip[p * height + i..][..3 * height + 4];
                // SAFETY: `a` holds four rows of `depth` > p + 3 values, `to` four rows of
                // four at a stride of `height`.
                unsafe { isa.transpose4(a.as_ptr().add(p), stride, to.as_mut_ptr(), height) };
            }
        }
        for i in 0..used {
            let first = if i < quads { quad_depth } else { 0 };
            for (p, &value) in a[i * stride..][..depth].iter().enumerate().skip(first) {
                strip[p * height + i] = value;
            }
        }
    }
}
