//! Tests of views against plain index arithmetic, of kernels on views against copies, and of
//! invalid views.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use relampago::{
    Backend, BoundView, Error, GpuDevice, InstructionSet, MaxOp, MemoryLayout, PartitionView,
    Result, SumOp, TensorView,
};
use support::Random;

/// Shapes without elements must take no time.
#[test]
fn empty_views_accept_any_side() {
    let tiled = MemoryLayout::Tiled {
        tile_size: [16, 16],
    };
    for layout in [MemoryLayout::ColumnMajor, tiled] {
        let view = TensorView::new_2d(usize::MAX, 0)
            .unwrap()
            .with_layout(layout)
            .unwrap();
        assert!(view.bind(&[]).unwrap().contiguous().unwrap().is_empty());
    }
}

fn values(len: usize) -> Vec<f32> {
    Random(len as u64).values(len)
}

/// Every value of a view, by its indices one after the other.
fn shown(view: &BoundView<'_>) -> Vec<f32> {
    let [d0, d1, d2, d3] = view.view().shape();
    let mut all = Vec::new();
    for i in 0..d0 {
        for j in 0..d1 {
            for k in 0..d2 {
                all.extend((0..d3).map(|l| view.get([i, j, k, l]).unwrap()));
            }
        }
    }
    all
}

/// Returns matrices of one shape in every layout, with the lengths of their data.
fn matrices(rows: usize, cols: usize) -> Vec<(TensorView, usize)> {
    let plain = TensorView::new_2d(rows, cols).unwrap();
    let tiled = |r, c| {
        let layout = MemoryLayout::Tiled { tile_size: [r, c] };
        plain.with_layout(layout).unwrap()
    };
    let within = TensorView::new_2d(rows + 5, cols + 9).unwrap();
    let within = within.slice(2..rows + 2).unwrap();
    let spread = TensorView::with_strides([rows, cols, 1, 1], [2 * cols + 3, 2, 7, 7]).unwrap();
    let transposed = TensorView::new_2d(cols + 3, rows + 1).unwrap();
    let transposed = transposed.transpose(0, 1).unwrap();
    let transposed = transposed.slice(1..rows + 1).unwrap();
    let views = vec![
        plain,
        plain.with_layout(MemoryLayout::ColumnMajor).unwrap(),
        plain.with_offset(11).unwrap(),
        within.slice_dim(1, 4..cols + 4).unwrap(),
        spread,
        transposed.slice_dim(1, 3..cols + 3).unwrap(),
        tiled(4, 8),
        tiled(3, 5),
        tiled(1, cols.max(1)),
        TensorView::with_strides([rows, cols, 1, 1], [0, 1, 1, 1]).unwrap(),
        // A window that slides over a vector, by one value and by more.
        TensorView::with_strides([rows, cols, 1, 1], [1, 1, 1, 1]).unwrap(),
        TensorView::with_strides([rows, cols, 1, 1], [3, 1, 1, 1]).unwrap(),
    ];
    views.into_iter().map(|view| (view, view.reach())).collect()
}

#[test]
fn strides_offsets_and_layouts_address_the_right_elements() {
    let data: Vec<f32> = (0..120).map(|i| i as f32).collect();
    let view = TensorView::<f32>::new([2, 3, 4, 5]).unwrap();
    assert_eq!(
        (view.strides(), view.numel(), view.ndim()),
        ([60, 20, 5, 1], 120, 4)
    );
    assert_eq!(view.linear_index([1, 2, 3, 4]), Some(119));
    assert_eq!(view.linear_index([2, 0, 0, 0]), None);
    assert_eq!(*view.bind(&data).unwrap().contiguous().unwrap(), data);

    let part = view.slice_dim(2, 1..3).unwrap().transpose(0, 3).unwrap();
    assert_eq!(
        (part.shape(), part.strides(), part.offset()),
        ([5, 3, 2, 2], [1, 20, 5, 60], 5)
    );
    let part = part.bind(&data).unwrap();
    assert_eq!(part.get([4, 2, 1, 1]), Some(60.0 + 40.0 + 10.0 + 4.0));
    assert_eq!(*part.contiguous().unwrap(), shown(&part));

    let columns = TensorView::<f32>::new_2d(3, 4).unwrap();
    let columns = columns.with_layout(MemoryLayout::ColumnMajor).unwrap();
    assert_eq!(columns.strides()[..2], [1, 3]);
    assert_eq!(columns.layout(), Some(MemoryLayout::ColumnMajor));
    assert!(columns.transpose(0, 1).unwrap().is_contiguous());
    let larger = TensorView::<f32>::new_2d(37, 50).unwrap();
    let larger = larger.with_layout(MemoryLayout::ColumnMajor).unwrap();
    let values: Vec<f32> = (0..37 * 50).map(|i| i as f32).collect();
    let larger = larger.bind(&values).unwrap();
    assert_eq!(*larger.contiguous().unwrap(), shown(&larger));

    // Tiles of 2 × 3 of a 3 × 4 matrix: four, each of six values, the right ones cut off.
    let tile_size = [2, 3];
    let tiled = TensorView::<f32>::new_2d(3, 4).unwrap();
    let tiled = tiled
        .with_layout(MemoryLayout::Tiled { tile_size })
        .unwrap();
    let places: Vec<_> = (0..12)
        .map(|i| tiled.linear_index([i / 4, i % 4, 0, 0]).unwrap())
        .collect();
    assert_eq!(places, [0, 1, 2, 6, 3, 4, 5, 9, 12, 13, 14, 18]);
    assert_eq!(
        (tiled.reach(), tiled.layout()),
        (19, Some(MemoryLayout::Tiled { tile_size }))
    );
    let right = tiled.slice_dim(1, 3..4).unwrap();
    assert_eq!((right.offset(), right.layout()), (6, None));
}

#[test]
fn reshaping_squeezing_and_unsqueezing_keep_the_values() {
    let data = values(30);
    let view = TensorView::<f32>::new_2d(6, 4)
        .unwrap()
        .with_offset(6)
        .unwrap();
    let original = shown(&view.bind(&data).unwrap());
    for other in [
        view.reshape([2, 3, 2, 2]).unwrap(),
        view.unsqueeze(0).unwrap(),
        view.unsqueeze(1).unwrap().unsqueeze(3).unwrap(),
        view.unsqueeze(0).unwrap().squeeze(),
    ] {
        assert_eq!(shown(&other.bind(&data).unwrap()), original, "{other:?}");
    }
    assert_eq!(view.unsqueeze(1).unwrap().shape(), [6, 1, 4, 1]);
    assert_eq!(view.unsqueeze(1).unwrap().squeeze(), view);
}

#[test]
fn tiles_cover_every_value_once() {
    let view = TensorView::<f32>::new([5, 17, 3, 9]).unwrap();
    let partition = PartitionView::new(view, [2, 8, 3, 4]).unwrap();
    assert_eq!(partition.tile_count(), [3, 3, 1, 3]);
    assert_eq!(partition.iter_tiles().len(), 27);
    let mut seen = vec![0; view.numel()];
    for (number, tile) in partition.iter_tiles().enumerate() {
        assert_eq!(
            partition.get_tile(tile.tile_idx),
            Some(tile),
            "tile {number}"
        );
        assert_eq!(tile.is_edge, tile.size != [2, 8, 3, 4]);
        let part = partition.get_tile_view(tile.tile_idx).unwrap();
        assert_eq!(part.shape(), tile.size);
        for i in 0..part.numel() {
            let l = i % tile.size[3];
            let k = i / tile.size[3] % tile.size[2];
            let j = i / tile.size[3] / tile.size[2] % tile.size[1];
            let i = i / tile.size[3] / tile.size[2] / tile.size[1];
            seen[part.linear_index([i, j, k, l]).unwrap()] += 1;
        }
    }
    assert!(seen.iter().all(|&times| times == 1));
    let last = partition.iter_tiles().last().unwrap();
    assert_eq!(last.tile_idx, [2, 2, 0, 2]);
    assert_eq!(last.start, [4, 16, 0, 8]);
    assert_eq!(last.size, [1, 1, 3, 1]);
    assert!(last.is_edge);
}

#[test]
fn reductions_read_views_in_place() {
    for [rows, cols] in [[1, 1], [7, 45], [45, 7], [64, 64], [1, 1_000], [130, 1]] {
        for (view, reach) in matrices(rows, cols) {
            let data = values(reach);
            let bound = view.bind(&data).unwrap();
            let copy = shown(&bound);
            let what = format!("{view:?}");
            let sum: f64 = copy.iter().map(|&x| f64::from(x)).sum();
            let magnitude: f64 = copy.iter().map(|&x| f64::from(x.abs())).sum();
            let error = f64::from(bound.reduce::<SumOp>().unwrap()) - sum;
            assert!(error.abs() <= 3e-6 * magnitude, "{what}: off by {error}");
            let max = copy.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(bound.reduce::<MaxOp>(), Ok(max), "{what}");

            // Tiles that do not start where those of the layout do.
            let tiles = PartitionView::new_2d(view, 6, 7).unwrap();
            let folded = tiles.reduce::<MaxOp>(&data).unwrap();
            assert_eq!(folded.tile_count, tiles.tile_count());
            for (tile, is) in tiles.iter_tiles().zip(folded.values) {
                let (start, size) = (tile.start, tile.size);
                let rows = (start[0]..start[0] + size[0]).flat_map(|i| {
                    let cols = start[1]..start[1] + size[1];
                    cols.map(move |j| [i, j, 0, 0])
                });
                let max = rows
                    .map(|at| bound.get(at).unwrap())
                    .fold(f32::MIN, f32::max);
                assert_eq!(is, max, "{what}: {tile:?}");
            }
        }
    }
    let view = TensorView::<f32>::new([3, 5, 7, 9])
        .unwrap()
        .transpose(1, 3)
        .unwrap();
    let data = values(view.reach());
    let sums = PartitionView::new(view, [2, 4, 3, 5])
        .unwrap()
        .reduce::<SumOp>(&data)
        .unwrap();
    let whole: f32 = sums.values.iter().sum();
    let sum = view.bind(&data).unwrap().reduce::<SumOp>().unwrap();
    assert!((whole - sum).abs() < 1e-2, "{whole} is not {sum}");
    assert_eq!(sums.values.len(), 2 * 3 * 3);
}

/// Checks matmuls of `a` and `b`, in any layout, against `f64`.
fn check_product(device: &GpuDevice, a: &BoundView<'_>, b: &BoundView<'_>) {
    let ([m, k, ..], [_, n, ..]) = (a.view().shape(), b.view().shape());
    let mut c = vec![f32::NAN; m * n];
    device.matmul_view(a, b, &mut c).unwrap();
    let (left, right) = (shown(a), shown(b));
    for (place, &is) in c.iter().enumerate() {
        let row = &left[place / n * k..][..k];
        let column = right[place % n..].iter().step_by(n);
        let terms = row.iter().zip(column);
        let terms = terms.map(|(&a, &b)| f64::from(a) * f64::from(b));
        let (sum, magnitude) = terms.fold((0.0, 0.0), |(s, m), x: f64| (s + x, m + x.abs()));
        let error = (f64::from(is) - sum).abs();
        assert!(
            error <= 16.0 * f64::from(f32::EPSILON) * magnitude,
            "{:?}·{:?} on {:?}: value {place} is {is}, not {sum}",
            a.view(),
            b.view(),
            device.info()
        );
    }
}

fn check_products(device: &GpuDevice, shapes: &[[usize; 3]]) {
    for &[m, k, n] in shapes {
        for (a, a_reach) in matrices(m, k) {
            for (b, b_reach) in matrices(k, n) {
                let (a_data, b_data) = (values(a_reach), values(b_reach));
                let (a, b) = (a.bind(&a_data).unwrap(), b.bind(&b_data).unwrap());
                check_product(device, &a, &b);
            }
        }
    }
}

#[test]
fn products_of_views_are_correct_on_simd() {
    let shapes = [
        [1, 1, 1],
        [1, 30, 40],
        [30, 40, 1],
        [13, 33, 37],
        [80, 300, 70],
    ];
    for &isa in InstructionSet::available() {
        let builder = GpuDevice::builder().backend(Backend::Simd);
        check_products(&builder.instruction_set(isa).build().unwrap(), &shapes);
    }
    // Enough for two threads.
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let a = TensorView::with_strides([320, 320, 1, 1], [700, 2, 1, 1]).unwrap();
    let data = values(a.reach());
    let a = a.bind(&data).unwrap();
    let b = a.view().transpose(0, 1).unwrap();
    check_product(&device, &a, &b.bind(&data).unwrap());
}

#[test]
fn products_of_views_are_correct_on_the_gpu() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    check_products(&device, &[[1, 1, 1], [13, 33, 37]]);
}

#[test]
fn empty_products_give_zeros_or_nothing() {
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let bind = |rows, cols| TensorView::new_2d(rows, cols).unwrap().bind(&[]).unwrap();
    let mut c = [f32::NAN; 6];
    device
        .matmul_view(&bind(2, 0), &bind(0, 3), &mut c)
        .unwrap();
    assert_eq!(c, [0.0; 6]);
    device
        .matmul_view(&bind(0, 0), &bind(0, 3), &mut [])
        .unwrap();
}

/// Nothing is read a step on, however far that is.
#[test]
fn dimensions_of_one_accept_any_stride() {
    const FAR: usize = usize::MAX / 2;
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let values = vec![1.0; 128];
    let view = |shape, strides| TensorView::with_strides(shape, strides).unwrap();
    for [m, k, n] in [[3, 1, 64], [1, 3, 40], [3, 3, 1], [1, 1, 1], [20, 1, 3]] {
        let stride = |len: usize, stride: usize| if len == 1 { FAR } else { stride };
        let a = view([m, k, 1, 1], [stride(m, 6), stride(k, 2), 1, 1]);
        let b = view([k, n, 1, 1], [stride(k, n), stride(n, 1), FAR, FAR]);
        let (a, b) = (a.bind(&values).unwrap(), b.bind(&values).unwrap());
        let mut c = vec![f32::NAN; m * n];
        device.matmul_view(&a, &b, &mut c).unwrap();
        assert_eq!(c, vec![k as f32; m * n]);
        for view in [a, b] {
            let len = view.view().numel();
            assert_eq!(view.reduce::<SumOp>().unwrap(), len as f32);
            assert_eq!(*view.contiguous().unwrap(), values[..len]);
        }
    }
}

#[test]
fn invalid_views_return_errors() {
    fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
        result.expect_err("a mistake").code()
    }
    const HUGE: usize = usize::MAX;
    type View = TensorView;
    let view = View::new_2d(3, 4).unwrap();
    let huge = View::new([HUGE, HUGE, 1, 1]).expect_err("an overflow");
    assert_eq!(huge.code(), "SHAPE_OVERFLOW");
    let shape = format!("`view` of shape [{HUGE}, {HUGE}, 1, 1]");
    assert!(huge.to_string().starts_with(&shape), "{huge}");
    assert_eq!(
        code(View::with_strides([2, 2, 1, 1], [HUGE, HUGE, 1, 1])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(View::with_strides([HUGE, 2, 1, 1], [0; 4])),
        "SHAPE_OVERFLOW"
    );
    let far = view.with_offset(HUGE).expect_err("beyond every array");
    assert_eq!(far.code(), "INVALID_ARGUMENT");
    let place = format!("`view` is [3, 4, 1, 1] at strides [4, 1, 1, 1] from element {HUGE} on");
    assert!(far.to_string().starts_with(&place), "{far}");
    assert!(View::new([0, HUGE, HUGE, HUGE]).is_ok_and(|view| view.numel() == 0));
    assert_eq!(code(view.slice(1..4)), "LIMIT_EXCEEDED");
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = view.slice(2..1);
    assert_eq!(code(backwards), "INVALID_ARGUMENT");
    assert_eq!(code(view.slice_dim(4, 0..1)), "LIMIT_EXCEEDED");
    assert_eq!(code(view.transpose(0, 4)), "LIMIT_EXCEEDED");
    assert_eq!(code(view.reshape([13, 1, 1, 1])), "LENGTH_MISMATCH");
    let transposed = view.transpose(0, 1).unwrap();
    assert_eq!(code(transposed.reshape([12, 1, 1, 1])), "INVALID_ARGUMENT");
    assert_eq!(
        code(View::new([2; 4]).unwrap().unsqueeze(0)),
        "LIMIT_EXCEEDED"
    );
    let tiles = |tile_size| view.with_layout(MemoryLayout::Tiled { tile_size });
    assert_eq!(code(tiles([0, 4])), "INVALID_ARGUMENT");
    let huge = tiles([HUGE, HUGE]).expect_err("tiles beyond every array");
    assert_eq!(huge.code(), "INVALID_ARGUMENT");
    let size = format!("`tile_size` is {HUGE}×{HUGE}, but must be ");
    assert!(huge.to_string().starts_with(&size), "{huge}");
    let tiled = tiles([2, 2]).unwrap();
    assert_eq!(code(tiled.slice(1..3)), "INVALID_ARGUMENT");
    assert_eq!(code(tiled.transpose(1, 2)), "INVALID_ARGUMENT");
    assert_eq!(
        code(PartitionView::new(view, [1, 0, 1, 1])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(PartitionView::new_power_of_two(view, [64, 0, 0, 0])),
        "LIMIT_EXCEEDED"
    );
    let partition = PartitionView::new_2d(view, 2, 2).unwrap();
    assert_eq!(partition.get_tile([2, 0, 0, 0]), None);
    assert_eq!(
        code(partition.get_tile_view([0, 2, 0, 0])),
        "INVALID_ARGUMENT"
    );
    let short = Error::LengthMismatch {
        what: "data",
        expected: 12,
        actual: 11,
        reason: " or more",
    };
    assert_eq!(view.bind(&[0.0; 11]).unwrap_err(), short);
    assert_eq!(partition.reduce::<SumOp>(&[0.0; 11]).unwrap_err(), short);

    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let data = [0.0; 12];
    let bound = view.bind(&data).unwrap();
    assert_eq!(
        code(device.matmul_view(&bound, &bound, &mut [0.0; 12])),
        "INVALID_ARGUMENT"
    );
    let other = transposed.bind(&data).unwrap();
    assert_eq!(
        code(device.matmul_view(&bound, &other, &mut [0.0; 8])),
        "LENGTH_MISMATCH"
    );
    let cube = View::new_3d(2, 3, 2).unwrap();
    let cube = cube.bind(&data).unwrap();
    assert_eq!(
        code(device.matmul_view(&cube, &bound, &mut [])),
        "INVALID_ARGUMENT"
    );
}
