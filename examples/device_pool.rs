//! A layer of a model on every device there is, divided by rows: the same result as on one, and
//! how long each takes. `cargo run --release --example device_pool -- 4096`

use std::time::{Duration, Instant};

use relampago::{Backend, BufferId, GpuCommandBatch, GpuDevice, GpuDevicePool, Result};

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .flat_map(|size| size.parse())
        .collect();
    let all = GpuDevice::builder().backend(Backend::Gpu).build_pool()?;
    let all = match all.devices().count() {
        // Two logical devices of the only adapter show as much, but save no time.
        1 => GpuDevicePool::from_devices([all.device()?.clone(), all.device()?.rebuild()?])?,
        _ => all,
    };
    for device in all.devices() {
        println!("{}", device.info());
    }
    let one = GpuDevicePool::from_devices(all.devices().take(1).cloned())?;
    for &size in if sizes.is_empty() { &[384] } else { &sizes[..] } {
        // Small ones are divided, too, so that there is something to see.
        let least = if size < 2048 { 1 << 14 } else { 1 << 21 };
        compare(
            &one.clone().least_values(least),
            &all.clone().least_values(least),
            size,
        )?;
    }
    Ok(())
}

/// `y = relu(x · W)` with `W` on every device.
fn layer(device: &GpuDevice, size: usize) -> (GpuCommandBatch, BufferId) {
    let mut batch = GpuCommandBatch::new(device.clone());
    let weights: Vec<f32> = (0..size * size)
        .map(|i| (i % 17) as f32 / 17.0 - 0.5)
        .collect();
    let (x, w) = (batch.placeholder(size * size), batch.upload(&weights));
    let product = batch.matmul(x, w, size, size, size);
    let y = batch.relu(product);
    (batch, y)
}

fn compare(one: &GpuDevicePool, all: &GpuDevicePool, size: usize) -> Result<()> {
    let x: Vec<f32> = (0..size * size)
        .map(|i| (i % 23) as f32 / 23.0 - 0.5)
        .collect();
    let (batch, y) = layer(&one.device()?.clone(), size);
    let undivided = batch.compile(&[y])?;
    let (by_one, by_all) = (one.compile(&batch, &[y])?, all.compile(&batch, &[y])?);
    let mut results = [const { Vec::new() }; 3];
    let mut shortest = [Duration::MAX; 3];
    for _ in 0..5 {
        for way in 0..3 {
            let start = Instant::now();
            results[way] = match way {
                0 => undivided.read(&[(&x).into()])?,
                1 => by_one.read(&[(&x).into()])?,
                _ => by_all.read(&[(&x).into()])?,
            };
            shortest[way] = shortest[way].min(start.elapsed());
        }
    }
    let [whole, one, all] = &results;
    println!(
        "{size} x {size}, {} parts: undivided {:.2?}, on one device {:.2?}, on all {:.2?}",
        by_all.parts(),
        shortest[0],
        shortest[1],
        shortest[2]
    );
    let same = |same| if same { "the same" } else { "another" };
    println!(
        "  by all {} result as by one; by one {} as undivided",
        same(one == all),
        same(whole == one)
    );
    Ok(())
}
