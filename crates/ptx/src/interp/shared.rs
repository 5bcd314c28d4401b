//! The shared memory of one block, or of all blocks of a cluster one after the other, with a race
//! detector.
//!
//! Every warp has a vector clock (Lamport 1978, Mattern 1989): the time in every other warp up to
//! which it has synchronised. An access is a race if another thread accessed the same bytes at a
//! time with which the accessing warp has not synchronised, whatever the order in the interpreter.
//! Asynchronous copies count as one more warp.

use super::parse::SharedRange;

/// A vector clock: the times of all warps and, last, of asynchronous copies.
pub(super) type Clock = Vec<u32>;

/// The thread and the time of an access to a byte.
#[derive(Clone, Copy, Default)]
struct Stamp {
    /// The thread, from 1 on; 0 for no access.
    thread: u16,
    clock: u32,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    written: Stamp,
    /// The writer's number of [`SharedMemory::fence`]s at that time.
    fences: u32,
    /// The last read, and the last read by another warp.
    read: [Stamp; 2],
}

pub(super) struct SharedMemory {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// The byte ranges of the arrays.
    ranges: Vec<(u32, u32)>,
    /// The distance in bytes between the memories of consecutive blocks.
    pub(super) stride: u64,
    clocks: Vec<Clock>,
    fences: Vec<u32>,
}

/// The thread index of asynchronous copies.
pub(super) const COPIES: usize = u16::MAX as usize - 1;

impl SharedMemory {
    /// Allocates shared memory for `blocks` blocks of `size` threads. With several blocks, warps
    /// must be whole.
    pub(super) fn new(arrays: &[SharedRange], dynamic: u32, [size, blocks]: [usize; 2]) -> Self {
        let threads = size * blocks;
        let end = |range: &SharedRange| range.from + range.bytes.unwrap_or(dynamic);
        let own: Vec<(u32, u32)> = arrays.iter().map(|r| (r.from, end(r))).collect();
        let size = own.iter().map(|range| range.1).max().unwrap_or(0);
        // Swizzled boxes start at multiples of 1024.
        let stride = size.next_multiple_of(1024);
        let of_block = |block: u32| {
            let first = block * stride;
            own.iter().map(move |(from, to)| (first + from, first + to))
        };
        let ranges: Vec<(u32, u32)> = (0..blocks as u32).flat_map(of_block).collect();
        let size = (stride * (blocks as u32 - 1) + size) as usize;
        let actors = threads.div_ceil(32) + 1;
        let mut clocks = vec![vec![0; actors]; actors];
        for (actor, clock) in clocks.iter_mut().enumerate() {
            clock[actor] = 1;
        }
        SharedMemory {
            bytes: vec![0; size],
            cells: vec![Cell::default(); size],
            ranges,
            stride: stride.into(),
            clocks,
            fences: vec![0; threads],
        }
    }

    fn actor(&self, thread: usize) -> usize {
        if thread == COPIES {
            self.clocks.len() - 1
        } else {
            thread / 32
        }
    }

    /// Returns the clock of a thread's warp.
    pub(super) fn clock(&self, thread: usize) -> &Clock {
        &self.clocks[self.actor(thread)]
    }

    /// Merges `other` into the clock of the thread's warp.
    pub(super) fn learn(&mut self, thread: usize, other: &Clock) {
        let actor = self.actor(thread);
        for (mine, theirs) in self.clocks[actor].iter_mut().zip(other) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether the thread has ever synchronised with the warp of another thread.
    pub(super) fn knows_of(&self, thread: usize, other: usize) -> bool {
        self.clocks[self.actor(thread)][self.actor(other)] > 0
    }

    /// Advances the clock of the thread's warp, so that later accesses are not yet synchronised.
    pub(super) fn tick(&mut self, thread: usize) {
        let actor = self.actor(thread);
        self.clocks[actor][actor] += 1;
    }

    /// Whether some warp has synchronised with the last asynchronous copy.
    pub(super) fn copies_are_known(&self) -> bool {
        let last = self.clocks.len() - 1;
        let (copies, warps) = (&self.clocks[last], &self.clocks[..last]);
        // The clock of the copies advances by one after each copy.
        let newest = copies[last] - 1;
        newest == 0 || warps.iter().any(|clock| clock[last] >= newest)
    }

    /// Synchronises `threads` with each other.
    pub(super) fn synchronise(&mut self, threads: &[usize]) {
        let mut all = vec![0; self.clocks.len()];
        let mut actors: Vec<usize> = threads.iter().map(|&thread| self.actor(thread)).collect();
        actors.dedup();
        for &actor in &actors {
            for (all, one) in all.iter_mut().zip(&self.clocks[actor]) {
                *all = (*all).max(*one);
            }
        }
        for &actor in &actors {
            self.clocks[actor].clone_from(&all);
            self.clocks[actor][actor] += 1;
        }
    }

    /// Whether `thread` has synchronised with the access of `stamp`.
    fn is_before(&self, stamp: Stamp, thread: usize) -> bool {
        if stamp.thread == 0 || usize::from(stamp.thread) == thread + 1 {
            return true;
        }
        let (mine, theirs) = (
            self.actor(thread),
            self.actor(usize::from(stamp.thread) - 1),
        );
        let known = self.clocks[mine][theirs];
        if mine == theirs {
            stamp.clock < known
        } else {
            stamp.clock <= known
        }
    }

    fn range(
        &self,
        address: u64,
        bytes: usize,
        align: usize,
    ) -> Result<std::ops::Range<usize>, String> {
        if !address.is_multiple_of(align as u64) {
            return Err(format!(
                "shared address {address} is not a multiple of {align}"
            ));
        }
        let end = address + bytes as u64;
        let inside = |&(from, to): &(u32, u32)| u64::from(from) <= address && end <= u64::from(to);
        if !self.ranges.iter().any(inside) {
            return Err(format!(
                "shared bytes {address}..{end} are not within one array"
            ));
        }
        Ok(address as usize..end as usize)
    }

    pub(super) fn read(
        &mut self,
        address: u64,
        bytes: usize,
        thread: usize,
    ) -> Result<&[u8], String> {
        let range = self.range(address, bytes, bytes.min(16))?;
        let stamp = self.stamp(thread);
        for at in range.clone() {
            let cell = self.cells[at];
            if cell.written.thread == 0 {
                return Err(format!("shared byte {at} is read, but nothing wrote it"));
            }
            if !self.is_before(cell.written, thread) {
                return Err(race(at, "read", "written", cell.written));
            }
            let same_warp = cell.read[0].thread == 0
                || self.actor(usize::from(cell.read[0].thread) - 1) == self.actor(thread);
            let cell = &mut self.cells[at];
            if !same_warp {
                cell.read[1] = cell.read[0];
            }
            cell.read[0] = stamp;
        }
        Ok(&self.bytes[range])
    }

    pub(super) fn write(&mut self, address: u64, data: &[u8], thread: usize) -> Result<(), String> {
        let range = self.check_write(address, data.len(), thread)?;
        self.put(range, data, thread);
        Ok(())
    }

    /// Checks that a write by `thread` is no race.
    pub(super) fn check_write(
        &self,
        address: u64,
        bytes: usize,
        thread: usize,
    ) -> Result<std::ops::Range<usize>, String> {
        let range = self.range(address, bytes, bytes.min(16))?;
        for at in range.clone() {
            let cell = self.cells[at];
            if !self.is_before(cell.written, thread) {
                return Err(race(at, "written", "written", cell.written));
            }
            if let Some(read) = cell
                .read
                .into_iter()
                .find(|read| !self.is_before(*read, thread))
            {
                return Err(race(at, "written", "read", read));
            }
        }
        Ok(range)
    }

    /// Records a write by an asynchronous copy that `thread` started.
    pub(super) fn write_later(
        &mut self,
        address: u64,
        data: &[u8],
        thread: usize,
    ) -> Result<(), String> {
        let range = self.check_write(address, data.len(), thread)?;
        self.put(range, data, COPIES);
        Ok(())
    }

    fn put(&mut self, range: std::ops::Range<usize>, data: &[u8], thread: usize) {
        let written = self.stamp(thread);
        let fences = self.fences.get(thread).copied().unwrap_or(0);
        self.bytes[range.clone()].copy_from_slice(data);
        for cell in &mut self.cells[range] {
            *cell = Cell {
                written,
                fences,
                read: [Stamp::default(); 2],
            };
        }
    }

    fn stamp(&self, thread: usize) -> Stamp {
        let actor = self.actor(thread);
        Stamp {
            thread: thread as u16 + 1,
            clock: self.clocks[actor][actor],
        }
    }

    /// Makes the writes of `thread` visible to asynchronous copies.
    pub(super) fn fence(&mut self, thread: usize) {
        if let Some(fences) = self.fences.get_mut(thread) {
            *fences += 1;
        }
    }

    /// Records a read by asynchronous hardware, which sees ordinary writes only after a fence by
    /// the writer.
    pub(super) fn read_by_hardware(
        &mut self,
        address: u64,
        bytes: usize,
        thread: usize,
    ) -> Result<&[u8], String> {
        for at in address as usize..(address as usize + bytes).min(self.cells.len()) {
            let cell = self.cells[at];
            let writer = usize::from(cell.written.thread).wrapping_sub(1);
            if self
                .fences
                .get(writer)
                .is_some_and(|fences| *fences == cell.fences)
            {
                return Err(format!(
                    "shared byte {at} is read asynchronously, but thread {writer} wrote it without a proxy fence after"
                ));
            }
        }
        self.read(address, bytes, thread)
    }
}

fn race(at: usize, now: &str, before: &str, stamp: Stamp) -> String {
    let who = match usize::from(stamp.thread) - 1 {
        COPIES => "an asynchronous copy".to_owned(),
        thread => format!("thread {thread}"),
    };
    format!(
        "a race: shared byte {at} is {now}, and was {before} by {who} without a barrier between"
    )
}
