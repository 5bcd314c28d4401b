//! Kernels that work on the rows of a matrix, one row to a warp, to a block or to a cluster.
//!
//! A row short enough is read once and stays in registers; a longer one is read again for each
//! pass, the later times mostly from the L2 cache.

use super::cluster::ClusterReduce;
use super::common::{BlockReduce, Combine, WARP, over_lanes};
use crate::ptx::build::Builder;
use crate::ptx::error::{Error, Result};
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch};
use crate::ptx::types::PtxType::{F32, U32};
use crate::ptx::types::Target;

/// How threads share out rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowLayout {
    /// Threads to a row: 32, or all of a block.
    pub group: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks to a row: 1, or the 2, 4 or 8 of a cluster (since `sm_90`), all of whose threads then
    /// have a row together.
    pub blocks: u32,
    /// Values that a thread loads at once: 4 needs rows whose length is a multiple of 4, in
    /// memory aligned to 16 bytes; 1 takes any.
    pub width: u32,
    /// Loads of a thread that stay in registers, or none for rows of any length.
    pub held: Option<u32>,
}

impl RowLayout {
    /// A row of any length to a block of 256 threads.
    pub const ANY: RowLayout = RowLayout {
        group: 256,
        threads: 256,
        blocks: 1,
        width: 1,
        held: None,
    };

    /// The fastest layout for rows of `cols` values on GPUs that run code for `target`.
    pub fn for_target(cols: u32, target: Target) -> Self {
        let any = Self::for_cols(cols);
        if any.held.is_some() || target.capability() < 90 {
            return any;
        }
        let layout = |threads, held| RowLayout {
            group: threads,
            threads,
            blocks: 8,
            held: Some(held),
            ..any
        };
        let layouts = [layout(256, 32 / any.width), layout(1024, 16 / any.width)];
        let reaches = |layout: &RowLayout| layout.max_cols().is_some_and(|most| cols <= most);
        let longer = RowLayout { blocks: 8, ..any };
        layouts.into_iter().find(reaches).unwrap_or(longer)
    }

    /// The fastest layout for rows of `cols` values on any GPU.
    pub fn for_cols(cols: u32) -> Self {
        let width = if cols.is_multiple_of(4) { 4 } else { 1 };
        let layout = |group: u32, threads, most: u32| {
            let held = cols.div_ceil(group * width).next_power_of_two();
            (held * width <= most).then_some(RowLayout {
                group,
                threads,
                blocks: 1,
                width,
                held: Some(held.max(1)),
            })
        };
        layout(WARP, 128, 32)
            .or_else(|| layout(256, 256, 32))
            .or_else(|| layout(1024, 1024, 16))
            .unwrap_or(RowLayout {
                group: 1024,
                threads: 1024,
                blocks: 1,
                width,
                held: None,
            })
    }

    /// The longest row, if there is a limit.
    pub fn max_cols(&self) -> Option<u32> {
        self.held.map(|held| held * self.step())
    }

    /// Values that all threads of a row load at once.
    fn step(&self) -> u32 {
        self.width * self.group * self.blocks
    }

    /// The first target that has what it needs.
    pub(super) fn first_target(&self) -> Target {
        if self.blocks > 1 {
            Target::Sm90
        } else {
            Target::Sm70
        }
    }

    pub(super) fn suffix(&self) -> String {
        let held = self.held.map_or("any".to_owned(), |held| held.to_string());
        let RowLayout {
            group,
            threads,
            width,
            blocks,
            ..
        } = self;
        let cluster = if *blocks > 1 {
            format!("_x{blocks}")
        } else {
            String::new()
        };
        format!("{group}of{threads}{cluster}_v{width}_{held}")
    }

    pub(super) fn launch(&self) -> Launch {
        let rows = Extent::Tiles("rows", self.threads / self.group.max(1));
        // A cluster's blocks lie along y.
        let grid = [rows, Extent::Fixed(self.blocks), Extent::Fixed(1)];
        Launch::new(self.threads, grid).clustered([1, self.blocks, 1])
    }

    pub(super) fn check(&self) -> Result<()> {
        let valid = (self.group == WARP || self.group == self.threads)
            && self.threads.is_power_of_two()
            && (WARP..=1024).contains(&self.threads)
            && matches!(self.blocks, 1 | 2 | 4 | 8)
            && (self.blocks == 1 || self.group == self.threads)
            && matches!(self.width, 1 | 4)
            && self.held.is_none_or(|held| (1..=32).contains(&held));
        valid.then_some(()).ok_or_else(|| Error::Invalid {
            what: "layout",
            value: format!("{self:?}"),
            requirement: "32 threads, a block or up to 8 blocks to a row, a power of two up to 1024 a block, 1 or 4 values a load, at most 32 loads held",
        })
    }
}

/// Values of a row that a thread holds, and whether they lie in the row.
struct Held {
    values: Vec<Reg>,
    inside: Reg,
    col: Reg,
}

/// The row of this thread's group.
pub(super) struct Row {
    layout: RowLayout,
    reduce: Reduce,
    /// The first column of this thread.
    first: Reg,
    cols: Reg,
    input: Reg,
    output: Reg,
    held: Vec<Held>,
}

/// How the threads of a row put their values together.
enum Reduce {
    Lanes,
    Block(BlockReduce),
    Cluster(ClusterReduce),
}

/// Where a row is read from and written to, and how many rows and columns there are.
pub(super) struct Matrix {
    pub(super) input: Reg,
    pub(super) output: Reg,
    pub(super) rows: Reg,
    pub(super) cols: Reg,
}

/// Runs `body` on every row: once a group, where the group has one.
pub(super) fn each_row(
    k: &mut Builder,
    layout: RowLayout,
    matrix: &Matrix,
    body: impl FnOnce(&mut Builder, &mut Row),
) {
    let per_block = layout.threads / layout.group;
    let reduce = if layout.blocks > 1 {
        Reduce::Cluster(ClusterReduce::new(k, layout.threads, layout.blocks))
    } else if layout.group > WARP {
        Reduce::Block(BlockReduce::new(k, layout.threads))
    } else {
        Reduce::Lanes
    };
    let thread = k.special(Special::TidX);
    let block = k.special(Special::CtaidX);
    let (row, lane) = if layout.blocks > 1 {
        let rank = k.special(Special::ClusterCtaRank);
        (block, k.fma(rank, layout.threads, thread))
    } else if layout.group == layout.threads {
        (block, thread)
    } else {
        let warp = k.shr(thread, 5);
        (k.fma(block, per_block, warp), k.and(thread, WARP - 1))
    };
    let exists = k.lt(row, matrix.rows);
    k.when(exists, |k| {
        let first = k.mul(lane, layout.width);
        let zero = k.value(U32, 0);
        let input = k.at_2d(matrix.input, row, matrix.cols, zero, 4);
        let output = k.at_2d(matrix.output, row, matrix.cols, zero, 4);
        let mut row = Row {
            layout,
            reduce,
            first,
            cols: matrix.cols,
            input,
            output,
            held: Vec::new(),
        };
        row.hold(k);
        body(k, &mut row);
    });
}

impl Row {
    fn hold(&mut self, k: &mut Builder) {
        for i in 0..self.layout.held.unwrap_or(0) {
            let col = k.offset(self.first, i * self.layout.step());
            let inside = k.lt(col, self.cols);
            let values = k.filled(F32, self.layout.width as usize, 0.0f32);
            let address = k.at(self.input, col, 4);
            k.guarded(inside, true, |k| load(k, &values, address));
            self.held.push(Held {
                values,
                inside,
                col,
            });
        }
    }

    /// Runs `body` for every load of this thread, with the load's values and first column.
    fn passes(&self, k: &mut Builder, body: &mut dyn FnMut(&mut Builder, &[Reg], Reg)) {
        k.for_range(self.first, self.cols, self.layout.step(), |k, col| {
            let values = k.regs(F32, self.layout.width as usize);
            let address = k.at(self.input, col, 4);
            load(k, &values, address);
            body(k, &values, col);
        });
    }

    /// The combination of `f(x)` over all values `x` of the row, in every thread of the group.
    pub(super) fn reduce(
        &self,
        k: &mut Builder,
        combine: Combine,
        mut f: impl FnMut(&mut Builder, Reg) -> Reg,
    ) -> Reg {
        let total = k.value(F32, combine.neutral());
        for held in &self.held {
            for &value in &held.values {
                let value = f(k, value);
                k.guarded(held.inside, true, |k| combine.apply(k, total, value));
            }
        }
        if self.layout.held.is_none() {
            self.passes(k, &mut |k, values, _| {
                for &value in values {
                    let value = f(k, value);
                    combine.apply(k, total, value);
                }
            });
        }
        match &self.reduce {
            Reduce::Lanes => over_lanes(k, combine, total, WARP),
            Reduce::Block(block) => block.all(k, combine, total),
            Reduce::Cluster(cluster) => cluster.all(k, combine, total),
        }
    }

    /// Writes `f(x, address of column)` for every value `x` of the row; the closure that `col`
    /// gets computes what depends on the column, once for a load.
    pub(super) fn write<C>(
        &self,
        k: &mut Builder,
        mut col: impl FnMut(&mut Builder, Reg, usize) -> Vec<C>,
        mut f: impl FnMut(&mut Builder, Reg, &C) -> Reg,
    ) {
        let width = self.layout.width as usize;
        let output = self.output;
        let mut one = |k: &mut Builder, values: &[Reg], at: Reg| {
            let per_column = col(k, at, width);
            let pairs = values.iter().zip(&per_column);
            let results: Vec<Reg> = pairs.map(|(&x, c)| f(k, x, c)).collect();
            let address = k.at(output, at, 4);
            store(k, &results, address);
        };
        for held in &self.held {
            k.when(held.inside, |k| one(k, &held.values, held.col));
        }
        if self.layout.held.is_none() {
            self.passes(k, &mut one);
        }
    }
}

/// Loads one or four values into `to`.
pub(super) fn load(k: &mut Builder, to: &[Reg], address: Reg) {
    let to = vector(to);
    k.emit(Op::LdGlobalNc, F32, &[to], &[Operand::At(address, 0)]);
}

/// Stores one or four values.
fn store(k: &mut Builder, values: &[Reg], address: Reg) {
    k.st_global(F32, address, 0, vector(values));
}

fn vector(regs: &[Reg]) -> Operand<'_> {
    match regs {
        [one] => (*one).into(),
        many => many.into(),
    }
}
