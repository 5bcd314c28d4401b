//! One warp to a query: each key in turn, with a running maximum and sum (Milakov and
//! Gimelshein, 2018).

use super::state::LOWEST;
use super::{AttentionKernel, Heads, row_at};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

/// Queries, and warps, of a block.
const WARPS: u32 = 4;

pub(super) fn build(kernel: AttentionKernel, target: Target) -> Result<PtxKernel> {
    kernel.check(
        &[32, 64, 96, 128, 160, 192, 224, 256],
        "a multiple of 32 up to 256",
    )?;
    let grid = [
        Extent::Tiles("seq_q", WARPS),
        Extent::Param("heads"),
        Extent::Param("batch"),
    ];
    let mut k = Builder::new(kernel.name(), target, Launch::new(WARPS * WARP, grid));
    let [q, keys, values, o] = ["q", "k", "v", "o"].map(|name| k.pointer(name, F32));
    let heads = Heads::declare(&mut k);
    let (thread, block) = (k.special(Special::TidX), k.special(Special::CtaidX));
    let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
    let query = k.fma(block, WARPS, warp);
    let exists = k.lt(query, heads.seq_q);
    k.when(exists, |k| {
        let parts = (kernel.dim / WARP) as usize;
        // A lane's values of a row lie a warp apart.
        let row = |k: &mut Builder, base, plane: Reg, rows: Reg, row| {
            let row = row_at(k, base, [plane, rows, row], kernel.dim * 4);
            k.at(row, lane, 4)
        };
        let q = row(k, q, heads.plane, heads.seq_q, query);
        let q = load(k, q, parts);
        let end = if kernel.causal {
            let behind = k.sub(heads.seq_k, heads.seq_q);
            let last = k.add(query, behind);
            k.add(last, 1)
        } else {
            heads.seq_k
        };
        let zero = k.value(U32, 0);
        let keys = row(k, keys, heads.kv_plane, heads.seq_k, zero);
        let values = row(k, values, heads.kv_plane, heads.seq_k, zero);
        let running = Running::new(k, parts);
        k.for_range(0, end, 1, |k, _| {
            let (key, value) = (load(k, keys, parts), load(k, values, parts));
            let score = dot(k, &q, &key);
            let score = k.mul(score, heads.scale);
            running.add(k, score, &value);
            k.add_assign(keys, i64::from(kernel.dim * 4));
            k.add_assign(values, i64::from(kernel.dim * 4));
        });
        let o = row(k, o, heads.plane, heads.seq_q, query);
        running.store(k, o);
    });
    k.finish()
}

/// Values `lane`, `lane + 32` and so on of a row.
fn load(k: &mut Builder, row: Reg, parts: usize) -> Vec<Reg> {
    let part = |i| k.ld_global(F32, row, (i * WARP * 4) as i32);
    (0..parts as u32).map(part).collect()
}

fn dot(k: &mut Builder, a: &[Reg], b: &[Reg]) -> Reg {
    let sum = k.value(F32, 0.0f32);
    for (&a, &b) in a.iter().zip(b) {
        k.fma_assign(sum, a, b);
    }
    over_lanes(k, Combine::Sum, sum, WARP)
}

/// The running sums over the keys so far, divided by e to the power of the largest score.
struct Running {
    max: Reg,
    sum: Reg,
    values: Vec<Reg>,
}

impl Running {
    fn new(k: &mut Builder, parts: usize) -> Self {
        Running {
            max: k.value(F32, LOWEST),
            sum: k.value(F32, 0.0f32),
            values: k.filled(F32, parts, 0.0f32),
        }
    }

    fn add(&self, k: &mut Builder, score: Reg, value: &[Reg]) {
        let max = k.max(self.max, score);
        let down = k.sub(self.max, max);
        let rescale = k.exp(down);
        let down = k.sub(score, max);
        let weight = k.exp(down);
        k.assign(self.max, max);
        k.emit(
            Op::Fma,
            F32,
            &[self.sum.into()],
            &[self.sum.into(), rescale.into(), weight.into()],
        );
        for (&sum, &value) in self.values.iter().zip(value) {
            k.mul_assign(sum, rescale);
            k.fma_assign(sum, weight, value);
        }
    }

    fn store(&self, k: &mut Builder, row: Reg) {
        let scale = k.rcp(self.sum);
        for (i, &value) in self.values.iter().enumerate() {
            let value = k.mul(value, scale);
            k.st_global(F32, row, (i as u32 * WARP * 4) as i32, value);
        }
    }
}
