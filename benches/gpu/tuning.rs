//! Which kernel multiplies matrices the fastest, as `GpuDevice::tune` finds out.

use crate::resident::PRODUCTS;
use anyhow::Result;
use relampago::{GpuDevice, Op};

pub(crate) fn measure(device: &GpuDevice, divide: usize) -> Result<()> {
    for dims in PRODUCTS {
        let [m, k, n] = dims.map(|dim| dim.div_ceil(divide));
        let (op, lens) = (Op::Matmul { m, k, n }, [m * k, k * n]);
        for tuning in device.tune(&[(op, &lens)])? {
            let times = tuning.times.iter();
            let times = times.map(|(name, time)| format!("{name} {:.1} µs", time * 1e6));
            let times: Vec<String> = times.collect();
            println!("{m}×{k}×{n}: {}", times.join(", "));
        }
    }
    Ok(())
}
