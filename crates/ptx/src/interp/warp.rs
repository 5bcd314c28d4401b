//! Instructions of a warp: shuffles, votes and matmuls of small matrices.

use super::block::{Cluster, State};
use super::decode::{Act, At, Shuffle, Src, Warp};
use crate::error::Result;
use crate::half::{bf16_to_f32, f16_to_f32};
use crate::types::PtxType;

impl Cluster<'_> {
    /// Executes an instruction of a warp or of four warps if all their threads have reached it.
    /// Returns whether they had.
    pub(super) fn run_together(&mut self, warp: usize) -> Result<bool> {
        let lanes = self.lanes(warp);
        let first = lanes.start;
        if self.threads[first].state != State::Together {
            return Ok(false);
        }
        let pc = self.threads[first].pc;
        let launch = self.launch;
        let act = &launch.steps[pc].act;
        let all = match act {
            Act::Group(_) => {
                let start = first / 128 * 128;
                start..(start + 128).min(self.threads.len())
            }
            _ => lanes,
        };
        let here = |thread: usize| {
            self.threads[thread].state == State::Together && self.threads[thread].pc == pc
        };
        if !all.clone().all(here) {
            return Ok(false);
        }
        let result = match act {
            Act::Warp(_) if all.len() != 32 => Err("the warp has fewer than 32 threads".to_owned()),
            Act::Group(_) if all.len() != 128 => Err("fewer than 128 threads came".to_owned()),
            Act::Warp(warp) => self.warp(first, warp),
            Act::Group(group) => self.group(all.start, group),
            _ => Ok(()),
        };
        if let Err(message) = result {
            return Err(self.fault(first, &message));
        }
        for thread in all {
            self.threads[thread].pc += 1;
            self.threads[thread].state = State::Ready;
        }
        Ok(true)
    }

    fn warp(&mut self, first: usize, warp: &Warp) -> Result<(), String> {
        match warp {
            Warp::Sync => {
                let all: Vec<usize> = (first..first + 32).collect();
                self.shared.synchronise(&all);
            }
            Warp::Arrive => return self.arrive(first),
            Warp::Shuffle {
                mode,
                to,
                from,
                lane,
            } => self.shuffle(first, *mode, *to, *from, *lane),
            Warp::Vote { all, to, from } => {
                let votes: Vec<bool> = (first..first + 32)
                    .map(|t| self.value(t, *from) == 1)
                    .collect();
                let result = if *all {
                    votes.iter().all(|v| *v)
                } else {
                    votes.iter().any(|v| *v)
                };
                for thread in first..first + 32 {
                    self.set(thread, *to, result.into());
                }
            }
            Warp::LoadMatrix { transposed, to, at } => {
                return self.load_matrix(first, *transposed, to, *at);
            }
            Warp::Mma { ty, sums, a, b, c } => return self.mma(first, *ty, sums, a, b, c),
            Warp::WmmaLoad { to, at, stride } => return self.wmma_load(first, to, *at, *stride),
            Warp::WmmaMma { sums, a, b, c } => self.wmma(first, sums, a, b, c),
            Warp::WmmaStore { from, at, stride } => {
                return self.wmma_store(first, from, *at, *stride);
            }
        }
        Ok(())
    }

    fn shuffle(&mut self, first: usize, mode: Shuffle, to: usize, from: Src, lane: Src) {
        let values: Vec<u64> = (first..first + 32).map(|t| self.value(t, from)).collect();
        for i in 0..32usize {
            let by = self.value(first + i, lane) as usize;
            let source = match mode {
                Shuffle::Xor => i ^ (by & 31),
                Shuffle::Down => i + (by & 31),
                Shuffle::Index => by & 31,
            };
            // A lane keeps its own value if the source is outside the warp.
            let value = values.get(source).copied().unwrap_or(values[i]);
            self.set(first + i, to, value);
        }
    }

    /// Executes `ldmatrix`. Lane `8i + j` has the address of row `j` of matrix `i`. From each
    /// matrix, a lane gets the two elements at `2 · (lane % 4)` of row `lane / 4` (of the column,
    /// if transposed).
    fn load_matrix(
        &mut self,
        first: usize,
        transposed: bool,
        to: &[usize],
        at: At,
    ) -> Result<(), String> {
        for (i, &to) in to.iter().enumerate() {
            let mut rows = [[0; 16]; 8];
            for (j, row) in rows.iter_mut().enumerate() {
                let thread = first + 8 * i + j;
                let address = self.shared_address(thread, at);
                row.copy_from_slice(self.shared.read(address, 16, thread)?);
            }
            let value = |row: usize, col: usize| {
                let (row, col) = if transposed { (col, row) } else { (row, col) };
                u64::from(rows[row][2 * col]) | u64::from(rows[row][2 * col + 1]) << 8
            };
            for lane in 0..32 {
                let (row, col) = (lane / 4, lane % 4 * 2);
                let word = value(row, col) | value(row, col + 1) << 16;
                self.set(first + lane, to, word);
            }
        }
        Ok(())
    }

    /// Executes `mma`: `m16n8k32` and `m16n8k16` of signed bytes, `m16n8k16` of 16-bit types and
    /// `m16n8k8` of tf32, in the layouts of the PTX ISA. With `g = lane / 4` and `t = lane % 4`,
    /// register `i` of A holds row `g + 8 · (i % 2)`, and register `i` of C row `g + 8 · (i / 2)`.
    fn mma(
        &mut self,
        first: usize,
        ty: PtxType,
        sums: &[usize],
        a: &[usize],
        b: &[usize],
        c: &[usize],
    ) -> Result<(), String> {
        let (mut left, mut right) = ([[0f32; 32]; 16], [[0f32; 8]; 32]);
        // The number of elements of a register, which are consecutive along k.
        let per = 4 / ty.bytes() as usize;
        let value = |word: u64, i: usize| match ty {
            PtxType::F16 => f16_to_f32((word >> (16 * i)) as u16),
            PtxType::BF16 => bf16_to_f32((word >> (16 * i)) as u16),
            PtxType::S8 => ((word >> (8 * i)) as i8).into(),
            // Tensor cores read the upper 19 bits.
            _ => f32::from_bits(word as u32 & !0x1fff),
        };
        let counts = [sums.len(), a.len(), b.len(), c.len()];
        if !matches!(counts, [4, 4, 2, 4] | [4, 2, 1, 4]) {
            return Err("a fragment has the wrong number of registers".to_owned());
        }
        let depth = 4 * per * b.len();
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            for i in 0..per {
                for (j, &a) in a.iter().enumerate() {
                    let word = self.get(first + lane, a);
                    left[g + 8 * (j % 2)][t * per + i + 4 * per * (j / 2)] = value(word, i);
                }
                for (j, &b) in b.iter().enumerate() {
                    let word = self.get(first + lane, b);
                    right[t * per + i + 4 * per * j][g] = value(word, i);
                }
            }
        }
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            for i in 0..4 {
                let (row, col) = (g + 8 * (i / 2), 2 * t + i % 2);
                let before = self.get(first + lane, c[i]) as u32;
                let mut sum = match ty {
                    PtxType::S8 => f64::from(before as i32),
                    _ => f64::from(f32::from_bits(before)),
                };
                for k in 0..depth {
                    sum += f64::from(left[row][k]) * f64::from(right[k][col]);
                }
                let bits = match ty {
                    // Integer accumulators wrap around.
                    PtxType::S8 => sum as i64 as u32,
                    _ => (sum as f32).to_bits(),
                };
                self.set(first + lane, sums[i], bits.into());
            }
        }
        Ok(())
    }

    /// Loads a 16×16 matrix of f16, two elements for each register. The layout is unspecified in
    /// PTX; here lanes 0 to 15 hold one row each, and the other lanes the same rows again.
    fn wmma_load(&mut self, first: usize, to: &[usize], at: At, stride: Src) -> Result<(), String> {
        for lane in 0..32 {
            let thread = first + lane;
            let stride = self.value(thread, stride);
            let row = self.shared_address(thread, at) + (lane as u64 % 16) * stride * 2;
            for (i, &to) in to.iter().enumerate() {
                let bytes = self.shared.read(row + 4 * i as u64, 4, thread)?;
                let word = super::block::word(bytes);
                self.set(thread, to, word);
            }
        }
        Ok(())
    }

    fn wmma(&mut self, first: usize, sums: &[usize], a: &[usize], b: &[usize], c: &[usize]) {
        let matrix = |regs: &[usize]| {
            let half = |row: usize, col: usize| {
                let word = self.get(first + row, regs[col / 2]);
                f64::from(f16_to_f32((word >> (16 * (col % 2))) as u16))
            };
            let mut matrix = [[0f64; 16]; 16];
            for (row, values) in matrix.iter_mut().enumerate() {
                for (col, value) in values.iter_mut().enumerate() {
                    *value = half(row, col);
                }
            }
            matrix
        };
        let (left, right) = (matrix(a), matrix(b));
        // Lane `l` holds 8 accumulators: those of row `l / 2` from column `8 · (l % 2)` on.
        for lane in 0..32 {
            let (row, start) = (lane / 2, lane % 2 * 8);
            for i in 0..8 {
                let mut sum = f64::from(f32::from_bits(self.get(first + lane, c[i]) as u32));
                for k in 0..16 {
                    sum += left[row][k] * right[k][start + i];
                }
                self.set(first + lane, sums[i], (sum as f32).to_bits().into());
            }
        }
    }

    fn wmma_store(
        &mut self,
        first: usize,
        from: &[usize],
        at: At,
        stride: Src,
    ) -> Result<(), String> {
        for lane in 0..32u64 {
            let thread = first + lane as usize;
            let stride = self.value(thread, stride);
            let index = (lane / 2) * stride + lane % 2 * 8;
            let base = self.shared_address(thread, at) + index * 4;
            for (i, &from) in from.iter().enumerate() {
                let value = self.get(thread, from) as u32;
                self.shared
                    .write(base + 4 * i as u64, &value.to_le_bytes(), thread)?;
            }
        }
        Ok(())
    }
}
