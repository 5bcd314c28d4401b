//! The type of a session's keys and values.

/// The elements of a block, which share a scale.
pub(crate) const BLOCK_LEN: usize = 32;

/// The type of the elements of a session's keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheType {
    /// 32 bits. On a GPU the length of a head must be a multiple of 4, and at most 256 as for all types.
    #[default]
    F32,
    /// 16 bits, which halve a session's memory. Keys and values round to 11 binary digits, and those beyond ±65504
    /// become that. On a GPU the length of a head must be a multiple of 8.
    F16,
    /// 8 bits and a scale for each 32 elements of a head: 9 bits in all in heads of a multiple of 128 elements, more in
    /// others, such as 10 in heads of 64 and 12 in heads of 32. Keys and values round to
    /// multiples of the 127th part of the largest of 32. An element that is not finite makes all 32 NaN. On a GPU the length
    /// of a head must be a multiple of 16.
    Q8_0,
}

/// Writes the type's name.
impl std::fmt::Display for CacheType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl CacheType {
    /// The type's name: `f32`, `f16` or `q8_0`.
    pub fn name(self) -> &'static str {
        match self {
            CacheType::F32 => "f32",
            CacheType::F16 => "f16",
            CacheType::Q8_0 => "q8_0",
        }
    }

    /// The bits of an element.
    pub(crate) fn bits(self) -> u32 {
        match self {
            CacheType::F32 => 32,
            CacheType::F16 => 16,
            CacheType::Q8_0 => 8,
        }
    }

    /// Returns the number of words of 32 bits that a row of `len` elements takes.
    ///
    /// A row of f16 has in each word an element of its first half and the one at the same place of its second half. A row
    /// of `Q8_0` has four integers in each word, then an f32 for each block, and is filled up to a multiple of four words,
    /// which a GPU reads at once.
    pub(crate) fn words(self, len: usize) -> usize {
        match self {
            CacheType::F32 => len,
            CacheType::F16 => len.div_ceil(2),
            CacheType::Q8_0 => (len.div_ceil(4) + len.div_ceil(BLOCK_LEN)).next_multiple_of(4),
        }
    }
}
