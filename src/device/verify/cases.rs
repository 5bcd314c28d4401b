//! The operations of a check.

use std::cell::Cell;

use crate::ops::{Attention, Conv2d, ConvLayer, Op};
use crate::random::Philox;

/// An operation with inputs on which the known silent faults of GPUs show.
pub(super) struct Case {
    pub(super) op: Op,
    pub(super) inputs: Vec<Vec<f32>>,
    /// The number of elements of the result.
    pub(super) len: usize,
    /// The kernel that a hardware adapter uses for larger inputs.
    pub(super) raced: Option<&'static str>,
}

/// Returns the cases, with other inputs for each seed: results of an earlier check, which may still be in memory that a
/// kernel does not write, are wrong.
///
/// Lengths are no multiples of workgroups, so that partial workgroups run. Sums and squares exceed 65,504, the largest f16.
/// Rows, tiles and reductions have several slabs, which barriers keep apart.
pub(super) fn all(seed: u64) -> Vec<Case> {
    const EPSILON: f32 = 1e-5;
    let noise = Noise {
        generator: Philox::new(seed),
        used: Cell::new(0),
    };
    let matmul = |[m, k, n]: [usize; 3], raced| Case {
        op: Op::Matmul { m, k, n },
        inputs: vec![noise.of(m * k, 30.0), noise.of(k * n, 3.0)],
        len: m * n,
        raced,
    };
    let chosen = |op: Op, inputs: Vec<Vec<f32>>, len: usize| Case {
        op,
        inputs,
        len,
        raced: None,
    };
    let rows = |op: fn(usize, usize) -> Op, [rows, cols]: [usize; 2], scale: f32| {
        chosen(
            op(rows, cols),
            vec![noise.of(rows * cols, scale)],
            rows * cols,
        )
    };
    let softmax = |rows, cols| Op::SoftmaxRows { rows, cols };
    let image = Conv2d::same(35, 70, 5, 5);
    let layer = ConvLayer::new(Conv2d::same(9, 10, 3, 3), 8, 12);
    let norm = |[rows, cols]: [usize; 2], bias: bool| {
        let epsilon = EPSILON;
        let mut inputs = vec![noise.of(rows * cols, 1e4), noise.of(cols, 2.0)];
        let op = if bias {
            inputs.push(noise.of(cols, 1.0));
            Op::LayerNorm {
                rows,
                cols,
                epsilon,
            }
        } else {
            Op::RmsNorm {
                rows,
                cols,
                epsilon,
            }
        };
        chosen(op, inputs, rows * cols)
    };
    let heads = || noise.of(5 * 2 * 32, 4.0);
    vec![
        chosen(
            Op::VecAdd,
            vec![noise.of(4_099, 6e4), noise.of(4_099, 6e4)],
            4_099,
        ),
        chosen(Op::Gelu, vec![noise.of(4_099, 4.0)], 4_099),
        chosen(Op::Sum, vec![noise.of(40_001, 3e4)], 1),
        chosen(Op::Max, vec![noise.of(40_001, 1e5)], 1),
        chosen(Op::Argmax, vec![noise.of(40_001, 1.0)], 1),
        chosen(
            Op::Dot,
            vec![noise.of(20_003, 300.0), noise.of(20_003, 300.0)],
            1,
        ),
        rows(softmax, [7, 64], 20.0),
        rows(softmax, [5, 512], 20.0),
        rows(softmax, [3, 1_001], 20.0),
        rows(|_, _| Op::LogSoftmax, [1, 40_000], 20.0),
        norm([5, 252], true),
        norm([2, 8_192], false),
        matmul([33, 70, 29], None),
        matmul([70, 72, 68], Some("matmul_64")),
        matmul([132, 72, 136], Some("matmul_128")),
        matmul([133, 256, 1], None),
        matmul([1, 300, 301], None),
        chosen(
            Op::Attention {
                options: Attention::new(5, 2, 32),
            },
            vec![heads(), heads(), heads()],
            5 * 2 * 32,
        ),
        chosen(
            Op::Convolve2d { options: image },
            vec![noise.of(35 * 70, 300.0), noise.of(25, 300.0)],
            35 * 70,
        ),
        chosen(
            Op::ConvolveLayer { options: layer },
            vec![noise.of(8 * 90, 300.0), noise.of(12 * 8 * 9, 3.0)],
            12 * 90,
        ),
        rows(|rows, cols| Op::Transpose { rows, cols }, [35, 70], 1e5),
    ]
}

/// A source of inputs, no two of which are the same.
struct Noise {
    generator: Philox,
    /// The number of random numbers used.
    used: Cell<u64>,
}

impl Noise {
    /// Returns `len` values between `-scale` and `scale`.
    fn of(&self, len: usize, scale: f32) -> Vec<f32> {
        let mut values = vec![0.0; len];
        let first = self.used.replace(self.used.get() + len as u64);
        self.generator.uniform(first, &mut values);
        for value in &mut values {
            *value = (2.0 * *value - 1.0) * scale;
        }
        values
    }
}
