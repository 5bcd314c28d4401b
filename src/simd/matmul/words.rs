//! `B` in few bits, unpacked panel by panel to strips that stay in the cache.

use super::pack::Scratch;
use super::panel::{KC, Panel, Panels, Part};
use super::tile::VECTORS;
use super::{Matrix, multiply, pieces};
use crate::error::Result;
use crate::matmul_cache::{BLOCK, QuantizedWeights, WeightFormat};
use crate::simd::isa::Isa;
use crate::simd::threads::Cpu;

/// Columns of a panel: unpacked, they take a quarter of a second-level cache.
const COLS: usize = 256;

/// Columns that are unpacked at a time: a vector of most instruction sets, half of one of the
/// widest.
const GROUP: usize = 8;

/// `C = A · B` of row-major matrices: `m × k` values of `A`, `m × n` of `C`; else nothing is
/// done.
///
/// # Errors
/// `OutOfMemory` where there is no memory for panels.
pub(crate) fn multiply_words(
    cpu: Cpu,
    weights: &QuantizedWeights,
    a: &[f32],
    c: &mut [f32],
    m: usize,
) -> Result<()> {
    let [k, n] = weights.shape();
    let lengths = [m.checked_mul(k), m.checked_mul(n)];
    // Checked again because the kernels' pointers rely on it.
    if c.is_empty() || lengths != [Some(a.len()), Some(c.len())] {
        return Ok(());
    }
    if k == 0 {
        c.fill(0.0);
        return Ok(());
    }
    let (shape, a) = ([m, k, n], Matrix::new(a, [m, k], false));
    let pieces = pieces(cpu, shape);
    // SAFETY: the lengths are those of the shapes.
    unsafe {
        match weights.format {
            WeightFormat::Q8_0 => multiply(cpu.isa, pieces, a, Words(weights, Q8), shape, c),
            WeightFormat::Q4_0 => multiply(cpu.isa, pieces, a, Words(weights, Q4), shape, c),
            _ => multiply(cpu.isa, pieces, a, Words(weights, F16), shape, c),
        }
    }
}

/// A number of a word, brought to its low bits.
trait Number: Copy {
    /// Whether it is a factor of its block's scale.
    const SCALED: bool;
    fn value(self, bits: u32) -> f32;
}

#[derive(Clone, Copy)]
struct Q8;

impl Number for Q8 {
    const SCALED: bool = true;

    #[inline(always)]
    fn value(self, bits: u32) -> f32 {
        f32::from(bits as i8)
    }
}

#[derive(Clone, Copy)]
struct Q4;

impl Number for Q4 {
    const SCALED: bool = true;

    #[inline(always)]
    fn value(self, bits: u32) -> f32 {
        ((bits & 15) as i32 - 8) as f32
    }
}

#[derive(Clone, Copy)]
struct F16;

impl Number for F16 {
    const SCALED: bool = false;

    /// Of a finite binary16, by integers and one difference, which vector instructions do.
    #[inline(always)]
    fn value(self, bits: u32) -> f32 {
        const REBIAS: u32 = (127 - 15) << 23;
        const SMALLEST_NORMAL: u32 = REBIAS + (1 << 23);
        let magnitude = (bits & 0x7fff) << 13;
        // Subnormal: the fraction of 2⁻¹⁴ without its leading 1.
        let subnormal =
            f32::from_bits(magnitude + SMALLEST_NORMAL) - f32::from_bits(SMALLEST_NORMAL);
        let normal = f32::from_bits(magnitude + REBIAS);
        let value = if magnitude < 1 << 23 {
            subnormal
        } else {
            normal
        };
        f32::from_bits(value.to_bits() | (bits & 0x8000) << 16)
    }
}

/// Weights whose words hold numbers of this kind.
#[derive(Clone, Copy)]
struct Words<'a, N>(&'a QuantizedWeights, N);

// Panels start with a block.
const _: () = assert!(KC.is_multiple_of(BLOCK));

impl<N: Number> Panels for Words<'_, N> {
    const PANEL_COLS: usize = COLS;
    type Room = Scratch;

    #[inline(always)]
    fn room<I: Isa>(self, [_, k, n]: [usize; 3]) -> Result<Scratch> {
        let width = VECTORS * I::LANES;
        Scratch::new(COLS.min(n.next_multiple_of(width)), KC.min(k))
    }

    #[inline(always)]
    unsafe fn panel<'r, I: Isa>(self, _: I, part: Part, room: &'r mut Scratch) -> Panel<'r>
    where
        Self: 'r,
    {
        let Part {
            col,
            cols,
            p,
            depth,
        } = part;
        let width = VECTORS * I::LANES;
        let packed = room.values();
        for start in (0..cols).step_by(width) {
            let used = width.min(cols - start);
            let wide = used.next_multiple_of(I::LANES);
            let strip = &mut packed[start * depth..][..wide * depth];
            for (block, rows) in strip.chunks_mut(wide * BLOCK).enumerate() {
                self.unpack(p / BLOCK + block, col + start, [used, wide], rows);
            }
        }
        Panel {
            b: Matrix::NONE,
            depth,
            in_place: 0,
            packed,
        }
    }
}

impl<N: Number> Words<'_, N> {
    /// Unpacks `used` columns of a block, or as many of its rows as there are in `to`, to rows
    /// of `wide` values of which the last are zero.
    #[inline(always)]
    fn unpack(self, block: usize, col: usize, [used, wide]: [usize; 2], to: &mut [f32]) {
        let Words(
            &QuantizedWeights {
                layout,
                n,
                ref words,
                ..
            },
            number,
        ) = self;
        let row = |row: usize| &words[(block * layout.rows() + row) * n + col..][..used];
        let bits = (BLOCK / layout.per_word) as u32;
        for (index, rows) in to.chunks_mut(wide * layout.per_word).enumerate() {
            let words = row(layout.scales + index);
            for (place, to) in rows.chunks_exact_mut(wide).enumerate() {
                let (to, rest) = to.split_at_mut(used);
                rest.fill(0.0);
                unpack_row(number, words, row(0), bits * place as u32, to);
            }
        }
    }
}

/// One row of the matrix: the numbers from bit `shift` of the words on, times the scales.
#[inline(always)]
fn unpack_row<N: Number>(number: N, words: &[u32], scales: &[u32], shift: u32, to: &mut [f32]) {
    let value = |word: u32, scale: u32| {
        let value = number.value(word >> shift);
        let scale = f32::from_bits(scale);
        if N::SCALED { value * scale } else { value }
    };
    let (words, last_words) = words.as_chunks::<GROUP>();
    let (scales, last_scales) = scales.as_chunks::<GROUP>();
    let (to, last) = to.as_chunks_mut::<GROUP>();
    for ((to, words), scales) in to.iter_mut().zip(words).zip(scales) {
        for i in 0..GROUP {
            to[i] = value(words[i], scales[i]);
        }
    }
    for ((to, &word), &scale) in last.iter_mut().zip(last_words).zip(last_scales) {
        *to = value(word, scale);
    }
}
