//! Fourier transforms of rows whose lengths are powers of two.
//!
//! Panels hold [`WIDTH`] transforms side by side, with real and imaginary parts in alternate rows, so that all steps
//! work on whole vectors. A short row is one lane of a panel. A long row is a matrix (Bailey, 1990): its columns are transformed,
//! multiplied by roots and transposed, and transformed again. Transforms of columns are Stockham's, by steps of radix 4.

mod long;
mod pass;
mod roots;

use super::InstructionSet;
use super::isa::dispatch;
use super::transpose::transpose;
use crate::alloc::scratch::Scratch;
use crate::error::Result;
use long::LongRow;
use pass::Pass;
use roots::{Roots, roots};

/// The number of transforms in a panel: a multiple of the lanes of every instruction set.
const WIDTH: usize = 16;

/// The length from which a row is a matrix of at least [`WIDTH`] rows and columns. It is faster from here on, also if there
/// are rows for all lanes.
const LONG: usize = 512;

/// Transforms each row of `len` complex numbers.
///
/// # Errors
/// `OutOfMemory` if there is no memory for a panel, for a long row or for roots of unity.
pub(super) fn fft_rows(isa: InstructionSet, x: &[f32], len: usize, out: &mut [f32]) -> Result<()> {
    if len < LONG {
        return short_rows(isa, x, len, out);
    }
    let mut long = LongRow::new(isa, len)?;
    for (x, out) in x.chunks(2 * len).zip(out.chunks_mut(2 * len)) {
        long.transform(x, out);
    }
    Ok(())
}

/// Transforms rows as the lanes of panels.
fn short_rows(isa: InstructionSet, x: &[f32], len: usize, out: &mut [f32]) -> Result<()> {
    let mut panel = Panel::new(isa, len)?;
    let roots = roots(len)?;
    let size = 2 * len * WIDTH;
    for (x, out) in x.chunks(size).zip(out.chunks_mut(size)) {
        let rows = &mut panel.to[..size];
        // Lanes without a row have any numbers.
        rows[..x.len()].copy_from_slice(x);
        transpose(isa, rows, &mut panel.from[..size], WIDTH, 2 * len);
        panel.transform(roots, len);
        let rows = &mut panel.to[..size];
        transpose(isa, &panel.from[..size], rows, 2 * len, WIDTH);
        out.copy_from_slice(&rows[..out.len()]);
    }
    Ok(())
}

/// Transforms side by side. Row `2 · i` of [`WIDTH`] numbers has the real parts of the elements `i`, the next row their
/// imaginary parts.
struct Panel {
    isa: InstructionSet,
    from: Scratch,
    to: Scratch,
}

impl Panel {
    fn new(isa: InstructionSet, len: usize) -> Result<Self> {
        let size = 2 * len * WIDTH;
        Ok(Self {
            isa,
            from: Scratch::new(size)?,
            to: Scratch::new(size)?,
        })
    }

    /// Transforms the panel's columns of `len` elements.
    fn transform(&mut self, roots: &Roots, len: usize) {
        let mut step = 1;
        while step < len {
            let pass = Pass {
                roots,
                from: &self.from,
                to: &mut self.to,
                len,
                step,
            };
            dispatch(self.isa, pass);
            std::mem::swap(&mut self.from, &mut self.to);
            step *= if len / step == 2 { 2 } else { 4 };
        }
    }
}
