//! Kernels that work on the rows of a matrix, one row to a warp, to a block or to a cluster.
//!
//! A row short enough is read once and stays in registers; a longer one is read again for each
//! pass, the later times mostly from the L2 cache. A row that fills a multiprocessor's registers
//! leaves no room for a second block to read while the first one computes; the next row is then
//! copied to shared memory meanwhile.

mod ahead;
mod layout;
mod parts;

pub use layout::RowLayout;
pub(super) use parts::{Part, Share};

use super::cluster::ClusterReduce;
use super::common::{BlockReduce, Combine, WARP, over_lanes};
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg, Special};
use crate::types::PtxType::{F32, U32};
use ahead::Ahead;

/// Elements of a row in a thread's registers, and whether they are inside the row.
struct HeldElements {
    values: Vec<Reg>,
    inside: Reg,
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
    held: Vec<HeldElements>,
    /// The cache of arrays of columns in shared memory, if there is one.
    kept: Option<Ahead>,
    /// The number of elements of this thread's warp and its inverse, if moments are needed.
    of_warp: Option<[Reg; 2]>,
}

/// The reduction over the threads of a row.
enum Reduce {
    Lanes,
    Block(BlockReduce),
    Cluster(ClusterReduce),
}

impl Reduce {
    fn new(k: &mut Builder, layout: RowLayout, numbers: u32) -> Self {
        if layout.blocks > 1 {
            Reduce::Cluster(ClusterReduce::new(k, layout, numbers))
        } else if layout.group > WARP {
            Reduce::Block(BlockReduce::new(k, layout.threads, layout.ahead))
        } else {
            Reduce::Lanes
        }
    }
}

/// The input, the output, and the numbers of rows and columns.
pub(super) struct Matrix {
    pub(super) input: Reg,
    pub(super) output: Reg,
    pub(super) rows: Reg,
    pub(super) cols: Reg,
}

/// Runs `body` on every row: once for each group, or in a loop. Threads cache their elements of
/// `arrays` (of columns) if [`RowLayout::keeps`] returns true. [`Row::moments`] works only if it is
/// requested here.
pub(super) fn each_row(
    k: &mut Builder,
    layout: RowLayout,
    matrix: &Matrix,
    arrays: &[Reg],
    moments: bool,
    body: impl FnOnce(&mut Builder, &mut Row),
) {
    let moments = moments && layout.exchanges_moments();
    let reduce = Reduce::new(k, layout, if moments { 4 } else { 1 });
    let (row, lane) = place(k, layout);
    let first = k.mul(lane, layout.width);
    let of_warp = moments.then(|| warp_count(k, layout, first, matrix.cols));
    let new_row = |k: &mut Builder, row: Reg| Row {
        layout,
        reduce,
        first,
        cols: matrix.cols,
        input: matrix.input,
        output: {
            let zero = k.value(U32, 0);
            k.at_2d(matrix.output, row, matrix.cols, zero, 4)
        },
        held: Vec::new(),
        kept: None,
        of_warp,
    };
    if layout.ahead {
        return rows_ahead(k, layout, matrix, arrays, [row, first], new_row, body);
    }
    let exists = k.lt(row, matrix.rows);
    k.when(exists, |k| {
        let mut this = new_row(k, row);
        let zero = k.value(U32, 0);
        this.input = k.at_2d(matrix.input, row, matrix.cols, zero, 4);
        this.hold_row(k);
        body(k, &mut this);
    });
}

/// Runs `body` on rows in a loop, and prefetches each row while the previous one is processed.
fn rows_ahead(
    k: &mut Builder,
    layout: RowLayout,
    matrix: &Matrix,
    arrays: &[Reg],
    [row, first]: [Reg; 2],
    new_row: impl FnOnce(&mut Builder, Reg) -> Row,
    body: impl FnOnce(&mut Builder, &mut Row),
) {
    let keeps = layout.keeps(arrays.len() as u32);
    let arrays = if keeps { arrays } else { &[] };
    let ahead = Ahead::new(k, layout, arrays.len() as u32);
    let step = k.special(Special::NctaidX);
    ahead.keep(k, arrays, first, matrix.cols);
    ahead.ask(k, matrix, row, first);
    k.for_range(row, matrix.rows, step, |k, row| {
        let mut this = new_row(k, row);
        this.kept = keeps.then_some(ahead);
        Ahead::wait(k);
        this.hold(k, |k, i, _| ahead.load(k, i));
        let next = k.add(row, step);
        ahead.ask(k, matrix, next, first);
        body(k, &mut this);
    });
}

/// Returns the first row of this thread's group, and the thread's index in the group.
fn place(k: &mut Builder, layout: RowLayout) -> (Reg, Reg) {
    let (thread, block) = (k.special(Special::TidX), k.special(Special::CtaidX));
    if layout.blocks > 1 {
        let rank = k.special(Special::ClusterCtaRank);
        return (block, k.fma(rank, layout.threads, thread));
    }
    if layout.group == layout.threads {
        return (block, thread);
    }
    let warp = k.shr(thread, 5);
    let row = k.fma(block, layout.threads / layout.group, warp);
    (row, k.and(thread, WARP - 1))
}

/// Computes the number of elements of a warp, and its inverse.
fn warp_count(k: &mut Builder, layout: RowLayout, first: Reg, cols: Reg) -> [Reg; 2] {
    let (step, end) = (layout.step(), k.max(cols, first));
    let left = k.sub(end, first);
    let up = k.add(left, step - 1);
    let loads = k.shr(up, step.trailing_zeros());
    let values = k.mul(loads, layout.width);
    let values = k.convert(Op::CvtF32U32, F32, &[values.into()]);
    let count = over_lanes(k, Combine::Sum, values, WARP);
    let some = k.max(count, 1.0f32);
    [count, k.rcp(some)]
}

impl Row {
    /// Stores the results of `load` for each load, which gets its index and whether it is inside
    /// the row.
    fn hold(&mut self, k: &mut Builder, mut load: impl FnMut(&mut Builder, u32, Reg) -> Vec<Reg>) {
        let Some(loads) = self.layout.held else {
            return;
        };
        // The number of elements from the thread's first one on. Prefetched rows compare columns in
        // their copies instead: one more register slowed layer norm down by 5%.
        let left = (!self.layout.ahead).then(|| {
            let end = k.max(self.cols, self.first);
            k.sub(end, self.first)
        });
        for i in 0..loads {
            let further = i * self.layout.step();
            let inside = if let Some(left) = left {
                k.gt(left, further)
            } else {
                let col = k.offset(self.first, further);
                k.lt(col, self.cols)
            };
            let values = load(k, i, inside);
            self.held.push(HeldElements { values, inside });
        }
    }

    /// Loads the row from memory to registers.
    fn hold_row(&mut self, k: &mut Builder) {
        if self.layout.held.is_none() {
            return;
        }
        let (layout, address) = (self.layout, k.at(self.input, self.first, 4));
        self.hold(k, |k, i, inside| {
            let values = k.filled(F32, layout.width as usize, 0.0f32);
            let further = (4 * i * layout.step()) as i32;
            k.guarded(inside, true, |k| load(k, &values, address, further));
            values
        });
    }

    /// Runs `body` for every load of this thread, with the load's elements and first column.
    fn passes(&self, k: &mut Builder, body: &mut dyn FnMut(&mut Builder, &[Reg], Reg)) {
        k.for_range(self.first, self.cols, self.layout.step(), |k, col| {
            let values = k.regs(F32, self.layout.width as usize);
            let address = k.at(self.input, col, 4);
            load(k, &values, address, 0);
            body(k, &values, col);
        });
    }

    /// Combines `f(x)` over all elements `x` of the row; every thread of the group gets the result.
    pub(super) fn reduce(
        &self,
        k: &mut Builder,
        combine: Combine,
        f: impl FnMut(&mut Builder, Reg) -> Reg,
    ) -> Reg {
        let total = self.own(k, combine, f);
        self.together(k, combine, total)
    }

    /// Computes the mean of a row of `count` elements and the sum of squared deviations from it
    /// with one exchange: the moments of warps are combined (Chan et al., 1979). Returns `None` if
    /// that was not requested.
    pub(super) fn moments(&self, k: &mut Builder, count: Reg) -> Option<[Reg; 2]> {
        let (Some([of_warp, inverse]), Reduce::Cluster(cluster)) = (self.of_warp, &self.reduce)
        else {
            return None;
        };
        let sum = self.own(k, Combine::Sum, |_, x| x);
        let sum = over_lanes(k, Combine::Sum, sum, WARP);
        let mean = k.mul(sum, inverse);
        let squares = self.own(k, Combine::Sum, |k, x| {
            let off = k.sub(x, mean);
            k.mul(off, off)
        });
        let squares = over_lanes(k, Combine::Sum, squares, WARP);
        let partials = cluster.exchange(k, &[sum, squares, mean, of_warp]);
        let total = k.value(F32, partials[0][0]);
        for other in &partials[1..] {
            k.add_assign(total, other[0]);
        }
        let total = cluster.over_partials(k, Combine::Sum, total);
        let mean = k.div(total, count);
        let squares = k.value(F32, 0.0f32);
        for partial in &partials {
            let off = k.sub(partial[2], mean);
            let off_squared = k.mul(off, off);
            let whole = k.fma(off_squared, partial[3], partial[1]);
            k.add_assign(squares, whole);
        }
        Some([mean, cluster.over_partials(k, Combine::Sum, squares)])
    }

    /// Combines this thread's elements.
    fn own(
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
        total
    }

    /// Combines a value over all threads of the group; every thread gets the result.
    fn together(&self, k: &mut Builder, combine: Combine, total: Reg) -> Reg {
        match &self.reduce {
            Reduce::Lanes => over_lanes(k, combine, total, WARP),
            Reduce::Block(block) => block.all(k, combine, total),
            Reduce::Cluster(cluster) => cluster.all(k, combine, total),
        }
    }

    /// Writes `f(x, …)` for every element `x` of the row. The other arguments are the elements of
    /// the f32 `arrays` for its column.
    pub(super) fn write(
        &self,
        k: &mut Builder,
        arrays: &[Reg],
        mut f: impl FnMut(&mut Builder, Reg, &[Reg]) -> Reg,
    ) {
        let mut one = |k: &mut Builder, values: &[Reg], of_columns: &[Vec<Reg>], to, inside| {
            let result = |(i, &x): (usize, &Reg)| {
                let of_column: Vec<Reg> = of_columns.iter().map(|values| values[i]).collect();
                f(k, x, &of_column)
            };
            let results: Vec<Reg> = values.iter().enumerate().map(result).collect();
            let (output, at) = to;
            guarded(k, inside, |k| {
                k.st_global(F32, output, at, vector(&results));
            });
        };
        let at = |k: &mut Builder, bases: &[Reg], col| -> Vec<Reg> {
            bases.iter().map(|&base| k.at(base, col, 4)).collect()
        };
        if self.layout.held.is_none() {
            let bases = [&[self.output], arrays].concat();
            self.passes(k, &mut |k, values, col| {
                let from = at(k, &bases, col);
                let of_columns = columns(k, &from[1..], values.len(), 0, None);
                one(k, values, &of_columns, (from[0], 0), None);
            });
            return;
        }
        let loaded = if self.kept.is_some() { &[] } else { arrays };
        let first = at(k, &[&[self.output], loaded].concat(), self.first);
        for (i, held) in (0..).zip(&self.held) {
            // Predicates, since a branch would keep the assembler from moving the next loads
            // forward.
            let (further, inside) = (4 * (i * self.layout.step()) as i32, Some(held.inside));
            let of_columns = match self.kept {
                Some(kept) => kept.columns(k, arrays.len() as u32, i),
                None => columns(k, &first[1..], held.values.len(), further, inside),
            };
            one(k, &held.values, &of_columns, (first[0], further), inside);
        }
    }
}

/// Loads `count` elements of each array at offset `at`, with zeros if they are not `inside`.
fn columns(
    k: &mut Builder,
    arrays: &[Reg],
    count: usize,
    at: i32,
    inside: Option<Reg>,
) -> Vec<Vec<Reg>> {
    let values = |from: &Reg| {
        let to = k.filled(F32, count, 0.0f32);
        guarded(k, inside, |k| load(k, &to, *from, at));
        to
    };
    arrays.iter().map(values).collect()
}

fn guarded(k: &mut Builder, cond: Option<Reg>, body: impl FnOnce(&mut Builder)) {
    match cond {
        Some(cond) => k.guarded(cond, true, body),
        None => body(k),
    }
}

/// Loads one or four elements into `to`.
fn load(k: &mut Builder, to: &[Reg], address: Reg, offset: i32) {
    let to = vector(to);
    k.emit(Op::LdGlobalNc, F32, &[to], &[Operand::At(address, offset)]);
}

fn vector(regs: &[Reg]) -> Operand<'_> {
    match regs {
        [one] => (*one).into(),
        many => many.into(),
    }
}
