//! Sets of registers.

/// A set of registers, one bit each, so that copies at branches are cheap.
#[derive(Clone)]
pub(super) struct Set(Vec<u64>);

impl Set {
    /// Creates an empty set for `registers` registers.
    pub(super) fn new(registers: usize) -> Self {
        Set(vec![0; registers.div_ceil(64)])
    }

    #[inline]
    pub(super) fn contains(&self, id: u32) -> bool {
        self.0[id as usize / 64] >> (id % 64) & 1 != 0
    }

    #[inline]
    pub(super) fn insert(&mut self, id: u32) {
        self.0[id as usize / 64] |= 1 << (id % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        self.0[id as usize / 64] &= !(1 << (id % 64));
    }

    /// Keeps the registers that both sets contain.
    pub(super) fn intersect(&mut self, other: &Set) {
        for (word, theirs) in self.0.iter_mut().zip(&other.0) {
            *word &= theirs;
        }
    }

    /// Adds the registers of another set, and calls `visit` for each new one.
    pub(super) fn unite(&mut self, other: &Set, mut visit: impl FnMut(usize)) {
        for (i, (word, theirs)) in self.0.iter_mut().zip(&other.0).enumerate() {
            let mut missing = theirs & !*word;
            *word |= missing;
            while missing != 0 {
                visit(i * 64 + missing.trailing_zeros() as usize);
                missing &= missing - 1;
            }
        }
    }
}
