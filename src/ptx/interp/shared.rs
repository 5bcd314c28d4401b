//! Shared memory of one block, or of a cluster's one after the other, with a race detector.
//!
//! Every warp has a clock, and knows how far into each other warp's time it has synchronised
//! (a vector clock; Lamport 1978, Mattern 1989). An access to bytes that another thread touched
//! at a time which the accessing warp does not know of is a race, however the interpreter
//! happened to order the two. Asynchronous copies act as one more warp.

use super::parse::SharedRange;

/// Clocks of all warps and, last, of asynchronous copies.
pub(super) type Clock = Vec<u32>;

/// Who touched a byte, and when.
#[derive(Clone, Copy, Default)]
struct Stamp {
    /// From 1 on; 0 is nobody.
    thread: u16,
    clock: u32,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    written: Stamp,
    /// The writer's count of [`SharedMemory::fence`]s then.
    fences: u32,
    /// The last reader, and the last from another warp than its.
    read: [Stamp; 2],
}

pub(super) struct SharedMemory {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// First byte and byte after the last of every array.
    ranges: Vec<(u32, u32)>,
    /// Bytes from a block's memory to the next one's.
    pub(super) stride: u64,
    clocks: Vec<Clock>,
    fences: Vec<u32>,
}

/// The thread that asynchronous copies count as.
pub(super) const COPIES: usize = u16::MAX as usize - 1;

impl SharedMemory {
    /// For `blocks` of `size` threads; of more than one, warps are whole.
    pub(super) fn new(arrays: &[SharedRange], dynamic: u32, [size, blocks]: [usize; 2]) -> Self {
        let threads = size * blocks;
        let end = |range: &SharedRange| range.from + range.bytes.unwrap_or(dynamic);
        let own: Vec<(u32, u32)> = arrays.iter().map(|r| (r.from, end(r))).collect();
        let size = own.iter().map(|range| range.1).max().unwrap_or(0);
        // Boxes with a swizzle begin at multiples of 1024.
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

    /// What a thread has synchronised with.
    pub(super) fn clock(&self, thread: usize) -> &Clock {
        &self.clocks[self.actor(thread)]
    }

    /// The thread's warp now knows of all that `other` knows.
    pub(super) fn learn(&mut self, thread: usize, other: &Clock) {
        let actor = self.actor(thread);
        for (mine, theirs) in self.clocks[actor].iter_mut().zip(other) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether the thread has synchronised with the warp of another since that began.
    pub(super) fn knows_of(&self, thread: usize, other: usize) -> bool {
        self.clocks[self.actor(thread)][self.actor(other)] > 0
    }

    /// What comes after is later than what others have learnt.
    pub(super) fn tick(&mut self, thread: usize) {
        let actor = self.actor(thread);
        self.clocks[actor][actor] += 1;
    }

    /// Whether some warp has waited for the last of the copies that are a warp of their own.
    pub(super) fn copies_are_known(&self) -> bool {
        let last = self.clocks.len() - 1;
        let (copies, warps) = (&self.clocks[last], &self.clocks[..last]);
        // After each copy their clock goes on by one.
        let newest = copies[last] - 1;
        newest == 0 || warps.iter().any(|clock| clock[last] >= newest)
    }

    /// All `threads` learn of each other.
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

    /// Whether what `stamp` says comes before what `thread` does now.
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

    /// Whether `thread` may write here now.
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

    /// A write by an asynchronous copy, which `thread` was allowed to start.
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

    /// What `thread` wrote so far is visible to asynchronous copies.
    pub(super) fn fence(&mut self, thread: usize) {
        if let Some(fences) = self.fences.get_mut(thread) {
            *fences += 1;
        }
    }

    /// A read by hardware that does not see ordinary writes without a fence of their writer.
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
