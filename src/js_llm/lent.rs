//! Sequences that answers have while they are made.

use crate::llm::Sequence;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// The place of a sequence while nothing uses it.
pub(super) type Home = Rc<RefCell<Option<Sequence>>>;

/// A sequence that goes home when it is dropped, whatever ended its use.
#[derive(Debug)]
pub(super) struct Lent {
    /// There until it is dropped.
    sequence: Option<Sequence>,
    home: Home,
}

impl Lent {
    /// Lends a sequence whose place this becomes.
    pub(super) fn new(sequence: Sequence, home: &Home) -> Self {
        Self {
            sequence: Some(sequence),
            home: Rc::clone(home),
        }
    }

    /// Takes the sequence from its place. There is none before the first one came, and after a trap.
    pub(super) fn of(home: &Home) -> Option<Self> {
        let sequence = home.borrow_mut().take()?;
        Some(Self::new(sequence, home))
    }
}

impl Deref for Lent {
    type Target = Sequence;

    fn deref(&self) -> &Sequence {
        self.sequence.as_ref().expect("it is there until the drop")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Sequence {
        self.sequence.as_mut().expect("it is there until the drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.home.borrow_mut() = self.sequence.take();
    }
}
