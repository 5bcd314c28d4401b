//! The shortest way in: a device, an operation, a number.

use relampago::{GpuDevice, Result};

fn main() -> Result<()> {
    let device = GpuDevice::new()?;
    println!("running on {}", device.info());

    let x = [-2.0, -1.0, 0.0, 1.0, 2.0];
    let mut y = [0.0; 5];
    device.gelu(&x, &mut y)?;
    println!("gelu({x:?}) = {y:?}");

    let n = 512;
    let a: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32).collect();
    let mut c = vec![0.0; n * n];
    device.matmul(&a, &a, &mut c, n, n, n)?;
    println!("the mean of a {n} × {n} product: {}", device.mean(&c)?);
    Ok(())
}
