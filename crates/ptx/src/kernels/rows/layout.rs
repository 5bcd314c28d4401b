//! The assignment of threads to rows.

use crate::error::{Error, Result};
use crate::kernel::{Extent, Launch};
use crate::kernels::common::WARP;
use crate::types::Target;

/// The number of threads of a multiprocessor whose registers hold loads.
const HELD_THREADS: u32 = 1024;
const SHARED: u32 = 160 << 10;
/// The number of blocks of a multiprocessor that cache arrays of columns.
const KEEPING: u32 = 2;
const ALL_SHARED: u32 = 228 << 10;
const SCRATCH: u32 = 4 << 10;

/// The assignment of threads to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RowLayout {
    /// The number of threads for a row: 32, or all threads of a block.
    pub group: u32,
    /// The number of threads of a block.
    pub threads: u32,
    /// The number of blocks for a row: 1, or the 2, 4 or 8 blocks of a cluster (since `sm_90`), all
    /// of whose threads then share a row.
    pub blocks: u32,
    /// The number of elements that a thread loads at once: 4 needs rows whose length is a multiple
    /// of 4, in memory aligned to 16 bytes; 1 supports any row.
    pub width: u32,
    /// The number of loads that stay in a thread's registers, or `None` for rows of any length.
    pub held: Option<u32>,
    /// Whether the next row is copied to shared memory while the current one is processed (since `sm_80`). The number
    /// of blocks of the grid is then that of blocks that run at the same time. It requires `held` and a width of 4.
    pub ahead: bool,
}

/// Writes the layout for messages.
impl std::fmt::Display for RowLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (threads, blocks) = (self.threads, self.blocks);
        write!(f, "{} threads and {blocks} blocks to a row, ", self.group)?;
        write!(
            f,
            "{threads} threads a block, {} values a load, ",
            self.width
        )?;
        match self.held {
            Some(held) => write!(f, "{held} loads held")?,
            None => f.write_str("no loads held")?,
        }
        f.write_str(if self.ahead {
            ", the next row ahead"
        } else {
            ""
        })
    }
}

impl RowLayout {
    /// One block of 256 threads for a row of any length.
    pub const ANY: RowLayout = RowLayout {
        group: 256,
        threads: 256,
        blocks: 1,
        width: 1,
        held: None,
        ahead: false,
    };

    /// Creates the layout with `group` threads for a row and `threads` for a block, for rows of any length.
    pub const fn new(group: u32, threads: u32) -> Self {
        Self {
            group,
            threads,
            ..Self::ANY
        }
    }

    /// Returns the layout with this number of blocks for a row.
    #[must_use]
    pub const fn with_blocks(self, blocks: u32) -> Self {
        Self { blocks, ..self }
    }

    /// Returns the layout with this number of elements loaded at once.
    #[must_use]
    pub const fn with_width(self, width: u32) -> Self {
        Self { width, ..self }
    }

    /// Returns the layout with this number of loads in a thread's registers.
    #[must_use]
    pub const fn with_held(self, held: u32) -> Self {
        Self {
            held: Some(held),
            ..self
        }
    }

    /// Returns the layout that copies the next row to shared memory while the current one is processed.
    #[must_use]
    pub const fn ahead(self) -> Self {
        Self {
            ahead: true,
            ..self
        }
    }

    /// The number of elements of a part, for rows that are split among blocks without a cluster.
    pub const PART: u32 = 8192;

    /// Returns the fastest layout for rows of `cols` elements on GPUs that run code for `target`.
    /// For rows that the layout does not hold in registers, two kernels are faster, see
    /// [`crate::SoftmaxKernel::statistics`].
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

    /// Returns the fastest layout for rows of `cols` elements on any GPU.
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

    /// Returns the maximum number of columns, if there is a limit.
    pub fn max_cols(&self) -> Option<u32> {
        let at_once = [self.width, self.group, self.blocks];
        let product = |held: u32| at_once.into_iter().fold(held, u32::saturating_mul);
        self.held.map(product)
    }

    /// Returns the number of elements that all threads of a row load at once.
    pub(super) fn step(&self) -> u32 {
        self.width * self.group * self.blocks
    }

    /// Returns the oldest target that supports the layout.
    pub(in crate::kernels) fn first_target(&self) -> Target {
        match (self.blocks, self.ahead) {
            (1, false) => Target::Sm70,
            (1, true) => Target::Sm80,
            _ => Target::Sm90,
        }
    }

    pub(in crate::kernels) fn suffix(&self) -> String {
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

    /// Returns the launch of kernels that read `arrays` arrays of columns.
    pub(in crate::kernels) fn launch(&self, arrays: u32) -> Launch {
        let rows = if self.ahead {
            self.at_once(arrays)
        } else {
            Extent::Tiles("rows", self.threads / self.group.max(1))
        };
        // The blocks of a cluster are along y.
        let grid = [rows, Extent::Fixed(self.blocks), Extent::Fixed(1)];
        let mut launch = Launch::new(self.threads, grid).clustered([1, self.blocks, 1]);
        if self.ahead {
            launch.min_blocks = self.each(arrays);
        }
        launch
    }

    /// Returns the number of blocks for each multiprocessor, for kernels that prefetch rows and
    /// read `arrays` arrays of columns.
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

    /// Whether `arrays` arrays of columns are cached in shared memory beside the next row. The
    /// blocks of a cluster process the same columns of all rows. Two blocks with cached arrays were
    /// faster than four without (layer norm of 65,536 columns by 4%).
    pub(super) fn keeps(&self, arrays: u32) -> bool {
        let each = self.ahead_bytes() * (1 + arrays) + SCRATCH;
        let room = self.by_threads() >= KEEPING && KEEPING * each <= ALL_SHARED;
        self.ahead && self.blocks > 1 && arrays > 0 && room
    }

    /// Whether warps of a cluster exchange means and squares at once. With more warps, the
    /// exchanged numbers take too many registers.
    pub(super) fn exchanges_moments(&self) -> bool {
        self.blocks > 1 && self.threads / WARP * self.blocks <= 128
    }

    /// Returns the size in bytes of the shared memory for a block's part of the next row, or of an
    /// array of columns.
    pub(super) fn ahead_bytes(&self) -> u32 {
        self.held.unwrap_or(0) * self.threads * 16
    }

    /// Returns the number of blocks that run at once.
    fn at_once(&self, arrays: u32) -> Extent {
        let each = self.each(arrays);
        // Larger clusters may not fill every part of the GPU, and a single late cluster would
        // double the time.
        if self.blocks > 2 {
            Extent::Share(15 * each, 16 * self.blocks)
        } else {
            Extent::Share(each, self.blocks)
        }
    }

    pub(in crate::kernels) fn check(&self) -> Result<()> {
        let valid = (self.group == WARP || self.group == self.threads)
            && self.threads.is_power_of_two()
            && (WARP..=1024).contains(&self.threads)
            && matches!(self.blocks, 1 | 2 | 4 | 8)
            && (self.blocks == 1 || self.group == self.threads)
            && matches!(self.width, 1 | 4)
            && self.held.is_none_or(|held| (1..=32).contains(&held))
            && (!self.ahead || (self.held.is_some() && self.width == 4 && self.group > WARP));
        let requirement = "32 threads, a block or up to 8 blocks to a row, a power of two up to 1024 a block, 1 or 4 values a load, at most 32 loads held, those of 4 values ahead for blocks";
        let error = || Error::invalid("layout", self.to_string(), requirement);
        valid.then_some(()).ok_or_else(error)
    }
}
