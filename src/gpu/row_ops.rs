//! Softmaxes and norms: which kernels go over the rows of a matrix.

use super::context::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use super::context::Limits;
use super::kernels::{self, Kernel};
use super::recorder::{GpuBuffer, Recorder};
use super::tune::Key;
use crate::error::Result;

/// The least number of values of a long row per workgroup that is worth a second dispatch.
const MIN_VALUES_PER_CHUNK: usize = 2048;
/// The largest number of chunks of a row; every workgroup of the second dispatch combines all of
/// them, with few invocations on a software adapter. There are more if a chunk would exceed this
/// number of elements, which llvmpipe's loops cannot reach.
const MAX_CHUNKS: usize = 256;
const MAX_SOFTWARE_CHUNKS: usize = 64;
const MAX_VALUES_PER_SOFTWARE_CHUNK: usize = 1 << 17;
/// The longest row that is left to one workgroup, unless there are many rows.
const MAX_SINGLE_ROW: usize = 8192;
/// The number of rows that keep a GPU busy with a workgroup each.
const MANY_ROWS: usize = 128;

/// The kernels of an operation on rows.
struct Family {
    /// Returns the key of the choice, given rows and their length.
    key: fn([usize; 2]) -> Key,
    /// Kernels whose workgroups hold whole rows in registers. For up to 64, 256 and 512 elements a
    /// subgroup's part holds a row; up to 1,024, 4,096 and 16,384 a workgroup or a part of it does.
    /// For the longest there is one with subgroups of 32 invocations, and one without.
    #[cfg(not(target_arch = "wasm32"))]
    held: [&'static Kernel; 7],
    /// The kernel whose workgroups read a whole row three times.
    row: &'static Kernel,
    /// The kernels whose workgroups take a chunk of a row each: the partial result, and the final
    /// result.
    partial: &'static Kernel,
    apply: &'static Kernel,
}

static SOFTMAX: Family = Family {
    key: Key::softmax,
    #[cfg(not(target_arch = "wasm32"))]
    held: [
        &kernels::SOFTMAX_64,
        &kernels::SOFTMAX_256,
        &kernels::SOFTMAX_512,
        &kernels::SOFTMAX_1024,
        &kernels::SOFTMAX_4096,
        &kernels::SOFTMAX_16384_BY_32,
        &kernels::SOFTMAX_16384,
    ],
    row: &kernels::SOFTMAX_ROW,
    partial: &kernels::SOFTMAX_PARTIAL,
    apply: &kernels::SOFTMAX_APPLY,
};

static NORM: Family = Family {
    key: Key::norm,
    #[cfg(not(target_arch = "wasm32"))]
    held: [
        &kernels::NORM_64,
        &kernels::NORM_256,
        &kernels::NORM_512,
        &kernels::NORM_1024,
        &kernels::NORM_4096,
        &kernels::NORM_16384_BY_32,
        &kernels::NORM_16384,
    ],
    row: &kernels::NORM_ROW,
    partial: &kernels::NORM_PARTIAL,
    apply: &kernels::NORM_APPLY,
};

/// Returns the key for softmaxes of this shape, and the kernels that can compute them.
pub(super) fn softmaxes(gpu: &Gpu, shape: [usize; 2]) -> (Key, Vec<&'static str>) {
    SOFTMAX.candidates(gpu, shape)
}

/// Returns the key for norms of this shape, and the kernels that can compute them.
pub(super) fn norms(gpu: &Gpu, shape: [usize; 2]) -> (Key, Vec<&'static str>) {
    NORM.candidates(gpu, shape)
}

/// Records the softmax of each row, or its logarithm.
pub(super) fn softmax(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    shape: (usize, usize),
    as_log: bool,
) -> Result<()> {
    let own = [f32::NEG_INFINITY.to_bits(), as_log.into()];
    SOFTMAX.record(recorder, (shape, own), [&[x][..], &[]], output)
}

/// Records the norm of each row: around its mean where the inputs are `x`, a gain and a bias, or
/// around 0 where there is no bias.
pub(super) fn norm(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    shape: (usize, usize),
    epsilon: f32,
) -> Result<()> {
    let own = [epsilon.to_bits(), u32::from(inputs.len() == 3)];
    // Bound, but not used, where there is none.
    let bias = inputs.last().unwrap_or(&inputs[1]);
    NORM.record(
        recorder,
        (shape, own),
        [&[&inputs[0]], &[&inputs[1], bias]],
        output,
    )
}

/// The largest number of elements that a workgroup ranks in one dispatch, unless a row has more.
const MAX_RANKED: usize = 1 << 17;

/// Records the indices of each row's `k` largest elements. Every rank takes a pass over the row, and several ranks are
/// divided among dispatches: GPUs are reset if one takes too long.
pub(super) fn top_k(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    [rows, cols, k]: [usize; 3],
) -> Result<()> {
    let what = "the length of a row on llvmpipe";
    recorder.gpu.check_on_llvmpipe(what, cols, 1 << 17)?;
    let ranks = (MAX_RANKED / cols).max(1);
    for first in (0..k).step_by(ranks) {
        let end = k.min(first + ranks);
        let params = [rows, cols, k, first, end].map(|size| size as u32);
        recorder.dispatch(&kernels::TOP_K, &params, &[x], output, rows)?;
    }
    Ok(())
}

/// Whether one workgroup gets to the end of such a row, which it reads three times.
fn reads_whole(gpu: &Gpu, cols: usize) -> bool {
    let what = "the length of a row on llvmpipe";
    gpu.check_on_llvmpipe(what, cols, 1 << 18).is_ok()
}

impl Family {
    /// Records one dispatch if a row has enough work for a workgroup or there are enough rows for
    /// all workgroups. Otherwise records two, with each row divided into chunks. The parameters are
    /// the shape and the kernels' `own` ones; the inputs are those by rows and those shared by all
    /// rows.
    fn record(
        &self,
        recorder: &mut Recorder<'_>,
        ((rows, cols), own): ((usize, usize), [u32; 2]),
        [x, shared]: [&[&GpuBuffer]; 2],
        output: &GpuBuffer,
    ) -> Result<()> {
        let mut inputs = x.to_vec();
        if let Some((kernel, rows_each)) = self.row_kernel(recorder, rows, cols) {
            let params = [rows as u32, cols as u32, own[0], own[1]];
            inputs.extend(shared);
            let workgroups = rows.div_ceil(rows_each);
            return recorder.dispatch(kernel, &params, &inputs, output, workgroups);
        }
        let most = if recorder.gpu.adapter().software {
            MAX_SOFTWARE_CHUNKS.max(cols / MAX_VALUES_PER_SOFTWARE_CHUNK)
        } else {
            MAX_CHUNKS
        };
        let chunks = cols.div_ceil(MIN_VALUES_PER_CHUNK).min(most);
        let [rows, cols, chunks, chunk] =
            [rows, cols, chunks, cols.div_ceil(chunks)].map(|size| size as u32);
        let params = [rows, cols, chunks, chunk, own[0], own[1]];
        let workgroups = (rows * chunks) as usize;
        let partials = recorder.allocate(2 * workgroups)?;
        recorder.dispatch(self.partial, &params, x, &partials, workgroups)?;
        inputs.push(&partials);
        inputs.extend(shared);
        recorder.dispatch(self.apply, &params, &inputs, output, workgroups)
    }

    /// Returns the kernel whose workgroups compute whole rows, if such a kernel is worthwhile, and the number of rows
    /// per workgroup. The kernel holds rows in registers or reads them three times.
    fn row_kernel(
        &self,
        recorder: &Recorder<'_>,
        rows: usize,
        cols: usize,
    ) -> Option<(&'static Kernel, usize)> {
        if let Some(name) = recorder.fastest((self.key)([rows, cols])) {
            if name == self.partial.name {
                return None;
            }
            let mut whole = self.whole_rows(recorder.gpu, cols);
            if let Some(kernel) = whole.find(|(kernel, _)| kernel.name == name) {
                return Some(kernel);
            }
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(kernel) = self.held_kernels(&recorder.gpu.limits, cols).next() {
            return Some(kernel);
        }
        let whole =
            (cols <= MAX_SINGLE_ROW || rows >= MANY_ROWS) && reads_whole(recorder.gpu, cols);
        whole.then_some((self.row, 1))
    }

    /// Returns the kernels that hold rows of this length in registers, with the number of rows per workgroup. Small
    /// workgroups come first, and among equal ones the kernel with subgroups.
    #[cfg(not(target_arch = "wasm32"))]
    fn held_kernels(
        &self,
        limits: &Limits,
        cols: usize,
    ) -> impl Iterator<Item = (&'static Kernel, usize)> {
        let [by_4, by_16, by_32, short, middle, long_by_32, long] = self.held;
        let [least, most] = limits.usable_subgroups();
        let held = [
            (least >= 4, 4, 64, by_4),
            (least >= 16, 16, 16, by_16),
            (least >= 32, 32, 8, by_32),
            (true, 64, 4, short),
            (true, 256, 1, middle),
            ([least, most] == [32; 2], 1024, 1, long_by_32),
            (true, 1024, 1, long),
        ];
        let most = limits.invocations;
        let fits = move |&(offered, invocations, rows, _): &(bool, usize, usize, _)| {
            offered
                && cols.is_multiple_of(4)
                && cols <= 16 * invocations
                && rows * invocations <= most
        };
        let held = held.into_iter().filter(fits);
        held.map(|(_, _, rows, kernel)| (kernel, rows))
    }

    /// Returns all kernels whose workgroups can compute whole rows of this length, with the number of rows per
    /// workgroup.
    #[cfg_attr(target_arch = "wasm32", allow(unused_variables))]
    fn whole_rows(&self, gpu: &Gpu, cols: usize) -> impl Iterator<Item = (&'static Kernel, usize)> {
        #[cfg(not(target_arch = "wasm32"))]
        let held = self.held_kernels(&gpu.limits, cols);
        #[cfg(target_arch = "wasm32")]
        let held = std::iter::empty();
        held.chain(reads_whole(gpu, cols).then_some((self.row, 1)))
    }

    fn candidates(&self, gpu: &Gpu, [rows, cols]: [usize; 2]) -> (Key, Vec<&'static str>) {
        let whole = self.whole_rows(gpu, cols);
        let names = whole.map(|(kernel, _)| kernel.name);
        let names = names.chain([self.partial.name]).collect();
        ((self.key)([rows, cols]), names)
    }
}
