//! Cumulative sums, orders, sums by index and Fourier transforms of rows: as many dispatches as each needs, which write by turns to
//! two buffers. The last one writes the result.

use super::kernels::{self, Kernel};
use super::lower::CHUNK;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// The parameters of the dispatches of an operation, after the number of invocations that all have.
struct Steps {
    kernel: &'static Kernel,
    invocations: usize,
    params: Vec<Vec<usize>>,
    /// Whether each dispatch also reads the elements.
    reads_elements: bool,
}

/// Records cumulative sums or products.
pub(super) fn scan(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    cols: usize,
    is_product: bool,
) -> Result<()> {
    let distances = powers_below(cols).chain((cols == 1).then_some(1));
    let params = distances.map(|distance| vec![cols, distance, is_product.into()]);
    let steps = Steps {
        kernel: &kernels::SCAN,
        invocations: output.len,
        params: params.collect(),
        reads_elements: false,
    };
    steps.record(recorder, x, output)
}

/// Records the indices of each row's elements in ascending order.
pub(super) fn argsort(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    cols: usize,
) -> Result<()> {
    let mut params = Vec::new();
    let halves = powers_below(cols).chain((cols == 1).then_some(1));
    for half in halves {
        let is_first = usize::from(params.is_empty());
        params.push(vec![cols, 2 * half, 0, is_first]);
        let mut distance = half / 2;
        while distance > 0 {
            params.push(vec![cols, 2 * half, distance, 0]);
            distance /= 2;
        }
    }
    let steps = Steps {
        kernel: &kernels::SORT,
        invocations: output.len,
        params,
        reads_elements: true,
    };
    steps.record(recorder, x, output)
}

/// Records sums of the rows that have the same index, by the order of the indices.
pub(super) fn scatter(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    cols: usize,
) -> Result<()> {
    let (x, indices) = (&inputs[0], &inputs[1]);
    let what = "the number of indices on llvmpipe";
    recorder.gpu.check_on_llvmpipe(what, indices.len, 1 << 15)?;
    let order = recorder.temporary(indices.len.max(1))?;
    if indices.len > 0 {
        argsort(recorder, indices, &order, indices.len)?;
    }
    let params = [output.len, cols, indices.len].map(|size| size as u32);
    let workgroups = output.len.div_ceil(CHUNK);
    let all = [x, indices, &order];
    recorder.dispatch(&kernels::SCATTER, &params, &all, output, workgroups)?;
    recorder.give_back(order);
    Ok(())
}

/// Records the Fourier transform of rows of `len` complex numbers.
pub(super) fn fft(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    output: &GpuBuffer,
    len: usize,
) -> Result<()> {
    if len == 1 {
        return scan(recorder, x, output, 1, false);
    }
    let steps = Steps {
        kernel: &kernels::FFT,
        invocations: output.len / 4,
        params: powers_below(len).map(|step| vec![len / 2, step]).collect(),
        reads_elements: false,
    };
    steps.record(recorder, x, output)
}

/// Returns the powers of two below a number.
fn powers_below(end: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1usize), |power| Some(power * 2))
        .take_while(move |&power| power < end)
}

impl Steps {
    fn record(self, recorder: &mut Recorder<'_>, x: &GpuBuffer, output: &GpuBuffer) -> Result<()> {
        let workgroups = self.invocations.div_ceil(CHUNK);
        let last = self.params.len().saturating_sub(1);
        let mut from: Option<GpuBuffer> = None;
        for (at, own) in self.params.iter().enumerate() {
            let mut params = vec![self.invocations as u32];
            params.extend(own.iter().map(|&param| param as u32));
            let to = if at == last {
                output.clone()
            } else {
                recorder.temporary(output.len)?
            };
            let source = from.as_ref().unwrap_or(x);
            let both = [x, source];
            let inputs = if self.reads_elements {
                &both[..]
            } else {
                &both[1..]
            };
            recorder.dispatch(self.kernel, &params, inputs, &to, workgroups)?;
            if let Some(used) = from.replace(to) {
                recorder.give_back(used);
            }
        }
        Ok(())
    }
}
