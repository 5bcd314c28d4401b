//! The product of few rows: a warp has some rows of weights, whose eights its lanes share.

use super::{PackedFormat, PackedMatmulKernel, Params, Row};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::kernels::common::{BlockReduce, Combine, WARP, over_lanes};
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

const WARPS: u32 = 4;
/// Rows of weights of a warp, which share the loads of `x`.
const ROWS: u32 = 2;

pub(super) fn build(kernel: PackedMatmulKernel, target: Target) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("rows", WARPS * ROWS),
        Extent::Param("tokens"),
        Extent::Fixed(1),
    ];
    let launch = Launch::new(WARPS * WARP, grid).overlapping(target);
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let normalises = k.scalar("normalises", U32);
    let epsilon = k.scalar("epsilon", F32);
    let (block, token) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
    let thread = k.special(Special::TidX);
    let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
    let reduce = BlockReduce::new(&mut k, WARPS * WARP, false);
    let weights = &params.weights;
    let first = k.fma(block, WARPS, warp);
    let first = k.mul(first, ROWS);
    let last = k.sub(params.rows, 1);
    let rows: Vec<Row> = (0..ROWS)
        .map(|i| {
            let row = k.offset(first, i);
            let row = k.min(row, last);
            weights.row(&mut k, row)
        })
        .collect();
    k.wait_for_grid();
    let zero = k.value(U32, 0);
    let x = k.at_2d(params.x, token, params.k, zero, 4);
    let normalises = k.ne(normalises, 0);
    let factor = k.value(F32, 1.0f32);
    k.when(normalises, |k| {
        let squares = k.value(F32, 0.0f32);
        k.for_range(thread, weights.eights, WARPS * WARP, |k, i| {
            for value in eight(k, x, i) {
                k.fma_assign(squares, value, value);
            }
        });
        let sum = reduce.all(k, Combine::Sum, squares);
        let count = k.convert(Op::CvtF32U32, F32, &[params.k.into()]);
        let mean = k.div(sum, count);
        let mean = k.add(mean, epsilon);
        let root = k.sqrt(mean);
        let inverse = k.rcp(root);
        k.assign(factor, inverse);
    });
    let sums = k.filled(F32, ROWS as usize, 0.0f32);
    k.for_range(lane, weights.eights, WARP, |k, i| {
        let x = eight(k, x, i);
        k.when(normalises, |k| {
            for (&x, gain) in x.iter().zip(eight(k, params.gain, i)) {
                k.mul_assign(x, gain);
            }
        });
        // Floats have no offset.
        let whole = (kernel.format != PackedFormat::Floats).then(|| add_up(k, &x));
        for (row, &sum) in rows.iter().zip(&sums) {
            let w = weights.eight(k, row, i);
            let group = weights.group(k, row, i);
            let Some(([scale, offset], whole)) = group.zip(whole) else {
                for (&x, &w) in x.iter().zip(&w) {
                    k.fma_assign(sum, x, w);
                }
                continue;
            };
            let dot = k.mul(x[0], w[0]);
            for (&x, &w) in x.iter().zip(&w).skip(1) {
                k.fma_assign(dot, x, w);
            }
            k.fma_assign(sum, scale, dot);
            k.fma_assign(sum, offset, whole);
        }
    });
    let first_lane = k.eq(lane, 0);
    for (i, sum) in (0..ROWS).zip(sums) {
        let sum = over_lanes(&mut k, Combine::Sum, sum, WARP);
        let row = k.offset(first, i);
        let exists = k.lt(row, params.rows);
        let writes = k.and(first_lane, exists);
        k.when(writes, |k| {
            let product = k.mul(sum, factor);
            params.store(k, product, [token, row]);
        });
    }
    k.finish()
}

/// The `i`-th eight elements of a vector that earlier kernels wrote.
fn eight(k: &mut Builder, vector: Reg, i: Reg) -> Vec<Reg> {
    let at = k.at(vector, i, 32);
    let mut values = k.ld_vector(Op::LdGlobal, F32, 4, at, 0);
    values.extend(k.ld_vector(Op::LdGlobal, F32, 4, at, 16));
    values
}

fn add_up(k: &mut Builder, values: &[Reg]) -> Reg {
    let sum = k.add(values[0], values[1]);
    for &value in &values[2..] {
        k.add_assign(sum, value);
    }
    sum
}
