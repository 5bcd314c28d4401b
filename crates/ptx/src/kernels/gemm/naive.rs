//! The definition of a matmul as a kernel: one thread for each element of `C`.

use super::{GemmKernel, Product};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::Special;
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::F32;
use crate::types::Target;

/// The number of columns and rows of `C` for each block.
const SIDE: u32 = 16;

pub(super) fn build(gemm: &GemmKernel, target: Target) -> Result<PtxKernel> {
    let grid = [
        Extent::Tiles("n", SIDE),
        Extent::Tiles("m", SIDE),
        gemm.products(),
    ];
    let mut launch = Launch::new(SIDE, grid);
    launch.block[1] = SIDE;
    let mut k = Builder::new(gemm.name(), target, launch);
    let p = Product::declare(&mut k, gemm);
    let (x, y) = (k.special(Special::TidX), k.special(Special::TidY));
    let (block_x, block_y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
    let col = k.fma(block_x, SIDE, x);
    let row = k.fma(block_y, SIDE, y);
    let (in_rows, in_cols) = (k.lt(row, p.m), k.lt(col, p.n));
    let inside = k.and(in_rows, in_cols);
    k.when(inside, |k| {
        let sum = k.value(F32, 0.0f32);
        let zero = k.value(crate::PtxType::U32, 0);
        let a = k.at_2d(p.a, row, p.k, zero, 4);
        let b = k.at(p.b, col, 4);
        k.for_range(0, p.k, 1, |k, i| {
            let x = k.at(a, i, 4);
            let y = k.at_2d(b, i, p.n, zero, 4);
            let (x, y) = (k.ld_global(F32, x, 0), k.ld_global(F32, y, 0));
            k.fma_assign(sum, x, y);
        });
        let c = k.at_2d(p.c, row, p.n, col, 4);
        p.finish.store(k, &[sum], c, 0, col);
    });
    k.finish()
}
