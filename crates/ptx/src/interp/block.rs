//! Schedules the threads of one block or cluster, and executes the instructions of single threads.
//!
//! A thread runs until it has to wait, and then the next one runs. Threads that wait at a barrier
//! or at an instruction of a warp continue when all have arrived.

use super::alu::{evaluate, truncate};
use super::cluster::Meetings;
use super::copies::Copies;
use super::decode::{Act, At, Mbarrier, Space, Src, Step};
use super::memory::{Access, Memory};
use super::parse::Entry;
use super::shared::SharedMemory;
use super::wgmma::Flight;
use super::{Statistics, Tensor};
use crate::error::{Error, Result};
use crate::types::PtxType;

/// The base of the addresses of parameters, which only tensor maps use.
const PARAMS: u64 = 0x7000_0000_0000_0000;

/// The state that all blocks of a launch share.
pub(super) struct Launch<'a> {
    pub(super) entry: &'a Entry,
    pub(super) steps: &'a [Step],
    pub(super) params: &'a [u8],
    pub(super) tensors: &'a [(usize, Tensor)],
    pub(super) grid: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) step_limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Ready,
    /// Waiting at an instruction that a warp or four warps execute together.
    Together,
    Barrier {
        id: u64,
        threads: u32,
    },
    /// Waiting until the cluster's barrier has completed this number of times.
    Meeting(u64),
    /// Waiting for the phase with a parity of the barrier at an address.
    Phase {
        address: u64,
        parity: u64,
    },
    Done,
}

/// Writes the reason why a thread waits, for messages.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready => f.write_str("for nothing"),
            Self::Together => f.write_str("for the other threads of its warps"),
            Self::Barrier { id, threads } => write!(f, "for {threads} threads at barrier {id}"),
            Self::Meeting(count) => write!(f, "for the cluster's barrier number {count}"),
            Self::Phase { address, parity } => {
                write!(
                    f,
                    "for a phase of parity {parity} of the barrier at {address}"
                )
            }
            Self::Done => f.write_str("for nothing, as it has ended"),
        }
    }
}

pub(super) struct Thread {
    pub(super) pc: usize,
    pub(super) state: State,
    steps: u64,
    /// The number of arrivals at the cluster's barrier.
    pub(super) arrived: u64,
    pub(super) waited: u64,
    /// Whether `try_wait` already returned false, so that it waits now.
    tried: bool,
}

pub(super) struct Cluster<'a> {
    pub(super) launch: &'a Launch<'a>,
    /// The position of the first block in the grid.
    pub(super) first: [u32; 3],
    /// The number of threads of each block.
    pub(super) size: usize,
    pub(super) memory: &'a mut Memory,
    pub(super) shared: SharedMemory,
    /// The threads of all blocks, one block after the other.
    pub(super) threads: Vec<Thread>,
    pub(super) meetings: Meetings,
    pub(super) copies: Copies,
    pub(super) flight: Vec<Flight>,
    registers: Vec<u64>,
    trace: u64,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(launch: &'a Launch<'a>, first: [u32; 3], memory: &'a mut Memory) -> Self {
        let size = launch.entry.block.iter().product::<u32>() as usize;
        let blocks = launch.entry.cluster.iter().product::<u32>().max(1) as usize;
        let threads = blocks * size;
        let thread = || Thread {
            pc: 0,
            state: State::Ready,
            steps: 0,
            arrived: 0,
            waited: 0,
            tried: false,
        };
        Cluster {
            launch,
            first,
            size,
            memory,
            shared: SharedMemory::new(&launch.entry.shared, launch.dynamic_shared, [size, blocks]),
            meetings: Meetings::default(),
            threads: (0..threads).map(|_| thread()).collect(),
            copies: Copies::new(threads),
            flight: (0..threads.div_ceil(128))
                .map(|_| Flight::default())
                .collect(),
            registers: vec![0; threads * launch.entry.registers],
            trace: 0,
        }
    }

    /// Runs all threads to their end.
    pub(super) fn run(mut self) -> Result<Statistics> {
        loop {
            let mut moved = false;
            for warp in 0..self.threads.len().div_ceil(32) {
                while self.run_warp(warp)? {
                    moved = true;
                }
            }
            moved |= self.release()?;
            if self
                .threads
                .iter()
                .all(|thread| thread.state == State::Done)
            {
                if !self.shared.copies_are_known() {
                    return Err(self.fault(0, "nobody waits for the last asynchronous copy"));
                }
                return Ok(Statistics {
                    blocks: (self.threads.len() / self.size) as u64,
                    instructions: self.threads.iter().map(|thread| thread.steps).sum(),
                    trace: self.trace,
                });
            }
            if !moved {
                return Err(self.deadlock());
            }
        }
    }

    pub(super) fn lanes(&self, warp: usize) -> std::ops::Range<usize> {
        warp * 32..(warp * 32 + 32).min(self.threads.len())
    }

    /// Runs the threads of a warp that can run. Returns whether there were any.
    fn run_warp(&mut self, warp: usize) -> Result<bool> {
        let mut moved = false;
        for thread in self.lanes(warp) {
            if self.threads[thread].state == State::Ready {
                self.run_thread(thread)?;
                moved = true;
            }
        }
        Ok(self.run_together(warp)? || moved)
    }

    fn run_thread(&mut self, thread: usize) -> Result<()> {
        while self.threads[thread].state == State::Ready {
            let pc = self.threads[thread].pc;
            let Some(step) = self.launch.steps.get(pc) else {
                return Err(self.fault(thread, "the text ends without `ret`"));
            };
            self.threads[thread].steps += 1;
            if self.threads[thread].steps > self.launch.step_limit {
                return Err(self.fault(thread, "an endless loop"));
            }
            self.threads[thread].pc += 1;
            let held = |(reg, wanted)| (self.get(thread, reg) == 1) == wanted;
            if !step.guard.is_none_or(held) {
                continue;
            }
            if let Err(message) = self.act(thread, &step.act) {
                self.threads[thread].pc = pc;
                return Err(self.fault(thread, &message));
            }
        }
        Ok(())
    }

    pub(super) fn fault(&self, thread: usize, message: &str) -> Error {
        let step = self.launch.steps.get(self.threads[thread].pc);
        Error::Fault {
            line: step.map_or(0, |step| step.line),
            block: self.index(thread),
            thread: (thread % self.size) as u32,
            message: message.to_owned(),
        }
    }

    fn deadlock(&self) -> Error {
        let stuck = self
            .threads
            .iter()
            .position(|thread| thread.state != State::Done);
        let stuck = stuck.unwrap_or(0);
        let state = self.threads[stuck].state;
        self.fault(
            stuck,
            &format!("deadlock, no thread can continue; this one waits {state}"),
        )
    }

    pub(super) fn get(&self, thread: usize, reg: usize) -> u64 {
        self.registers[thread * self.launch.entry.registers + reg]
    }

    pub(super) fn set(&mut self, thread: usize, reg: usize, value: u64) {
        self.registers[thread * self.launch.entry.registers + reg] = value;
    }

    pub(super) fn value(&self, thread: usize, src: Src) -> u64 {
        match src {
            Src::Reg(reg) => self.get(thread, reg),
            Src::Imm(value) => value,
        }
    }

    pub(super) fn address(&self, thread: usize, At(base, offset): At) -> u64 {
        self.get(thread, base).wrapping_add_signed(offset)
    }

    fn note(&mut self, value: u64) {
        self.trace = (self.trace ^ value)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
    }

    fn act(&mut self, thread: usize, act: &Act) -> Result<(), String> {
        match act {
            Act::Alu { op, ty, to, from } => {
                let values = from.map(|src| self.value(thread, src));
                let result = evaluate(*op, *ty, values)?;
                self.note(result);
                self.set(thread, *to, result);
            }
            Act::Load {
                space,
                ty,
                constant,
                to,
                at,
            } => {
                return self.load(thread, *space, *ty, *constant, to, *at);
            }
            Act::Store {
                space,
                ty,
                from,
                at,
            } => {
                return self.store(thread, *space, *ty, from, *at);
            }
            Act::Branch(target) => self.threads[thread].pc = *target,
            Act::Special { to, name } => {
                let value = self.special(thread, name);
                self.set(thread, *to, value);
            }
            Act::Pack { to, from } => {
                let [low, high] = from.map(|reg| self.get(thread, reg) & 0xffff);
                self.set(thread, *to, high << 16 | low);
            }
            Act::Unpack { to, from } => {
                let word = self.value(thread, *from);
                self.set(thread, to[0], word & 0xffff);
                self.set(thread, to[1], (word >> 16) & 0xffff);
            }
            Act::LoadParam { to, ty, offset } => {
                let bytes = self
                    .launch
                    .params
                    .get(*offset..*offset + ty.bytes() as usize);
                self.set(thread, *to, word(bytes.ok_or("no such parameter")?));
            }
            Act::ParamAddress { to, offset } => self.set(thread, *to, PARAMS + *offset as u64),
            Act::RedAdd { ty, at, from } => return self.red_add(thread, *ty, *at, *from),
            Act::Return => self.threads[thread].state = State::Done,
            Act::Barrier { id, threads } => {
                let all = self.size as u32;
                let (id, threads) = (self.value(thread, *id), threads.unwrap_or(all));
                self.threads[thread].state = State::Barrier { id, threads };
            }
            Act::ClusterWait => return self.meet(thread),
            Act::Mapa { to, from, rank } => {
                let [from, rank] = [*from, *rank].map(|src| self.value(thread, src));
                self.set(thread, *to, Self::of_rank(from, rank));
            }
            Act::Warp(_) | Act::Group(_) => {
                self.threads[thread].pc -= 1;
                self.threads[thread].state = State::Together;
            }
            Act::CopyAsync {
                to,
                from,
                bytes,
                given,
            } => {
                return self.start_copy(thread, *to, *from, *bytes, *given);
            }
            Act::CopyCommit => self.copies.commit(thread),
            Act::CopyWait(left) => return self.wait_copies(thread, *left),
            Act::ProxyFence => self.shared.fence(thread),
            Act::Mbarrier(Mbarrier::TryWait { to, at, parity }) => {
                return self.try_wait(thread, *to, *at, *parity);
            }
            Act::Mbarrier(mbarrier) => return self.mbarrier(thread, mbarrier),
            Act::Tma(tma) => return self.tma(thread, tma),
            Act::Nothing => {}
        }
        Ok(())
    }

    fn special(&self, thread: usize, name: &str) -> u64 {
        let [x, y, _] = self.launch.entry.block.map(|n| n as usize);
        let (index, rank) = (self.index(thread), self.rank(thread));
        let thread = thread % self.size;
        let value = match name {
            "%tid.x" => thread % x,
            "%tid.y" => thread / x % y,
            "%tid.z" => thread / x / y,
            "%laneid" => thread % 32,
            "%warpid" => thread / 32,
            "%ntid.x" => x,
            "%ntid.y" => y,
            "%ctaid.x" => index[0] as usize,
            "%ctaid.y" => index[1] as usize,
            "%ctaid.z" => index[2] as usize,
            "%nctaid.x" => self.launch.grid[0] as usize,
            "%nctaid.y" => self.launch.grid[1] as usize,
            "%nctaid.z" => self.launch.grid[2] as usize,
            "%cluster_ctarank" => rank,
            _ => 0,
        };
        value as u64
    }

    /// Returns a thread's index in the grid.
    pub(super) fn number(&self, thread: usize) -> u64 {
        let [x, y, z] = self.index(thread).map(u64::from);
        let [across, down, _] = self.launch.grid.map(u64::from);
        let block = x + across * (y + down * z);
        block * self.size as u64 + (thread % self.size) as u64
    }

    fn load(
        &mut self,
        thread: usize,
        space: Space,
        ty: PtxType,
        constant: bool,
        to: &[usize],
        at: At,
    ) -> Result<(), String> {
        let size = ty.bytes() as usize;
        self.note(self.address(thread, at));
        let access = if constant {
            Access::ReadConstant
        } else {
            Access::Read
        };
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..size * to.len()];
        let number = self.number(thread);
        bytes.copy_from_slice(match space {
            Space::Global => {
                let address = self.address(thread, at);
                self.memory.access(address, bytes.len(), access, number)?
            }
            Space::Shared | Space::Cluster => {
                let address = self.address_in(space, thread, at)?;
                self.shared.read(address, bytes.len(), thread)?
            }
        });
        for (to, bytes) in to.iter().zip(bytes.chunks_exact(size)) {
            let value = word(bytes);
            // Signed bytes are sign-extended.
            let value = match ty {
                PtxType::S8 => u64::from(i32::from(value as i8) as u32),
                _ => value,
            };
            self.set(thread, *to, value);
        }
        Ok(())
    }

    fn store(
        &mut self,
        thread: usize,
        space: Space,
        ty: PtxType,
        from: &[Src],
        at: At,
    ) -> Result<(), String> {
        let size = ty.bytes() as usize;
        self.note(self.address(thread, at));
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..size * from.len()];
        for (src, bytes) in from.iter().zip(bytes.chunks_exact_mut(size)) {
            let value = truncate(ty, self.value(thread, *src)).to_le_bytes();
            bytes.copy_from_slice(&value[..size]);
        }
        match space {
            Space::Global => {
                let (address, number) = (self.address(thread, at), self.number(thread));
                let to = self
                    .memory
                    .access(address, bytes.len(), Access::Write, number)?;
                to.copy_from_slice(bytes);
            }
            Space::Shared | Space::Cluster => {
                let address = self.address_in(space, thread, at)?;
                self.shared.write(address, bytes, thread)?;
            }
        }
        Ok(())
    }

    fn red_add(&mut self, thread: usize, ty: PtxType, at: At, from: Src) -> Result<(), String> {
        let (address, number) = (self.address(thread, at), self.number(thread));
        let value = self.value(thread, from);
        let to = self.memory.access(address, 4, Access::Atomic, number)?;
        let sum = evaluate(super::alu::Alu::Add, ty, [word(to), value, 0])?;
        to.copy_from_slice(&(sum as u32).to_le_bytes());
        Ok(())
    }

    fn try_wait(&mut self, thread: usize, to: usize, at: At, parity: Src) -> Result<(), String> {
        let (address, parity) = (self.shared_address(thread, at), self.value(thread, parity));
        self.knows_barrier(thread, address)?;
        let over = self.copies.is_over(address, parity)?;
        if over {
            let clock = self.copies.clock(address);
            self.shared.learn(thread, &clock);
        } else if self.threads[thread].tried {
            // Execute this instruction again when the phase has completed.
            self.threads[thread].pc -= 1;
            self.threads[thread].state = State::Phase { address, parity };
        }
        self.threads[thread].tried = !over;
        self.set(thread, to, over.into());
        Ok(())
    }

    pub(super) fn tensor(&self, address: u64) -> Result<Tensor, String> {
        let offset = address.wrapping_sub(PARAMS) as usize;
        let found = self.launch.tensors.iter().find(|(at, _)| *at == offset);
        found
            .map(|(_, tensor)| *tensor)
            .ok_or_else(|| "no tensor map is there".to_owned())
    }
}

/// Reads up to eight little-endian bytes as a number.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}
