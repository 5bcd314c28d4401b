//! Gated activations of rows.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::gemm::activate;
use crate::kernels::{Activation, Kernel};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 128;

/// The activation of the first half of each row times the second half, as in a gated linear unit (Shazeer, 2020):
/// `y[i] = f(x[i]) · x[hidden + i]`.
///
/// Parameters: `x` (f32, `rows × 2·hidden`), `y` (f32, `rows × hidden`), `rows` (at most 65,535), `hidden` (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateKernel {
    activation: Activation,
}

impl GateKernel {
    /// Creates a kernel for an activation function.
    pub fn new(activation: Activation) -> Self {
        Self { activation }
    }
}

impl Kernel for GateKernel {
    fn name(&self) -> String {
        format!("gate_{:?}", self.activation).to_lowercase()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("hidden", THREADS),
            Extent::Param("rows"),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, y] = ["x", "y"].map(|name| k.pointer(name, F32));
        let _ = k.scalar("rows", U32);
        let hidden = k.scalar("hidden", U32);
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let row = k.special(Special::CtaidY);
        let i = k.fma(block, THREADS, thread);
        let exists = k.lt(i, hidden);
        k.wait_for_grid();
        k.when(exists, |k| {
            let columns = k.mul(hidden, 2);
            let gate = k.at_2d(x, row, columns, i, 4);
            let up = k.at(gate, hidden, 4);
            let [gate, up] = [gate, up].map(|at| k.ld(Op::LdGlobal, F32, at, 0));
            let activated = activate(k, self.activation, gate);
            let product = k.mul(activated, up);
            let y = k.at_2d(y, row, hidden, i, 4);
            k.st_global(F32, y, 0, product);
        });
        k.finish()
    }
}
