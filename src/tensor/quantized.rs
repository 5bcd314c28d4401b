//! Quantized weights, in words that GPUs and SIMD unpack alike.
//!
//! Columns are divided into groups of 32 (the last may be smaller), and a group's rows into blocks
//! of 32 (the last is padded with zeros). A block consists of rows of words, with one word for each
//! column of the group: first the scales, if the format has them, then the numbers, several matrix
//! rows in a word. Neighbouring columns are adjacent, as vectors and workgroups read them, and a
//! walk down some columns reads memory front to back.

mod blocks;

use crate::error::{Error, Result};
use crate::ops::shape::{check_matrix, product};
use crate::tensor::{BoundView, TensorView};
pub(crate) use relampago_coefficients::half;
use relampago_coefficients::half::{f16_to_f32, f32_to_f16};

/// The number of rows of the matrix that share a scale.
pub(crate) const BLOCK: usize = 32;

/// The number of columns of a group: a strip of the widest tile, and a subgroup of most GPUs.
pub(crate) const GROUP: usize = 32;

/// The storage format of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightFormat {
    /// `f32`: 32 bits, unchanged.
    #[default]
    F32,
    /// IEEE f16 (binary16), rounded to nearest: 16 bits. The largest weight is 65,504; the error is
    /// at most 2⁻¹¹ of the magnitude or 2⁻²⁵.
    F16,
    /// ggml's `Q8_0`: integers in [−127, 127] times an f16 scale for each 32 weights of a column, 9
    /// bits a weight. The error is at most w / 253 + 4·10⁻⁶, where `w` is the largest magnitude of
    /// the 32, at most 8.3 million.
    Q8_0,
    /// ggml's `Q4_0`: integers in [−8, 7] times an f16 scale for each 32 weights of a column, 5
    /// bits a weight. The error is at most w / 7.9 + 4·10⁻⁶, and half of that at magnitudes below
    /// 15/16 w, where `w` is the largest magnitude of the 32, at most 524,000.
    Q4_0,
}

/// The layout of the words of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordLayout {
    /// The number of rows of scales in a block: 0 or 1.
    pub(crate) scales: usize,
    /// The number of rows of the matrix in a word.
    pub(crate) per_word: usize,
}

impl WordLayout {
    /// Rows of words in a block.
    pub(crate) const fn rows(self) -> usize {
        self.scales + BLOCK / self.per_word
    }
}

/// Writes the format's name: `f32`, `f16`, `q8_0` or `q4_0`.
impl std::fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        })
    }
}

impl WeightFormat {
    /// Returns the layout of the words; `None` for `F32`.
    pub(crate) const fn layout(self) -> Option<WordLayout> {
        let (scales, per_word) = match self {
            Self::F32 => return None,
            Self::F16 => (0, 2),
            Self::Q8_0 => (1, 4),
            Self::Q4_0 => (1, 8),
        };
        Some(WordLayout { scales, per_word })
    }

    /// Returns the largest magnitude that the format can represent.
    fn limit(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 => 65_504.0,
            Self::Q8_0 => 127.0 * 65_504.0,
            Self::Q4_0 => 8.0 * 65_504.0,
        }
    }
}

/// A `k × n` matrix of weights in 16, 8 or 4 bits each.
///
/// ```
/// use relampago::{QuantizedWeights, WeightFormat};
///
/// let weights = QuantizedWeights::new(&[1.0, -0.5, 0.25, 0.125], 2, 2, WeightFormat::F16)?;
/// assert_eq!(weights.dequantize()?, [1.0, -0.5, 0.25, 0.125]);
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "ggml")]
#[doc(alias = "gguf")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizedWeights {
    pub(crate) format: WeightFormat,
    pub(crate) layout: WordLayout,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) words: Vec<u32>,
}

impl QuantizedWeights {
    /// Quantizes a row-major `k × n` matrix.
    ///
    /// # Errors
    /// `LengthMismatch`, `ShapeOverflow`; `InvalidArgument` for [`WeightFormat::F32`], which is not
    /// quantized, and for a weight that is not finite or exceeds the format's range; `OutOfMemory`.
    pub fn new(weights: &[f32], k: usize, n: usize, format: WeightFormat) -> Result<Self> {
        check_matrix("weights", [k, n], weights.len(), " (k × n)")?;
        Self::of_view(&TensorView::new_2d(k, n)?.bind(weights)?, format)
    }

    /// Quantizes a matrix view with any strides, such as those of a transposed matrix.
    ///
    /// # Errors
    /// The errors of [`QuantizedWeights::new`]; `InvalidArgument` for a view of more than two
    /// dimensions.
    pub fn of_view(weights: &BoundView<'_>, format: WeightFormat) -> Result<Self> {
        let [k, n] = matrix_shape(weights)?;
        let mut quantized = Self::zeros(k, n, format)?;
        // Without columns there is nothing in any row.
        let rows = if n == 0 { 0 } else { k };
        for first in (0..rows).step_by(BLOCK) {
            for col in 0..n {
                let mut block = [0.0; BLOCK];
                for (row, weight) in (first..k).zip(&mut block) {
                    *weight = weights.get([row, col, 0, 0]).unwrap_or_default();
                    quantized.check(*weight, row, col)?;
                }
                quantized.encode(first / BLOCK, col, &block);
            }
        }
        Ok(quantized)
    }

    /// A matrix of zeros.
    pub(super) fn zeros(k: usize, n: usize, format: WeightFormat) -> Result<Self> {
        let layout = format
            .layout()
            .ok_or_else(|| Error::invalid("format", format!("{format:?}"), "F16, Q8_0 or Q4_0"))?;
        let len = product("weights", k.div_ceil(BLOCK) * layout.rows(), n)?;
        let mut words = Vec::new();
        let bytes = len as u64 * 4;
        let reserved = words.try_reserve_exact(len);
        reserved.map_err(|_| Error::OutOfMemory { bytes })?;
        words.resize(len, 0);
        Ok(Self {
            format,
            layout,
            k,
            n,
            words,
        })
    }

    /// Returns the format.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Returns the rows and columns, `k` and `n`.
    pub fn shape(&self) -> [usize; 2] {
        [self.k, self.n]
    }

    /// Returns the memory that the weights take, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// Returns the weights that matmuls compute with, as a row-major `k × n` matrix.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn dequantize(&self) -> Result<Vec<f32>> {
        let mut weights = crate::alloc::try_zeros(self.k * self.n)?;
        for (place, weight) in weights.iter_mut().enumerate() {
            *weight = self.weight(place / self.n, place % self.n);
        }
        Ok(weights)
    }

    fn weight(&self, row: usize, col: usize) -> f32 {
        let WordLayout { scales, per_word } = self.layout;
        let (block, within) = (row / BLOCK, row % BLOCK);
        let word = self.words[self.place(block, scales + within / per_word, col)];
        let bits = word >> (BLOCK / per_word * (within % per_word));
        let scale = f32::from_bits(self.words[self.place(block, 0, col)]);
        match self.format {
            WeightFormat::Q8_0 => f32::from(bits as i8) * scale,
            WeightFormat::Q4_0 => ((bits & 15) as f32 - 8.0) * scale,
            WeightFormat::F32 | WeightFormat::F16 => f16_to_f32(bits as u16),
        }
    }

    /// Returns the index of the word in a block's row for a column.
    #[inline]
    pub(crate) fn place(&self, block: usize, row: usize, col: usize) -> usize {
        let first = col / GROUP * GROUP;
        let rows = self.layout.rows();
        let before = first * self.k.div_ceil(BLOCK) * rows;
        before + (block * rows + row) * self.stride(col) + col - first
    }

    /// Returns the distance from one row of words to the next: the number of columns in the
    /// column's group.
    #[inline]
    pub(crate) fn stride(&self, col: usize) -> usize {
        GROUP.min(self.n - col / GROUP * GROUP)
    }

    fn check(&self, weight: f32, row: usize, col: usize) -> Result<()> {
        // False for NaN, too.
        if weight.abs() <= self.format.limit() {
            return Ok(());
        }
        let (format, limit) = (self.format, self.format.limit());
        let value = format!("{weight} at row {row}, column {col}");
        let requirement = format!("from -{limit} to {limit}, which {format:?} holds");
        Err(Error::invalid("weights", value, requirement))
    }

    fn encode(&mut self, block: usize, col: usize, weights: &[f32; BLOCK]) {
        let largest = |a: f32, &b: &f32| if b.abs() > a.abs() { b } else { a };
        let extreme = weights.iter().fold(0.0, largest);
        match self.format {
            WeightFormat::Q8_0 => {
                let scale = f32_to_f16(extreme.abs() / 127.0);
                self.store(block, col, scale, |i| {
                    quotient(weights[i], scale, 127.0) as u32 & 255
                });
            }
            WeightFormat::Q4_0 => {
                // The extreme is −8 of these, since there is no 8.
                let scale = f32_to_f16(extreme / -8.0);
                self.store(block, col, scale, |i| {
                    (quotient(weights[i], scale, 7.0) + 8) as u32
                });
            }
            WeightFormat::F32 | WeightFormat::F16 => {
                self.store(block, col, 0, |i| f32_to_f16(weights[i]).into());
            }
        }
    }

    /// Writes a column of a block: its scale in f16, if the format has one, and the bits of each
    /// number.
    pub(super) fn store(
        &mut self,
        block: usize,
        col: usize,
        scale: u16,
        bits: impl Fn(usize) -> u32,
    ) {
        let WordLayout { scales, per_word } = self.layout;
        if scales > 0 {
            let place = self.place(block, 0, col);
            self.words[place] = f16_to_f32(scale).to_bits();
        }
        for first in (0..BLOCK).step_by(per_word) {
            let shifted = |i: usize| bits(first + i) << (BLOCK / per_word * i);
            let word = (0..per_word).map(shifted).fold(0, |word, bits| word | bits);
            let place = self.place(block, scales + first / per_word, col);
            self.words[place] = word;
        }
    }
}

/// Rows and columns of a matrix.
pub(crate) fn matrix_shape(weights: &BoundView<'_>) -> Result<[usize; 2]> {
    let [k, n, ..] = weights.view().shape();
    if weights.view().ndim() <= 2 {
        return Ok([k, n]);
    }
    let value = format!("of shape {:?}", weights.view().shape());
    Err(Error::invalid("weights", value, "of one or two dimensions"))
}

/// The integer from −8 or −127 to `most` nearest to a weight over a scale.
fn quotient(weight: f32, scale: u16, most: f32) -> i32 {
    let scale = f16_to_f32(scale);
    if scale == 0.0 {
        return 0;
    }
    let least = if most == 7.0 { -8.0 } else { -most };
    (weight / scale).round_ties_even().clamp(least, most) as i32
}
