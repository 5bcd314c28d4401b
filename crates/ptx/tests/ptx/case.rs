//! A launch with known results.

use relampago_ptx::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use relampago_ptx::interp::{Argument, Memory, Program, Statistics, Tensor};
use relampago_ptx::{Extent, ParamType, PtxKernel, PtxType};

/// An argument with its data.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    F32s(Vec<f32>),
    F16s(Vec<f32>),
    Bf16s(Vec<f32>),
    Bytes(Vec<u8>),
    /// Words of rows, and the elements of a row: four integers to a word, then a scale for each 32, filled up to a multiple
    /// of four words.
    Integers(Vec<f32>, usize),
    U32(u32),
    F32(f32),
}

/// An expected result and the bound of its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) value: f64,
    pub(crate) bound: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) label: String,
    pub(crate) arguments: Vec<Value>,
    /// The index of the argument with the result.
    pub(crate) output: usize,
    pub(crate) expected: Vec<Expected>,
}

impl Value {
    /// Returns the bytes in memory.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let halves = |values: &[f32], to: fn(f32) -> u16| {
            values.iter().flat_map(|x| to(*x).to_le_bytes()).collect()
        };
        match self {
            Value::F32s(values) | Value::Integers(values, _) => {
                values.iter().flat_map(|x| x.to_le_bytes()).collect()
            }
            Value::F16s(values) => halves(values, f32_to_f16),
            Value::Bf16s(values) => halves(values, f32_to_bf16),
            Value::Bytes(bytes) => bytes.clone(),
            Value::U32(value) => value.to_le_bytes().to_vec(),
            Value::F32(value) => value.to_le_bytes().to_vec(),
        }
    }

    fn values(&self, bytes: &[u8]) -> Vec<f32> {
        let halves = |to: fn(u16) -> f32| {
            let pairs = bytes.chunks_exact(2);
            pairs
                .map(|pair| to(u16::from_le_bytes([pair[0], pair[1]])))
                .collect()
        };
        match self {
            Value::F16s(_) => halves(f16_to_f32),
            Value::Bf16s(_) => halves(bf16_to_f32),
            Value::Integers(_, len) => {
                let rows = bytes.chunks_exact(4 * row_words(*len));
                rows.flat_map(|row| elements(row, *len)).collect()
            }
            _ => {
                let words = bytes.as_chunks::<4>().0.iter();
                words.map(|&word| f32::from_le_bytes(word)).collect()
            }
        }
    }
}

/// Returns the number of words of a row of integers with its scales.
pub(crate) fn row_words(len: usize) -> usize {
    (len / 4 + len.div_ceil(32)).next_multiple_of(4)
}

/// The elements of a row of integers with its scales.
fn elements(row: &[u8], len: usize) -> Vec<f32> {
    let (integers, scales) = row.split_at(len);
    let scale = |block: usize| f32::from_le_bytes(scales.as_chunks::<4>().0[block]);
    let integers = integers.iter().enumerate();
    let elements = integers.map(|(i, &byte)| f32::from(byte as i8) * scale(i / 32));
    elements.collect()
}

impl Case {
    /// Interprets the kernel and compares; the result is the largest error in units of its
    /// bound.
    pub(crate) fn run(
        &self,
        program: &Program,
        kernel: &PtxKernel,
    ) -> Result<(f64, Statistics), String> {
        let mut memory = Memory::new();
        let mut addresses = Vec::new();
        for value in &self.arguments {
            addresses.push(match value {
                Value::U32(_) | Value::F32(_) => 0,
                buffer => memory.upload(&buffer.bytes()),
            });
        }
        let arguments: Vec<Argument> = (0..self.arguments.len())
            .map(|i| self.argument(kernel, i, addresses[i]))
            .collect();
        let statistics = program
            .launch(kernel, &arguments, &mut memory)
            .map_err(|error| error.to_string())?;
        let output = &self.arguments[self.output];
        let actual = output.values(memory.read(addresses[self.output]));
        self.judge(&actual).map(|error| (error, statistics))
    }

    /// Returns the number of bytes of the arguments.
    pub(crate) fn bytes(&self) -> usize {
        self.arguments.iter().map(|value| value.bytes().len()).sum()
    }

    fn argument(&self, kernel: &PtxKernel, i: usize, address: u64) -> Argument {
        match (&self.arguments[i], kernel.params()[i].ty) {
            (Value::U32(value), _) => Argument::U32(*value),
            (Value::F32(value), _) => Argument::F32(*value),
            (_, ParamType::TensorMap(map)) => {
                let size = |name: &str| self.size(kernel, name);
                let shape = map.shape.map(|extent| match extent {
                    Extent::Param(name) => size(name),
                    Extent::Fixed(size) => size.into(),
                    other => panic!("{other:?} is no size of a matrix"),
                });
                let planes = map.planes.iter().map(|name| size(name)).product();
                let tensor = Tensor::new(address, map.ty, shape, [map.rows, map.cols]);
                Argument::Tensor(tensor.with_planes(planes))
            }
            _ => Argument::Pointer(address),
        }
    }

    fn size(&self, kernel: &PtxKernel, name: &str) -> u64 {
        let index = kernel.params().iter().position(|param| param.name == name);
        match index.map(|index| &self.arguments[index]) {
            Some(Value::U32(value)) => (*value).into(),
            other => panic!("`{name}` is no size but {other:?}"),
        }
    }

    /// Returns the largest error in units of its bound, or the first element that exceeds it.
    pub(crate) fn judge(&self, actual: &[f32]) -> Result<f64, String> {
        if actual.len() != self.expected.len() {
            return Err(format!(
                "{} values, not {}",
                actual.len(),
                self.expected.len()
            ));
        }
        let mut largest = 0f64;
        for (i, (actual, expected)) in actual.iter().zip(&self.expected).enumerate() {
            let actual = f64::from(*actual);
            // Results beyond f32 are infinite.
            let same = actual == f64::from(expected.value as f32)
                || (actual.is_nan() && expected.value.is_nan());
            let error = (actual - expected.value).abs() / expected.bound;
            if !same && (error > 1.0 || error.is_nan()) {
                return Err(format!(
                    "value {i} is {actual:e}, not {:e} ± {:e}",
                    expected.value, expected.bound
                ));
            }
            largest = largest.max(if same { 0.0 } else { error });
        }
        Ok(largest)
    }
}

/// `count` numbers of about normal size from a fixed sequence, different for each seed.
pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        // xorshift64* (Vigna, 2016).
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32 / (1 << 24) as f32
    };
    // The sum of four uniform numbers is near enough to a normal one.
    (0..count)
        .map(|_| (next() + next() + next() + next() - 2.0) * 1.7)
        .collect()
}

/// Rounds `values` to `ty`.
pub(crate) fn rounded(values: &[f32], ty: PtxType) -> Vec<f32> {
    let round = |x: &f32| match ty {
        PtxType::F16 => f16_to_f32(f32_to_f16(*x)),
        PtxType::BF16 => bf16_to_f32(f32_to_bf16(*x)),
        _ => *x,
    };
    values.iter().map(round).collect()
}
