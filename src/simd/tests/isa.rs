//! The primitives, on values where instruction sets differ: NaN, infinities, ties, denormals.

use super::{Isa, Kernel, dispatch, on_each};
use crate::simd::isa::ROUNDING;

const SPECIAL: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MIN_POSITIVE,
    1e-45,
    f32::MAX,
    -3.5e-20,
];

/// Whether two numbers are the same. NaN equals NaN, and the sign of zero does not count.
fn same(a: f32, b: f32) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// All pairs of special values through `max`, `min`, the one-sided bounds and the comparisons.
struct Pairs;

impl Kernel for Pairs {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for a in SPECIAL {
            for b in SPECIAL {
                let (x, y) = (isa.splat(a), isa.splat(b));
                let first = |v| isa.to_array(v)[I::LANES - 1];
                let nan = a.is_nan() || b.is_nan();
                let expected = |value: f32| if nan { f32::NAN } else { value };
                assert!(same(first(isa.max(x, y)), expected(a.max(b))), "{a} {b}");
                assert!(same(first(isa.min(x, y)), expected(a.min(b))), "{a} {b}");
                if !b.is_nan() {
                    assert!(same(first(isa.at_least(x, y)), expected(a.max(b))));
                    assert!(same(first(isa.at_most(x, y)), expected(a.min(b))));
                }
                let truth = |mask| first(isa.select(mask, isa.splat(1.0), isa.splat(0.0))) == 1.0;
                assert_eq!(truth(isa.lt(x, y)), a < b, "{a} < {b}");
                assert_eq!(truth(isa.ge(x, y)), a >= b, "{a} ≥ {b}");
                assert_eq!(truth(isa.eq(x, y)), a == b, "{a} = {b}");
                assert!(same(first(isa.add(x, y)), a + b));
                assert!(same(first(isa.sub(x, y)), a - b));
                assert!(same(first(isa.mul(x, y)), a * b));
                assert!(same(first(isa.div(x, y)), a / b));
                if a >= 0.0 {
                    assert!(same(first(isa.with_sign(x, y)), a.copysign(b)) || b.is_nan());
                }
            }
            let x = isa.splat(a);
            let first = |v| isa.to_array(v)[0];
            assert!(same(first(isa.abs(x)), a.abs()));
            assert!(same(first(isa.neg(x)), -a));
            assert!(same(first(isa.sqrt(x)), a.sqrt()));
        }
    }
}

#[test]
fn special_values() {
    on_each(|isa| dispatch(isa, Pairs));
}

/// Products with powers of two, from denormals to infinity.
struct Scaling;

impl Kernel for Scaling {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for p in [0.75_f32, 1.0, 1.4, -1.25] {
            for n in -252..=254 {
                let expected = (f64::from(p) * 2.0_f64.powi(n)) as f32;
                let (p, shifted) = (isa.splat(p), isa.splat(n as f32 + ROUNDING));
                let scaled = isa.to_array(isa.scale_exp2(p, shifted))[0];
                assert_eq!(scaled, expected, "2^{n}");
                if (-126..=127).contains(&n) {
                    let scaled = isa.to_array(isa.scale_exp2_normal(p, shifted))[0];
                    assert_eq!(scaled, expected, "2^{n}");
                }
            }
            let scaled = |n: f32| {
                let shifted = isa.splat(n + ROUNDING);
                isa.to_array(isa.scale_exp2_normal(isa.splat(p), shifted))[0]
            };
            assert_eq!(scaled(-127.0), 0.0);
            assert!(scaled(128.0).is_infinite());
        }
        for x in [-126.0_f32, -1.0, 0.0, 1.0, 127.0] {
            let bits = isa.splat_bits(x as i32);
            assert_eq!(isa.to_array(isa.bits_to_float(bits))[0], x);
            for part in [-0.375, 0.0, 0.375] {
                let shifted = isa.round_product(isa.splat(x + part), isa.splat(1.0));
                assert_eq!(isa.to_array(isa.rounded(shifted))[0], x);
            }
        }
    }
}

#[test]
fn powers_of_two() {
    on_each(|isa| dispatch(isa, Scaling));
}

/// Parts of vectors, and transposed squares.
struct Movement;

impl Kernel for Movement {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let values: Vec<f32> = (0..20).map(|i| i as f32).collect();
        for len in 0..values.len() {
            let used = len.min(I::LANES);
            let vector = isa.load_first(&values[..len], -1.0);
            let lanes = isa.to_array(vector);
            assert_eq!(lanes[..used], values[..used]);
            assert!(lanes[used..I::LANES].iter().all(|&lane| lane == -1.0));

            let mut stored = vec![-2.0; len];
            isa.store_first(isa.load(&values), &mut stored);
            assert_eq!(stored[..used], values[..used]);
            assert!(stored[used..].iter().all(|&value| value == -2.0));
        }
        let mut transposed = [-1.0; 4 * 6];
        // SAFETY: 20 values hold four rows of four at a stride of 5, 24 at a stride of 6.
        unsafe { isa.transpose4(values.as_ptr(), 5, transposed.as_mut_ptr(), 6) };
        for i in 0..4 {
            for j in 0..4 {
                assert_eq!(transposed[j * 6 + i], values[i * 5 + j]);
            }
            assert_eq!(transposed[i * 6 + 4..][..2], [-1.0; 2]);
        }
    }
}

#[test]
fn movement() {
    on_each(|isa| dispatch(isa, Movement));
}

/// Integers of 16 bits: bytes widened, shifted, compared and multiplied.
struct Pairs16;

impl Kernel for Pairs16 {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let bytes: [u8; 64] = std::array::from_fn(|i| (i * 37 + 250) as u8);
        let factors: [u8; 64] = std::array::from_fn(|i| (i * 91 + 7) as u8);
        let integers = |x: I::Bits| -> Vec<i16> {
            let lanes = isa.to_array(isa.reinterpret(x));
            let halves = lanes.map(|lane| [lane.to_bits() as i16, (lane.to_bits() >> 16) as i16]);
            halves[..I::LANES].concat()
        };
        let mapped = |from: &[u8], f: fn(u8) -> i16| -> Vec<i16> {
            from[..2 * I::LANES].iter().map(|&byte| f(byte)).collect()
        };
        // SAFETY: 64 bytes are more than two for each lane and one.
        let [plain, signed, other] = unsafe {
            [
                isa.load_pairs(bytes.as_ptr().add(1)),
                isa.load_signed_pairs(bytes.as_ptr().add(1)),
                isa.load_signed_pairs(factors.as_ptr()),
            ]
        };
        assert_eq!(integers(plain), mapped(&bytes[1..], i16::from));
        assert_eq!(integers(signed), mapped(&bytes[1..], |b| (b as i8).into()));
        for count in [0, 1, 4, 15] {
            let shifted = integers(signed)
                .into_iter()
                .map(|x| (x as u16 >> count) as i16);
            let expected: Vec<i16> = shifted.collect();
            assert_eq!(integers(isa.shr_pairs(signed, count)), expected, "{count}");
        }
        let first = isa.splat_bits(i32::from(bytes[1]) | i32::from(bytes[2]) << 16);
        let equal = integers(isa.eq_pairs(plain, first));
        for (i, equal) in equal.into_iter().enumerate() {
            let expected = -i16::from(bytes[1 + i] == bytes[1 + i % 2]);
            assert_eq!(equal, expected, "{i}");
        }
        let total = |sums: I::Bits| -> i64 {
            let lanes = isa.to_array(isa.reinterpret(sums));
            let sums = lanes[..I::LANES].iter().map(|lane| lane.to_bits() as i32);
            sums.map(i64::from).sum()
        };
        let products = integers(signed).into_iter().zip(integers(other));
        let expected: i64 = products.map(|(a, b)| i64::from(a) * i64::from(b)).sum();
        let dot = isa.dot_pairs(signed, other, isa.splat_bits(5));
        assert_eq!(total(dot), expected + 5 * I::LANES as i64);
        // The largest magnitudes that products with blocks have.
        let most = isa.splat_bits(0x7fff_7fff);
        let least = isa.splat_bits(-128 & 0xffff | -128 << 16);
        let dot = isa.dot_pairs(most, least, isa.splat_bits(0));
        assert_eq!(total(dot), -128 * 32_767 * 2 * I::LANES as i64);
    }
}

#[test]
fn pairs_are_widened_shifted_compared_and_multiplied() {
    on_each(|isa| dispatch(isa, Pairs16));
}
