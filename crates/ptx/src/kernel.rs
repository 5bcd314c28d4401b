//! A kernel as data: its parameters, its shared memory, its launch and its instructions.

use super::code::Code;
use super::error::{Error, Result};
use super::types::{PtxType, Target, Version};
use std::fmt;

/// The type of a parameter. It is exhaustive: a program that launches kernels itself must pass each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub enum ParamType {
    /// An address in global memory of elements of this type.
    Pointer(PtxType),
    /// A number.
    Scalar(PtxType),
    /// The 128 bytes that `cuTensorMapEncodeTiled` writes for a row-major matrix.
    TensorMap(TensorBox),
}

/// The matrices that a parameter's tensor map must describe: one row-major matrix, or several
/// consecutive ones of the same shape. Boxes of one matrix are copied from or to shared memory with
/// the 128-byte swizzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
#[non_exhaustive]
pub struct TensorBox {
    /// The type of the elements.
    pub ty: PtxType,
    /// The number of rows of a box.
    pub rows: u32,
    /// The number of columns of a box: 128 bytes.
    pub cols: u32,
    /// The number of rows and of columns of a matrix.
    pub shape: [Extent; 2],
    /// The parameters whose product is the number of matrices. Empty for a single matrix, whose map
    /// has two dimensions and not three.
    pub planes: &'static [&'static str],
}

impl TensorBox {
    /// Creates the description of one matrix of `shape` rows and columns, with boxes of `rows` × `cols` elements.
    pub const fn new(ty: PtxType, [rows, cols]: [u32; 2], shape: [Extent; 2]) -> Self {
        Self {
            ty,
            rows,
            cols,
            shape,
            planes: &[],
        }
    }

    /// Returns the description of a stack of matrices; their number is the product of these parameters.
    #[must_use]
    pub const fn with_planes(self, planes: &'static [&'static str]) -> Self {
        Self { planes, ..self }
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
#[non_exhaustive]
pub struct Param {
    /// The parameter's name in the text.
    pub name: &'static str,
    /// The parameter's type.
    pub ty: ParamType,
}

/// Writes the requirement on an argument, for messages.
impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamType::Pointer(ty) => write!(f, "a pointer to {ty}"),
            ParamType::Scalar(ty) => write!(f, "a number of type {ty}"),
            ParamType::TensorMap(tensor) => write!(f, "a tensor map of {}", tensor.ty),
        }
    }
}

impl ParamType {
    /// Returns the size and the alignment in the parameter buffer, in bytes.
    pub fn layout(self) -> (u32, u32) {
        match self {
            ParamType::Pointer(_) => (8, 8),
            ParamType::Scalar(ty) => (ty.bytes(), ty.bytes()),
            ParamType::TensorMap(_) => (128, 64),
        }
    }
}

/// The number of blocks of a grid along one axis. It is exhaustive: a program that launches kernels itself must compute
/// each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
pub enum Extent {
    /// A fixed number of blocks.
    Fixed(u32),
    /// The value of the parameter with this name.
    Param(&'static str),
    /// The value of the parameter with this name, divided by a number and rounded up.
    Tiles(&'static str, u32),
    /// A multiple of the number of the GPU's multiprocessors, for kernels that distribute work
    /// themselves.
    Multiprocessors(u32),
    /// The number of the GPU's multiprocessors times the first number, divided by the second one
    /// and rounded down; at least one.
    Share(u32, u32),
}

/// Writes the number of blocks, for messages.
impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Fixed(blocks) => write!(f, "{blocks}"),
            Extent::Param(name) => write!(f, "`{name}`"),
            Extent::Tiles(name, per) => write!(f, "`{name}` in tiles of {per}"),
            Extent::Multiprocessors(times) => write!(f, "{times} for each multiprocessor"),
            Extent::Share(times, of) => write!(f, "{times} for {of} multiprocessors"),
        }
    }
}

/// The launch configuration of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "camelCase")
)]
#[non_exhaustive]
pub struct Launch {
    /// The number of threads of a block along each axis. The text requires exactly these
    /// (`.reqntid`).
    pub block: [u32; 3],
    /// The number of blocks of the grid along each axis.
    pub grid: [Extent; 3],
    /// The number of blocks of a cluster along each axis, at most 8 in total (`sm_90`). They run at
    /// the same time and can access each other's shared memory. The grid must consist of whole
    /// clusters.
    pub cluster: [u32; 3],
    /// The number of blocks that must fit on one multiprocessor at once, which limits the registers
    /// (`.minnctapersm`).
    pub min_blocks: u32,
    /// Whether the kernel may begin before the preceding one has finished (*programmatic dependent
    /// launch*). It then waits for the results itself.
    pub overlaps: bool,
}

impl Launch {
    /// Creates a launch of one-dimensional blocks with `threads` threads.
    pub fn new(threads: u32, grid: [Extent; 3]) -> Self {
        Launch {
            block: [threads, 1, 1],
            grid,
            cluster: [1; 3],
            min_blocks: 1,
            overlaps: false,
        }
    }

    /// Sets the number of blocks of a cluster along each axis.
    #[must_use]
    pub fn clustered(self, cluster: [u32; 3]) -> Self {
        Launch { cluster, ..self }
    }

    /// Sets the number of threads of a block along each axis.
    #[must_use]
    pub fn with_block(self, block: [u32; 3]) -> Self {
        Launch { block, ..self }
    }

    /// Sets the number of blocks that must fit on one multiprocessor at once.
    #[must_use]
    pub fn with_min_blocks(self, min_blocks: u32) -> Self {
        Launch { min_blocks, ..self }
    }

    /// Returns the number of blocks of a cluster.
    pub fn cluster_blocks(&self) -> u64 {
        product(self.cluster)
    }

    /// Returns the number of threads of a block.
    pub(crate) fn threads(&self) -> u64 {
        product(self.block)
    }

    /// Lets the kernel overlap with the preceding one if the target supports that (`sm_90`). The
    /// kernel must call [`super::Builder::wait_for_grid`].
    #[must_use]
    pub fn overlapping(self, target: Target) -> Self {
        Launch {
            overlaps: target.capability() >= 90,
            ..self
        }
    }
}

/// Returns the product of three sizes, saturating at 2⁶⁴ − 1.
fn product(sides: [u32; 3]) -> u64 {
    sides
        .iter()
        .fold(1, |all, &side| all.saturating_mul(side.into()))
}

/// The hardware's limits of a grid.
const MAX_GRID: [u64; 3] = [0x7fff_ffff, 65_535, 65_535];
const AXES: [&str; 3] = ["x", "y", "z"];

/// A shared array of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedArray {
    pub(crate) name: String,
    pub(crate) bytes: u32,
    pub(crate) align: u32,
    /// Whether the size is part of the launch, as it must be beyond 48 KiB.
    pub(crate) dynamic: bool,
}

/// A kernel that passed verification.
#[derive(Clone, Debug)]
pub struct PtxKernel {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) params: Vec<Param>,
    pub(crate) shared: Vec<SharedArray>,
    pub(crate) launch: Launch,
    pub(crate) code: Code,
    /// The number of registers.
    pub(crate) registers: usize,
    /// The first version of PTX that has all instructions of the kernel.
    pub(crate) since: Version,
}

/// The values of a launch's integer parameters, from which the grid is computed.
pub trait Sizes {
    /// Returns the value of the parameter with this index.
    fn size(&self, index: usize) -> Option<u64>;
}

/// An argument of a launch. Slices of arguments are [`Sizes`].
pub trait LaunchArgument {
    /// Returns the value of an integer, and `None` for an argument of another type.
    fn as_size(&self) -> Option<u64>;
}

impl<A: LaunchArgument> Sizes for &[A] {
    fn size(&self, index: usize) -> Option<u64> {
        self.get(index)?.as_size()
    }
}

impl PtxKernel {
    /// Returns the name of the entry point.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the target that the kernel was built for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the parameters in the order of the launch.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the launch configuration.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Returns an estimate of the number of 32-bit registers of a thread: the largest number that
    /// is live at once, in the order of the text. The assembler may use more or fewer.
    pub fn registers(&self) -> u32 {
        super::verify::estimate(self)
    }

    /// Returns the size of the dynamic shared memory that the launch must request, in bytes.
    pub fn dynamic_shared(&self) -> u32 {
        // The verifier has checked that the size fits.
        self.bytes_of(true) as u32
    }

    /// Returns the size of all shared memory, in bytes.
    pub fn shared_bytes(&self) -> u32 {
        (self.bytes_of(false) + self.bytes_of(true)) as u32
    }

    /// Returns the size in bytes of the dynamic shared arrays, or of the static ones, including
    /// padding for alignment.
    pub(super) fn bytes_of(&self, dynamic: bool) -> u64 {
        let arrays = self.shared.iter().filter(|array| array.dynamic == dynamic);
        arrays.fold(0, |end: u64, array| {
            end.next_multiple_of(array.align.into()) + u64::from(array.bytes)
        })
    }

    /// Whether the kernel or its dynamic array has this name in a module.
    pub(super) fn declares(&self, name: &str) -> bool {
        name == self.name || self.has_dynamic(name)
    }

    /// Whether the dynamic array has this name in the text, where it is prefixed with the kernel's
    /// name.
    pub(super) fn has_dynamic(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.name.as_str());
        let name = name.and_then(|rest| rest.strip_prefix('_'));
        let mut dynamic = self.shared.iter().filter(|array| array.dynamic);
        name.is_some_and(|name| dynamic.any(|array| array.name == name))
    }

    /// Computes the grid for a launch's parameters on a GPU with this number of multiprocessors.
    ///
    /// An axis has 0 blocks if there is nothing to compute, as in a matmul without rows. Drivers
    /// reject such a launch, so skip it, as `relampago::cuda` does.
    ///
    /// # Errors
    /// [`Error::Argument`] if a parameter of the grid has no value, [`Error::Limit`] beyond the
    /// hardware's limits (65,535 blocks along y and z, the axes of batches and heads),
    /// [`Error::Invalid`] if the grid does not consist of whole clusters.
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
                let requirement = format!(
                    "a multiple of {}, the size of a cluster",
                    self.launch.cluster[axis]
                );
                return Err(Error::invalid("grid", value, requirement).of(&self.name));
            }
            grid[axis] = blocks as u32;
        }
        Ok(grid)
    }

    /// Describes the size of the grid along an axis, for messages.
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
