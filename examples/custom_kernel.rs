//! A custom elementwise operation in WGSL and Rust, fused with its neighbours on every back-end;
//! and the error of an invalid one.

use relampago::{Backend, CustomOp, GpuCommandBatch, GpuDevice, Result};

fn main() -> Result<()> {
    // The Huber loss of each value: a parabola that goes on as a line beyond `delta`.
    let huber = CustomOp::new(
        "huber",
        &["predicted", "wanted"],
        &["delta"],
        "
        let distance = abs(predicted - wanted);
        if distance <= delta {
            return 0.5 * distance * distance;
        }
        return delta * (distance - 0.5 * delta);",
        |[predicted, wanted], [delta]| {
            let distance = (predicted - wanted).abs();
            if distance <= delta {
                0.5 * distance * distance
            } else {
                delta * (distance - 0.5 * delta)
            }
        },
    )?;
    for backend in [Backend::Simd, Backend::Gpu] {
        match GpuDevice::builder().backend(backend).build() {
            Ok(device) => show(&device, &huber)?,
            Err(error) => println!("{backend:?}: {error}"),
        }
    }
    let broken = CustomOp::new("broken", &["x"], &[], "x + undefined", |[x], []| x);
    println!("{}", broken.expect_err("there is no such value"));
    Ok(())
}

fn show(device: &GpuDevice, huber: &CustomOp) -> Result<()> {
    println!("{}", device.info());
    let mut batch = GpuCommandBatch::new(device.clone());
    let (x, wanted) = (batch.placeholder(4), batch.upload(&[1.0, 1.0, 1.0, 1.0]));
    let predicted = batch.tanh(x);
    let losses = batch.custom_elementwise(huber, &[predicted, wanted], &[0.5]);
    let loss = batch.mean(losses);
    let program = batch.compile(&[losses, loss])?;
    print!("{}", program.explain());
    let results = program.read(&[(&[-2.0, 0.0, 1.0, 5.0]).into()])?;
    println!("losses {:?}, mean {:?}", results[0], results[1]);
    Ok(())
}
