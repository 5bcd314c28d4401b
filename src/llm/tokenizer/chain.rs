//! A linked list of a word's symbols, whose neighbours are joined.

/// Symbols in order. A symbol that was joined to its left neighbour is gone.
pub(super) struct Chain<T> {
    symbols: Vec<Option<T>>,
    before: Vec<Option<usize>>,
    after: Vec<usize>,
}

impl<T: Copy> Chain<T> {
    pub(super) fn new(symbols: impl Iterator<Item = T>) -> Self {
        let symbols: Vec<Option<T>> = symbols.map(Some).collect();
        let len = symbols.len();
        Self {
            symbols,
            before: (0..len).map(|at| at.checked_sub(1)).collect(),
            after: (1..=len).collect(),
        }
    }

    /// The number of symbols at the beginning, before any were joined.
    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The position of the symbol before a position.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        self.before[at]
    }

    /// A symbol and the one after it.
    pub(super) fn pair(&self, left: usize) -> Option<(T, T)> {
        let right = *self.symbols.get(self.after[left])?;
        Some((self.symbols[left]?, right?))
    }

    /// Replaces a pair by one symbol.
    pub(super) fn join(&mut self, left: usize, both: T) {
        let right = self.after[left];
        self.symbols[left] = Some(both);
        self.symbols[right] = None;
        self.after[left] = self.after[right];
        if let Some(before) = self.before.get_mut(self.after[left]) {
            *before = Some(left);
        }
    }

    /// The symbols that are left, in order.
    pub(super) fn into_symbols(self) -> impl Iterator<Item = T> {
        self.symbols.into_iter().flatten()
    }
}
