//! Lists NVIDIA GPUs, their memory and clocks, and the targets of their kernels.
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
    let devices = (0..count).map(CudaDevice::open);
    let devices = devices.collect::<Result<Vec<_>, _>>()?;
    for (ordinal, device) in devices.iter().enumerate() {
        let (free, total) = device.memory()?;
        let (major, minor) = device.capability();
        let [clock, memory_clock] = device.clocks();
        println!(
            "{ordinal}: {}, compute capability {major}.{minor} ({}), {} multiprocessors at up to {clock} MHz, {} of {} MiB free at up to {memory_clock} MHz",
            device.name(),
            device.target(),
            device.multiprocessors(),
            free >> 20,
            total >> 20
        );
        for other in devices.iter().filter(|other| other.ordinal() != ordinal) {
            let way = if device.reaches(other)? {
                "directly"
            } else {
                "through the host"
            };
            println!("   copies from {} {way}", other.ordinal());
        }
    }
    Ok(())
}
