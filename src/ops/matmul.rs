//! The shape of a matrix product.

/// Shape and storage of a matrix product `C = A · B`, `m × k` times `k × n`. Matrices are stored
/// row by row, or column by column where they are said to be transposed: a transposed `B`, as
/// the weights of most models are, is an `n × k` matrix stored row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Matmul {
    /// The number of rows of `A` and `C`.
    pub m: usize,
    /// The number of columns of `A` and of rows of `B`.
    pub k: usize,
    /// The number of columns of `B` and `C`.
    pub n: usize,
    /// Whether `A` is stored as a `k × m` matrix.
    pub transpose_a: bool,
    /// Whether `B` is stored as an `n × k` matrix.
    pub transpose_b: bool,
}

impl Matmul {
    /// A product of matrices that are both stored row by row.
    pub fn new(m: usize, k: usize, n: usize) -> Self {
        Self {
            m,
            k,
            n,
            transpose_a: false,
            transpose_b: false,
        }
    }

    /// The same product of an `A` stored column by column.
    #[must_use]
    pub fn transpose_a(self) -> Self {
        Self {
            transpose_a: true,
            ..self
        }
    }

    /// Returns the same matmul with `B` stored column by column.
    #[must_use]
    pub fn transpose_b(self) -> Self {
        Self {
            transpose_b: true,
            ..self
        }
    }
}
