//! Tiled reductions on every back-end beside oracles in `f64`.

#![cfg(not(target_arch = "wasm32"))]

#[path = "reduce/custom.rs"]
mod custom;
mod support;

use relampago::{
    Backend, ElementMap, Error, GpuDevice, MaxOp, MinOp, PartitionView, ReduceOp, SumOp, TILE_SIZE,
    TensorView, tiled_max_2d, tiled_min_2d, tiled_reduce_2d, tiled_reduce_partial, tiled_sum_2d,
};
use support::Random;

/// Rows and columns: below, at and beyond tiles, vectors both ways, and enough for threads and
/// for three rounds of tiles of tiles.
const SHAPES: [[usize; 2]; 13] = [
    [1, 1],
    [1, 16],
    [16, 1],
    [3, 5],
    [15, 17],
    [16, 16],
    [17, 33],
    [1, 5_000],
    [5_000, 1],
    [100, 257],
    [257, 100],
    [513, 1_025],
    [3, 100_003],
];

/// Largest share of the sum of magnitudes by which a sum may be off. A tile takes at most 20
/// roundings of half an epsilon, 16 rows and a tree over 16 lanes; a million values are three
/// levels of tiles.
const SUM_ERROR: f64 = 60.0 * f32::EPSILON as f64 / 2.0;

/// Product of all values; an operation that the library does not have.
struct Product;

impl ReduceOp for Product {
    fn identity() -> f32 {
        1.0
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        a * b
    }

    fn wgsl() -> Option<&'static str> {
        Some("a * b")
    }
}

/// The larger of two values, or NaN.
fn larger(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// Largest magnitude, known to the CPU alone.
struct MaxAbs;

impl ReduceOp for MaxAbs {
    const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs));

    fn identity() -> f32 {
        0.0
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        larger(a, b)
    }

    fn wgsl() -> Option<&'static str> {
        Some("maximum(a, b)")
    }
}

/// `MaxAbs` with a WGSL body and a comment.
struct MaxAbsOnGpu;

impl ReduceOp for MaxAbsOnGpu {
    const MAP: Option<ElementMap> =
        Some(ElementMap::new(f32::abs).with_wgsl("let y = -x; return abs(y); // of either"));

    fn identity() -> f32 {
        0.0
    }

    #[inline]
    fn combine(a: f32, b: f32) -> f32 {
        larger(a, b)
    }

    fn wgsl() -> Option<&'static str> {
        Some("if is_nan(a) || a > b { return a; } return b; // the larger one")
    }
}

fn devices() -> Vec<GpuDevice> {
    let build = |backend| GpuDevice::builder().backend(backend).build();
    [Backend::Simd, Backend::Gpu]
        .map(|backend| build(backend).expect("an adapter, if in software"))
        .to_vec()
}

/// The values of each tile, row by row.
fn tiles(data: &[f32], [rows, cols]: [usize; 2]) -> Vec<Vec<f64>> {
    let starts = |len: usize| (0..len).step_by(TILE_SIZE);
    let tile = |row: usize, col: usize| {
        let lines = data.chunks(cols).skip(row).take(TILE_SIZE);
        let values = lines.flat_map(|line| line.iter().skip(col).take(TILE_SIZE));
        values.map(|&x| f64::from(x)).collect()
    };
    starts(rows)
        .flat_map(|row| starts(cols).map(move |col| (row, col)))
        .map(|(row, col)| tile(row, col))
        .collect()
}

fn largest(values: &[f64]) -> f64 {
    let larger = |a: f64, b: &f64| if a.is_nan() || a > *b { a } else { *b };
    values.iter().fold(f64::NEG_INFINITY, larger)
}

fn smallest(values: &[f64]) -> f64 {
    let negated: Vec<f64> = values.iter().map(|x| -x).collect();
    -largest(&negated)
}

fn assert_same(actual: f32, wanted: f64, what: &str) {
    let same = f64::from(actual) == wanted || (actual.is_nan() && wanted.is_nan());
    assert!(same, "{what}: {actual}, not {wanted}");
}

fn assert_sum(actual: f32, values: &[f64], what: &str) {
    let wanted: f64 = values.iter().sum();
    if !wanted.is_finite() {
        return assert_same(actual, wanted, what);
    }
    let magnitude: f64 = values.iter().map(|x| x.abs()).sum();
    let error = (f64::from(actual) - wanted).abs();
    assert!(
        error <= SUM_ERROR * magnitude,
        "{what}: {actual}, not {wanted}, off by {error:e} of {magnitude:e}"
    );
}

/// All reductions of one matrix, by functions and by methods, whole and by tiles.
fn check(device: &GpuDevice, data: &[f32], [rows, cols]: [usize; 2]) {
    let what = format!("{rows}×{cols} on {:?}", device.backend());
    let all: Vec<f64> = data.iter().map(|&x| f64::from(x)).collect();
    for sum in [
        device.tiled_sum_2d(data, rows, cols),
        tiled_sum_2d(data, rows, cols),
    ] {
        assert_sum(sum.unwrap(), &all, &what);
    }
    for max in [
        device.tiled_max_2d(data, rows, cols),
        tiled_max_2d(data, rows, cols),
    ] {
        assert_same(max.unwrap(), largest(&all), &what);
    }
    for min in [
        device.tiled_min_2d(data, rows, cols),
        tiled_min_2d(data, rows, cols),
    ] {
        assert_same(min.unwrap(), smallest(&all), &what);
    }
    let tiles = tiles(data, [rows, cols]);
    let grid = [rows.div_ceil(TILE_SIZE), cols.div_ceil(TILE_SIZE), 1, 1];
    let sums = device
        .tiled_reduce_partial::<SumOp>(data, rows, cols)
        .unwrap();
    assert_eq!((sums.tile_count, sums.values.len()), (grid, tiles.len()));
    for (tile, sum) in tiles.iter().zip(sums.values) {
        assert_sum(sum, tile, &what);
    }
    let largest_of = device
        .tiled_reduce_partial::<MaxOp>(data, rows, cols)
        .unwrap();
    let smallest_of = device
        .tiled_reduce_partial::<MinOp>(data, rows, cols)
        .unwrap();
    let pairs = largest_of.values.into_iter().zip(smallest_of.values);
    for (tile, (max, min)) in tiles.iter().zip(pairs) {
        assert_same(max, largest(tile), &what);
        assert_same(min, smallest(tile), &what);
    }
}

#[test]
fn odd_sizes_are_correct_whole_and_by_tiles() {
    for device in devices() {
        for shape in SHAPES {
            let data = Random(shape[1] as u64).values(shape[0] * shape[1]);
            check(&device, &data, shape);
        }
    }
}

#[test]
fn nan_and_infinities_propagate() {
    let shape = [37, 53];
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for device in devices() {
        for special in specials {
            for place in [0, 15, 16, 17 * 53 + 20, 37 * 53 - 1] {
                let mut data = Random(place as u64).values(37 * 53);
                data[place] = special;
                check(&device, &data, shape);
                // Infinities of both signs add up to no number, within a tile and across.
                data[37 * 53 / 2] = -special;
                check(&device, &data, shape);
            }
            check(&device, &[special; 37 * 53], shape);
        }
    }
}

#[test]
fn every_instruction_set_and_number_of_threads_agrees() {
    for shape in [[1_031, 1_009], [300_001, 3]] {
        check_agreement(shape);
    }
}

fn check_agreement([rows, cols]: [usize; 2]) {
    let data = Random(7).values(rows * cols);
    let expected = tiled_reduce_partial::<SumOp>(&data, rows, cols).unwrap();
    for &isa in relampago::InstructionSet::available() {
        for threads in [1, 2, 5] {
            let builder = GpuDevice::builder().backend(Backend::Simd);
            let device = builder
                .instruction_set(isa)
                .threads(threads)
                .build()
                .unwrap();
            let partials = device.tiled_reduce_partial::<SumOp>(&data, rows, cols);
            assert_eq!(partials.unwrap(), expected, "{isa}, {threads} threads");
        }
    }
}

#[test]
fn small_tiles_of_any_matrix_are_correct() {
    let tiles = [1, 2, 3, 7, 17, 64, 2_000];
    for [rows, cols] in [[1, 1], [40, 3], [1, 2_100], [70, 1], [33, 65], [1_500, 2]] {
        let data = Random(9).values(rows * (cols + 2));
        let gapless = TensorView::new_2d(rows, cols).unwrap();
        let with_gaps = TensorView::with_strides([rows, cols, 1, 1], [cols + 2, 1, 1, 1]).unwrap();
        for matrix in [gapless, with_gaps] {
            let turned = matrix.transpose(0, 1).unwrap();
            for (view, tile_rows, tile_cols) in [matrix, turned].into_iter().flat_map(|view| {
                let pairs = tiles.map(|rows| tiles.map(|cols| (view, rows, cols)));
                pairs.into_iter().flatten()
            }) {
                let values = view.bind(&data).unwrap();
                let tiles = PartitionView::new_2d(view, tile_rows, tile_cols).unwrap();
                let sums = tiles.reduce::<SumOp>(&data).unwrap().values;
                assert_eq!(sums.len(), tiles.total_tiles());
                for (tile, sum) in tiles.iter_tiles().zip(sums) {
                    let [row, col, ..] = tile.start;
                    let tile: Vec<f64> = (row..row + tile.size[0])
                        .flat_map(|row| (col..col + tile.size[1]).map(move |col| [row, col, 0, 0]))
                        .map(|index| f64::from(values.get(index).unwrap()))
                        .collect();
                    let what = format!("{tile_rows}×{tile_cols} of {view:?} at {row}, {col}");
                    assert_sum(sum, &tile, &what);
                }
            }
        }
    }
}

#[test]
fn empty_input_gives_the_identity_and_no_tiles() {
    for device in devices() {
        for [rows, cols] in [[0, 0], [0, 5], [5, 0]] {
            assert_eq!(device.tiled_sum_2d(&[], rows, cols), Ok(0.0));
            assert_eq!(device.tiled_max_2d(&[], rows, cols), Ok(f32::NEG_INFINITY));
            assert_eq!(device.tiled_min_2d(&[], rows, cols), Ok(f32::INFINITY));
            let partials = device
                .tiled_reduce_partial::<SumOp>(&[], rows, cols)
                .unwrap();
            let tile_count = [rows.div_ceil(TILE_SIZE), cols.div_ceil(TILE_SIZE), 1, 1];
            assert!(partials.values.is_empty());
            assert_eq!(partials.tile_count, tile_count);
        }
    }
}

#[test]
fn custom_reductions_run_on_every_back_end() {
    let [rows, cols] = [130, 70];
    let data: Vec<f32> = Random(3).values(rows * cols);
    let near_one: Vec<f32> = data.iter().map(|x| 1.0 + x / 8_192.0).collect();
    let wanted: f64 = near_one.iter().map(|&x| f64::from(x)).product();
    for device in devices() {
        let product = device
            .tiled_reduce_2d::<Product>(&near_one, rows, cols)
            .unwrap();
        // A rounding for each factor at most.
        let bound = wanted.abs() * f64::from(f32::EPSILON) * near_one.len() as f64;
        assert!(
            (f64::from(product) - wanted).abs() <= bound,
            "{product}, not {wanted}"
        );
        // Without WGSL it is SIMD that runs, whatever the device.
        let magnitude = device.tiled_reduce_2d::<MaxAbs>(&data, rows, cols);
        let wanted = data.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        assert_eq!(magnitude, Ok(wanted));
        let magnitude = device.tiled_reduce_2d::<MaxAbsOnGpu>(&data, rows, cols);
        assert_eq!(magnitude, Ok(wanted));
        assert_eq!(tiled_reduce_2d::<MaxAbs>(&data, rows, cols), Ok(wanted));
    }
}

#[test]
fn invalid_wgsl_returns_error_and_leaves_the_device_usable() {
    struct Broken;
    impl ReduceOp for Broken {
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            a + b
        }
        fn wgsl() -> Option<&'static str> {
            Some("a +* b")
        }
    }
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    for _ in 0..2 {
        let error = device.tiled_reduce_2d::<Broken>(&[1.0], 1, 1).unwrap_err();
        assert_eq!(error.code(), "WGSL", "{error}");
        assert!(error.to_string().contains("a +* b"), "{error}");
    }
    assert_eq!(device.tiled_sum_2d(&[1.0, 2.0], 1, 2), Ok(3.0));
}

#[test]
fn mismatched_shapes_return_errors() {
    let wrong_length = Error::LengthMismatch {
        what: "data",
        expected: 6,
        actual: 5,
        reason: " (rows × cols)",
    };
    let overflow = Error::ShapeOverflow {
        what: "data",
        shape: vec![usize::MAX, 2],
    };
    for device in devices() {
        assert_eq!(
            device.tiled_sum_2d(&[0.0; 5], 2, 3),
            Err(wrong_length.clone())
        );
        assert_eq!(
            device.tiled_sum_2d(&[], usize::MAX, 2),
            Err(overflow.clone())
        );
    }
    assert_eq!(tiled_sum_2d(&[0.0; 5], 2, 3), Err(wrong_length));
    assert_eq!(tiled_max_2d(&[], usize::MAX, 2), Err(overflow));
}
