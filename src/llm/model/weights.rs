//! The positions of a model's weights in the file, with their shapes checked once.

use super::Config;
use super::steps::{VectorId, WeightId};
use crate::cpu::SharedBlocks;
use crate::error::Result;
use crate::llm::WeightType;
use crate::llm::gguf::{Gguf, invalid};
use crate::simd::BlockMatrix;
use std::ops::Range;
use std::sync::Arc;

/// A matrix in the file, or some rows of one.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    /// The tensor's name, and the first row in it.
    pub(super) tensor: Arc<str>,
    pub(super) first_row: usize,
    pub(super) kind: WeightType,
    pub(super) range: Range<u64>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Weight {
    /// Finds a matrix of `rows` rows of `cols` weights.
    ///
    /// # Errors
    /// `InvalidModel` if the file has no such tensor or it has another shape.
    pub(super) fn new(file: &Gguf, name: &str, rows: usize, cols: usize) -> Result<Self> {
        Self::shaped(file, name, &[cols, rows])
    }

    /// Finds the matrices of as many experts as the shape says, each of `rows` rows of `cols` weights, as one matrix.
    ///
    /// # Errors
    /// `InvalidModel` if the file has no such tensor or it has another shape.
    pub(super) fn stacked(
        file: &Gguf,
        name: &str,
        [experts, rows, cols]: [usize; 3],
    ) -> Result<Self> {
        Self::shaped(file, name, &[cols, rows, experts])
    }

    /// Finds a tensor of a shape as a matrix of its rows.
    fn shaped(file: &Gguf, name: &str, shape: &[usize]) -> Result<Self> {
        let fault = |what: String| invalid(what, format!("tensor `{name}`"));
        let tensor = file
            .tensor(name)
            .ok_or_else(|| fault("missing".to_owned()))?;
        if tensor.shape() != shape {
            let what = format!("its shape is {:?}, but must be {shape:?}", tensor.shape());
            return Err(fault(what));
        }
        Ok(Self {
            tensor: name.into(),
            first_row: 0,
            kind: tensor.weight_type(),
            range: tensor.range(),
            rows: shape[1..].iter().product(),
            cols: shape[0],
        })
    }

    /// Some of the rows.
    pub(super) fn rows(&self, rows: Range<usize>) -> Self {
        let bytes = (self.range.end - self.range.start) / self.rows as u64;
        let start = self.range.start;
        let [first, end] = [rows.start, rows.end].map(|row| start + row as u64 * bytes);
        Self {
            tensor: self.tensor.clone(),
            first_row: self.first_row + rows.start,
            kind: self.kind,
            range: first..end,
            rows: rows.len(),
            cols: self.cols,
        }
    }

    /// The matrix in the file that it was found in.
    pub(super) fn matrix<'a>(&self, file: &'a Gguf) -> Result<BlockMatrix<'a>> {
        let data = file.slice(self.range.clone());
        let matrix = BlockMatrix::new(self.kind, data, self.rows, self.cols);
        matrix.ok_or_else(|| {
            invalid(
                "weights of another size",
                format!("byte {}", self.range.start),
            )
        })
    }

    /// The size of the blocks in bytes.
    pub(super) fn size(&self) -> usize {
        // All of the file is in memory.
        (self.range.end - self.range.start) as usize
    }
}

/// The blocks of a matrix in its file.
pub(super) struct FileBlocks {
    file: Arc<Gguf>,
    range: Range<u64>,
}

impl FileBlocks {
    pub(super) fn shared(file: &Arc<Gguf>, range: Range<u64>) -> Arc<dyn SharedBlocks> {
        let file = file.clone();
        Arc::new(Self { file, range })
    }
}

impl SharedBlocks for FileBlocks {
    fn bytes(&self) -> &[u8] {
        self.file.slice(self.range.clone())
    }
}

/// The weights of a model.
#[derive(Debug)]
pub(super) struct Weights {
    /// Dequantised.
    pub(super) vectors: Vec<Vec<f32>>,
    /// In the file's blocks.
    pub(super) matrices: Vec<Weight>,
    /// The matrix whose rows are the tokens' embeddings.
    pub(super) embedding: usize,
    /// The matrix that gives logits, the embedding if the file has no other; `None` for an encoder.
    pub(super) head: Option<usize>,
    /// The weights of an encoder that its first layer's input takes besides the embedding.
    pub(super) input: Option<EncoderInput>,
    /// The head of an encoder that ranks texts.
    pub(super) ranking: Option<RankingHead>,
    /// The matrices besides the embedding whose rows only the host reads.
    pub(super) on_host: Vec<usize>,
}

/// The weights that give the first layer's input of an encoder, besides the tokens' embeddings.
#[derive(Debug)]
pub(super) struct EncoderInput {
    /// The matrix with a row for each position.
    pub(super) positions: Option<usize>,
    /// The matrix with a row for each type of token. All tokens have the first type.
    pub(super) types: Option<usize>,
    /// The gain and the bias of the norm of the sum.
    pub(super) norm: [VectorId; 2],
}

/// The network that makes a score of the values of a text's first token: two matrices with biases, and tanh between them.
#[derive(Debug)]
pub(super) struct RankingHead {
    pub(super) dense: (usize, VectorId),
    /// A matrix of one row.
    pub(super) output: (usize, VectorId),
}

impl Weights {
    /// Finds the embedding and the head.
    pub(super) fn new(file: &Gguf, config: &Config) -> Result<Self> {
        let embedding = file.tensor("token_embd.weight");
        let vocabulary = embedding.and_then(|tensor| tensor.shape().get(1).copied());
        let vocabulary = vocabulary.unwrap_or_default();
        let weight = |name| Weight::new(file, name, vocabulary, config.width);
        let mut matrices = vec![weight("token_embd.weight")?];
        if !config.is_encoder() && file.tensor("output.weight").is_some() {
            matrices.push(weight("output.weight")?);
        }
        Ok(Self {
            vectors: Vec::new(),
            embedding: 0,
            head: (!config.is_encoder()).then_some(matrices.len() - 1),
            input: None,
            ranking: None,
            on_host: Vec::new(),
            matrices,
        })
    }

    /// Returns whether only the host reads the rows of a matrix.
    pub(super) fn is_on_host(&self, matrix: usize) -> bool {
        let is_embedding = matrix == self.embedding && self.head != Some(matrix);
        is_embedding || self.on_host.contains(&matrix)
    }

    /// The number of tokens in the vocabulary.
    pub(super) fn vocabulary(&self) -> usize {
        self.matrices[self.embedding].rows
    }

    pub(super) fn push_vector(&mut self, vector: Vec<f32>) -> VectorId {
        self.vectors.push(vector);
        VectorId(self.vectors.len() - 1)
    }

    pub(super) fn push_matrix(&mut self, weight: Weight) -> WeightId {
        self.matrices.push(weight);
        WeightId(self.matrices.len() - 1)
    }
}

/// A vector of weights, dequantised.
///
/// # Errors
/// `InvalidModel` if the file has none of that length.
pub(super) fn vector(file: &Gguf, name: &str, len: usize) -> Result<Vec<f32>> {
    let missing = || invalid("missing", format!("tensor `{name}`"));
    optional_vector(file, name, len)?.ok_or_else(missing)
}

/// A vector of weights, dequantised; `None` if the file has no tensor of the name. It is empty where only the file's
/// beginning is there.
///
/// # Errors
/// `InvalidModel` if the tensor has another shape.
pub(super) fn optional_vector(file: &Gguf, name: &str, len: usize) -> Result<Option<Vec<f32>>> {
    let Some(tensor) = file.tensor(name) else {
        return Ok(None);
    };
    if tensor.shape() != [len] {
        let what = format!("its shape is {:?}, but must be [{len}]", tensor.shape());
        return Err(invalid(what, format!("tensor `{name}`")));
    }
    if file.is_head() {
        return Ok(Some(Vec::new()));
    }
    file.dequantized(tensor).map(Some)
}
