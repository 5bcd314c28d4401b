//! The layout of a layer's keys and values, and their way between a GPU and the host.

use super::{StepBackend, StepPass};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::tensor::CacheType;
use std::ops::Range;

/// The keys and values of a layer in a sequence's memory: head by head the keys, then the values, a row for each position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLayout {
    /// The heads of keys, which are as many as those of values.
    pub(crate) heads: usize,
    pub(crate) head_len: usize,
    pub(crate) cache_type: CacheType,
    /// The last positions that the layer keeps. On a GPU, position `p` has row `p % room`.
    pub(crate) room: usize,
    /// The most positions of a sequence.
    pub(crate) capacity: usize,
}

impl CacheLayout {
    /// Returns the number of words of a row.
    pub(crate) fn row(&self) -> usize {
        self.cache_type.words(self.head_len)
    }

    /// Returns the number of words of the keys and values of some positions, saturating.
    pub(crate) fn words(&self, positions: usize) -> usize {
        let sizes = [2, positions, self.row()];
        sizes.into_iter().fold(self.heads, usize::saturating_mul)
    }

    /// Returns where the rows of some positions lie on a GPU, in words: two ranges for each head.
    fn ranges(&self, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (room, row) = (self.room, self.row());
        let first = positions.start % room;
        let end = first + positions.len();
        let parts = [first..end.min(room), 0..end.saturating_sub(room)];
        let heads = 0..2 * self.heads;
        heads.flat_map(move |head| {
            let start = move |position: usize| (head * room + position) * row;
            let parts = parts.clone();
            parts.map(move |part| start(part.start)..start(part.end))
        })
    }
}

/// The keys and values of a layer of a sequence.
pub(crate) trait StepCache<B: StepBackend>: Sized {
    fn new(layout: CacheLayout, pass: &mut B::Pass<'_>) -> Result<Self>;

    /// Returns the memory that steps write and read.
    fn memory(&self) -> &B::CacheMemory;
}

/// Keys and values on a GPU, in a buffer for all positions that the layer keeps.
pub(crate) struct BufferCache<T> {
    layout: CacheLayout,
    buffer: T,
}

impl<B: StepBackend<CacheMemory = <B as StepBackend>::Buffer>> StepCache<B>
    for BufferCache<B::Buffer>
{
    fn new(layout: CacheLayout, pass: &mut B::Pass<'_>) -> Result<Self> {
        let buffer = pass.allocate(layout.words(layout.room))?;
        Ok(Self { layout, buffer })
    }

    fn memory(&self) -> &B::Buffer {
        &self.buffer
    }
}

impl<T> BufferCache<T> {
    /// Copies the rows of some positions, head by head the keys and then the values, to as many words.
    pub(crate) async fn read<B: StepBackend<Buffer = T>>(
        &self,
        backend: &B,
        positions: Range<usize>,
        mut rows: &mut [f32],
    ) -> Result<()> {
        let layout = self.layout;
        let all = (&self.buffer, layout.words(layout.room));
        let reading = backend.pass()?.submit(Some(all))?;
        let words = reading.await?;
        for range in layout.ranges(positions) {
            let to = rows.split_off_mut(..range.len()).unwrap_or_default();
            to.copy_from_slice(&words[range]);
        }
        Ok(())
    }

    /// Replaces all keys and values by the rows of some positions.
    pub(crate) async fn write<B: StepBackend<Buffer = T>>(
        &self,
        backend: &B,
        positions: Range<usize>,
        mut rows: &[f32],
    ) -> Result<()> {
        let layout = self.layout;
        let mut words = try_zeros(layout.words(layout.room))?;
        for range in layout.ranges(positions) {
            let from = rows.split_off(..range.len()).unwrap_or_default();
            words[range].copy_from_slice(from);
        }
        let writing = {
            let mut pass = backend.pass()?;
            pass.write(&words, &self.buffer)?;
            pass.submit(None)?
        };
        writing.await.map(drop)
    }
}
