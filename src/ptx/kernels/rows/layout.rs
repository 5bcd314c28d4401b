//! How threads share out rows.

use crate::ptx::error::{Error, Result};
use crate::ptx::kernel::{Extent, Launch};
use crate::ptx::kernels::common::WARP;
use crate::ptx::types::Target;

/// Threads of a multiprocessor whose registers hold loads, and bytes of shared memory for those to
/// come.
const HELD_THREADS: u32 = 1024;
const SHARED: u32 = 160 << 10;
/// Blocks of a multiprocessor that keep arrays of columns, bytes of shared memory for all of them
/// (`sm_90`), and what each has for other things.
const KEEPING: u32 = 2;
const ALL_SHARED: u32 = 228 << 10;
const SCRATCH: u32 = 4 << 10;

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
    /// Whether the next row is on its way to shared memory while one is worked on (since `sm_80`):
    /// as many blocks as run at once then take rows in turn. For rows that are held, in loads of 4.
    pub ahead: bool,
}

impl RowLayout {
    /// A row of any length to a block of 256 threads.
    pub const ANY: RowLayout = RowLayout {
        group: 256,
        threads: 256,
        blocks: 1,
        width: 1,
        held: None,
        ahead: false,
    };

    /// Values of a row's part, where several blocks share one without a cluster.
    pub const PART: u32 = 8192;

    /// The fastest layout for rows of `cols` values on GPUs that run code for `target`. Rows that it
    /// does not hold are faster by two kernels, as [`crate::ptx::SoftmaxKernel::statistics`] says.
    pub fn for_target(cols: u32, target: Target) -> Self {
        let any = Self::for_cols(cols);
        if cols <= 8192 || any.width != 4 || target.capability() < 90 {
            return any;
        }
        let ahead = |threads, blocks, held| RowLayout {
            group: threads,
            threads,
            blocks,
            held: Some(held),
            ahead: true,
            ..any
        };
        let layouts = [
            ahead(1024, 1, 4),
            ahead(1024, 1, 8),
            ahead(256, 8, 8),
            ahead(512, 8, 8),
            ahead(1024, 8, 8),
        ];
        let reaches = |layout: &RowLayout| {
            layout.max_cols().is_some_and(|most| cols <= most)
                && layout.ahead_bytes() < target.max_shared()
        };
        layouts.into_iter().find(reaches).unwrap_or(any)
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
                ahead: false,
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
                ahead: false,
            })
    }

    /// The longest row, if there is a limit.
    pub fn max_cols(&self) -> Option<u32> {
        let at_once = [self.width, self.group, self.blocks];
        let product = |held: u32| at_once.into_iter().fold(held, u32::saturating_mul);
        self.held.map(product)
    }

    /// Values that all threads of a row load at once.
    pub(super) fn step(&self) -> u32 {
        self.width * self.group * self.blocks
    }

    /// The first target that has what it needs.
    pub(in crate::ptx::kernels) fn first_target(&self) -> Target {
        match (self.blocks, self.ahead) {
            (1, false) => Target::Sm70,
            (1, true) => Target::Sm80,
            _ => Target::Sm90,
        }
    }

    pub(in crate::ptx::kernels) fn suffix(&self) -> String {
        let held = self.held.map_or("any".to_owned(), |held| held.to_string());
        let RowLayout {
            group,
            threads,
            width,
            blocks,
            ..
        } = self;
        let cluster = match blocks {
            1 => String::new(),
            _ => format!("_x{blocks}"),
        };
        let ahead = if self.ahead { "_ahead" } else { "" };
        format!("{group}of{threads}{cluster}_v{width}_{held}{ahead}")
    }

    /// Of kernels that write with so many arrays of columns.
    pub(in crate::ptx::kernels) fn launch(&self, arrays: u32) -> Launch {
        let rows = if self.ahead {
            self.at_once(arrays)
        } else {
            Extent::Tiles("rows", self.threads / self.group.max(1))
        };
        // A cluster's blocks lie along y.
        let grid = [rows, Extent::Fixed(self.blocks), Extent::Fixed(1)];
        let mut launch = Launch::new(self.threads, grid).clustered([1, self.blocks, 1]);
        if self.ahead {
            launch.min_blocks = self.each(arrays);
        }
        launch
    }

    /// Blocks of a multiprocessor that work ahead, and write with so many arrays of columns.
    fn each(&self, arrays: u32) -> u32 {
        if self.keeps(arrays) {
            return KEEPING;
        }
        let by_memory = SHARED / self.ahead_bytes().max(1);
        self.by_threads().min(by_memory).max(1)
    }

    fn by_threads(&self) -> u32 {
        HELD_THREADS / self.threads.max(1)
    }

    /// Whether so many arrays of columns stay in shared memory beside the next row, instead of being
    /// read from the L2 cache for each: a cluster's blocks have the same columns of all rows. Two blocks
    /// with them were faster than four without (layer norm of 65,536 by 4%, beside one exchange).
    pub(super) fn keeps(&self, arrays: u32) -> bool {
        let each = self.ahead_bytes() * (1 + arrays) + SCRATCH;
        let room = self.by_threads() >= KEEPING && KEEPING * each <= ALL_SHARED;
        self.ahead && self.blocks > 1 && arrays > 0 && room
    }

    /// Whether warps of a cluster exchange means and squares at once. Of more warps than this, what a
    /// lane reads of others takes too many registers.
    pub(super) fn exchanges_moments(&self) -> bool {
        self.blocks > 1 && self.threads / WARP * self.blocks <= 128
    }

    /// Shared memory for a block's part of the next row, or of an array of columns.
    pub(super) fn ahead_bytes(&self) -> u32 {
        self.held.unwrap_or(0) * self.threads * 16
    }

    /// As many blocks, or clusters, as run at once.
    fn at_once(&self, arrays: u32) -> Extent {
        let each = self.each(arrays);
        // Not every multiprocessor may find the others of a larger cluster in its part of the GPU;
        // one cluster that came later would take as long as all before it.
        if self.blocks > 2 {
            Extent::Share(15 * each, 16 * self.blocks)
        } else {
            Extent::Share(each, self.blocks)
        }
    }

    pub(in crate::ptx::kernels) fn check(&self) -> Result<()> {
        let valid = (self.group == WARP || self.group == self.threads)
            && self.threads.is_power_of_two()
            && (WARP..=1024).contains(&self.threads)
            && matches!(self.blocks, 1 | 2 | 4 | 8)
            && (self.blocks == 1 || self.group == self.threads)
            && matches!(self.width, 1 | 4)
            && self.held.is_none_or(|held| (1..=32).contains(&held))
            && (!self.ahead || (self.held.is_some() && self.width == 4 && self.group > WARP));
        let requirement = "32 threads, a block or up to 8 blocks to a row, a power of two up to 1024 a block, 1 or 4 values a load, at most 32 loads held, those of 4 values ahead for blocks";
        let error = || Error::invalid("layout", format!("{self:?}"), requirement);
        valid.then_some(()).ok_or_else(error)
    }
}
