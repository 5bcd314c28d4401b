//! Lists of words.

use crate::error::Result;
use crate::ops::shape::check_limit;

/// Words of 32 bits, which JavaScript passes as the bits of floats. Beyond their end there are zeros.
pub(crate) struct Words<'a> {
    left: &'a [f32],
    /// An index beyond its limit, if one was read.
    pub(super) wrong: Option<(usize, usize)>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(left: &'a [f32]) -> Self {
        Self { left, wrong: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn float(&mut self) -> f32 {
        let Some((&first, rest)) = self.left.split_first() else {
            return 0.0;
        };
        self.left = rest;
        first
    }

    pub(crate) fn whole(&mut self) -> usize {
        self.float().to_bits() as usize
    }

    pub(crate) fn signed(&mut self) -> isize {
        self.whole() as i32 as isize
    }

    /// Returns an index below a limit; notes it otherwise.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let index = self.whole();
        if index >= limit {
            self.wrong = Some((index, limit));
        }
        index
    }

    /// Returns the words of a list after its length.
    pub(crate) fn list(&mut self) -> Words<'a> {
        let count = self.whole().min(self.left.len());
        let (list, rest) = self.left.split_at(count);
        self.left = rest;
        Words::new(list)
    }

    /// Returns all words as indices below a limit.
    pub(super) fn all_below(&mut self, limit: usize) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(self.left.len());
        while !self.left.is_empty() {
            numbers.push(self.below(limit));
        }
        numbers
    }

    /// Returns all words as whole numbers.
    #[cfg(feature = "js-numeric")]
    pub(crate) fn wholes(&mut self) -> Vec<usize> {
        self.all_below(usize::MAX)
    }

    /// Returns all words as numbers.
    #[cfg(feature = "js-numeric")]
    pub(crate) fn floats(&mut self) -> Vec<f32> {
        self.left.to_vec()
    }

    /// Returns all words as indices below a limit.
    ///
    /// # Errors
    /// `LimitExceeded` with an index beyond the limit.
    pub(crate) fn indices(&mut self, limit: usize) -> Result<Vec<usize>> {
        let indices = self.all_below(limit);
        self.check().map(|()| indices)
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.wrong {
            None => Ok(()),
            Some((index, limit)) => check_limit("an index in a graph", index, limit),
        }
    }
}
