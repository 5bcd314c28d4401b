//! Matmuls with weights of few bits that are packed in words.

mod digits;
mod experts;
mod few;
mod mma;
mod row;
mod slab;
mod tiled;

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg};
use crate::kernel::PtxKernel;
use crate::kernels::{Activation, Kernel};
use crate::types::PtxType::{B32, F32, U32};
use crate::types::Target;
pub use digits::DigitSplit;
pub use experts::PackedExpertsKernel;
pub use row::PackedRowKernel;

/// The words of packed weights, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PackedFormat {
    /// A weight of 32 bits to a word.
    Floats,
    /// Four signed bytes to a word, the first one in the lowest bits.
    Bytes,
    /// Eight unsigned integers of four bits to a word, the first one in the lowest bits.
    Nibbles,
}

impl PackedFormat {
    /// All formats.
    pub const ALL: [PackedFormat; 3] = [
        PackedFormat::Floats,
        PackedFormat::Bytes,
        PackedFormat::Nibbles,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            PackedFormat::Floats => "floats",
            PackedFormat::Bytes => "bytes",
            PackedFormat::Nibbles => "nibbles",
        }
    }

    /// Weights of a unit, which a thread loads at once.
    fn unit(self) -> u32 {
        match self {
            PackedFormat::Floats => 8,
            PackedFormat::Bytes | PackedFormat::Nibbles => 16,
        }
    }

    /// Words of a unit.
    fn words(self) -> u32 {
        match self {
            PackedFormat::Floats => 8,
            PackedFormat::Bytes => 4,
            PackedFormat::Nibbles => 2,
        }
    }
}

/// Computes `Y = s · X · Wᵀ` of f32 rows and packed weights, or adds it to `Y`. Integers are multiplied by the scale of
/// their group and added to its offset; a group is 16, 32 or another power of two consecutive weights of a row.
///
/// Parameters: `x` (f32, `tokens × k`), `gain` (f32, `k`), `words` (`rows × k` weights), `scales` (f32, a scale and an
/// offset for each group; not read for [`PackedFormat::Floats`]), `y` (f32), all aligned to 16 bytes; `tokens`, `rows`,
/// `k` (whole groups, or a multiple of 8 for floats), `stride` (elements from a row of `y` to the next), `adds` (1 to add
/// to `y`, 0 to overwrite it), `group_shift` (the binary logarithm of a sixteenth of the length of a group) (u32);
/// `least` (the integer that four zero bits stand for), `scale` (f32). Kernels for few rows have two
/// more parameters: `normalises` (u32, 1 to divide each row of `x` by its root mean square and multiply it by `gain`) and
/// `epsilon` (f32, added to the mean of squares).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackedMatmulKernel {
    format: PackedFormat,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    /// With a gate or not.
    Few(Option<Activation>),
    /// On tensor cores.
    Digits(Option<Activation>, DigitSplit),
    Tiled,
    /// On tensor cores; `wide` tiles have twice the number of rows of weights.
    Mma {
        wide: bool,
    },
}

impl PackedMatmulKernel {
    /// Creates a kernel for few rows of `x`, at most 65,535. A block computes four columns of `y`.
    pub fn few(format: PackedFormat) -> Self {
        let method = Method::Few(None);
        Self { format, method }
    }

    /// Creates a [`PackedMatmulKernel::few`] kernel for gated activations: the first half of the rows of weights gives
    /// gates, and the second half the values that they multiply. A row of `y` has `rows / 2` elements,
    /// `f(gate) · value`.
    pub fn gated(format: PackedFormat, activation: Activation) -> Self {
        let method = Method::Few(Some(activation));
        Self { format, method }
    }

    /// The number of rows of weights that a block of [`PackedMatmulKernel::digits`] multiplies at once.
    pub const DIGIT_ROWS: u32 = 16;

    /// Creates a [`PackedMatmulKernel::few`] or [`PackedMatmulKernel::gated`] kernel on the tensor cores of Ampere and later
    /// GPUs (`sm_80`), for up to [`DigitSplit::cols`] columns. It rounds each element of `x`, multiplied by
    /// `gain`, by at most 2⁻²³ of the larger of 10⁻³⁰ and the largest of 16 consecutive elements, for nibbles of 32; sums of
    /// that many products are exact. If an element or the sum of that many is not finite, every row is NaN. Groups of nibbles
    /// have at least 32 weights. [`PackedFormat::Floats`] have no digits: the kernel is that for few rows.
    pub fn digits(format: PackedFormat, gate: Option<Activation>, split: DigitSplit) -> Self {
        let method = match format {
            PackedFormat::Floats => Method::Few(gate),
            PackedFormat::Bytes | PackedFormat::Nibbles => Method::Digits(gate, split),
        };
        Self { format, method }
    }

    /// Creates a kernel that computes tiles of 32 × 32 elements, for many rows of `x`.
    pub fn tiled(format: PackedFormat) -> Self {
        let method = Method::Tiled;
        Self { format, method }
    }

    /// Creates a kernel for many rows of `x` on the tensor cores of Ampere and later GPUs (`sm_80`). They multiply
    /// numbers as sums of two bf16, so the relative error of a product is at most 2⁻¹⁶. An infinity in `x` or in the
    /// weights gives NaN.
    pub fn mma(format: PackedFormat) -> Self {
        let method = Method::Mma { wide: false };
        Self { format, method }
    }

    /// Creates a [`PackedMatmulKernel::mma`] kernel with tiles of 64 × 64 in place of 64 × 32, which is faster where there
    /// are enough of them for all multiprocessors.
    pub fn mma_wide(format: PackedFormat) -> Self {
        let method = Method::Mma { wide: true };
        Self { format, method }
    }
}

impl Kernel for PackedMatmulKernel {
    fn first_target(&self) -> Target {
        match self.method {
            Method::Few(_) | Method::Tiled => Target::Sm70,
            Method::Mma { .. } | Method::Digits(..) => Target::Sm80,
        }
    }

    fn name(&self) -> String {
        let method = match self.method {
            Method::Few(gate) => suffix(gate),
            Method::Digits(gate, DigitSplit::Rows) => format!("_digits{}", suffix(gate)),
            Method::Digits(gate, DigitSplit::Columns) => format!("_digits_columns{}", suffix(gate)),
            Method::Digits(gate, DigitSplit::Tokens) => format!("_digits_tokens{}", suffix(gate)),
            Method::Tiled => "_tiled".to_owned(),
            Method::Mma { wide: false } => "_mma".to_owned(),
            Method::Mma { wide: true } => "_mma_wide".to_owned(),
        };
        format!("multiply_{}{method}", self.format.name())
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        match self.method {
            Method::Few(gate) => few::build(*self, gate, target),
            Method::Digits(gate, split) => digits::build(*self, gate, split, target),
            Method::Tiled => tiled::build(*self, target),
            Method::Mma { wide } => mma::build(*self, wide, target),
        }
    }
}

/// The end of the name of a kernel with this gate.
fn suffix(gate: Option<Activation>) -> String {
    gate.map_or_else(String::new, |gate| format!("_{gate:?}").to_lowercase())
}

/// The parameters that both kernels have.
struct Params {
    x: Reg,
    gain: Reg,
    y: Reg,
    tokens: Reg,
    rows: Reg,
    k: Reg,
    stride: Reg,
    adds: Reg,
    scale: Reg,
    weights: Weights,
}

impl Params {
    fn declare(k: &mut Builder, format: PackedFormat) -> Self {
        let [x, gain] = ["x", "gain"].map(|name| k.pointer(name, F32));
        let words = k.pointer("words", U32);
        let [scales, y] = ["scales", "y"].map(|name| k.pointer(name, F32));
        let [tokens, rows, depth, stride, adds, group_shift] =
            ["tokens", "rows", "k", "stride", "adds", "group_shift"]
                .map(|name| k.scalar(name, U32));
        let [least, scale] = ["least", "scale"].map(|name| k.scalar(name, F32));
        Params {
            x,
            gain,
            y,
            tokens,
            rows,
            k: depth,
            stride,
            adds: k.ne(adds, 0),
            scale,
            weights: Weights::new(k, format, [words, scales], [depth, group_shift, least]),
        }
    }

    /// Stores a product, or adds it to the stored elements.
    fn store(&self, k: &mut Builder, product: Reg, place: [Reg; 2]) {
        let result = k.mul(product, self.scale);
        self.store_scaled(k, result, place);
    }

    fn store_scaled(&self, k: &mut Builder, result: Reg, [token, row]: [Reg; 2]) {
        let at = k.at_2d(self.y, token, self.stride, row, 4);
        k.when(self.adds, |k| {
            let old = k.ld(Op::LdGlobal, F32, at, 0);
            k.add_assign(result, old);
        });
        k.st_global(F32, at, 0, result);
    }
}

/// The number whose last bits count ones: an integer below 2²³ in these bits is added to it.
const HIGH: f32 = 8_388_608.0;
const HIGH_BITS: u32 = 0x4b00_0000;

/// The matrix of weights.
pub(super) struct Weights {
    format: PackedFormat,
    words: Reg,
    scales: Reg,
    /// The units of a row.
    units: Reg,
    group_shift: Reg,
    /// The number to subtract from [`HIGH`] plus a field's unsigned integer; the difference is the weight's integer.
    bias: Reg,
}

/// The `i`-th elements of a vector that earlier kernels wrote, as many as a unit has.
fn unit(k: &mut Builder, format: PackedFormat, vector: Reg, i: Reg) -> Vec<Reg> {
    let at = k.at(vector, i, 4 * format.unit());
    let four = |four: u32| k.ld_vector(Op::LdGlobal, F32, 4, at, 16 * four as i32);
    (0..format.unit() / 4).flat_map(four).collect()
}

/// Divides a factor by the root mean square of a row of `cols` elements, by the sum of their squares.
fn divide_by_root(k: &mut Builder, factor: Reg, squares: Reg, [cols, epsilon]: [Reg; 2]) {
    let count = k.convert(Op::CvtF32U32, F32, &[cols.into()]);
    let mean = k.div(squares, count);
    let mean = k.add(mean, epsilon);
    let root = k.sqrt(mean);
    let root = k.rcp(root);
    k.mul_assign(factor, root);
}

/// The addresses of a row of weights.
pub(super) struct Row {
    pub(super) words: Reg,
    pub(super) scales: Reg,
}

/// A unit as it lies in memory.
pub(super) struct Loaded {
    words: Vec<Reg>,
    /// The scale and the offset of its group, which floats do not have.
    group: Option<[Reg; 2]>,
}

impl Loaded {
    /// Copies another unit to these registers.
    fn assign(&self, k: &mut Builder, next: &Loaded) {
        let own = self.words.iter().chain(self.group.iter().flatten());
        let next = next.words.iter().chain(next.group.iter().flatten());
        for (&own, &next) in own.zip(next) {
            k.assign(own, next);
        }
    }
}

impl Weights {
    /// The weights at addresses of words and scales, by the parameters `k`, `group_shift` and `least`.
    pub(super) fn new(
        k: &mut Builder,
        format: PackedFormat,
        [words, scales]: [Reg; 2],
        [depth, group_shift, least]: [Reg; 3],
    ) -> Self {
        let bias = match format {
            PackedFormat::Nibbles => k.sub(HIGH, least),
            _ => k.value(F32, HIGH + 128.0),
        };
        Self {
            format,
            words,
            scales,
            units: k.shr(depth, format.unit().trailing_zeros()),
            group_shift,
            bias,
        }
    }

    fn row(&self, k: &mut Builder, row: Reg) -> Row {
        let zero = k.value(U32, 0);
        let words = k.at_2d(self.words, row, self.units, zero, 4 * self.format.words());
        let groups = k.shr(self.units, self.group_shift);
        let scales = k.at_2d(self.scales, row, groups, zero, 8);
        Row { words, scales }
    }

    /// Loads the `i`-th unit of a row.
    fn load(&self, k: &mut Builder, row: &Row, i: Reg) -> Loaded {
        let at = k.at(row.words, i, 4 * self.format.words());
        let words = match self.format {
            PackedFormat::Floats => {
                let mut weights = k.ld_vector(Op::LdGlobalNc, F32, 4, at, 0);
                weights.extend(k.ld_vector(Op::LdGlobalNc, F32, 4, at, 16));
                weights
            }
            PackedFormat::Bytes => k.ld_vector(Op::LdGlobalNc, B32, 4, at, 0),
            PackedFormat::Nibbles => k.ld_vector(Op::LdGlobalNc, U32, 2, at, 0),
        };
        Loaded {
            words,
            group: self.group(k, row, i),
        }
    }

    /// Loads the `i`-th eight weights of a row. Neighbouring threads that load neighbouring eights store whole lines.
    pub(super) fn load_eight(&self, k: &mut Builder, row: &Row, i: Reg) -> Loaded {
        if self.format == PackedFormat::Floats {
            return self.load(k, row, i);
        }
        let unit = k.shr(i, 1);
        let words = if self.format == PackedFormat::Nibbles {
            let at = k.at(row.words, i, 4);
            vec![k.ld(Op::LdGlobalNc, U32, at, 0)]
        } else {
            let at = k.at(row.words, i, 8);
            k.ld_vector(Op::LdGlobalNc, B32, 2, at, 0)
        };
        Loaded {
            words,
            group: self.group(k, row, unit),
        }
    }

    /// Returns registers for a unit.
    fn zeros(&self, k: &mut Builder) -> Loaded {
        let count = self.format.words() as usize;
        let words = match self.format {
            PackedFormat::Floats => k.filled(F32, count, 0.0f32),
            PackedFormat::Bytes => k.filled(B32, count, 0),
            PackedFormat::Nibbles => k.filled(U32, count, 0),
        };
        let has_group = self.format != PackedFormat::Floats;
        Loaded {
            words,
            group: has_group.then(|| [k.value(F32, 0.0f32), k.value(F32, 0.0f32)]),
        }
    }

    /// Returns the weights of a unit.
    pub(super) fn values(&self, k: &mut Builder, loaded: &Loaded) -> Vec<Reg> {
        let numbers = self.numbers(k, loaded);
        let Some([scale, offset]) = loaded.group else {
            return numbers;
        };
        let value = |number| k.fma(number, scale, offset);
        numbers.into_iter().map(value).collect()
    }

    /// Returns the weights of a unit as numbers, without their group's scale and offset.
    fn numbers(&self, k: &mut Builder, loaded: &Loaded) -> Vec<Reg> {
        let words = loaded.words.iter();
        match self.format {
            PackedFormat::Floats => loaded.words.clone(),
            PackedFormat::Bytes => words.flat_map(|&word| self.bytes(k, word)).collect(),
            PackedFormat::Nibbles => words.flat_map(|&word| self.nibbles(k, word)).collect(),
        }
    }

    /// The four signed bytes of a word.
    fn bytes(&self, k: &mut Builder, word: Reg) -> Vec<Reg> {
        let unsigned = k.xor(word, 0x8080_8080u32);
        let byte = |index: u32| {
            let from = [
                unsigned.into(),
                HIGH_BITS.into(),
                // The byte, two zeros, and the highest byte of the constant.
                (0x7440 + index).into(),
            ];
            let number = k.op(Op::Prmt, B32, F32, &from);
            k.sub(number, self.bias)
        };
        (0..4).map(byte).collect()
    }

    /// The eight integers of a word.
    fn nibbles(&self, k: &mut Builder, word: Reg) -> Vec<Reg> {
        let nibble = |index: u32| {
            let bits = if index == 0 {
                word
            } else {
                k.shr(word, 4 * index)
            };
            let bits = k.and(bits, 15);
            let number = k.op(Op::Or, B32, F32, &[bits.into(), HIGH_BITS.into()]);
            k.sub(number, self.bias)
        };
        (0..8).map(nibble).collect()
    }

    /// Loads the scale and the offset of the `i`-th unit of a row, which floats do not have.
    fn group(&self, k: &mut Builder, row: &Row, i: Reg) -> Option<[Reg; 2]> {
        if self.format == PackedFormat::Floats {
            return None;
        }
        let group = k.shr(i, self.group_shift);
        let at = k.at(row.scales, group, 8);
        let pair = k.ld_vector(Op::LdGlobalNc, F32, 2, at, 0);
        Some([pair[0], pair[1]])
    }
}
