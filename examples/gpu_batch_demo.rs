//! Batches on every back-end: one operation, a chain, a layer with resident weights, and the same
//! layer as a program.

use relampago::{Backend, GpuCommandBatch, GpuDevice, Result, runtime};

fn main() -> Result<()> {
    for backend in [Backend::Simd, Backend::Gpu] {
        match GpuDevice::builder().backend(backend).build() {
            Ok(device) => runtime::block_on(demo(&device))?,
            Err(error) => println!("{backend:?}: {error}"),
        }
    }
    Ok(())
}

async fn demo(device: &GpuDevice) -> Result<()> {
    println!("{}", device.info());

    let mut single = GpuCommandBatch::new(device.clone());
    let x = single.upload(&[1.0, -2.0, 3.0, -4.0]);
    let y = single.relu(x);
    single.execute_async().await?;
    println!("  relu: {:?}", single.read_async(y).await?);

    let mut chain = GpuCommandBatch::new(device.clone());
    let x = chain.upload(&[1.0, -2.0, 3.0, -4.0]);
    let relu = chain.relu(x);
    let scaled = chain.scale(relu, 10.0);
    let sum = chain.vec_add(scaled, x);
    chain.execute_async().await?;
    println!("  relu → scale → add: {:?}", chain.read_async(sum).await?);

    // y = relu(x · W + b), with W on the device for as many batches as there are.
    let (rows, inner, cols) = (2, 3, 2);
    let weights = device
        .upload_async(&[1.0, 0.0, 0.0, 1.0, 1.0, -1.0])
        .await?;
    let mut layer = GpuCommandBatch::new(device.clone());
    let x = layer.upload(&[1.0, 2.0, 3.0, -1.0, -2.0, -3.0]);
    let w = layer.input(&weights);
    let b = layer.upload(&[0.5, -0.5]);
    let product = layer.matmul(x, w, rows, inner, cols);
    let biased = layer.bias_add(product, b, rows, cols);
    let y = layer.relu(biased);
    layer.execute_async().await?;
    println!("  relu(x·W + b): {:?}", layer.read_async(y).await?);
    print!("{}", layer.explain());

    // The same layer for any x, planned once.
    let mut layer = GpuCommandBatch::new(device.clone());
    let x = layer.placeholder(rows * inner);
    let w = layer.input(&weights);
    let product = layer.matmul(x, w, rows, inner, cols);
    let y = layer.relu(product);
    let program = layer.compile_async(&[y]).await?;
    for sign in [1.0, -1.0] {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|value| sign * value);
        println!(
            "  relu({sign} x·W): {:?}",
            program.read_async(&[(&x).into()]).await?
        );
    }
    Ok(())
}
