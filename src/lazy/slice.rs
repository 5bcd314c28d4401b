//! Ranges of an axis.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use crate::error::{Error, Result};

/// A range of an axis with a step: `1..4`, `2..`, `..-1` or `Slice::from(..).step(2)`. Negative ends count from the end
/// of the axis.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Slice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[0.0, 1.0, 2.0, 3.0, 4.0], &[5])?;
/// assert_eq!(x.slice(0, 1..-1)?.read()?, [1.0, 2.0, 3.0]);
/// assert_eq!(x.slice(0, Slice::from(1..).step(2))?.read()?, [1.0, 3.0]);
/// assert_eq!(x.slice(0, Slice::from(..).step(-2))?.read()?, [4.0, 2.0, 0.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        let beyond = || self.beyond(axis, len);
        let start = index(start, first, most, len).ok_or_else(beyond)?;
        let end = index(end, if step > 0 { len } else { -1 }, len, len).ok_or_else(beyond)?;
        let between = if step > 0 { end - start } else { start - end };
        Ok(Indices {
            start: start.max(0) as usize,
            step,
            len: (between.max(0) as usize).div_ceil(step.unsigned_abs()),
        })
    }

    /// Creates the error of a range with an end beyond an axis of `len` elements.
    fn beyond(self, axis: usize, len: isize) -> Error {
        let end = |end: Option<isize>| end.map_or_else(String::new, |end| end.to_string());
        let value = format!("{}..{}", end(self.start), end(self.end));
        let value = if self.step == 1 {
            value
        } else {
            format!("{value} by steps of {}", self.step)
        };
        let requirement = format!(
            "from {} to {len} for the {len} elements of axis {axis}",
            -len
        );
        Error::invalid("range", value, requirement)
    }
}

/// Returns an end of the range from 0 on; `None` beyond the axis.
fn index(given: Option<isize>, missing: isize, most: isize, len: isize) -> Option<isize> {
    match given {
        None => Some(missing),
        Some(at) if (-len..=most).contains(&at) => Some(if at < 0 { at + len } else { at }),
        Some(_) => None,
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
