//! NVIDIA GPUs, their memory, and what kernels are written for on them.
//!
//! `cargo run --no-default-features --features cuda --example cuda_monitor`

use relampago::cuda::{CudaDevice, Error};

fn main() -> Result<(), Error> {
    let count = match CudaDevice::count() {
        Err(error @ Error::NoDriver { .. }) => {
            println!("{error}");
            return Ok(());
        }
        count => count?,
    };
    for ordinal in 0..count {
        let device = CudaDevice::open(ordinal)?;
        let (free, total) = device.memory()?;
        let (major, minor) = device.capability();
        println!(
            "{ordinal}: {}, compute capability {major}.{minor} ({}), {} multiprocessors, {} of {} MiB free",
            device.name(),
            device.target(),
            device.multiprocessors(),
            free >> 20,
            total >> 20
        );
    }
    Ok(())
}
