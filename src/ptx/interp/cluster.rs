//! What threads of a block or a cluster share: shared memory's addresses, and barriers.

use super::block::{Cluster, State, Thread};
use super::decode::{At, Space};
use super::shared::Clock;
use crate::ptx::error::Result;

/// Barriers of the whole cluster.
#[derive(Default)]
pub(super) struct Meetings {
    /// How many are over.
    over: u64,
    /// What those who came knew: to those that are over, and to the one that is not.
    clock: Clock,
    arriving: Clock,
}

/// Addresses of other blocks' shared memory begin with the block's rank and one.
const RANK: u32 = 24;
/// Beyond all shared memory.
const NOWHERE: u64 = 1 << 32;

impl Cluster<'_> {
    /// The rank of a thread's block.
    pub(super) fn rank(&self, thread: usize) -> usize {
        thread / self.size
    }

    /// The place of a thread's block in the grid.
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

    /// Where what a block calls by an address lies among all blocks' shared memory.
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

    /// The address in another block that `mapa` gives.
    pub(super) fn of_rank(address: u64, rank: u64) -> u64 {
        (rank + 1) << RANK | address & ((1 << RANK) - 1)
    }

    /// Where an access to shared memory goes: another block has to be there.
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

    /// The warp that begins with thread `first` comes to the cluster's barrier.
    pub(super) fn arrive(&mut self, first: usize) -> Result<(), String> {
        for thread in &mut self.threads[first..first + 32] {
            if thread.arrived > thread.waited {
                return Err("a thread comes to the cluster's barrier a second time".to_owned());
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

    /// Waits there for the others.
    pub(super) fn meet(&mut self, thread: usize) -> Result<(), String> {
        let Thread {
            arrived,
            waited,
            state,
            ..
        } = &mut self.threads[thread];
        if arrived == waited {
            return Err("a thread waits for the cluster without having come".to_owned());
        }
        *waited += 1;
        *state = State::Meeting(*waited);
        Ok(())
    }

    /// Threads that are done are not waited for.
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

    /// Lets threads go on whose barrier is complete or whose phase is over; whether there were
    /// any.
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
