//! Sets of registers.

/// Registers by their numbers, one bit each: what is copied at every branch is short.
#[derive(Clone)]
pub(super) struct Set(Vec<u64>);

impl Set {
    /// None of so many registers.
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

    /// Leaves what both contain.
    pub(super) fn intersect(&mut self, other: &Set) {
        for (word, theirs) in self.0.iter_mut().zip(&other.0) {
            *word &= theirs;
        }
    }

    /// Takes in what the other one contains, and calls `visit` with what was not there.
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
