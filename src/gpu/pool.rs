//! Reuse of buffers: an operation takes a buffer that an earlier operation has given back, before it creates one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::pipelines::PARAMS_SIZE;
use crate::error::{Error, Result};
use crate::ops::shape::check_limit;
use crate::runtime::NATIVE;

/// The use of a buffer; each use has its own buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// Operands and results of kernels.
    Storage,
    /// Parameters of dispatches.
    Uniform,
    /// Results that are copied to the host.
    Staging,
    /// Values that are copied from the host.
    Upload,
    /// Operands of kernels in memory that the host writes.
    Input,
    /// Results of kernels in memory that the host reads.
    Output,
}

impl Usage {
    fn flags(self) -> wgpu::BufferUsages {
        use wgpu::BufferUsages as Flags;
        match self {
            Usage::Storage if !NATIVE => Flags::STORAGE | Flags::COPY_SRC | Flags::COPY_DST,
            // Some kernels read small operands as uniforms.
            Usage::Storage => Flags::STORAGE | Flags::UNIFORM | Flags::COPY_SRC | Flags::COPY_DST,
            Usage::Uniform => Flags::UNIFORM | Flags::COPY_DST,
            Usage::Staging => Flags::MAP_READ | Flags::COPY_DST,
            Usage::Upload => Flags::MAP_WRITE | Flags::COPY_SRC,
            Usage::Input => Flags::MAP_WRITE | Flags::STORAGE,
            Usage::Output => Flags::MAP_READ | Flags::STORAGE,
        }
    }

    /// Whether buffers come mapped, for the host to write.
    fn is_written_by_host(self) -> bool {
        self.flags().contains(wgpu::BufferUsages::MAP_WRITE)
    }
}

/// Unused buffers by use and size.
///
/// A buffer may come back as soon as these hold, whether or not anyone waits for the work:
/// - The submission that uses it was made. The queue runs submissions in order, so the GPU is done
///   with the buffer before the next user's commands start.
/// - No mapping of it is under way (`readback.rs`). A buffer for the host to write is mapped when it
///   is taken, which waits for the GPU.
/// - It is not mapped.
pub(super) struct Pool {
    device: wgpu::Device,
    max_size: u64,
    /// Further usages of storage buffers, for other code on the device.
    further_usages: wgpu::BufferUsages,
    next_id: AtomicU64,
    state: Mutex<State>,
}

/// Buffers of one use and size, each with its id.
struct UnusedBuffers {
    usage: Usage,
    size: u64,
    buffers: Vec<(u64, wgpu::Buffer)>,
    /// The value of `taken` when one of these buffers was last taken or returned.
    used: u64,
}

#[derive(Default)]
struct State {
    /// The unused buffers; few enough for a linear search.
    unused: Vec<UnusedBuffers>,
    unused_bytes: u64,
    /// The number of buffers taken so far.
    taken: u64,
    /// The epoch, raised by [`Pool::discard_all`]. Buffers of an earlier epoch are not cached.
    epoch: u64,
}

/// The size of the smallest buffer, in bytes: kernels bind as much where they read a small operand as a uniform.
const MIN_SIZE: u64 = PARAMS_SIZE;

/// The limit of unused memory; more is released to the system.
const MAX_UNUSED_BYTES: u64 = 256 << 20;

/// The number of buffers taken after which unused buffers of another kind are stale and may be
/// released.
const STALE: u64 = 64;

/// The rate at which new host-writable memory becomes available: it consists of fresh pages.
const FRESH_BYTES_A_NANOSECOND: u64 = 4;

/// The bytes of all buffers on loan, of all devices.
pub(super) static LOANED_BYTES: AtomicU64 = AtomicU64::new(0);

/// A buffer on loan from the pool, to which it returns when dropped.
pub(super) struct PooledBuffer {
    pub(super) buffer: wgpu::Buffer,
    /// Never used for another buffer, so that caches may be keyed by it.
    pub(super) id: u64,
    pub(super) usage: Usage,
    epoch: u64,
    /// Whether other code may hold the buffer, which is then neither used again nor destroyed here.
    lent: AtomicBool,
    pool: Weak<Pool>,
}

impl State {
    /// The unused buffers of one use and size.
    fn unused(&mut self, usage: Usage, size: u64) -> &mut Vec<(u64, wgpu::Buffer)> {
        let used = self.taken;
        let same = |unused: &UnusedBuffers| unused.usage == usage && unused.size == size;
        let place = self.unused.iter().position(same).unwrap_or_else(|| {
            let buffers = Vec::new();
            self.unused.push(UnusedBuffers {
                usage,
                size,
                buffers,
                used,
            });
            self.unused.len() - 1
        });
        let unused = &mut self.unused[place];
        unused.used = used;
        &mut unused.buffers
    }
}

impl State {
    /// Releases stale or larger buffers to the system until there is room for one of `size` bytes.
    /// Buffers left from other work must not keep this work from reusing its own. Others stay:
    /// alternating work that needs more memory than the limit would otherwise never reuse a buffer.
    fn make_room(&mut self, size: u64) -> bool {
        // There is none for it, whatever makes room. Pages hardly have such buffers, and no bytes for this.
        if NATIVE && size > MAX_UNUSED_BYTES {
            return false;
        }
        let stale = self.taken.saturating_sub(STALE);
        while self.unused_bytes + size > MAX_UNUSED_BYTES {
            let others = self.unused.iter_mut();
            let others = others.filter(|unused| unused.size > size || unused.used < stale);
            let others = others.filter(|unused| !unused.buffers.is_empty());
            let Some(largest) = others.max_by_key(|unused| unused.size) else {
                return false;
            };
            if let Some((_, buffer)) = largest.buffers.pop() {
                self.unused_bytes -= largest.size;
                buffer.destroy();
            }
        }
        true
    }
}

impl Pool {
    pub(super) fn new(
        device: wgpu::Device,
        limits: &wgpu::Limits,
        further_usages: Option<wgpu::BufferUsages>,
    ) -> Arc<Self> {
        let max_size = limits
            .max_buffer_size
            .min(limits.max_storage_buffer_binding_size);
        Arc::new(Self {
            device,
            // Bindings and copies come in multiples of 16 bytes here.
            max_size: max_size / 16 * 16,
            further_usages: further_usages.unwrap_or(wgpu::BufferUsages::empty()),
            next_id: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// Returns the largest number of `f32` elements in one buffer.
    pub(super) fn max_len(&self) -> usize {
        (self.max_size / 4) as usize
    }

    /// A buffer of at least `len` values, whose contents are arbitrary. One that the host is to
    /// write is mapped for that.
    pub(super) fn take(self: &Arc<Self>, usage: Usage, len: usize) -> Result<PooledBuffer> {
        check_limit("the length of a GPU buffer", len, self.max_len())?;
        let size = self.size_class(len as u64 * 4);
        let mut state = self.lock();
        state.taken += 1;
        let reused = state.unused(usage, size).pop();
        let epoch = state.epoch;
        if reused.is_some() {
            state.unused_bytes -= size;
        }
        drop(state);
        let reused = reused.filter(|found| !usage.is_written_by_host() || self.map(found));
        let (id, buffer) = reused.unwrap_or_else(|| self.create(usage, size));
        LOANED_BYTES.fetch_add(buffer.size(), Ordering::Relaxed);
        Ok(PooledBuffer {
            buffer,
            id,
            usage,
            epoch,
            lent: AtomicBool::new(false),
            pool: Arc::downgrade(self),
        })
    }

    /// Takes a buffer of other code, for `len` values.
    pub(super) fn borrow(
        self: &Arc<Self>,
        buffer: wgpu::Buffer,
        len: usize,
    ) -> Result<PooledBuffer> {
        self.check_foreign(&buffer, len)?;
        LOANED_BYTES.fetch_add(buffer.size(), Ordering::Relaxed);
        Ok(PooledBuffer {
            buffer,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            usage: Usage::Storage,
            epoch: self.lock().epoch,
            lent: AtomicBool::new(true),
            pool: Arc::downgrade(self),
        })
    }

    /// Checks that kernels can read `len` values of a buffer that other code made.
    fn check_foreign(&self, buffer: &wgpu::Buffer, len: usize) -> Result<()> {
        let lacking = Usage::Storage.flags() - buffer.usage();
        if !lacking.is_empty() {
            let value = format!("a buffer without {lacking:?}");
            let flags = Usage::Storage.flags();
            return Err(Error::invalid(
                "buffer",
                value,
                format!("one with {flags:?}"),
            ));
        }
        let (size, least) = (buffer.size(), MIN_SIZE.max(len as u64 * 4));
        if size < least || size % 16 != 0 || size > self.max_size.max(MIN_SIZE) {
            let value = format!("{size} bytes");
            let requirement = format!("a multiple of 16 from {least} to {} bytes", self.max_size);
            return Err(Error::invalid("buffer", value, requirement));
        }
        Ok(())
    }

    /// Forgets every buffer, also those in use, after an error that may have left some invalid.
    pub(super) fn discard_all(&self) {
        let mut state = self.lock();
        state.unused.clear();
        state.unused_bytes = 0;
        state.epoch += 1;
    }

    /// Steps of an eighth of a power of two: at most 12.5% are wasted.
    fn size_class(&self, size: u64) -> u64 {
        let size = size.max(MIN_SIZE);
        let step = (size.next_power_of_two() / 16).max(MIN_SIZE);
        size.next_multiple_of(step).min(self.max_size.max(MIN_SIZE))
    }

    fn create(&self, usage: Usage, size: u64) -> (u64, wgpu::Buffer) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let further = match usage {
            Usage::Storage => self.further_usages,
            _ => wgpu::BufferUsages::empty(),
        };
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage.flags() | further,
            mapped_at_creation: usage.is_written_by_host(),
        };
        (id, self.device.create_buffer(&descriptor))
    }

    /// Maps a buffer that was used before, unless the GPU is still at it.
    fn map(&self, (_, buffer): &(u64, wgpu::Buffer)) -> bool {
        let mapped = Arc::new(AtomicBool::new(false));
        let answer = mapped.clone();
        buffer.map_async(wgpu::MapMode::Write, .., move |result| {
            answer.store(result.is_ok(), Ordering::Relaxed);
        });
        let done = self.wait_a_moment(buffer.size(), || mapped.load(Ordering::Relaxed));
        if !done {
            buffer.destroy();
        }
        done
    }

    /// Polls until it is done, or a new buffer of the size would be there: the callback may be in
    /// the hands of another thread that polls.
    fn wait_a_moment(&self, size: u64, done: impl Fn() -> bool) -> bool {
        if !NATIVE {
            let _ = self.device.poll(wgpu::PollType::Poll);
            return done();
        }
        let start = std::time::Instant::now();
        let patience = std::time::Duration::from_nanos(size / FRESH_BYTES_A_NANOSECOND);
        loop {
            let _ = self.device.poll(wgpu::PollType::Poll);
            if done() || start.elapsed() >= patience {
                return done();
            }
            std::hint::spin_loop();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, id: u64, buffer: wgpu::Buffer, usage: Usage, epoch: u64) {
        let size = buffer.size();
        let mut state = self.lock();
        if epoch != state.epoch || !state.make_room(size) {
            drop(state);
            // Cached bind groups still refer to it; its memory need not wait for them.
            buffer.destroy();
            return;
        }
        state.unused_bytes += size;
        state.unused(usage, size).push((id, buffer));
    }
}

impl PooledBuffer {
    /// Lends the buffer to other code: it is then released only with the last of that code's handles.
    pub(super) fn lend(&self) -> &wgpu::Buffer {
        self.lent.store(true, Ordering::Relaxed);
        &self.buffer
    }

    /// Ends the host's access to a buffer that is mapped.
    pub(super) fn unmap(&self) {
        let Some(pool) = self.pool.upgrade() else {
            // The buffer is destroyed next.
            return;
        };
        // The device may be lost since; who uses it next learns that by other ways.
        let scope = pool.device.push_error_scope(wgpu::ErrorFilter::Validation);
        self.buffer.unmap();
        drop(scope.pop());
    }

    /// Keeps every buffer on loan out of the pool, this one too: its state is unknown after an error.
    pub(super) fn discard(&self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.discard_all();
        }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        LOANED_BYTES.fetch_sub(self.buffer.size(), Ordering::Relaxed);
        if *self.lent.get_mut() {
            // Its memory is released with the last handle, in browsers by the garbage collector.
            return;
        }
        match self.pool.upgrade() {
            Some(pool) => pool.give_back(self.id, self.buffer.clone(), self.usage, self.epoch),
            None => self.buffer.destroy(),
        }
    }
}
