//! Asynchronous copies, and the barriers in shared memory that report their completion.
//!
//! A `cp.async` copies at its wait, the latest time that the hardware allows; a bulk copy copies at
//! once, the earliest time. The race detector finds errors of the other order.

use super::Tensor;
use super::block::Cluster;
use super::decode::{At, Mbarrier, Src, Tma};
use super::memory::Access;
use super::shared::{COPIES, Clock};
use std::collections::HashMap;

/// A `cp.async` in progress.
struct Pending {
    to: u64,
    data: Vec<u8>,
}

/// A barrier in shared memory.
#[derive(Default)]
struct Barrier {
    count: i64,
    /// The number of arrivals that the current phase still waits for.
    arrivals: i64,
    bytes: i64,
    /// The number of completed phases.
    phase: u64,
    /// The merged clock of the threads that arrived.
    clock: Clock,
    arriving: Clock,
}

/// The copies in progress in a block.
pub(super) struct Copies {
    /// The groups of each thread: committed ones, oldest first, and the open group.
    groups: Vec<Vec<Vec<Pending>>>,
    barriers: HashMap<u64, Barrier>,
    /// The clocks of bulk stores, by thread and group.
    stores: Vec<Vec<u32>>,
}

impl Copies {
    pub(super) fn new(threads: usize) -> Self {
        Copies {
            groups: (0..threads).map(|_| vec![Vec::new()]).collect(),
            barriers: HashMap::new(),
            stores: (0..threads).map(|_| vec![0]).collect(),
        }
    }

    pub(super) fn commit(&mut self, thread: usize) {
        self.groups[thread].push(Vec::new());
    }

    /// Whether the phase with this parity has completed.
    pub(super) fn is_over(&self, address: u64, parity: u64) -> Result<bool, String> {
        let barrier = self
            .barriers
            .get(&address)
            .ok_or_else(|| not_there(address))?;
        Ok(barrier.phase & 1 != parity & 1)
    }

    pub(super) fn clock(&self, address: u64) -> Clock {
        self.barriers
            .get(&address)
            .map_or_else(Clock::new, |barrier| barrier.clock.clone())
    }
}

fn not_there(address: u64) -> String {
    format!("there is no barrier at shared address {address}")
}

impl Barrier {
    fn join(&mut self, clock: &Clock) {
        self.arriving.resize(clock.len(), 0);
        for (all, one) in self.arriving.iter_mut().zip(clock) {
            *all = (*all).max(*one);
        }
    }

    fn turn(&mut self) -> Result<(), String> {
        if self.arrivals < 0 {
            return Err("more threads arrived at a barrier than it takes".to_owned());
        }
        if self.arrivals == 0 && self.bytes == 0 {
            self.phase += 1;
            self.arrivals = self.count;
            self.clock.clone_from(&self.arriving);
        }
        Ok(())
    }
}

impl Cluster<'_> {
    pub(super) fn start_copy(
        &mut self,
        thread: usize,
        to: At,
        from: At,
        bytes: usize,
        given: Src,
    ) -> Result<(), String> {
        let (to, from) = (self.shared_address(thread, to), self.address(thread, from));
        let given = self.value(thread, given) as usize;
        if given > bytes {
            return Err(format!("{given} bytes of a copy of {bytes}"));
        }
        let mut data = vec![0; bytes];
        let number = self.number(thread);
        // Bytes that are filled with zeros are not read, but the address must still be aligned.
        if !from.is_multiple_of(bytes as u64) {
            return Err(format!("address {from:#x} is not a multiple of {bytes}"));
        }
        let word = if given.is_multiple_of(4) { 4 } else { 1 };
        for at in (0..given).step_by(word) {
            let address = from + at as u64;
            let part = self
                .memory
                .access(address, word, Access::ReadConstant, number)?;
            data[at..at + word].copy_from_slice(part);
        }
        self.shared.check_write(to, bytes, thread)?;
        if let Some(open) = self.copies.groups[thread].last_mut() {
            open.push(Pending { to, data });
        }
        Ok(())
    }

    pub(super) fn wait_copies(&mut self, thread: usize, left: usize) -> Result<(), String> {
        let groups = &mut self.copies.groups[thread];
        let done = (groups.len() - 1).saturating_sub(left);
        let done: Vec<Vec<Pending>> = groups.drain(..done).collect();
        for copy in done.into_iter().flatten() {
            self.shared.write(copy.to, &copy.data, thread)?;
        }
        Ok(())
    }

    pub(super) fn mbarrier(&mut self, thread: usize, mbarrier: &Mbarrier) -> Result<(), String> {
        let at = match mbarrier {
            Mbarrier::Init { at, .. }
            | Mbarrier::Arrive { at }
            | Mbarrier::Expect { at, .. }
            | Mbarrier::TryWait { at, .. } => *at,
        };
        let address = self.shared_address(thread, at);
        let clock = self.shared.clock(thread).clone();
        if let Mbarrier::Init { count, .. } = mbarrier {
            let count = self.value(thread, *count) as i64;
            self.shared.write(address, &[0; 8], thread)?;
            self.shared.fence(thread);
            let barrier = Barrier {
                count,
                arrivals: count,
                ..Barrier::default()
            };
            self.copies.barriers.insert(address, barrier);
            return Ok(());
        }
        self.knows_barrier(thread, address)?;
        let bytes = match mbarrier {
            Mbarrier::Expect { bytes, .. } => self.value(thread, *bytes) as i64,
            _ => 0,
        };
        let barrier = self
            .copies
            .barriers
            .get_mut(&address)
            .ok_or_else(|| not_there(address))?;
        barrier.join(&clock);
        barrier.bytes += bytes;
        barrier.arrivals -= 1;
        self.shared.tick(thread);
        barrier.turn()
    }

    /// Checks that a thread is synchronised with the initialisation of a barrier.
    pub(super) fn knows_barrier(&mut self, thread: usize, address: u64) -> Result<(), String> {
        self.shared.read(address, 8, thread).map(drop)
    }

    pub(super) fn tma(&mut self, thread: usize, tma: &Tma) -> Result<(), String> {
        match tma {
            Tma::Load {
                to,
                map,
                at,
                barrier,
            } => {
                let to = self.shared_address(thread, *to);
                let barrier = self.shared_address(thread, *barrier);
                self.load_box(thread, to, self.get(thread, *map), at, barrier)
            }
            Tma::Store { map, at, from } => {
                let from = self.shared_address(thread, *from);
                self.store_box(thread, self.get(thread, *map), at, from)
            }
            Tma::Commit => {
                self.copies.stores[thread].push(0);
                Ok(())
            }
            Tma::WaitRead(left) => {
                let groups = &mut self.copies.stores[thread];
                let done = (groups.len() - 1).saturating_sub(*left);
                let clock = groups.drain(..done).max().unwrap_or(0);
                let mut known = self.shared.clock(thread).clone();
                if let Some(copies) = known.last_mut() {
                    *copies = (*copies).max(clock);
                }
                self.shared.learn(thread, &known);
                Ok(())
            }
        }
    }

    /// Returns the column, row and matrix of a box's first element.
    fn corner(&self, thread: usize, at: &[usize]) -> [i64; 3] {
        let mut corner = [0; 3];
        for (place, &reg) in corner.iter_mut().zip(at) {
            *place = i64::from(self.get(thread, reg) as i32);
        }
        corner
    }

    /// Returns the swizzled position of byte `byte` of row `row` of a box: 16-byte units are
    /// permuted by the row's index modulo 8.
    fn swizzled(base: u64, row: u64, byte: u64) -> u64 {
        swizzle_128(base + row * 128 + byte)
    }

    fn load_box(
        &mut self,
        thread: usize,
        to: u64,
        map: u64,
        at: &[usize],
        barrier: u64,
    ) -> Result<(), String> {
        let tensor = self.tensor(map)?;
        if !to.is_multiple_of(1024) {
            return Err(format!(
                "shared address {to} of a swizzled box is not a multiple of 1024"
            ));
        }
        let corner = self.corner(thread, at);
        let size = u64::from(tensor.ty.bytes());
        let number = self.number(thread);
        for row in 0..u64::from(tensor.tile[0]) {
            for unit in 0..u64::from(tensor.tile[1]) * size / 16 {
                let mut data = [0; 16];
                for i in 0..16 / size {
                    let col = unit * 16 / size + i;
                    if let Some(address) = tensor.value_at(corner, row, col) {
                        let from = self.memory.access(
                            address,
                            size as usize,
                            Access::ReadConstant,
                            number,
                        )?;
                        data[(i * size) as usize..((i + 1) * size) as usize].copy_from_slice(from);
                    }
                }
                let to = Self::swizzled(to, row, unit * 16);
                self.shared.write_later(to, &data, thread)?;
            }
        }
        let bytes = u64::from(tensor.tile[0]) * u64::from(tensor.tile[1]) * size;
        let clock = self.shared.clock(COPIES).clone();
        self.shared.tick(COPIES);
        let at = barrier;
        let barrier = self
            .copies
            .barriers
            .get_mut(&at)
            .ok_or_else(|| not_there(at))?;
        barrier.join(&clock);
        barrier.bytes -= bytes as i64;
        barrier.turn()
    }

    fn store_box(
        &mut self,
        thread: usize,
        map: u64,
        at: &[usize],
        from: u64,
    ) -> Result<(), String> {
        let tensor = self.tensor(map)?;
        let corner = self.corner(thread, at);
        let size = u64::from(tensor.ty.bytes());
        let number = self.number(thread);
        // The copy inherits the clock of the thread that starts it.
        let known = self.shared.clock(thread).clone();
        self.shared.learn(COPIES, &known);
        for row in 0..u64::from(tensor.tile[0]) {
            for col in 0..u64::from(tensor.tile[1]) {
                let from = Self::swizzled(from, row, col * size);
                let data = self.shared.read_by_hardware(from, size as usize, COPIES)?;
                let data = data.to_vec();
                if let Some(address) = tensor.value_at(corner, row, col) {
                    let to = self
                        .memory
                        .access(address, size as usize, Access::Write, number)?;
                    to.copy_from_slice(&data);
                }
            }
        }
        let clock = self.shared.clock(COPIES).last().copied().unwrap_or(0);
        self.shared.tick(COPIES);
        if let Some(open) = self.copies.stores[thread].last_mut() {
            *open = clock;
        }
        Ok(())
    }
}

impl Tensor {
    /// Returns the address of an element of a box with its first element at `[x, y, z]`, if it is
    /// inside the tensor.
    fn value_at(&self, [x, y, z]: [i64; 3], row: u64, col: u64) -> Option<u64> {
        let row = u64::try_from(y + row as i64).ok()?;
        let col = u64::try_from(x + col as i64).ok()?;
        let plane = u64::try_from(z).ok()?;
        let [rows, cols] = self.shape;
        let inside = row < rows && col < cols && plane < self.planes;
        let index = (plane * rows + row) * cols + col;
        inside.then_some(self.address + index * u64::from(self.ty.bytes()))
    }
}

/// Applies the 128-byte swizzle, the XOR of bits 4 to 6 of an address with bits 7 to 9.
pub(super) fn swizzle_128(address: u64) -> u64 {
    address ^ ((address >> 7) & 7) << 4
}
