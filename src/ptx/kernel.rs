//! A kernel as data: its parameters, its shared memory, its launch and its instructions.

use super::code::Code;
use super::error::{Error, Result};
use super::types::{PtxType, Target, Version};

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub enum ParamType {
    /// An address in global memory of values of this type.
    Pointer(PtxType),
    /// A number.
    Scalar(PtxType),
    /// The 128 bytes that `cuTensorMapEncodeTiled` writes, of a row-major matrix.
    TensorMap(TensorBox),
}

/// What the tensor map of a parameter has to describe: a row-major matrix, or several of one
/// shape after each other, read or written in boxes of one of them that lie in shared memory with
/// the 128-byte swizzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub struct TensorBox {
    /// The type of the values.
    pub ty: PtxType,
    /// Rows of a box.
    pub rows: u32,
    /// Columns of a box: 128 bytes.
    pub cols: u32,
    /// A matrix's number of rows and of columns.
    pub shape: [Extent; 2],
    /// The parameters whose product is the number of matrices; none for one alone, whose map has
    /// two dimensions and not three.
    pub planes: &'static [&'static str],
}

/// A parameter, in the order of launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub struct Param {
    /// Its name in the text.
    pub name: &'static str,
    /// What it holds.
    pub ty: ParamType,
}

impl ParamType {
    /// Size and alignment in the parameter buffer, in bytes.
    pub fn layout(self) -> (u32, u32) {
        match self {
            ParamType::Pointer(_) => (8, 8),
            ParamType::Scalar(ty) => (ty.bytes(), ty.bytes()),
            ParamType::TensorMap(_) => (128, 64),
        }
    }
}

/// How many blocks a grid has in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub enum Extent {
    /// So many.
    Fixed(u32),
    /// As many as the parameter of this name says.
    Param(&'static str),
    /// The parameter divided by so much, rounded up.
    Tiles(&'static str, u32),
    /// A multiple of the GPU's multiprocessors, for kernels that share out work themselves.
    Multiprocessors(u32),
    /// As many as the GPU's multiprocessors times a number, divided by another and rounded down;
    /// at least one.
    Share(u32, u32),
}

/// How a kernel has to be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub struct Launch {
    /// Threads of a block. The text asks for exactly these (`.reqntid`).
    pub block: [u32; 3],
    /// Blocks of the grid.
    pub grid: [Extent; 3],
    /// Blocks of a cluster, which run at the same time and reach each other's shared memory
    /// (`sm_90`; at most 8); the grid is of whole clusters.
    pub cluster: [u32; 3],
    /// Blocks that fewest registers must allow on one multiprocessor at once (`.minnctapersm`).
    pub min_blocks: u32,
    /// Whether it may begin before the kernel before it is over (*programmatic dependent launch*),
    /// for whose results it waits itself.
    pub overlaps: bool,
}

impl Launch {
    /// Blocks of `threads` in a row, one in each place of `grid`.
    pub fn new(threads: u32, grid: [Extent; 3]) -> Self {
        Launch {
            block: [threads, 1, 1],
            grid,
            cluster: [1; 3],
            min_blocks: 1,
            overlaps: false,
        }
    }

    /// The same in clusters of so many blocks along each axis.
    #[must_use]
    pub fn clustered(self, cluster: [u32; 3]) -> Self {
        Launch { cluster, ..self }
    }

    /// How many blocks a cluster has.
    pub fn cluster_blocks(&self) -> u64 {
        product(self.cluster)
    }

    /// How many threads a block has.
    pub(crate) fn threads(&self) -> u64 {
        product(self.block)
    }

    /// The same, overlapping with the kernel before where the target can do that (`sm_90`). The
    /// kernel has to call [`super::Builder::wait_for_grid`].
    #[must_use]
    pub fn overlapping(self, target: Target) -> Self {
        Launch {
            overlaps: target.capability() >= 90,
            ..self
        }
    }
}

/// Beyond 2⁶⁴ the largest number, which is beyond every limit, too.
fn product(sides: [u32; 3]) -> u64 {
    sides
        .iter()
        .fold(1, |all, &side| all.saturating_mul(side.into()))
}

/// The hardware's bounds of a grid.
const MAX_GRID: [u64; 3] = [0x7fff_ffff, 65_535, 65_535];
const AXES: [&str; 3] = ["x", "y", "z"];

/// A shared array of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedArray {
    pub(crate) name: String,
    pub(crate) bytes: u32,
    pub(crate) align: u32,
    /// Its size is part of the launch; needed beyond 48 KiB.
    pub(crate) dynamic: bool,
}

/// A checked kernel.
#[derive(Clone, Debug)]
pub struct PtxKernel {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) params: Vec<Param>,
    pub(crate) shared: Vec<SharedArray>,
    pub(crate) launch: Launch,
    pub(crate) code: Code,
    /// How many registers it has.
    pub(crate) registers: usize,
    /// The first version of PTX that has all of its instructions.
    pub(crate) since: Version,
}

/// What a grid is computed from: the values of a launch's integer parameters.
pub trait Sizes {
    /// The value of the parameter at this place in the kernel's list.
    fn size(&self, index: usize) -> Option<u64>;
}

impl PtxKernel {
    /// The entry point's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was written for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Block, grid and registers.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// An estimate of the 32-bit registers that a thread takes: the most that are alive at once in the
    /// order of the text. What the assembler makes of it may differ.
    pub fn registers(&self) -> u32 {
        super::verify::estimate(self)
    }

    /// Shared memory that the launch has to ask for, in bytes.
    pub fn dynamic_shared(&self) -> u32 {
        // The verifier has seen that it fits.
        self.bytes_of(true) as u32
    }

    /// All shared memory, in bytes.
    pub fn shared_bytes(&self) -> u32 {
        (self.bytes_of(false) + self.bytes_of(true)) as u32
    }

    /// Bytes of the shared arrays whose size the launch states, or of the others, each at a multiple
    /// of its alignment.
    pub(super) fn bytes_of(&self, dynamic: bool) -> u64 {
        let arrays = self.shared.iter().filter(|array| array.dynamic == dynamic);
        arrays.fold(0, |end: u64, array| {
            end.next_multiple_of(array.align.into()) + u64::from(array.bytes)
        })
    }

    /// Whether the text gives the kernel this name, or its dynamic array: for a whole module.
    pub(super) fn declares(&self, name: &str) -> bool {
        name == self.name || self.has_dynamic(name)
    }

    /// Whether the dynamic array has this name in the text, where it begins with the kernel's.
    pub(super) fn has_dynamic(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.name.as_str());
        let name = name.and_then(|rest| rest.strip_prefix('_'));
        let mut dynamic = self.shared.iter().filter(|array| array.dynamic);
        name.is_some_and(|name| dynamic.any(|array| array.name == name))
    }

    /// The grid for these arguments on a GPU of so many multiprocessors.
    ///
    /// It has 0 blocks along an axis where there is nothing to compute, as for a product without
    /// rows. Drivers refuse such a launch: skip it, as [`cuda`](crate#features) does.
    ///
    /// # Errors
    /// [`Error::Argument`] if an extent's parameter has no value, [`Error::Limit`] beyond what
    /// the hardware launches (65,535 blocks along y and z, which batches and heads lie along), [`Error::Invalid`] if it is not of whole clusters.
    pub fn grid(&self, sizes: &dyn Sizes, multiprocessors: u32) -> Result<[u32; 3]> {
        let mut grid = [1; 3];
        for (axis, extent) in self.launch.grid.iter().enumerate() {
            let blocks = match *extent {
                Extent::Fixed(blocks) => u64::from(blocks),
                Extent::Param(name) => self.size(name, sizes)?,
                Extent::Tiles(name, per) => self.size(name, sizes)?.div_ceil(per.into()),
                Extent::Multiprocessors(per) => u64::from(multiprocessors) * u64::from(per),
                Extent::Share(times, of) => {
                    let all = u64::from(multiprocessors) * u64::from(times);
                    (all / u64::from(of.max(1))).max(1)
                }
            };
            if blocks > MAX_GRID[axis] {
                return Err(Error::Limit {
                    what: format!("{}: {}", self.name, self.extent_name(axis)),
                    value: blocks,
                    limit: MAX_GRID[axis],
                });
            }
            if !blocks.is_multiple_of(self.launch.cluster[axis].into()) {
                let value = format!("{blocks} blocks along {}", AXES[axis]);
                let requirement =
                    format!("a multiple of {}, a cluster's", self.launch.cluster[axis]);
                return Err(Error::invalid("grid", value, requirement).of(&self.name));
            }
            grid[axis] = blocks as u32;
        }
        Ok(grid)
    }

    /// How many blocks the grid has along an axis, in words: of which parameter.
    fn extent_name(&self, axis: usize) -> String {
        let grid = format!("the grid along {}", AXES[axis]);
        match self.launch.grid[axis] {
            Extent::Param(name) => format!("{grid}, which is `{name}`,"),
            Extent::Tiles(name, per) => format!("{grid}, which is `{name}` / {per},"),
            _ => grid,
        }
    }

    fn size(&self, name: &'static str, sizes: &dyn Sizes) -> Result<u64> {
        let index = self.params.iter().position(|param| param.name == name);
        let value = index.and_then(|index| sizes.size(index));
        value.ok_or_else(|| Error::Argument {
            kernel: self.name.clone(),
            position: index.map_or(0, |index| index + 1),
            wanted: format!("`{name}`, a u32"),
            found: "left out or of another type".to_owned(),
        })
    }
}
