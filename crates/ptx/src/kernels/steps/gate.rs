//! Gated activations of rows.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::gemm::activate;
use crate::kernels::{Activation, Kernel};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 128;

/// The activation of the first half of each row times the second half, as in a gated linear unit (Shazeer, 2020):
/// `y[i] = f(x[i]) · x[hidden + i]`.
///
/// Parameters: `x` (f32, `rows × 2·hidden`), `y` (f32, `rows × hidden`), both aligned to 16 bytes; `rows` (at most 65,535),
/// `hidden` (a multiple of 4) (u32).
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
            Extent::Tiles("hidden", 4 * THREADS),
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
        let i = k.mul(i, 4);
        let exists = k.lt(i, hidden);
        k.wait_for_grid();
        k.when(exists, |k| {
            let columns = k.mul(hidden, 2);
            let gates = k.at_2d(x, row, columns, i, 4);
            let ups = k.at(gates, hidden, 4);
            let [gates, ups] = [gates, ups].map(|at| k.ld_vector(Op::LdGlobal, F32, 4, at, 0));
            let gated = gates.iter().zip(ups).map(|(&gate, up)| {
                let activated = activate(k, self.activation, gate);
                k.mul(activated, up)
            });
            let gated: Vec<Reg> = gated.collect();
            let y = k.at_2d(y, row, hidden, i, 4);
            k.st_global(F32, y, 0, gated.as_slice());
        });
        k.finish()
    }
}
