//! Products on SIMD, for a page that knows numbers only.

use relampago::{GpuDevice, InstructionSet};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a future that waits for nothing, as all work on SIMD.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Returns 1 if kernels are compiled to simd128.
#[unsafe(no_mangle)]
pub extern "C" fn has_simd128() -> u32 {
    let best = InstructionSet::best();
    u32::from(matches!(best, InstructionSet::Simd128 | InstructionSet::RelaxedSimd128))
}

/// Returns the sum of all elements of `a · b`, where both are `side × side`, `a` has rows of
/// 0, 1, 2, 3, 0, … and `b` is the identity times 2; NaN if the product fails.
#[unsafe(no_mangle)]
pub extern "C" fn multiply(side: usize) -> f32 {
    let a: Vec<f32> = (0..side * side).map(|i| (i % side % 4) as f32).collect();
    let mut b = vec![0.0; side * side];
    b.iter_mut().step_by(side + 1).for_each(|value| *value = 2.0);
    let mut c = vec![0.0; side * side];
    let work = async {
        let device = GpuDevice::new_async().await?;
        device.matmul_async(&a, &b, &mut c, side, side, side).await
    };
    match now(work) {
        Some(Ok(())) => c.iter().sum(),
        _ => f32::NAN,
    }
}
