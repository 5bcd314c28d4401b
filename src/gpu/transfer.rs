//! Copies between the host's memory and mapped buffers. Large ones are shared among threads: one
//! thread alone does not fill the way to memory.

use std::mem::MaybeUninit;

/// Bytes that a thread copies at a time.
#[cfg(all(feature = "threads", not(target_arch = "wasm32")))]
const CHUNK: usize = 1 << 20;

/// Copies values to a buffer that is mapped for writing.
pub(super) fn write(buffer: &wgpu::Buffer, values: &[f32]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    // What makes a mapping fail is in sight of the error scopes, or has lost the device.
    if let Ok(mut view) = buffer.slice(..bytes.len() as u64).get_mapped_range_mut() {
        write_bytes(view.slice(..), bytes);
    }
    buffer.unmap();
}

#[cfg(all(feature = "threads", not(target_arch = "wasm32")))]
fn write_bytes(target: wgpu::WriteOnly<'_, [u8]>, bytes: &[u8]) {
    use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

    let (chunks, mut rest) = target.into_chunks::<CHUNK>();
    let (whole, tail) = bytes.as_chunks::<CHUNK>();
    rest.copy_from_slice(tail);
    let chunks: Vec<_> = chunks.into_iter().collect();
    if chunks.is_empty() {
        return;
    }
    chunks
        .into_par_iter()
        .zip(whole)
        .for_each(|(chunk, bytes)| {
            let mut chunk: wgpu::WriteOnly<'_, [u8]> = chunk.into();
            chunk.copy_from_slice(bytes);
        });
}

#[cfg(not(all(feature = "threads", not(target_arch = "wasm32"))))]
fn write_bytes(mut target: wgpu::WriteOnly<'_, [u8]>, bytes: &[u8]) {
    target.copy_from_slice(bytes);
}

/// Fills `out` with values from a view of a mapped buffer.
pub(super) fn read(view: &[u8], out: &mut [MaybeUninit<f32>]) {
    #[cfg(all(feature = "threads", not(target_arch = "wasm32")))]
    if view.len() >= 2 * CHUNK {
        use rayon::iter::{IndexedParallelIterator, ParallelIterator};
        use rayon::slice::{ParallelSlice, ParallelSliceMut};

        let parts = out.par_chunks_mut(CHUNK / 4).zip(view.par_chunks(CHUNK));
        parts.for_each(|(out, view)| read_part(view, out));
        return;
    }
    read_part(view, out);
}

fn read_part(view: &[u8], out: &mut [MaybeUninit<f32>]) {
    for (value, bytes) in out.iter_mut().zip(view.as_chunks::<4>().0) {
        value.write(f32::from_le_bytes(*bytes));
    }
}
