//! Custom reductions: elements are mapped once, `combine` obeys its laws, and batches compute what the device does.

use super::support::Random;
use super::{MaxAbs, MaxAbsOnGpu, Product, SHAPES, devices, larger};
use relampago::{Backend, ElementMap, GpuCommandBatch, ReduceOp, TensorView, tiled_reduce_2d};

/// Each element is mapped once, whatever the number of tiles, of rows and of levels of tiles.
#[test]
fn elements_are_mapped_once_on_every_back_end() {
    /// The sum of halves; NaN counts as nothing.
    struct Halves;
    impl ReduceOp for Halves {
        const MAP: Option<ElementMap> = Some(
            ElementMap::new(|x| if x.is_nan() { 0.0 } else { x / 2.0 })
                .with_wgsl("select(x / 2.0, 0.0, is_nan(x))"),
        );
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            a + b
        }
        fn wgsl() -> Option<&'static str> {
            Some("a + b")
        }
    }
    for device in devices() {
        for [rows, cols] in SHAPES {
            let mut data: Vec<f32> = (0..rows * cols).map(|i| (i % 8) as f32).collect();
            data[rows * cols / 2] = f32::NAN;
            let wanted: f32 = data.iter().filter(|x| !x.is_nan()).sum::<f32>() / 2.0;
            let sum = device.tiled_reduce_2d::<Halves>(&data, rows, cols);
            assert_eq!(sum, Ok(wanted), "{rows}×{cols} on {:?}", device.backend());
            assert_eq!(tiled_reduce_2d::<Halves>(&data, rows, cols), Ok(wanted));
            let parts = device.tiled_reduce_partial::<Halves>(&data, rows, cols);
            assert_eq!(parts.unwrap().values.iter().sum::<f32>(), wanted);
            let view = TensorView::new_2d(rows, cols).unwrap().transpose(0, 1);
            let turned = view.unwrap().bind(&data).unwrap().reduce::<Halves>();
            assert_eq!(turned, Ok(wanted));
        }
        assert_eq!(
            device.tiled_reduce_2d::<MaxAbsOnGpu>(&[-7.0], 1, 1),
            Ok(7.0)
        );
        assert_eq!(device.tiled_reduce_2d::<MaxAbs>(&[-7.0], 1, 1), Ok(7.0));
        let nan = device.tiled_reduce_2d::<MaxAbsOnGpu>(&[f32::NAN], 1, 1);
        assert!(nan.unwrap().is_nan());
        assert_eq!(device.tiled_reduce_2d::<MaxAbsOnGpu>(&[], 0, 5), Ok(0.0));
    }
}

/// The input of a report: −7 on SIMD, 7 on a GPU.
#[test]
fn functions_that_are_no_folds_return_errors() {
    struct LargestAbs;
    impl ReduceOp for LargestAbs {
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            larger(a.abs(), b.abs())
        }
        fn wgsl() -> Option<&'static str> {
            Some("maximum(abs(a), abs(b))")
        }
    }
    struct IgnoresNan;
    impl ReduceOp for IgnoresNan {
        fn identity() -> f32 {
            f32::NEG_INFINITY
        }
        fn combine(a: f32, b: f32) -> f32 {
            a.max(b)
        }
    }
    /// Neutral, but neither associative nor the same in any order.
    struct Last;
    impl ReduceOp for Last {
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            if b == 0.0 { a } else { b }
        }
    }
    struct Distance;
    impl ReduceOp for Distance {
        const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs));
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            (a - b).abs()
        }
    }
    let neutral =
        "as the identity changes no value: change elements in `MAP`, before they are combined";
    for device in devices() {
        for [rows, cols] in [[1, 1], [0, 3], [40, 50]] {
            let data = vec![-7.0; rows * cols];
            let message = |result: relampago::Result<f32>| {
                let error = result.expect_err("no fold");
                assert_eq!(error.code(), "INVALID_ARGUMENT");
                error.to_string()
            };
            let error = message(device.tiled_reduce_2d::<LargestAbs>(&data, rows, cols));
            assert_eq!(
                error,
                format!("`combine` is 7 for 0 and -7, but must be -7, {neutral}")
            );
            let error = message(tiled_reduce_2d::<LargestAbs>(&data, rows, cols));
            assert!(error.contains("7 for 0 and -7"), "{error}");
            let error = message(device.tiled_reduce_2d::<IgnoresNan>(&data, rows, cols));
            assert_eq!(
                error,
                format!("`combine` is -inf for -inf and NaN, but must be NaN, {neutral}")
            );
            let ordered = device.tiled_reduce_2d::<Last>(&data, rows, cols);
            let nested = device.tiled_reduce_2d::<Distance>(&data, rows, cols);
            if cfg!(debug_assertions) {
                let error = message(ordered);
                assert!(
                    error.contains("the order of the values is unspecified"),
                    "{error}"
                );
                let error = message(nested);
                assert!(
                    error.contains("the order of combination is unspecified"),
                    "{error}"
                );
            }
            let partial = device.tiled_reduce_partial::<LargestAbs>(&data, rows, cols);
            assert_eq!(partial.unwrap_err().code(), "INVALID_ARGUMENT");
        }
        let mut batch = GpuCommandBatch::new(device);
        let x = batch.upload(&[-7.0]);
        let _ = batch.tiled_reduce_2d::<LargestAbs>(x, 1, 1);
        assert_eq!(batch.execute_sync().unwrap_err().code(), "INVALID_ARGUMENT");
    }
}

#[test]
fn norms_are_folds_of_magnitudes() {
    struct Norm;
    impl ReduceOp for Norm {
        const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs).with_wgsl("abs(x)"));
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            (a * a + b * b).sqrt()
        }
        fn wgsl() -> Option<&'static str> {
            Some("sqrt(a * a + b * b)")
        }
    }
    let data = Random(11).values(70 * 130);
    let wanted = data
        .iter()
        .map(|&x| f64::from(x).powi(2))
        .sum::<f64>()
        .sqrt();
    for device in devices() {
        let norm = device.tiled_reduce_2d::<Norm>(&data, 70, 130).unwrap();
        assert!(
            (f64::from(norm) - wanted).abs() < 1e-5 * wanted,
            "{norm}, not {wanted}"
        );
    }
}

#[test]
fn batches_and_programs_reduce_like_the_device() {
    for device in devices() {
        for [rows, cols] in [[1, 1], [3, 5], [16, 16], [17, 33], [300, 257]] {
            let data = Random(cols as u64).values(rows * cols);
            let mut batch = GpuCommandBatch::new(device.clone());
            let x = batch.placeholder(rows * cols);
            let scaled = batch.scale(x, -2.0);
            let whole = batch.tiled_reduce_2d::<MaxAbsOnGpu>(scaled, rows, cols);
            let parts = batch.tiled_reduce_partial::<MaxAbsOnGpu>(scaled, rows, cols);
            let after = batch.scale(whole, 0.5);
            let program = batch.compile(&[whole, parts, after]).unwrap();
            let results = program.read(&[(&data).into()]).unwrap();
            let doubled: Vec<f32> = data.iter().map(|x| x * -2.0).collect();
            let largest = device
                .tiled_reduce_2d::<MaxAbsOnGpu>(&doubled, rows, cols)
                .unwrap();
            let partial = device.tiled_reduce_partial::<MaxAbsOnGpu>(&doubled, rows, cols);
            assert_eq!(
                results,
                [vec![largest], partial.unwrap().values, vec![largest / 2.0]]
            );
            let names: Vec<_> = program
                .explain()
                .kernels
                .into_iter()
                .map(|k| k.operations)
                .collect();
            assert!(
                names.iter().any(|names| names == &["MaxAbsOnGpu"]),
                "{names:?}"
            );
        }
        let mut batch = GpuCommandBatch::new(device.clone());
        let none = batch.upload(&[]);
        let whole = batch.tiled_reduce_2d::<Product>(none, 0, 4);
        let parts = batch.tiled_reduce_partial::<Product>(none, 4, 0);
        batch.execute_sync().unwrap();
        assert_eq!(batch.read_sync(whole).unwrap(), [1.0]);
        assert!(batch.read_sync(parts).unwrap().is_empty());
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.upload(&[1.0; 5]);
        let _ = batch.tiled_reduce_2d::<Product>(x, 2, 3);
        let error = batch.execute_sync().unwrap_err().to_string();
        assert!(
            error.ends_with("`data` has 5 values, but must have 6 (rows × cols)"),
            "{error}"
        );
        // Its map has no WGSL.
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.upload(&[-1.0]);
        let y = batch.tiled_reduce_2d::<MaxAbs>(x, 1, 1);
        #[allow(clippy::single_match_else)]
        match device.backend() {
            Backend::Gpu => {
                assert_eq!(batch.execute_sync().unwrap_err().code(), "INVALID_ARGUMENT");
            }
            _ => {
                batch.execute_sync().unwrap();
                assert_eq!(batch.read_sync(y).unwrap(), [1.0]);
            }
        }
    }
}
