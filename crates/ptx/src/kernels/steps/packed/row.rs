//! A row of weights as numbers.

use super::{PackedFormat, Weights};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, S32, U32};
use crate::types::Target;

const THREADS: u32 = 64;

/// Writes the row of a matrix whose number an element is, times a factor: `y = s · W[index]`. A number that no row has
/// writes nothing.
///
/// Parameters: `index` (f32, one element), `words`, `scales` (as those of
/// [`PackedMatmulKernel`](super::PackedMatmulKernel)), `y` (f32, `k` elements), aligned to 16 bytes except `index`;
/// `rows`, `k`, `group_shift` (u32), `least`, `scale` (f32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackedRowKernel {
    format: PackedFormat,
}

impl PackedRowKernel {
    /// Creates a kernel for weights of a format.
    pub fn new(format: PackedFormat) -> Self {
        Self { format }
    }
}

impl Kernel for PackedRowKernel {
    fn name(&self) -> String {
        format!("take_row_{}", self.format.name())
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let unit = self.format.unit();
        let grid = [
            Extent::Tiles("k", THREADS * unit),
            Extent::Fixed(1),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let index = k.pointer("index", F32);
        let words = k.pointer("words", U32);
        let [scales, y] = ["scales", "y"].map(|name| k.pointer(name, F32));
        let [rows, depth, group_shift] =
            ["rows", "k", "group_shift"].map(|name| k.scalar(name, U32));
        let [least, scale] = ["least", "scale"].map(|name| k.scalar(name, F32));
        let weights = Weights::new(
            &mut k,
            self.format,
            [words, scales],
            [depth, group_shift, least],
        );
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let i = k.fma(block, THREADS, thread);
        k.wait_for_grid();
        let row = k.ld(Op::LdGlobal, F32, index, 0);
        let row = k.convert(Op::CvtS32F32, S32, &[row.into()]);
        // A negative one is beyond all.
        let row = k.value(U32, row);
        let known = k.lt(row, rows);
        let exists = k.lt(i, weights.units);
        let writes = k.and(known, exists);
        k.when(writes, |k| {
            let row = weights.row(k, row);
            let loaded = weights.load(k, &row, i);
            let values = weights.values(k, &loaded);
            let values: Vec<_> = values.iter().map(|&value| k.mul(value, scale)).collect();
            let to = k.at(y, i, 4 * unit);
            for (at, four) in (0..).step_by(16).zip(values.chunks(4)) {
                k.st_global(F32, to, at, four);
            }
        });
        k.finish()
    }
}
