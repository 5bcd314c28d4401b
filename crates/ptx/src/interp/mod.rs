//! An interpreter for PTX. It runs kernels from their text on the CPU, thread by thread, and
//! reports undefined behaviour.
//!
//! It supports the instructions of the [table](super::Op) and is independent of the builder: it
//! reads the same text as a driver. A launch returns an error for accesses that are out of bounds
//! or misaligned, reads of uninitialised shared memory, races between threads or with asynchronous
//! copies, barriers that not all threads reach, and accesses to memory that another block writes.
//!
//! ```
//! use relampago_ptx::interp::{Argument, Memory, Program};
//! use relampago_ptx::{GemmKernel, Kernel};
//!
//! # fn main() -> Result<(), relampago_ptx::Error> {
//! let kernel = GemmKernel::tiled();
//! let program = Program::parse(&kernel.emit_ptx()?)?;
//! let mut memory = Memory::new();
//! let a = memory.upload_f32(&[1.0, 2.0, 3.0, 4.0]);
//! let b = memory.upload_f32(&[5.0, 6.0, 7.0, 8.0]);
//! let c = memory.upload_f32(&[f32::NAN; 4]);
//! let arguments = [
//!     Argument::Pointer(a), Argument::Pointer(b), Argument::Pointer(c),
//!     Argument::U32(2), Argument::U32(2), Argument::U32(2),
//!     Argument::F32(1.0), Argument::F32(0.0),
//! ];
//! program.launch(&kernel.build(kernel.first_target())?, &arguments, &mut memory)?;
//! assert_eq!(memory.read_f32(c), [19.0, 22.0, 43.0, 50.0]);
//! # Ok(())
//! # }
//! ```

mod alu;
mod block;
mod cluster;
mod copies;
mod decode;
mod memory;
mod parse;
mod shared;
mod warp;
mod wgmma;

use super::error::{Error, Result};
use super::kernel::{LaunchArgument, PtxKernel};
use super::types::PtxType;
use block::Cluster;
use decode::Step;
pub use memory::Memory;
use parse::Entry;

/// The number of multiprocessors that the interpreter reports to the grid computation.
const MULTIPROCESSORS: u32 = 3;

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Argument {
    /// An address in [`Memory`].
    Pointer(u64),
    /// An integer.
    U32(u32),
    /// A number.
    F32(f32),
    /// A tensor map.
    Tensor(Tensor),
}

/// Writes the argument for messages.
impl std::fmt::Display for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pointer(_) => f.write_str("a pointer"),
            Self::U32(value) => write!(f, "{value} of type u32"),
            Self::F32(value) => write!(f, "{value} of type f32"),
            Self::Tensor(tensor) => write!(f, "a tensor map of {}", tensor.ty),
        }
    }
}

/// A row-major matrix in memory that a tensor map describes, with the 128-byte swizzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tensor {
    /// The address of the first element.
    pub address: u64,
    /// The type of the elements.
    pub ty: PtxType,
    /// The number of rows and columns.
    pub shape: [u64; 2],
    /// The number of consecutive matrices of that shape.
    pub planes: u64,
    /// The number of rows and columns of a box.
    pub tile: [u32; 2],
}

impl Tensor {
    /// Creates the description of one matrix at `address`, with boxes of `tile` rows and columns.
    pub const fn new(address: u64, ty: PtxType, shape: [u64; 2], tile: [u32; 2]) -> Self {
        Self {
            address,
            ty,
            shape,
            planes: 1,
            tile,
        }
    }

    /// Returns the description of this number of consecutive matrices.
    #[must_use]
    pub const fn with_planes(self, planes: u64) -> Self {
        Self { planes, ..self }
    }
}

impl LaunchArgument for Argument {
    fn as_size(&self) -> Option<u64> {
        match self {
            Argument::U32(value) => Some((*value).into()),
            Argument::Pointer(_) | Argument::F32(_) | Argument::Tensor(_) => None,
        }
    }
}

/// Statistics of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of blocks.
    pub blocks: u64,
    /// The number of instructions, counted for each thread.
    pub instructions: u64,
    /// A hash of all results and addresses in their order. Two texts that compute the same values
    /// in the same way have the same hash.
    pub trace: u64,
}

/// The parsed kernels of a text.
#[derive(Clone, Debug)]
pub struct Program {
    entries: Vec<(Entry, Vec<Step>)>,
    step_limit: u64,
}

/// The number of steps after which a thread is considered to be in an endless loop.
const STEP_LIMIT: u64 = 1 << 30;

impl Program {
    /// Parses a text.
    ///
    /// # Errors
    /// [`Error::Parse`] if the text is not valid PTX or has an instruction that is not in the
    /// table.
    pub fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for entry in parse::module(text)? {
            let steps = entry
                .lines
                .iter()
                .map(decode::step)
                .collect::<Result<_>>()?;
            entries.push((entry, steps));
        }
        Ok(Program {
            entries,
            step_limit: STEP_LIMIT,
        })
    }

    /// Sets the number of steps after which a thread is considered to be in an endless loop. The
    /// default is 2³⁰.
    #[must_use]
    pub fn with_step_limit(self, step_limit: u64) -> Self {
        Program { step_limit, ..self }
    }

    /// Runs all blocks of the grid that `kernel` computes from these arguments, one cluster after
    /// the other.
    ///
    /// # Errors
    /// [`Error::Argument`] if the arguments do not match the parameters, [`Error::Parse`] if the program has no such
    /// kernel, [`Error::Limit`] or [`Error::Invalid`] if the kernel's grid cannot be computed, [`Error::Fault`] if the
    /// kernel does something undefined.
    pub fn launch(
        &self,
        kernel: &PtxKernel,
        arguments: &[Argument],
        memory: &mut Memory,
    ) -> Result<Statistics> {
        let (entry, steps) = self.entry(kernel)?;
        let (params, tensors) = pack(kernel, entry, arguments)?;
        let grid = kernel.grid(&arguments, MULTIPROCESSORS)?;
        let [across, down, deep] = entry.cluster.map(|blocks| blocks.max(1) as usize);
        let mut statistics = Statistics::default();
        let launch = block::Launch {
            entry,
            steps,
            params: &params,
            tensors: &tensors,
            grid,
            dynamic_shared: kernel.dynamic_shared(),
            step_limit: self.step_limit,
        };
        for z in (0..grid[2]).step_by(deep) {
            for y in (0..grid[1]).step_by(down) {
                for x in (0..grid[0]).step_by(across) {
                    let block = Cluster::new(&launch, [x, y, z], memory).run()?;
                    statistics.blocks += block.blocks;
                    statistics.instructions += block.instructions;
                    statistics.trace = statistics.trace.rotate_left(1) ^ block.trace;
                }
            }
        }
        memory.settle();
        Ok(statistics)
    }

    fn entry(&self, kernel: &PtxKernel) -> Result<&(Entry, Vec<Step>)> {
        let found = self
            .entries
            .iter()
            .find(|(entry, _)| entry.name == kernel.name());
        found.ok_or_else(|| Error::Parse {
            line: 0,
            message: format!("there is no kernel `{}`", kernel.name()),
        })
    }
}

/// Tensors by the offset of their parameter.
type Tensors = Vec<(usize, Tensor)>;

/// Builds the parameter buffer, and returns it with the tensors by their offset in it.
fn pack(kernel: &PtxKernel, entry: &Entry, arguments: &[Argument]) -> Result<(Vec<u8>, Tensors)> {
    let mismatch = |position: usize, found: String| Error::Argument {
        kernel: kernel.name().to_owned(),
        position,
        wanted: match kernel.params().get(position.wrapping_sub(1)) {
            Some(param) => format!("`{}`, {}", param.name, param.ty),
            None => format!("left out, after {}", kernel.params().len()),
        },
        found,
    };
    if arguments.len() != entry.params.len() {
        // The first missing or surplus argument.
        let place = arguments.len().min(entry.params.len());
        let given = arguments.get(place);
        let found = given.map_or("left out".to_owned(), ToString::to_string);
        return Err(mismatch(place + 1, found));
    }
    let (mut params, mut tensors) = (Vec::new(), Vec::new());
    for (i, (slot, argument)) in entry.params.iter().zip(arguments).enumerate() {
        let bytes = match argument {
            Argument::Pointer(address) => address.to_le_bytes().to_vec(),
            Argument::U32(value) => value.to_le_bytes().to_vec(),
            Argument::F32(value) => value.to_le_bytes().to_vec(),
            Argument::Tensor(tensor) => {
                tensors.push((slot.offset, *tensor));
                vec![0; 128]
            }
        };
        if bytes.len() != slot.bytes {
            return Err(mismatch(i + 1, argument.to_string()));
        }
        params.resize(slot.offset, 0);
        params.extend(bytes);
    }
    Ok((params, tensors))
}
