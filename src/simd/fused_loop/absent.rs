//! Stub of functions of two operands. In WebAssembly, long chains are compiled at run time, and the
//! download has no room for this loop.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::RangeFrom;

use crate::simd::elementwise::Binary;
use crate::simd::isa::Isa;

/// An uninhabited type.
#[derive(Clone, Copy)]
pub(crate) struct Other<'a>(Infallible, PhantomData<&'a f32>);

impl<'a> Other<'a> {
    pub(crate) fn of(_: &'a [f32], _: bool) -> Option<Self> {
        None
    }

    pub(super) fn values(self, _: RangeFrom<usize>) -> &'a [f32] {
        match self.0 {}
    }

    pub(super) fn with(self, _: &[f32]) -> Option<Other<'_>> {
        match self.0 {}
    }

    pub(super) fn each<I: Isa, F: Binary, const N: usize>(
        self,
        _: I,
        _: F,
        _: usize,
        _: &mut [I::F32; N],
    ) {
        match self.0 {}
    }
}
