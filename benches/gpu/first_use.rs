//! The time that the first operations wait for the driver's compiler, in a process of its own.

use anyhow::Result;
use relampago::{Backend, Conv2d, GpuDevice, Op};
use std::path::Path;
use std::time::Instant;

/// Makes the kernels of some operations, with a pipeline cache in a folder, and prints the
/// milliseconds. The first process finds the folder empty.
pub(crate) fn measure(folder: &Path) -> Result<()> {
    let start = Instant::now();
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder.pipeline_cache(folder).build()?;
    let opened = start.elapsed();
    let side = 4096;
    let (m, k, n) = (side, side, side);
    let softmax = Op::SoftmaxRows {
        rows: side,
        cols: side,
    };
    let options = Conv2d::same(side, side, 7, 7);
    let image = [side * side];
    let operations: [(Op, &[usize]); 5] = [
        (Op::Gelu, &image),
        (Op::Sum, &image),
        (softmax, &image),
        (Op::Matmul { m, k, n }, &[side * side; 2]),
        (Op::Convolve2d { options }, &[side * side, 49]),
    ];
    println!("device: {:.1} ms", milliseconds(opened));
    for (op, lens) in operations {
        let start = Instant::now();
        device.warmup(&[(op.clone(), lens)])?;
        println!("{}: {:.1} ms", op.name(), milliseconds(start.elapsed()));
    }
    Ok(())
}

fn milliseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
