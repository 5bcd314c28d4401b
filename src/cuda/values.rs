//! Elementwise functions and reductions.

use super::buffer::{CudaBuffer, Scratch};
use super::device::CudaDevice;
use super::error::Result;
use super::launch::Argument;
use super::queue::Submission;
use relampago_ptx::kernels::{Binary, ElementwiseKernel, ReduceKernel, Reduction, Unary};

/// The number of elements from which a reduction is split among blocks.
const ONE_BLOCK: usize = 1 << 16;

impl CudaDevice {
    /// Computes `y = f(x)` of every element.
    ///
    /// # Errors
    /// [`super::Error::Length`] if the lengths differ.
    pub fn unary(
        &self,
        function: Unary,
        x: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
    ) -> Result<()> {
        let len = x.len();
        self.check("x", x, 1, len)?;
        self.check("y", y, 1, len)?;
        let pointers = [x, y].map(|buffer| Argument::Pointer(buffer.address()));
        let arguments = [&pointers[..], &[Argument::U32(len as u32)]].concat();
        let kernel = ElementwiseKernel::unary(function);
        // SAFETY: both buffers have the length; buffers are aligned to 256 bytes, and `y` is
        // borrowed exclusively.
        unsafe { self.submit(&kernel, &[x.input(), y.output()], &arguments) }
    }

    /// Computes `y = f(a, b)` of every pair of elements.
    ///
    /// # Errors
    /// [`super::Error::Length`] if the lengths differ.
    pub fn binary(
        &self,
        function: Binary,
        a: &CudaBuffer<f32>,
        b: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
    ) -> Result<()> {
        let len = a.len();
        self.check("a", a, 1, len)?;
        self.check("b", b, 1, len)?;
        self.check("y", y, 1, len)?;
        let pointers = [a, b, y].map(|buffer| Argument::Pointer(buffer.address()));
        let arguments = [&pointers[..], &[Argument::U32(len as u32)]].concat();
        let kernel = ElementwiseKernel::binary(function);
        // SAFETY: all buffers have the length; buffers are aligned to 256 bytes, and `y` is
        // borrowed exclusively.
        unsafe { self.submit(&kernel, &[a.input(), b.input(), y.output()], &arguments) }
    }

    /// Computes the sum of all elements of `x` into `y[0]`.
    ///
    /// # Errors
    /// [`super::Error::Length`] if `y` does not have exactly one element.
    pub fn sum(&self, x: &CudaBuffer<f32>, y: &mut CudaBuffer<f32>) -> Result<()> {
        self.reduce(Reduction::Sum, &[("x", x)], y)
    }

    /// Computes the dot product of `a` and `b` into `y[0]`.
    ///
    /// # Errors
    /// [`super::Error::Length`] if the lengths of `a` and `b` differ, or `y` does not have exactly
    /// one element.
    pub fn dot(
        &self,
        a: &CudaBuffer<f32>,
        b: &CudaBuffer<f32>,
        y: &mut CudaBuffer<f32>,
    ) -> Result<()> {
        self.reduce(Reduction::Dot, &[("a", a), ("b", b)], y)
    }

    /// Computes the largest element of `x` into `y[0]`: NaN if any element is NaN, −∞ if `x` is
    /// empty.
    ///
    /// # Errors
    /// [`super::Error::Length`] if `y` does not have exactly one element.
    pub fn max(&self, x: &CudaBuffer<f32>, y: &mut CudaBuffer<f32>) -> Result<()> {
        self.reduce(Reduction::Maximum, &[("x", x)], y)
    }

    /// Computes the smallest element of `x` into `y[0]`: NaN if any element is NaN, ∞ if `x` is
    /// empty.
    ///
    /// # Errors
    /// [`super::Error::Length`] if `y` does not have exactly one element.
    pub fn min(&self, x: &CudaBuffer<f32>, y: &mut CudaBuffer<f32>) -> Result<()> {
        self.reduce(Reduction::Minimum, &[("x", x)], y)
    }

    /// Reduces with one block, or with many blocks whose results another block reduces.
    fn reduce(
        &self,
        reduction: Reduction,
        inputs: &[(&'static str, &CudaBuffer<f32>)],
        y: &CudaBuffer<f32>,
    ) -> Result<()> {
        let len = inputs.first().map_or(0, |(_, input)| input.len());
        for (what, input) in inputs {
            self.check(what, input, 1, len)?;
        }
        self.check("y", y, 1, 1)?;
        let kernel = ReduceKernel::new(reduction);
        let from = inputs
            .iter()
            .map(|(_, input)| Argument::Pointer(input.address()));
        let from: Vec<Argument> = from.collect();
        let with = |to: u64| {
            let rest = [Argument::Pointer(to), Argument::U32(len as u32)];
            [&from[..], &rest].concat()
        };
        let uses = inputs.iter().map(|(_, input)| input.input());
        let uses: Vec<_> = uses.chain([y.output()]).collect();
        if len < ONE_BLOCK {
            // SAFETY: the lengths are checked; buffers are aligned to 256 bytes, and the public
            // function borrows `y` exclusively.
            return unsafe { self.submit(&kernel, &uses, &with(y.address())) };
        }
        let of_parts = match reduction {
            Reduction::Dot => Reduction::Sum,
            other => other,
        };
        let (parts, last) = (
            self.load(&kernel.parts())?,
            self.load(&ReduceKernel::new(of_parts))?,
        );
        let count = self.multiprocessors() * ReduceKernel::PARTS;
        self.ordered(&uses, |turn: &mut Submission<'_>| {
            let results = Scratch::new(turn, count as usize * size_of::<f32>())?;
            let total = [
                Argument::Pointer(results.address),
                Argument::Pointer(y.address()),
                Argument::U32(count),
            ];
            // SAFETY: the same holds; `results` has an element for each block of the first grid.
            unsafe {
                turn.launch(&parts, &with(results.address))?;
                turn.launch(&last, &total)
            }
        })
    }
}
