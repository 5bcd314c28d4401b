//! The type of a session's keys and values.

/// The type of the elements of a session's keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheType {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, which halve a session's memory. Keys and values round to 11 binary digits, and those beyond ±65504
    /// become that. On a GPU the length of a head must be a multiple of 8.
    F16,
}

impl CacheType {
    /// The type's name: `f32` or `f16`.
    pub fn name(self) -> &'static str {
        match self {
            CacheType::F32 => "f32",
            CacheType::F16 => "f16",
        }
    }

    /// The bits of an element.
    pub(super) fn bits(self) -> u32 {
        match self {
            CacheType::F32 => 32,
            CacheType::F16 => 16,
        }
    }
}
