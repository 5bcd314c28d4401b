//! Stub of compiled chains, for targets where code cannot be made at run time or where the compiler
//! takes too much space.

use std::mem::MaybeUninit;

use crate::cpu::chain::Runner;

/// An uninhabited type.
pub(super) enum Compiled {}

impl Compiled {
    pub(super) fn of(_: &Runner<'_>, _: usize) -> Option<Self> {
        None
    }

    pub(super) fn run(&self, _: &[&[f32]], _: usize, _: &mut [MaybeUninit<f32>]) -> usize {
        match *self {}
    }
}
