//! Addresses of shared memory and barriers in a block or a cluster.

use super::block::{Cluster, State, Thread};
use super::decode::{At, Space};
use super::shared::Clock;
use crate::error::Result;

/// The state of the cluster's barrier.
#[derive(Default)]
pub(super) struct Meetings {
    /// The number of completed phases.
    over: u64,
    /// The merged clock of the threads that arrived in completed phases.
    clock: Clock,
    arriving: Clock,
}

/// The bit position of `rank + 1` in addresses of other blocks' shared memory.
const RANK: u32 = 24;
/// An address outside all shared memory.
const NOWHERE: u64 = 1 << 32;

impl Cluster<'_> {
    /// Returns the rank of a thread's block.
    pub(super) fn rank(&self, thread: usize) -> usize {
        thread / self.size
    }

    /// Returns the position of a thread's block in the grid.
    pub(super) fn index(&self, thread: usize) -> [u32; 3] {
        let [across, down, _] = self.launch.entry.cluster.map(|blocks| blocks.max(1));
        let rank = self.rank(thread) as u32;
        let [x, y, z] = self.first;
        let in_plane = rank % (across * down);
        [
            x + in_plane % across,
            y + in_plane / across,
            z + rank / (across * down),
        ]
    }

    /// Converts a block's shared address to a position in the shared memory of the whole cluster.
    pub(super) fn place(&self, rank: usize, address: u64) -> u64 {
        let stride = self.shared.stride;
        let first = if address < stride {
            rank as u64 * stride
        } else {
            NOWHERE
        };
        first + address
    }

    pub(super) fn shared_address(&self, thread: usize, at: At) -> u64 {
        self.place(self.rank(thread), self.address(thread, at) & 0xffff_ffff)
    }

    /// Computes the result of `mapa`: an address in another block.
    pub(super) fn of_rank(address: u64, rank: u64) -> u64 {
        (rank + 1) << RANK | address & ((1 << RANK) - 1)
    }

    /// Returns the position of an access to shared memory. Fails if the other block does not exist.
    pub(super) fn address_in(&self, space: Space, thread: usize, at: At) -> Result<u64, String> {
        if space == Space::Shared {
            return Ok(self.shared_address(thread, at));
        }
        let address = self.address(thread, at) & 0xffff_ffff;
        let own = self.rank(thread);
        let rank = (address >> RANK)
            .checked_sub(1)
            .map_or(own, |rank| rank as usize);
        let Some(threads) = self.threads.get(rank * self.size..(rank + 1) * self.size) else {
            return Err(format!("the cluster has no block of rank {rank}"));
        };
        if rank != own && !self.shared.knows_of(thread, rank * self.size) {
            return Err(format!(
                "block {rank} of the cluster may not have begun yet"
            ));
        }
        if threads.iter().all(|thread| thread.state == State::Done) {
            return Err(format!("block {rank} of the cluster may be over"));
        }
        Ok(self.place(rank, address & ((1 << RANK) - 1)))
    }

    /// Lets the warp that begins with thread `first` arrive at the cluster's barrier.
    pub(super) fn arrive(&mut self, first: usize) -> Result<(), String> {
        for thread in &mut self.threads[first..first + 32] {
            if thread.arrived > thread.waited {
                return Err("a thread arrives at the cluster's barrier twice".to_owned());
            }
            thread.arrived += 1;
        }
        let clock = self.shared.clock(first);
        self.meetings.arriving.resize(clock.len(), 0);
        for (all, one) in self.meetings.arriving.iter_mut().zip(clock) {
            *all = (*all).max(*one);
        }
        self.shared.tick(first);
        Ok(())
    }

    /// Makes a thread wait at the cluster's barrier.
    pub(super) fn meet(&mut self, thread: usize) -> Result<(), String> {
        let Thread {
            arrived,
            waited,
            state,
            ..
        } = &mut self.threads[thread];
        if arrived == waited {
            return Err("a thread waits at the cluster's barrier without arriving".to_owned());
        }
        *waited += 1;
        *state = State::Meeting(*waited);
        Ok(())
    }

    /// Completes the barrier's phase if all threads that have not ended arrived.
    fn end_meeting(&mut self) {
        let others = self
            .threads
            .iter()
            .filter(|thread| thread.state != State::Done);
        let arrived = others.map(|thread| thread.arrived).min().unwrap_or(0);
        if arrived > self.meetings.over {
            self.meetings.over = arrived;
            self.meetings.clock.clone_from(&self.meetings.arriving);
        }
    }

    /// Continues threads whose barrier or phase has completed. Returns whether there were any.
    pub(super) fn release(&mut self) -> Result<bool> {
        let mut moved = false;
        self.end_meeting();
        for thread in 0..self.threads.len() {
            match self.threads[thread].state {
                State::Barrier { id, threads } => {
                    moved |= self.release_barrier(thread, id, threads)?;
                }
                State::Meeting(count) if self.meetings.over >= count => {
                    let clock = self.meetings.clock.clone();
                    self.shared.learn(thread, &clock);
                    self.threads[thread].state = State::Ready;
                    moved = true;
                }
                State::Phase { address, parity }
                    if self.copies.is_over(address, parity) == Ok(true) =>
                {
                    self.threads[thread].state = State::Ready;
                    moved = true;
                }
                _ => {}
            }
        }
        Ok(moved)
    }

    fn release_barrier(&mut self, first: usize, id: u64, threads: u32) -> Result<bool> {
        let waits =
            |thread: &Thread| matches!(thread.state, State::Barrier { id: at, .. } if at == id);
        let block = first / self.size * self.size;
        let waiting: Vec<usize> = (block..block + self.size)
            .filter(|&i| waits(&self.threads[i]))
            .collect();
        let other = |&i: &usize| self.threads[i].state != State::Barrier { id, threads };
        if let Some(other) = waiting.iter().copied().find(|i| other(i)) {
            let message = format!("this barrier's other threads wait for {threads} threads");
            return Err(self.fault(other, &message));
        }
        if (waiting.len() as u32) < threads {
            return Ok(false);
        }
        if waiting.len() as u32 > threads {
            return Err(self.fault(first, "more threads came to a barrier than it takes"));
        }
        for &thread in &waiting {
            self.threads[thread].state = State::Ready;
        }
        self.shared.synchronise(&waiting);
        Ok(true)
    }
}
