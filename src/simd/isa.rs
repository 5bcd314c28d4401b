//! The interface between kernels and instruction sets, and the entry to a kernel.
//!
//! A kernel is written once, for any [`Isa`]. [`dispatch`] enters it through a function that
//! has the instruction set's target features enabled; everything below is
//! `#[inline(always)]`, since the features reach only what is inlined into that function.

use super::InstructionSet;

// Each file uses most of its instruction set's intrinsics.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports)]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
#[allow(clippy::wildcard_imports)]
mod neon;
#[cfg(not(target_family = "wasm"))]
mod scalar;
#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports)]
mod sse2;
#[cfg(target_family = "wasm")]
#[allow(clippy::wildcard_imports)]
mod wasm;

/// The largest number of lanes that any instruction set has.
pub(super) const MAX_LANES: usize = 16;

/// 1.5 · 2²³: adding it to a number of magnitude below 2²² rounds that to an integer, which
/// then stands in the sum's low bits.
pub(super) const ROUNDING: f32 = 12_582_912.0;
const ROUNDING_BITS: i32 = ROUNDING.to_bits() as i32;

/// Bits of the exponent field of 1.0.
const ONE_BITS: i32 = 127 << 23;
/// Bits of the exponent field of 2¹²⁶.
const RAISED_ONE_BITS: i32 = (127 + 126) << 23;

/// A number in every lane, for kernels. It stands beside another one, so that compilers to WebAssembly do not
/// see which of both is loaded. On native targets they do: the machine code is the same as by `splat`.
macro_rules! constant {
    ($isa:expr, $value:expr) => {
        $isa.constant(&[$value, f32::NAN][0])
    };
}
pub(super) use constant;

/// Declares a bit pattern in every lane: see `constant`.
macro_rules! constant_bits {
    ($isa:expr, $value:expr) => {
        $isa.constant_bits(&[$value, !$value][0])
    };
}
pub(super) use constant_bits;

/// Implements methods that are one expression of intrinsics each.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! intrinsics {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe)] // Where the build's own target features include these.
        fn $name(self, $($arg: $ty),*) -> $out {
            // SAFETY: a value of `Self` is made only inside `run`, which has the target
            // features enabled and is called only where the CPU has them.
            unsafe { $body }
        }
    )*};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use intrinsics;

/// The number of values by which prefetches run ahead. Processors do not look that far ahead across calls of functions.
pub(super) const AHEAD: usize = 1024;

/// An instruction set: vectors of `LANES` numbers and their operations.
///
/// A value of the type proves that the CPU has the instructions. Unless said otherwise, every
/// method works lane by lane.
#[cfg_attr(not(feature = "llm-core"), allow(dead_code))] // Models use more of them than operations do.
pub(super) trait Isa: Copy {
    /// `LANES` numbers.
    type F32: Copy;
    /// `LANES` integers of 32 bits.
    type Bits: Copy;
    /// `LANES` truth values.
    type Mask: Copy;
    /// Numbers in a vector, a power of two up to [`MAX_LANES`].
    const LANES: usize;
    /// The number of rows of two vectors whose sums fit the registers, at most 12: the tile of a product.
    const TILE_ROWS: usize;
    /// Tiles have this many rows or a multiple of it: the last one of packed rows may have some
    /// of zeros.
    const TILE_STEP: usize = 1;
    /// Whether a product's tile reads unpacked rows about as quickly as packed ones.
    const BROADCASTS_ROWS: bool;
    /// Whether there are 32 registers for vectors, and not 16.
    const MANY_REGISTERS: bool = false;

    /// Whether [`Isa::mul_add`] rounds once.
    const FUSED: bool = true;

    /// Calls the kernel out of line, so that several callers share one copy.
    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    /// [`Isa::call`] with vectors of at most eight lanes.
    #[inline(always)]
    fn call_narrow<K: Kernel>(self, kernel: K) -> K::Output {
        self.call(kernel)
    }

    fn splat(self, value: f32) -> Self::F32;
    fn splat_bits(self, value: i32) -> Self::Bits;

    /// A constant in every lane.
    #[allow(clippy::trivially_copy_pass_by_ref)] // WebAssembly loads it from where it is.
    #[inline(always)]
    fn constant(self, value: &'static f32) -> Self::F32 {
        self.splat(*value)
    }

    /// A constant pattern in every lane.
    #[allow(clippy::trivially_copy_pass_by_ref)] // As above.
    #[inline(always)]
    fn constant_bits(self, value: &'static i32) -> Self::Bits {
        self.splat_bits(*value)
    }

    /// # Safety
    /// `LANES` values must be readable from `from`, at any alignment.
    unsafe fn load_ptr(self, from: *const f32) -> Self::F32;
    /// # Safety
    /// `LANES` values must be writable at `to`, at any alignment.
    unsafe fn store_ptr(self, values: Self::F32, to: *mut f32);

    /// Prefetches the cache line at `from`, which need not be readable.
    #[inline(always)]
    fn prefetch(self, _from: *const f32) {}

    /// Loads the cache line at `from` while other work continues.
    ///
    /// # Safety
    /// A value must be readable there.
    #[inline(always)]
    unsafe fn touch(self, from: *const f32) {
        self.prefetch(from);
    }

    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sqrt(self, x: Self::F32) -> Self::F32;
    /// `a · b + c`, rounded once where the instruction set can.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `c − a · b`, rounded once where the instruction set can.
    fn neg_mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;

    /// The larger number; NaN where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The smaller number; NaN where either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `max(x, bound)` at less cost for a `bound` that is not NaN; NaN where `x` is.
    fn at_least(self, x: Self::F32, bound: Self::F32) -> Self::F32;
    /// `min(x, bound)` at less cost for a `bound` that is not NaN; NaN where `x` is.
    fn at_most(self, x: Self::F32, bound: Self::F32) -> Self::F32;

    /// False where either is NaN, like [`Isa::ge`] and [`Isa::eq`].
    fn lt(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    fn ge(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    fn eq(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a` where the mask holds, `b` elsewhere.
    fn select(self, mask: Self::Mask, a: Self::F32, b: Self::F32) -> Self::F32;

    /// The numbers' bit patterns.
    fn to_bits(self, x: Self::F32) -> Self::Bits;
    /// The numbers of these bit patterns.
    fn reinterpret(self, x: Self::Bits) -> Self::F32;
    fn add_bits(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn sub_bits(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn and_bits(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn xor_bits(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// `x << count`, for a count below 32.
    fn shl_bits(self, x: Self::Bits, count: u32) -> Self::Bits;
    /// `x >> count` with zeros for the sign, for a count below 32.
    fn shr_bits(self, x: Self::Bits, count: u32) -> Self::Bits;
    /// Integers moved up to the exponent field: `x << 23`.
    fn shl_exponent(self, x: Self::Bits) -> Self::Bits;
    /// The exponent field moved down, with the sign: `x >> 23`.
    fn shr_exponent(self, x: Self::Bits) -> Self::Bits;
    /// Halves, rounded down: `x >> 1` with the sign.
    fn half_bits(self, x: Self::Bits) -> Self::Bits;

    /// Four rows of four values, transposed.
    ///
    /// # Safety
    /// Row `i` of four must be readable at `from + i · from_stride` and writable at
    /// `to + i · to_stride`.
    #[inline(always)]
    unsafe fn transpose4(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        for i in 0..4 {
            for j in 0..4 {
                // SAFETY: both lie within the four rows of four.
                unsafe { *to.add(j * to_stride + i) = *from.add(i * from_stride + j) };
            }
        }
    }

    /// The first `LANES` values of a slice; a shorter one is filled up with `fill`.
    #[inline(always)]
    fn load_first(self, from: &[f32], fill: f32) -> Self::F32 {
        let mut lanes = [fill; MAX_LANES];
        for (lane, &value) in lanes.iter_mut().zip(from) {
            *lane = value;
        }
        self.load(&lanes)
    }

    /// Stores the first lanes, up to the length of the slice.
    #[inline(always)]
    fn store_first(self, values: Self::F32, to: &mut [f32]) {
        let lanes = self.to_array(values);
        for (value, &lane) in to.iter_mut().zip(&lanes[..Self::LANES]) {
            *value = lane;
        }
    }

    /// The integer nearest to `a · b`, of magnitude below 2²², plus [`ROUNDING`].
    #[inline(always)]
    fn round_product(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        self.mul_add(a, b, constant!(self, ROUNDING))
    }

    /// An integer that [`Isa::round_product`] gave.
    #[inline(always)]
    fn rounded(self, shifted: Self::F32) -> Self::F32 {
        self.sub(shifted, constant!(self, ROUNDING))
    }

    /// `p · 2ⁿ` rounded once, from denormals to infinity, for an integer `n` in [−252, 254] as
    /// [`Isa::round_product`] gives it.
    #[inline(always)]
    fn scale_exp2(self, p: Self::F32, shifted: Self::F32) -> Self::F32 {
        let one = constant_bits!(self, ONE_BITS);
        let n = self.sub_bits(self.to_bits(shifted), constant_bits!(self, ROUNDING_BITS));
        let low = self.half_bits(n);
        let high = self.sub_bits(n, low);
        let low = self.reinterpret(self.add_bits(self.shl_exponent(low), one));
        let high = self.reinterpret(self.add_bits(self.shl_exponent(high), one));
        self.mul(self.mul(p, low), high)
    }

    /// Computes [`Isa::scale_exp2`] for `n` in [−127, 128], where 2⁻¹²⁷ counts as 0 and 2¹²⁸ as
    /// infinity. Denormal results would make everything computed with them a hundred times slower.
    #[inline(always)]
    fn scale_exp2_normal(self, p: Self::F32, shifted: Self::F32) -> Self::F32 {
        // The high bits of ROUNDING leave with the shift.
        let n = self.shl_exponent(self.to_bits(shifted));
        let power = self.add_bits(n, constant_bits!(self, ONE_BITS));
        self.mul(p, self.reinterpret(power))
    }

    /// [`Isa::scale_exp2`] for `n` in [−252, 0] and |p| · 2ⁿ below 3. It multiplies by 2ⁿ⁺¹²⁶, which is exact, and
    /// then by 2⁻¹²⁶.
    #[inline(always)]
    fn scale_exp2_down(self, p: Self::F32, shifted: Self::F32) -> Self::F32 {
        let n = self.shl_exponent(self.to_bits(shifted));
        let power = self.add_bits(n, constant_bits!(self, RAISED_ONE_BITS));
        let raised = self.mul(p, self.reinterpret(power));
        self.mul(raised, constant!(self, f32::MIN_POSITIVE))
    }

    /// `LANES` bytes, each as an integer from 0 to 255.
    ///
    /// # Safety
    /// `LANES` bytes must be readable from `from`.
    #[inline(always)]
    unsafe fn load_bytes(self, from: *const u8) -> Self::Bits {
        let mut lanes = [0.0; MAX_LANES];
        for (i, lane) in lanes.iter_mut().take(Self::LANES).enumerate() {
            // SAFETY: the caller says that `LANES` bytes are readable.
            *lane = f32::from_bits(u32::from(unsafe { *from.add(i) }));
        }
        self.to_bits(self.load(&lanes))
    }

    /// `LANES` bytes, each as an integer from −128 to 127.
    ///
    /// # Safety
    /// `LANES` bytes must be readable from `from`.
    #[inline(always)]
    unsafe fn load_signed_bytes(self, from: *const u8) -> Self::Bits {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.load_bytes(from) };
        let sign = self.splat_bits(128);
        self.sub_bits(self.xor_bits(bytes, sign), sign)
    }

    /// `2 · LANES` bytes as integers of 16 bits from 0 to 255: pairs, of which a lane has one. The
    /// first of a pair is in the low half.
    ///
    /// # Safety
    /// `2 · LANES` bytes must be readable from `from`.
    #[inline(always)]
    unsafe fn load_pairs(self, from: *const u8) -> Self::Bits {
        lanes_of(self, |lane| {
            // SAFETY: the caller says that `2 · LANES` bytes are readable.
            let [low, high] = unsafe { *from.add(2 * lane).cast::<[u8; 2]>() };
            pair(low.into(), high.into())
        })
    }

    /// [`Isa::load_pairs`] of bytes from −128 to 127.
    ///
    /// # Safety
    /// `2 · LANES` bytes must be readable from `from`.
    #[inline(always)]
    unsafe fn load_signed_pairs(self, from: *const u8) -> Self::Bits {
        lanes_of(self, |lane| {
            // SAFETY: the caller says that `2 · LANES` bytes are readable.
            let [low, high] = unsafe { *from.add(2 * lane).cast::<[i8; 2]>() };
            pair(low.into(), high.into())
        })
    }

    /// `x >> count` of each integer of 16 bits with zeros for the sign, for a count below 16.
    #[inline(always)]
    fn shr_pairs(self, x: Self::Bits, count: u32) -> Self::Bits {
        let kept = 0xffff >> count;
        self.and_bits(self.shr_bits(x, count), self.splat_bits(kept << 16 | kept))
    }

    /// All bits of each integer of 16 bits that is equal to that of `b`, and none of the others.
    #[inline(always)]
    fn eq_pairs(self, a: Self::Bits, b: Self::Bits) -> Self::Bits {
        let [a, b] = [a, b].map(|x| self.to_array(self.reinterpret(x)));
        lanes_of(self, |lane| {
            let ([a, c], [b, d]) = (halves(a[lane]), halves(b[lane]));
            pair(-i16::from(a == b), -i16::from(c == d))
        })
    }

    /// `sum` plus the products of signed integers of 16 bits, all of them once. In which lanes they
    /// are added is left to the instruction set.
    #[inline(always)]
    fn dot_pairs(self, a: Self::Bits, b: Self::Bits, sum: Self::Bits) -> Self::Bits {
        let [a, b] = [a, b].map(|x| self.to_array(self.reinterpret(x)));
        let products = lanes_of(self, |lane| {
            let (a, b) = (halves(a[lane]), halves(b[lane]));
            let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
            product(0).wrapping_add(product(1))
        });
        self.add_bits(products, sum)
    }

    /// Integers of magnitude below 2²² as numbers.
    #[inline(always)]
    fn bits_to_float(self, x: Self::Bits) -> Self::F32 {
        let magic = constant_bits!(self, ROUNDING_BITS);
        self.sub(
            self.reinterpret(self.add_bits(x, magic)),
            constant!(self, ROUNDING),
        )
    }

    #[inline(always)]
    fn abs(self, x: Self::F32) -> Self::F32 {
        self.reinterpret(self.and_bits(self.to_bits(x), constant_bits!(self, i32::MAX)))
    }

    #[inline(always)]
    fn neg(self, x: Self::F32) -> Self::F32 {
        self.reinterpret(self.xor_bits(self.to_bits(x), constant_bits!(self, i32::MIN)))
    }

    /// `magnitude`, which must not be negative, with the sign of `sign`.
    #[inline(always)]
    fn with_sign(self, magnitude: Self::F32, sign: Self::F32) -> Self::F32 {
        let sign = self.and_bits(self.to_bits(sign), constant_bits!(self, i32::MIN));
        self.reinterpret(self.xor_bits(self.to_bits(magnitude), sign))
    }

    /// Loads the first `LANES` values of a slice, which must not be shorter.
    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::F32 {
        assert!(from.len() >= Self::LANES);
        // SAFETY: the slice has `LANES` values.
        unsafe { self.load_ptr(from.as_ptr()) }
    }

    /// Stores to the first `LANES` values of a slice, which must not be shorter.
    #[inline(always)]
    fn store(self, values: Self::F32, to: &mut [f32]) {
        assert!(to.len() >= Self::LANES);
        // SAFETY: the slice has room for `LANES` values.
        unsafe { self.store_ptr(values, to.as_mut_ptr()) }
    }

    /// The lanes in order, then zeros.
    #[inline(always)]
    fn to_array(self, values: Self::F32) -> [f32; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        self.store(values, &mut lanes);
        lanes
    }
}

/// A vector of bit patterns, for instruction sets without an instruction.
#[inline(always)]
fn lanes_of<I: Isa>(isa: I, bits: impl Fn(usize) -> i32) -> I::Bits {
    let mut lanes = [0.0; MAX_LANES];
    for (i, lane) in lanes.iter_mut().take(I::LANES).enumerate() {
        *lane = f32::from_bits(bits(i) as u32);
    }
    isa.to_bits(isa.load(&lanes))
}

/// Two integers of 16 bits in one lane.
#[inline(always)]
fn pair(low: i16, high: i16) -> i32 {
    i32::from(low) & 0xffff | i32::from(high) << 16
}

/// The integers of a [`pair`].
#[inline(always)]
fn halves(lane: f32) -> [i16; 2] {
    let bits = lane.to_bits();
    [bits as i16, (bits >> 16) as i16]
}

/// A computation written for any instruction set.
pub(super) trait Kernel {
    /// The result type.
    type Output;
    /// Runs it. Implementations are `#[inline(always)]`, as is all that they call.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// Runs a kernel with the instruction set, or with the best one if the CPU does not have it.
pub(super) fn dispatch<K: Kernel>(isa: InstructionSet, kernel: K) -> K::Output {
    match isa.or_best() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `or_best` gives only what the CPU was found to have.
        InstructionSet::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `or_best` gives only what the CPU was found to have.
        InstructionSet::Avx2 => unsafe { avx2::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Sse2 => sse2::run(kernel),
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        InstructionSet::Neon => neon::run(kernel),
        #[cfg(target_family = "wasm")]
        _ => wasm::run(kernel),
        #[cfg(not(target_family = "wasm"))]
        _ => scalar::run(kernel),
    }
}
