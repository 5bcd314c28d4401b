//! Ranges of an axis.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use crate::error::{Error, Result};
use crate::lazy::shape::mismatch;

/// A range of an axis with a step: `1..4`, `2..`, `..-1` or `Slice::from(..).step(2)`. Negative ends count from the end
/// of the axis.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Slice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[0.0, 1.0, 2.0, 3.0, 4.0], &[5])?;
/// assert_eq!(x.slice(0, 1..-1)?.read_sync()?, [1.0, 2.0, 3.0]);
/// assert_eq!(x.slice(0, Slice::from(1..).step(2))?.read_sync()?, [1.0, 3.0]);
/// assert_eq!(x.slice(0, Slice::from(..).step(-2))?.read_sync()?, [4.0, 2.0, 0.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
}

/// The indices of a slice of an axis.
pub(super) struct Indices {
    pub(super) start: usize,
    pub(super) step: isize,
    pub(super) len: usize,
}

impl Slice {
    fn new(start: Option<isize>, end: Option<isize>) -> Self {
        let step = 1;
        Self { start, end, step }
    }

    /// Returns the slice with this distance between neighbours. A negative one goes from the end of the axis, or from
    /// the start of the range, backwards.
    #[must_use]
    pub fn step(self, step: isize) -> Self {
        Self { step, ..self }
    }

    /// Returns the indices of an axis of `length` elements.
    pub(super) fn of_axis(self, axis: usize, length: usize) -> Result<Indices> {
        let Self { start, end, step } = self;
        if step == 0 {
            return Err(Error::invalid("step", "0", "a number other than 0"));
        }
        let len = length as isize;
        let (first, most) = if step > 0 {
            (0, len)
        } else {
            (len - 1, len - 1)
        };
        let start = index(start, first, most, axis, len)?;
        let end = index(end, if step > 0 { len } else { -1 }, len, axis, len)?;
        let between = if step > 0 { end - start } else { start - end };
        Ok(Indices {
            start: start.max(0) as usize,
            step,
            len: (between.max(0) as usize).div_ceil(step.unsigned_abs()),
        })
    }
}

/// Returns an end of the range from 0 on.
fn index(
    given: Option<isize>,
    missing: isize,
    most: isize,
    axis: usize,
    len: isize,
) -> Result<isize> {
    match given {
        None => Ok(missing),
        Some(at) if (-len..=most).contains(&at) => Ok(if at < 0 { at + len } else { at }),
        Some(at) => {
            let what = format!("an end of the range is {at}");
            let message = format!("{what}, but axis {axis} has {len} elements");
            Err(mismatch("slice", message))
        }
    }
}

impl From<Range<isize>> for Slice {
    fn from(range: Range<isize>) -> Self {
        Self::new(Some(range.start), Some(range.end))
    }
}

impl From<RangeFrom<isize>> for Slice {
    fn from(range: RangeFrom<isize>) -> Self {
        Self::new(Some(range.start), None)
    }
}

impl From<RangeTo<isize>> for Slice {
    fn from(range: RangeTo<isize>) -> Self {
        Self::new(None, Some(range.end))
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Self::new(None, None)
    }
}
