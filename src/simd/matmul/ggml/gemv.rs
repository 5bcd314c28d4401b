//! Matrix times vector: blocks are dequantised in registers, a row at a time.

mod k_quants;
mod plain;

use super::BlockMatrix;
use crate::alloc::scratch::LINE;
use crate::simd::half_rows::widen;
use crate::simd::isa::{Isa, Kernel, MAX_LANES};
use crate::simd::reduce::sum_lanes;
use crate::tensor::ggml::{MAX_BLOCK, WeightType};
use k_quants::{q4_k, q5_k, q6_k};
use plain::{any_row, bf16_row, f16_row, f32_row};

/// Weights that share a minimum.
const GROUP: usize = 32;

/// The distance of prefetches, in bytes. With 1024 a matrix from memory takes a seventh longer on a
/// Zen 3.
const AHEAD: usize = 4096;

/// Values derived from `x`, computed once for all rows of a product.
#[derive(Clone, Copy)]
pub(super) struct Prepared<'a> {
    x: &'a [f32],
    /// For blocks of nibbles: the 16 elements by which a block's low nibbles are multiplied, then the
    /// 16 for its whole bytes. A high nibble is a sixteenth of its byte less the low one, so no shift is
    /// needed. For types of 16 bits: of each two vectors of `x` the even elements, then the odd ones.
    mixed: &'a [f32],
    /// For fifth bits: `x` times 16, divided by the value of the bit in its half of the word.
    fifth: &'a [f32],
    /// A vector for each group: partial sums, times the bias of the quants if they have one.
    vectors: &'a [f32],
    /// The sums of groups, then zeros.
    sums: &'a [f32],
}

/// Returns the memory that [`Prepare`] needs for `cols` elements, in elements.
pub(super) const fn prepared_len(cols: usize) -> usize {
    let groups = cols / GROUP;
    2 * cols + (groups + 1) * MAX_LANES + groups
}

/// Computes [`Prepared`].
pub(super) struct Prepare<'a> {
    pub(super) kind: WeightType,
    pub(super) x: &'a [f32],
    /// Memory for [`prepared_len`] elements.
    pub(super) room: &'a mut [f32],
}

impl<'a> Kernel for Prepare<'a> {
    type Output = Prepared<'a>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Prepared<'a> {
        let Self { kind, x, room } = self;
        let (mixed, rest) = room.split_at_mut(x.len());
        let (fifth, rest) = rest.split_at_mut(x.len());
        let (vectors, sums) = rest.split_at_mut(x.len() / GROUP * I::LANES);
        match kind {
            WeightType::F16 | WeightType::BF16 => split_pairs::<I>(x, mixed),
            WeightType::F32 | WeightType::Q8_0 | WeightType::Q6_K => {}
            _ => {
                let bias = match kind {
                    WeightType::Q4_0 => -8.0,
                    WeightType::Q5_0 => -16.0,
                    _ => 1.0,
                };
                mix_nibbles(isa, x, mixed, fifth);
                sums.fill(0.0);
                let sums = sums.iter_mut().zip(vectors.chunks_exact_mut(I::LANES));
                for (x, (sum, to)) in x.chunks_exact(GROUP).zip(sums) {
                    let mut vector = isa.splat(0.0);
                    for x in x.chunks_exact(I::LANES) {
                        vector = isa.add(vector, isa.load(x));
                    }
                    *sum = sum_lanes(isa, vector);
                    isa.store(isa.mul(vector, isa.splat(bias)), to);
                }
            }
        }
        Prepared {
            x,
            mixed,
            fifth,
            vectors,
            sums,
        }
    }
}

/// Writes the even elements of each two vectors, then the odd ones.
#[inline(always)]
fn split_pairs<I: Isa>(x: &[f32], to: &mut [f32]) {
    let vectors = to.chunks_exact_mut(2 * I::LANES);
    for (x, to) in x.chunks_exact(2 * I::LANES).zip(vectors) {
        for (i, pair) in x.chunks_exact(2).enumerate() {
            (to[i], to[I::LANES + i]) = (pair[0], pair[1]);
        }
    }
}

/// Writes what multiplies nibbles and fifth bits.
#[inline(always)]
fn mix_nibbles<I: Isa>(isa: I, x: &[f32], mixed: &mut [f32], fifth: &mut [f32]) {
    let sixteenth = isa.splat(0.0625);
    let groups = x.chunks_exact(GROUP).zip(mixed.chunks_exact_mut(GROUP));
    for ((x, mixed), fifth) in groups.zip(fifth.chunks_exact_mut(GROUP)) {
        for at in (0..16).step_by(I::LANES) {
            let (low, high) = (isa.load(&x[at..]), isa.load(&x[16 + at..]));
            let byte = isa.mul(high, sixteenth);
            isa.store(isa.sub(low, byte), &mut mixed[at..]);
            isa.store(byte, &mut mixed[16 + at..]);
            let factors = isa.load(&FIFTH[at..]);
            isa.store(isa.mul(low, factors), &mut fifth[at..]);
            isa.store(isa.mul(high, factors), &mut fifth[16 + at..]);
        }
    }
}

/// Some rows of a product with a vector.
pub(super) struct Gemv<'a> {
    pub(super) weights: BlockMatrix<'a>,
    /// The row of the first result.
    pub(super) first: usize,
    pub(super) x: Prepared<'a>,
    pub(super) y: &'a mut [f32],
}

impl Kernel for Gemv<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        match self.weights.kind {
            WeightType::F32 => self.elements(isa, f32_row),
            WeightType::F16 => self.elements(isa, f16_row),
            WeightType::BF16 => self.elements(isa, bf16_row),
            WeightType::Q8_0 => self.short_blocks(isa, Q80),
            WeightType::Q4_0 => self.short_blocks(isa, Q40),
            WeightType::Q4_1 => self.short_blocks(isa, Q41),
            WeightType::Q5_0 => self.short_blocks(isa, Q50),
            WeightType::Q5_1 => self.short_blocks(isa, Q51),
            WeightType::Q4_K => self.long_blocks(isa, q4_k::<I>),
            WeightType::Q5_K => self.long_blocks(isa, q5_k::<I>),
            WeightType::Q6_K => self.long_blocks(isa, q6_k::<I>),
            _ => self.elements(isa, any_row),
        }
    }
}

/// The factors of a block of one group.
#[derive(Clone, Copy)]
struct Operand<'a> {
    x: &'a [f32; GROUP],
    mixed: &'a [f32; GROUP],
    fifth: &'a [f32; GROUP],
    vector: &'a [f32],
    /// 15, which the compiler does not know: it would mask and widen bytes twice.
    low: i32,
}

/// A type whose blocks are one group each.
trait ShortBlock<const BYTES: usize>: Copy {
    /// Whether the f16 behind the scale is a minimum.
    const MINIMA: bool = false;

    /// Returns the sum of a block's products without its scale.
    fn dot<I: Isa>(isa: I, block: &[u8; BYTES], operand: Operand<'_>) -> I::F32;
}

// A row whose sum is not finite is dequantised first, so that scales that are infinite or NaN and
// products that overflow give what they give in a product of matrices.
impl Gemv<'_> {
    /// Computes the products of rows of blocks of one group.
    #[inline(always)]
    fn short_blocks<I: Isa, B: ShortBlock<BYTES>, const BYTES: usize>(self, isa: I, _: B) {
        for (i, y) in self.y.iter_mut().enumerate() {
            let row = self.first + i;
            let (blocks, _) = self.weights.row(row).as_chunks();
            let sum = short_row::<I, B, BYTES>(isa, blocks, self.x);
            *y = checked(isa, self.weights, row, self.x.x, sum_lanes(isa, sum));
        }
    }

    /// Computes the products of rows of blocks of several groups.
    #[inline(always)]
    fn long_blocks<I: Isa, const BYTES: usize>(
        self,
        isa: I,
        add: impl Fn(I, &[u8; BYTES], &[f32; MAX_BLOCK], &[f32], I::F32) -> I::F32,
    ) {
        let (xs, _) = self.x.x.as_chunks::<MAX_BLOCK>();
        for (i, y) in self.y.iter_mut().enumerate() {
            let row = self.first + i;
            let (blocks, _) = self.weights.row(row).as_chunks::<BYTES>();
            let mut sum = isa.splat(0.0);
            for (i, (block, x)) in blocks.iter().zip(xs).enumerate() {
                for line in (0..BYTES).step_by(4 * LINE) {
                    isa.prefetch(block.as_ptr().wrapping_add(AHEAD + line).cast());
                }
                sum = add(isa, block, x, &self.x.sums[MAX_BLOCK / GROUP * i..], sum);
            }
            *y = checked(isa, self.weights, row, self.x.x, sum_lanes(isa, sum));
        }
    }

    /// Computes the products of rows by a function of the type, the row and what was prepared of
    /// `x`.
    #[inline(always)]
    fn elements<I: Isa>(self, isa: I, product: impl Fn(I, WeightType, &[u8], Prepared<'_>) -> f32) {
        let kind = self.weights.kind;
        for (i, y) in self.y.iter_mut().enumerate() {
            let row = self.weights.row(self.first + i);
            *y = product(isa, kind, row, self.x);
        }
    }
}

/// The product of a row, computed anew from its weights if it is not finite.
#[inline(always)]
fn checked<I: Isa>(isa: I, weights: BlockMatrix<'_>, row: usize, x: &[f32], product: f32) -> f32 {
    if product.is_finite() {
        return product;
    }
    let (kind, row) = (weights.kind, weights.row(row));
    isa.call(Dequantized { kind, row, x })
}

/// The sums of a row of blocks of one group.
#[inline(always)]
fn short_row<I: Isa, B: ShortBlock<BYTES>, const BYTES: usize>(
    isa: I,
    blocks: &[[u8; BYTES]],
    prepared: Prepared<'_>,
) -> I::F32 {
    let (xs, _) = prepared.x.as_chunks::<GROUP>();
    let (mixed, _) = prepared.mixed.as_chunks::<GROUP>();
    let (fifth, _) = prepared.fifth.as_chunks::<GROUP>();
    let vectors = prepared.vectors.chunks_exact(I::LANES);
    let low = std::hint::black_box(15);
    let (mut sum, mut minima) = (isa.splat(0.0), isa.splat(0.0));
    let operands = xs.iter().zip(mixed).zip(fifth).zip(vectors);
    for (block, (((x, mixed), fifth), vector)) in blocks.iter().zip(operands) {
        isa.prefetch(block.as_ptr().wrapping_add(AHEAD).cast());
        let operand = Operand {
            x,
            mixed,
            fifth,
            vector,
            low,
        };
        let scale = isa.splat_f16(u16::from_le_bytes([block[0], block[1]]));
        sum = isa.mul_add(B::dot(isa, block, operand), scale, sum);
        if B::MINIMA {
            let minimum = isa.splat_f16(u16::from_le_bytes([block[2], block[3]]));
            minima = isa.mul_add(isa.load(vector), minimum, minima);
        }
    }
    isa.add(sum, minima)
}

/// The product of a row of any weights, dequantised piece by piece.
struct Dequantized<'a> {
    kind: WeightType,
    row: &'a [u8],
    x: &'a [f32],
}

impl Kernel for Dequantized<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let bytes = MAX_BLOCK / self.kind.block_len() * self.kind.block_bytes();
        let mut weights = [0.0; MAX_BLOCK];
        let mut sum = isa.splat(0.0);
        for (blocks, x) in self.row.chunks(bytes).zip(self.x.chunks(MAX_BLOCK)) {
            self.kind.dequantize(blocks, &mut weights);
            let weights = &weights[..x.len()];
            for (w, x) in weights.chunks(I::LANES).zip(x.chunks(I::LANES)) {
                sum = isa.mul_add(isa.load_first(w, 0.0), isa.load_first(x, 0.0), sum);
            }
        }
        sum_lanes(isa, sum)
    }
}

/// `LANES` bytes of a block.
#[inline(always)]
fn bytes_at<I: Isa, const BYTES: usize>(isa: I, bytes: &[u8; BYTES], at: usize) -> I::Bits {
    assert!(at + I::LANES <= BYTES);
    // SAFETY: the block has these bytes.
    unsafe { isa.load_bytes(bytes.as_ptr().add(at)) }
}

#[derive(Clone, Copy)]
struct Q80;

impl ShortBlock<34> for Q80 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 34], operand: Operand<'_>) -> I::F32 {
        let mut sum = isa.splat(0.0);
        for at in (0..GROUP).step_by(I::LANES) {
            // SAFETY: 32 bytes follow the scale, of which `LANES` divide the number.
            let q = unsafe { isa.load_signed_bytes(block.as_ptr().add(2 + at)) };
            sum = isa.mul_add(isa.bits_to_float(q), isa.load(&operand.x[at..]), sum);
        }
        sum
    }
}

/// `sum` and a block's last 16 bytes' nibbles times `x`.
#[inline(always)]
fn add_nibbles<I: Isa, const BYTES: usize>(
    isa: I,
    block: &[u8; BYTES],
    operand: Operand<'_>,
    mut sum: I::F32,
) -> I::F32 {
    for at in (0..16).step_by(I::LANES) {
        let bytes = bytes_at(isa, block, BYTES - 16 + at);
        let low = isa.bits_to_float(isa.and_bits(bytes, isa.splat_bits(operand.low)));
        sum = isa.mul_add(low, isa.load(&operand.mixed[at..]), sum);
        let whole = isa.bits_to_float(bytes);
        sum = isa.mul_add(whole, isa.load(&operand.mixed[16 + at..]), sum);
    }
    sum
}

#[derive(Clone, Copy)]
struct Q40;

impl ShortBlock<18> for Q40 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 18], operand: Operand<'_>) -> I::F32 {
        add_nibbles(isa, block, operand, isa.load(operand.vector))
    }
}

#[derive(Clone, Copy)]
struct Q41;

impl ShortBlock<20> for Q41 {
    const MINIMA: bool = true;

    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 20], operand: Operand<'_>) -> I::F32 {
        add_nibbles(isa, block, operand, isa.splat(0.0))
    }
}

/// Bit `i` of an integer.
const BITS: [i32; 16] = {
    let mut bits = [0; 16];
    let mut i = 0;
    while i < 16 {
        bits[i] = 1 << i;
        i += 1;
    }
    bits
};

/// Factors that make each of [`BITS`] 16.
const FIFTH: [f32; 16] = {
    let mut factors = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        factors[i] = 16.0 / BITS[i] as f32;
        i += 1;
    }
    factors
};

/// As [`add_nibbles`], with fifth bits: those of the weights in order start at byte `high`.
#[inline(always)]
fn add_fives<I: Isa, const BYTES: usize>(
    isa: I,
    block: &[u8; BYTES],
    high: usize,
    operand: Operand<'_>,
    sum: I::F32,
) -> I::F32 {
    let mut sum = add_nibbles(isa, block, operand, sum);
    for half in 0..2 {
        let word = u16::from_le_bytes([block[high + 2 * half], block[high + 2 * half + 1]]);
        let word = isa.splat_bits(word.into());
        for at in (0..16).step_by(I::LANES) {
            // SAFETY: there are 16 integers, of which `LANES` divide the number.
            let bit = isa.to_bits(unsafe { isa.load_ptr(BITS.as_ptr().add(at).cast()) });
            let fifth = isa.bits_to_float(isa.and_bits(word, bit));
            sum = isa.mul_add(fifth, isa.load(&operand.fifth[16 * half + at..]), sum);
        }
    }
    sum
}

#[derive(Clone, Copy)]
struct Q50;

impl ShortBlock<22> for Q50 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 22], operand: Operand<'_>) -> I::F32 {
        add_fives(isa, block, 2, operand, isa.load(operand.vector))
    }
}

#[derive(Clone, Copy)]
struct Q51;

impl ShortBlock<24> for Q51 {
    const MINIMA: bool = true;

    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 24], operand: Operand<'_>) -> I::F32 {
        add_fives(isa, block, 4, operand, isa.splat(0.0))
    }
}
