//! A vector that is added to rows.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 128;

/// Adds a vector to the first elements of each row of a matrix: `y[row · stride + i] += x[i]`.
///
/// Parameters: `x` (f32, `len` elements), `y` (f32), `len`, `rows` (at most 65,535), `stride` (u32, the number of
/// elements from a row to the next).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddRowsKernel;

impl Kernel for AddRowsKernel {
    fn name(&self) -> String {
        "add_rows".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("len", THREADS),
            Extent::Param("rows"),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, y] = ["x", "y"].map(|name| k.pointer(name, F32));
        let len = k.scalar("len", U32);
        let _ = k.scalar("rows", U32);
        let stride = k.scalar("stride", U32);
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let row = k.special(Special::CtaidY);
        let i = k.fma(block, THREADS, thread);
        let exists = k.lt(i, len);
        k.wait_for_grid();
        k.when(exists, |k| {
            let x = k.at(x, i, 4);
            let more = k.ld(Op::LdGlobal, F32, x, 0);
            let y = k.at_2d(y, row, stride, i, 4);
            let old = k.ld(Op::LdGlobal, F32, y, 0);
            let sum = k.add(old, more);
            k.st_global(F32, y, 0, sum);
        });
        k.finish()
    }
}
