//! Global memory of a kernel: buffers whose accesses are checked for bounds, alignment and
//! conflicts with other threads.

/// The distance between the addresses of buffers, so that an access past the end of one is
/// detected.
const SPAN: u64 = 1 << 40;

/// Global memory: buffers of bytes.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    buffers: Vec<Buffer>,
}

#[derive(Clone, Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// The thread that wrote each pair of bytes in this launch, from 1 on.
    writer: Vec<u64>,
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// A read of memory that nothing may write while the kernel runs.
    ReadConstant,
    Write,
    Atomic,
}

impl Memory {
    /// Creates a memory without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates a buffer with a copy of `bytes`, and returns its address.
    pub fn upload(&mut self, bytes: &[u8]) -> u64 {
        self.buffers.push(Buffer {
            bytes: bytes.to_vec(),
            writer: Vec::new(),
        });
        self.buffers.len() as u64 * SPAN
    }

    /// Allocates a buffer with a copy of `values`, and returns its address.
    pub fn upload_f32(&mut self, values: &[f32]) -> u64 {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.upload(&bytes)
    }

    /// Returns the bytes of the buffer at an address that `upload` returned; empty for any other
    /// address.
    pub fn read(&self, address: u64) -> &[u8] {
        let index = (address / SPAN).wrapping_sub(1) as usize;
        self.buffers.get(index).map_or(&[], |buffer| &buffer.bytes)
    }

    /// Returns the elements of an `f32` buffer at an address that `upload_f32` returned.
    pub fn read_f32(&self, address: u64) -> Vec<f32> {
        let words = self.read(address).chunks_exact(4);
        words
            .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    }

    /// Clears the record of writes at the end of a launch.
    pub(super) fn settle(&mut self) {
        for buffer in &mut self.buffers {
            buffer.writer.clear();
        }
    }

    /// Returns the bytes of one access, or an error message. `thread` is the thread's index in the
    /// grid.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: usize,
        access: Access,
        thread: u64,
    ) -> Result<&mut [u8], String> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(format!("address {address:#x} is not a multiple of {bytes}"));
        }
        let (index, offset) = ((address / SPAN).wrapping_sub(1), (address % SPAN) as usize);
        let buffer = self
            .buffers
            .get_mut(index as usize)
            .ok_or_else(|| format!("address {address:#x} is in no buffer"))?;
        let len = buffer.bytes.len();
        if offset + bytes > len {
            return Err(format!(
                "bytes {offset}..{} of a buffer of {len}",
                offset + bytes
            ));
        }
        buffer.note(offset, bytes, access, thread)?;
        Ok(&mut buffer.bytes[offset..offset + bytes])
    }
}

impl Buffer {
    /// Records a write, and detects conflicts with other threads: no kernel passes values through
    /// global memory, and other blocks may run at any time.
    fn note(
        &mut self,
        offset: usize,
        bytes: usize,
        access: Access,
        thread: u64,
    ) -> Result<(), String> {
        if access == Access::Atomic {
            return Ok(());
        }
        if access == Access::Write && self.writer.is_empty() {
            self.writer.resize(self.bytes.len().div_ceil(2), 0);
        }
        if self.writer.is_empty() {
            return Ok(());
        }
        for writer in &mut self.writer[offset / 2..(offset + bytes).div_ceil(2)] {
            let constant = access == Access::ReadConstant && *writer != 0;
            if constant || (*writer != 0 && *writer != thread + 1) {
                return Err(format!(
                    "byte {offset} of a buffer, which another thread writes in the same launch"
                ));
            }
            if access == Access::Write {
                *writer = thread + 1;
            }
        }
        Ok(())
    }
}
