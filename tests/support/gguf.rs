//! A writer of GGUF files, and tiny random models.

use crate::support::Random;
use relampago::llm::WeightType;

/// A file in the making.
#[derive(Default)]
pub(crate) struct Writer {
    metadata: Vec<u8>,
    entries: u64,
    tensors: Vec<(String, Vec<usize>, WeightType, Vec<u8>)>,
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

impl Writer {
    fn entry(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.metadata.extend(string(key));
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend(value);
        self.entries += 1;
    }

    pub(crate) fn number(&mut self, key: &str, value: u32) {
        self.entry(key, 4, &value.to_le_bytes());
    }

    pub(crate) fn float(&mut self, key: &str, value: f32) {
        self.entry(key, 6, &value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.entry(key, 8, &string(value));
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        let mut bytes = 8u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        bytes.extend(values.iter().flat_map(|value| string(value)));
        self.entry(key, 9, &bytes);
    }

    pub(crate) fn numbers(&mut self, key: &str, values: &[i32]) {
        let mut bytes = 5u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.entry(key, 9, &bytes);
    }

    /// Adds a tensor of random weights; returns them.
    pub(crate) fn random(
        &mut self,
        name: &str,
        shape: &[usize],
        kind: WeightType,
        random: &mut Random,
    ) -> Vec<f64> {
        let len: usize = shape.iter().product();
        let blocks = len / kind.block_len();
        let data: Vec<u8> = (0..blocks).flat_map(|_| block(kind, random)).collect();
        let mut weights = vec![0.0; len];
        kind.dequantize(&data, &mut weights);
        self.tensors
            .push((name.to_owned(), shape.to_vec(), kind, data));
        weights.into_iter().map(f64::from).collect()
    }

    /// Adds a vector of `f32`.
    pub(crate) fn values(&mut self, name: &str, values: &[f64]) {
        let bytes = values
            .iter()
            .flat_map(|&value| (value as f32).to_le_bytes());
        let tensor = (name.to_owned(), vec![values.len()], WeightType::F32);
        self.tensors
            .push((tensor.0, tensor.1, tensor.2, bytes.collect()));
    }

    /// The file.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend(self.entries.to_le_bytes());
        file.extend(&self.metadata);
        let mut offset = 0;
        for (name, shape, kind, data) in &self.tensors {
            file.extend(string(name));
            file.extend((shape.len() as u32).to_le_bytes());
            file.extend(shape.iter().flat_map(|&len| (len as u64).to_le_bytes()));
            file.extend(kind.id().to_le_bytes());
            file.extend((offset as u64).to_le_bytes());
            offset += data.len().next_multiple_of(32);
        }
        for (.., data) in &self.tensors {
            file.resize(file.len().next_multiple_of(32), 0);
            file.extend(data);
        }
        file
    }
}

/// A block of random bytes whose scales give weights of about 0.1.
fn block(kind: WeightType, random: &mut Random) -> Vec<u8> {
    use WeightType::{F16, F32, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_1, Q4_K, Q5_1, Q5_K, Q6_K, Q8_0};
    let mut block: Vec<u8> = (0..kind.block_bytes())
        .map(|_| random.next() as u8)
        .collect();
    let value = random.value() / 64.0;
    let mut set = |at: usize, half: u16| block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    match kind {
        F32 => return value.to_le_bytes().to_vec(),
        F16 => set(0, 0x2000 | random.next() as u16 & 0x87ff),
        WeightType::BF16 => set(0, (value.to_bits() >> 16) as u16),
        Q8_0 | IQ4_NL => set(0, 0x1400),
        Q4_1 | Q5_1 => {
            set(0, 0x1c00);
            set(2, 0xa000);
        }
        Q2_K => {
            set(80, 0x1800);
            set(82, 0x1800);
        }
        Q3_K => set(108, 0x1000),
        Q4_K | Q5_K => {
            set(0, 0x0400);
            set(2, 0x0c00);
        }
        Q6_K => set(208, 0x0400),
        IQ4_XS => set(0, 0x0400),
        _ => set(0, 0x2000),
    }
    block
}
