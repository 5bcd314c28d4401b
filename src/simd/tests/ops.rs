//! Paths inside the kernels that depend on sizes: edges, blocks and tails.

use super::{noise, on_each};
use crate::error::Result;
use crate::ops::{Conv2d, Op, Padding};
use crate::reference::evaluate;
use crate::simd::stream::{self, Slices, is_streamable};
use crate::simd::{Cpu, InstructionSet, Other, Swept, execute, is_swept, sweep};

fn run(isa: InstructionSet, op: &Op, inputs: &[&[f32]], len: usize) -> Result<Vec<f32>> {
    let mut out = vec![f32::NAN; len];
    execute(Cpu::new(isa, Some(1)), op, inputs, &mut out)?;
    Ok(out)
}

/// `Σ aᵢ bᵢ` and `Σ |aᵢ bᵢ|` in `f64`.
fn products(terms: impl Iterator<Item = (f32, f32)>) -> (f64, f64) {
    terms.fold((0.0, 0.0), |(sum, magnitude), (a, b)| {
        let term = f64::from(a) * f64::from(b);
        (sum + term, magnitude + term.abs())
    })
}

fn assert_close(actual: f32, (sum, magnitude): (f64, f64), what: &str) {
    let bound = 16.0 * f64::from(f32::EPSILON) * magnitude;
    assert!(
        (f64::from(actual) - sum).abs() <= bound,
        "{what}: {actual} is not {sum}"
    );
}

#[test]
fn matrix_products() {
    let shapes = [
        [1, 1, 1],
        [1, 300, 70],
        [2, 1, 1_025],
        [1, 517, 1_030],
        [70, 300, 1],
        [3, 5, 7],
        [2, 9, 33],
        [17, 33, 65],
        [25, 600, 50],
        [12, 4, 32],
        [193, 257, 31],
        [5, 1, 2051],
    ];
    on_each(|isa| {
        for [m, k, n] in shapes {
            let (a, b) = (noise(m * k, 1), noise(k * n, 2));
            let c = run(isa, &Op::Matmul { m, k, n }, &[&a, &b], m * n).unwrap();
            for (i, row) in c.chunks_exact(n).enumerate() {
                for (j, &value) in row.iter().enumerate() {
                    let terms = (0..k).map(|p| (a[i * k + p], b[p * n + j]));
                    assert_close(value, products(terms), &format!("{isa} {m}×{k}×{n}"));
                }
            }
        }
    });
}

#[test]
fn long_products_of_equal_terms_do_not_drift() {
    let k = 65_536;
    on_each(|isa| {
        for [m, n] in [[1, 3], [5, 20]] {
            let (a, b) = (vec![0.7; m * k], vec![0.9; k * n]);
            let c = run(isa, &Op::Matmul { m, k, n }, &[&a, &b], m * n).unwrap();
            let expected = products((0..k).map(|_| (0.7, 0.9)));
            assert_close(c[0], expected, &format!("{isa} {m}×{k}×{n}"));
        }
    });
}

#[test]
fn convolutions() {
    let sizes = [
        [1, 1, 1, 1],
        [5, 70, 3, 3],
        [9, 33, 2, 5],
        [4, 7, 4, 7],
        [3, 100, 2, 45],
        [300, 1, 40, 1],
        [70, 1, 5, 1],
    ];
    on_each(|isa| {
        for [rows, cols, kernel_rows, kernel_cols] in sizes {
            for padding in [Padding::Valid, Padding::Same] {
                for stride in [(1, 1), (2, 1), (1, 3)] {
                    let options = Conv2d {
                        padding,
                        ..Conv2d::valid(rows, cols, kernel_rows, kernel_cols)
                    };
                    check_convolution(isa, options.with_stride(stride.0, stride.1));
                }
            }
        }
        check_convolution(isa, Conv2d::same(2, 3, 9, 11));
        check_convolution(isa, Conv2d::same(3, 60, 5, 70));
    });
}

fn check_convolution(isa: InstructionSet, options: Conv2d) {
    let input = noise(options.input_rows * options.input_cols, 3);
    let kernel = noise(options.kernel_rows * options.kernel_cols, 4);
    let (rows, cols) = options.output_shape();
    let (top, left) = options.padding_before();
    let op = Op::Convolve2d { options };
    let out = run(isa, &op, &[&input, &kernel], rows * cols).unwrap();
    for (index, &value) in out.iter().enumerate() {
        let row = (index / cols * options.stride_rows) as isize - top as isize;
        let col = (index % cols * options.stride_cols) as isize - left as isize;
        let terms = kernel.iter().enumerate().filter_map(|(at, &weight)| {
            let i = usize::try_from(row + (at / options.kernel_cols) as isize).ok()?;
            let j = usize::try_from(col + (at % options.kernel_cols) as isize).ok()?;
            let inside = i < options.input_rows && j < options.input_cols;
            inside.then(|| (weight, input[i * options.input_cols + j]))
        });
        assert_close(
            value,
            products(terms),
            &format!("{isa} {options:?} {index}"),
        );
    }
}

#[test]
fn transposes() {
    on_each(|isa| {
        for [rows, cols] in [[1, 9], [4, 4], [16, 48], [17, 33], [50, 3]] {
            let x = noise(rows * cols, 5);
            let y = run(isa, &Op::Transpose { rows, cols }, &[&x], x.len()).unwrap();
            for (index, &value) in y.iter().enumerate() {
                assert_eq!(value, x[index % rows * cols + index / rows], "{isa}");
            }
        }
    });
}

#[test]
fn sums_of_a_million_are_within_one_in_a_million() {
    let x: Vec<f32> = noise(1_000_003, 6).iter().map(|x| x + 1.0).collect();
    let equal = vec![0.1; 1_000_003];
    on_each(|isa| {
        for x in [&x, &equal] {
            let expected: f64 = x.iter().map(|&x| f64::from(x)).sum();
            let actual = f64::from(run(isa, &Op::Sum, &[x], 1).unwrap()[0]);
            assert!(
                (actual / expected - 1.0).abs() < 1e-6,
                "{isa}: {actual} {expected}"
            );
        }
    });
}

#[test]
fn overflow_within_a_sum_may_cancel() {
    let mut x = vec![3e38; 40];
    x.extend([-3e38; 39]);
    on_each(|isa| {
        let value = |op| run(isa, &op, &[&x], 1).unwrap()[0];
        assert_eq!(value(Op::Sum), 3e38);
        assert!((value(Op::Mean) / (3e38 / 79.0) - 1.0).abs() < 1e-6);
    });
}

#[test]
fn rows_wider_than_f32_range_are_normalised() {
    for cols in [3, 4, 40, 5_000] {
        let mut x = vec![-3.4e38; cols];
        x[cols / 2] = 3.4e38;
        let (gain, bias) = (noise(cols, 1), noise(cols, 2));
        let (rows, epsilon) = (1, 1e-5);
        let op = Op::LayerNorm {
            rows,
            cols,
            epsilon,
        };
        let inputs = [&x[..], &gain, &bias];
        let expected = evaluate(&op, &inputs);
        on_each(|isa| {
            let y = run(isa, &op, &inputs, cols).unwrap();
            for (y, expected) in y.into_iter().zip(&expected) {
                assert!(expected.accepts(y, op.ulp()), "{isa}: {y}, {expected:?}");
            }
        });
    }
}

#[test]
fn argmax_takes_the_first_and_nan_before_all() {
    on_each(|isa| {
        let argmax = |x: &[f32]| run(isa, &Op::Argmax, &[x], 1).unwrap()[0];
        let mut x = vec![0.0; 10_000];
        (x[4_500], x[4_501], x[9_000]) = (7.0, 7.0, 7.0);
        assert_eq!(argmax(&x), 4_500.0);
        (x[8_000], x[9_999]) = (f32::NAN, f32::NAN);
        assert_eq!(argmax(&x), 8_000.0);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 5]), 0.0);
    });
}

#[test]
fn softmax_rows_with_infinities_and_nan() {
    let infinite = f32::INFINITY;
    on_each(|isa| {
        for cols in [1, 3, 16, 37, 700] {
            let op = Op::SoftmaxRows { rows: 4, cols };
            let mut x = noise(4 * cols, 7);
            x[..cols].fill(-infinite);
            x[cols] = infinite;
            x[2 * cols] = f32::NAN;
            let y = run(isa, &op, &[&x], x.len()).unwrap();
            assert!(y[..3 * cols].iter().all(|y| y.is_nan()), "{isa} {cols}");
            let total: f64 = y[3 * cols..].iter().map(|&y| f64::from(y)).sum();
            assert!((total - 1.0).abs() < 1e-6, "{isa} {cols}: {total}");
        }
    });
}

/// The result is 0 and not denormal, because denormal numbers slow down later operations.
#[test]
fn softmax_of_masked_values_is_zero() {
    on_each(|isa| {
        for masked in [f32::NEG_INFINITY, f32::MIN, -1e4, -200.0] {
            let x = [[0.0, masked], [masked, 1.0]].concat().repeat(25);
            let op = Op::SoftmaxRows { rows: 2, cols: 50 };
            let y = run(isa, &op, &[&x], x.len()).unwrap();
            let kept = y.iter().zip(&x).filter(|(_, x)| **x == masked);
            assert!(
                kept.clone().all(|(y, _)| *y == 0.0),
                "{isa} {masked}: {y:?}"
            );
            assert_eq!(kept.count(), 50);
        }
    });
}

#[test]
fn empty_shapes_return_at_once() {
    let (rows, cols) = (usize::MAX, 0);
    on_each(|isa| {
        for op in [
            Op::SoftmaxRows { rows, cols },
            Op::LogSoftmaxRows { rows, cols },
            Op::Transpose { rows, cols },
            Op::BiasAdd { rows, cols },
            Op::Matmul {
                m: rows,
                k: 0,
                n: 0,
            },
            Op::Sum,
        ] {
            run(isa, &op, &[&[], &[]], 0).unwrap();
        }
        assert_eq!(
            run(isa, &Op::Matmul { m: 2, k: 0, n: 2 }, &[&[], &[]], 4).unwrap(),
            [0.0; 4]
        );
    });
}

#[test]
fn products_of_many_equal_terms_do_not_drift() {
    on_each(|isa| {
        for (m, k, n) in [(4, 256, 4), (20, 256, 70), (4, 65_536, 4), (4, 1 << 20, 4)] {
            for term in [0.1, 0.7, 1.0 + 63.0 * f32::EPSILON] {
                let (op, a, b) = (Op::Matmul { m, k, n }, vec![1.0; m * k], vec![term; k * n]);
                let c = run(isa, &op, &[&a, &b], m * n).unwrap();
                for (&c, expected) in c.iter().zip(evaluate(&op, &[&a, &b])) {
                    let error = expected.error(c);
                    assert!(error <= op.ulp(), "{isa} {op:?} of {term}: {error} ULP");
                }
            }
        }
    });
}

#[test]
#[cfg(all(not(target_arch = "wasm32"), feature = "threads"))]
fn results_do_not_depend_on_threads() {
    let (rows, cols) = (1_000, 1_001);
    let options = Conv2d::same(rows, cols, 3, 3);
    let (m, k, n) = (300, 400, 310);
    let long = rows * cols;
    let short_rows = Op::SoftmaxRows {
        rows: cols * 10,
        cols: rows / 10,
    };
    let cases = [
        (Op::Relu, [long, 0], long),
        (Op::VecAdd, [long, long], long),
        (Op::BiasAdd { rows, cols }, [long, cols], long),
        (Op::SoftmaxRows { rows, cols }, [long, 0], long),
        (short_rows, [long, 0], long),
        (Op::Matmul { m, k, n }, [m * k, k * n], m * n),
        (
            Op::Matmul {
                m: 1,
                k: 900,
                n: 9_000,
            },
            [900, 8_100_000],
            9_000,
        ),
        (
            Op::Matmul {
                m: 9_000,
                k: 900,
                n: 1,
            },
            [8_100_000, 900],
            9_000,
        ),
        (Op::Convolve2d { options }, [long, 9], long),
    ];
    on_each(|isa| {
        for (op, lens, len) in &cases {
            let inputs = [noise(lens[0], 5), noise(lens[1], 6)];
            let inputs = &[&inputs[0][..], &inputs[1][..]][..op.inputs().len()];
            let alone = run(isa, op, inputs, *len).unwrap();
            for threads in [2, 3, 16] {
                let cpu = Cpu { isa, threads };
                assert!(cpu.pieces(op, inputs) > 1, "{op:?} is not shared");
                let mut shared = vec![f32::NAN; *len];
                execute(cpu, op, inputs, &mut shared).unwrap();
                assert!(shared == alone, "{isa} {op:?} on {threads} threads");
            }
        }
    });
}

#[test]
fn streams_match_slices() {
    let ops = [
        Op::Relu,
        Op::Sub,
        Op::Clip {
            min: -0.5,
            max: 0.25,
        },
        Op::Softmax,
        Op::LogSoftmax,
        Op::Sum,
        Op::Mean,
        Op::Dot,
        Op::Max,
        Op::Min,
        Op::Argmax,
    ];
    let spoils: [&[(usize, f32)]; 5] = [
        &[],
        &[(40_000, f32::NAN), (70_000, f32::NAN)],
        &[(33_000, 9.0), (66_000, 9.0)],
        &[(3, f32::NEG_INFINITY), (50_000, -9.0)],
        &[(99_999, f32::INFINITY)],
    ];
    on_each(|isa| {
        for len in [1, 5, 4_096, 32_768, 100_001] {
            for (op, spoil) in ops.iter().flat_map(|op| spoils.map(|spoil| (op, spoil))) {
                let (mut a, b) = (noise(len, 3), noise(len, 4));
                for &(i, value) in spoil {
                    a[i.min(len - 1)] = value;
                }
                let inputs = &[&a[..], &b[..]][..op.inputs().len()];
                let expected = run(isa, op, inputs, if op.is_scalar() { 1 } else { len }).unwrap();
                let out = vec![0.0; len];
                let mut stream = Slices { inputs, out };
                assert!(is_streamable(op));
                let value = stream::run(isa, op, &mut stream).unwrap() as f32;
                let actual = if op.is_scalar() {
                    vec![value]
                } else {
                    stream.out
                };
                let same = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
                let all = actual.iter().zip(&expected).all(same);
                assert!(all, "{isa} {op:?} of {len} with {spoil:?}");
            }
        }
    });
}

#[test]
fn convolution_bands_match_the_whole() {
    let shapes = [
        Conv2d::valid(1, 1, 1, 1),
        Conv2d::valid(300, 517, 3, 5),
        Conv2d::valid(170, 2_000, 7, 3),
        Conv2d::valid(90, 700, 90, 2),
        Conv2d::valid(413, 333, 2, 4).with_stride(3, 2),
    ];
    on_each(|isa| {
        for options in shapes {
            let (rows, cols) = options.output_shape();
            let input = noise(options.input_rows * options.input_cols, 5);
            let kernel = noise(options.kernel_rows * options.kernel_cols, 6);
            let (op, inputs) = (Op::Convolve2d { options }, &[&input[..], &kernel[..]][..]);
            let expected = run(isa, &op, inputs, rows * cols).unwrap();
            let out = vec![0.0; rows * cols];
            let mut stream = Slices { inputs, out };
            stream::run(isa, &op, &mut stream).unwrap();
            assert_same(&stream.out, &expected, &format!("{isa} {options:?}"));
        }
    });
}

/// Equal bit by bit, −0 included, or both NaN.
fn assert_same(actual: &[f32], expected: &[f32], what: &str) {
    for (place, (a, b)) in actual.iter().zip(expected).enumerate() {
        let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(same, "{what}: {a} is not {b} at {place}");
    }
}

#[test]
fn fused_loop_matches_single_operations() {
    let slopes = [0.1, 1.0, 0.0, -0.5, 2.0, f32::MIN_POSITIVE];
    let leaky = slopes.map(|negative_slope| Op::LeakyRelu { negative_slope });
    let (min, max) = (-0.25, 0.5);
    let others = [
        Op::Scale { factor: -1.5 },
        Op::Relu,
        Op::Clip { min, max },
        Op::Abs,
        Op::Neg,
        Op::VecAdd,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Minimum,
        Op::Maximum,
    ];
    let all: Vec<&Op> = leaky.iter().chain(&others).collect();
    assert!(all.iter().all(|op| is_swept(op)));
    let alone = all.iter().map(std::slice::from_ref);
    let several = [&all[..7], &all[6..], &[all[6], all[0], all[12], all[10]]];
    let runs: Vec<&[&Op]> = alone.chain(several).collect();
    on_each(|isa| {
        for len in [0, 1, 127, 256, 257, 1_000] {
            let (x, other) = (special(len, 9), special(len, 4));
            for (ops, is_first) in runs.iter().flat_map(|ops| [(ops, true), (ops, false)]) {
                let mut expected = x.clone();
                for op in *ops {
                    let pair = op.inputs().len() == 2;
                    let operands: &[&[f32]] = match is_first {
                        _ if !pair => &[&expected],
                        true => &[&other, &expected],
                        false => &[&expected, &other],
                    };
                    expected = run(isa, op, operands, len).unwrap();
                }
                let steps: Vec<Swept> = ops.iter().map(|op| swept(op, &other, is_first)).collect();
                let what = format!("{isa} {ops:?} of {len}");
                let mut y = vec![f32::NAN; len];
                sweep(isa, &steps, Some(&x), &mut y);
                assert_same(&y, &expected, &what);
                y.copy_from_slice(&x);
                sweep(isa, &steps, None, &mut y);
                assert_same(&y, &expected, &what);
            }
        }
    });
}

fn swept<'a>(op: &'a Op, values: &'a [f32], is_first: bool) -> Swept<'a> {
    let pair = op.inputs().len() == 2;
    let other = pair.then(|| Other::of(values, is_first)).flatten();
    Swept { op, other }
}

/// Numbers; every third is a zero, infinite, NaN or denormal.
fn special(len: usize, seed: u32) -> Vec<f32> {
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45];
    let mut x = noise(len, seed);
    for (value, special) in x.iter_mut().step_by(3).zip(special.into_iter().cycle()) {
        *value = special;
    }
    x
}
