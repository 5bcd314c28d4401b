//! Tiled reductions on every back-end: predefined, custom, and of a part of a matrix.

use relampago::{
    Backend, ElementMap, GpuDevice, MaxOp, PartitionView, ReduceOp, Result, SumOp, TILE_SIZE,
    TensorView,
};

/// Square root of the sum of squares. It combines magnitudes, of which 0 changes none.
struct Norm;

impl ReduceOp for Norm {
    const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs).with_wgsl("abs(x)"));

    fn identity() -> f32 {
        0.0
    }

    fn combine(a: f32, b: f32) -> f32 {
        a.hypot(b)
    }

    fn wgsl() -> Option<&'static str> {
        Some("length(vec2f(a, b))")
    }
}

fn main() -> Result<()> {
    let (rows, cols) = (100, 70);
    let data: Vec<f32> = (0..rows * cols).map(|i| (i % 13) as f32).collect();
    for backend in [Backend::Simd, Backend::Gpu] {
        match GpuDevice::builder().backend(backend).build() {
            Ok(device) => demo(&device, &data, rows, cols)?,
            Err(error) => println!("{backend:?}: {error}"),
        }
    }

    // Every other column of the lower half, in tiles of another shape, without a copy.
    let matrix = TensorView::new_2d(rows, cols)?;
    let half = TensorView::with_strides([rows / 2, cols / 2, 1, 1], [cols, 2, 1, 1])?;
    let half = half.with_offset(rows / 2 * cols)?;
    println!("part of it: {}", half.bind(&data)?.reduce::<SumOp>()?);
    let columns = PartitionView::new_2d(matrix, rows, 10)?;
    println!("by columns: {:?}", columns.reduce::<MaxOp>(&data)?.values);
    Ok(())
}

fn demo(device: &GpuDevice, data: &[f32], rows: usize, cols: usize) -> Result<()> {
    println!("{}", device.info());
    let sum = device.tiled_sum_2d(data, rows, cols)?;
    let max = device.tiled_max_2d(data, rows, cols)?;
    let min = device.tiled_min_2d(data, rows, cols)?;
    println!("  sum {sum}, max {max}, min {min}");
    println!(
        "  norm {}",
        device.tiled_reduce_2d::<Norm>(data, rows, cols)?
    );
    let partials = device.tiled_reduce_partial::<SumOp>(data, rows, cols)?;
    let [down, across, ..] = partials.tile_count;
    println!("  {down}×{across} tiles of {TILE_SIZE}×{TILE_SIZE}, row by row:");
    for row in partials.values.chunks(across) {
        println!("    {row:?}");
    }
    Ok(())
}
