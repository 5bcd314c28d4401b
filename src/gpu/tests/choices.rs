//! Tests of the choice among several kernels for an operation, and of each kernel.

use std::sync::Arc;

use super::super::recorder::Recorder;
use super::super::target::cache;
use super::super::tune::Key;
use super::super::{Gpu, Options, layer, lower, matmul};
use super::{any, judge, noise, pretend};
use crate::ops::{Conv2d, ConvLayer, Op};
use crate::{reference, runtime};

/// The kernels recorded for an operation whose result has `len` values.
fn recorded(gpu: &Arc<Gpu>, op: &Op, lens: &[usize], len: usize) -> Vec<&'static str> {
    let mut recorder = Recorder::new(gpu).unwrap();
    let inputs = lens.iter().map(|&len| recorder.allocate(len).unwrap());
    let inputs: Vec<_> = inputs.collect();
    let output = recorder.allocate(len).unwrap();
    lower::lower(&mut recorder, op, &inputs, &output).unwrap();
    let names = recorder.names();
    recorder.abandon().unwrap();
    names
}

/// Measures the kernels for an operation, and checks each of them.
fn judge_choices(gpu: &Arc<Gpu>, key: Key, op: &Op, inputs: &[&[f32]], wanted: &[&str]) {
    let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
    let len = reference::evaluate(op, inputs).len();
    let times = runtime::block_on(gpu.tune(op, &lens, len)).unwrap();
    assert!(times.is_sorted_by_key(|&(_, seconds)| seconds));
    assert!(times.iter().all(|&(_, seconds)| seconds > 0.0));
    let mut names: Vec<&str> = times.iter().map(|&(name, _)| name).collect();
    assert_eq!(gpu.tuned.of(key).as_deref(), Some(names[0]));
    names.sort_unstable();
    assert_eq!(names, wanted, "{op:?}");
    for (name, _) in times {
        gpu.tuned.remember(key, name);
        let kernel = recorded(gpu, op, &lens, len)[0].trim_end_matches("_any");
        // The one that divides a depth has several names, by how many times it does.
        assert!(
            name == kernel || kernel == "matvec_cols",
            "{name}, not {kernel}"
        );
        judge(gpu, op, inputs);
    }
}

#[test]
fn matmul_uses_the_fastest_measured_kernel() {
    let families = [
        "matmul_128",
        "matmul_32",
        "matmul_64",
        "matmul_direct",
        "matmul_subgroups_16",
        "matmul_subgroups_8",
    ];
    let rows = ["matvec_cols", "matvec_cols_256", "matvec_cols_4096"];
    for software in [true, false] {
        let gpu = pretend(software);
        for ([m, k, n], more) in [
            ([70, 36, 52], &[][..]),
            ([41, 259, 133], &[]),
            ([1, 700, 301], &rows),
            ([33, 300, 1], &["matvec_rows", "matvec_subgroups"]),
            ([7, 333, 1], &["matvec_rows", "matvec_subgroups"]),
        ] {
            let (key, op) = (Key::matmul([m, k, n]), Op::Matmul { m, k, n });
            let inputs: [&[f32]; 2] = [&noise(m * k, 1), &noise(k * n, 2)];
            judge_choices(&gpu, key, &op, &inputs, &[&families, more].concat());
        }
        // Other shapes go by the rule as before.
        assert_eq!(gpu.tuned.of(Key::matmul([70, 36, 53])), None);
        let none: [(Op, &[usize]); 2] =
            [(Op::Relu, &[4]), (Op::Matmul { m: 4, k: 0, n: 4 }, &[0, 0])];
        for (op, lens) in none {
            assert_eq!(runtime::block_on(gpu.tune(&op, lens, 4)), Ok(Vec::new()));
        }
    }
}

#[test]
fn row_operations_use_the_fastest_measured_kernel() {
    judge_choices_of_rows(pretend(false));
    judge_choices_of_rows(pretend(true));
}

fn judge_choices_of_rows(mut gpu: Arc<Gpu>) {
    // Of every adapter that has larger ones.
    Arc::get_mut(&mut gpu).unwrap().limits.subgroups = [4; 2];
    let epsilon = 1e-5;
    for (rows, cols, held) in [
        (70, 60, &["1024", "16384", "4096", "64"][..]),
        (5, 72, &["1024", "16384", "4096"]),
        (3, 2100, &["16384", "4096"]),
        (4, 333, &[]),
    ] {
        let named = |what: &str| -> Vec<String> {
            let of = |end: &&str| format!("{what}_{end}");
            held.iter().chain(&["partial", "row"]).map(of).collect()
        };
        let x = noise(rows * cols, 1);
        let softmax = named("softmax");
        let wanted: Vec<&str> = softmax.iter().map(String::as_str).collect();
        for op in [
            Op::SoftmaxRows { rows, cols },
            Op::LogSoftmaxRows { rows, cols },
        ] {
            judge_choices(&gpu, Key::softmax([rows, cols]), &op, &[&x], &wanted);
        }
        let norm = named("norm");
        let wanted: Vec<&str> = norm.iter().map(String::as_str).collect();
        let (gain, bias) = (noise(cols, 2), noise(cols, 3));
        let layer_norm = Op::LayerNorm {
            rows,
            cols,
            epsilon,
        };
        let key = Key::norm([rows, cols]);
        judge_choices(&gpu, key, &layer_norm, &[&x, &gain, &bias], &wanted);
        let rms_norm = Op::RmsNorm {
            rows,
            cols,
            epsilon,
        };
        judge_choices(&gpu, key, &rms_norm, &[&x, &gain], &wanted);
    }
    let x = noise(4100, 1);
    let wanted = ["softmax_16384", "softmax_partial", "softmax_row"];
    judge_choices(&gpu, Key::softmax([1, 4100]), &Op::Softmax, &[&x], &wanted);
}

#[test]
fn convolutions_use_the_fastest_measured_kernel() {
    let gpu = pretend(false);
    let options = Conv2d::same(33, 40, 3, 5);
    let key = Key::convolve2d(&options);
    let op = Op::Convolve2d { options };
    let inputs: [&[f32]; 2] = [&noise(33 * 40, 1), &noise(15, 2)];
    judge_choices(&gpu, key, &op, &inputs, &["convolve2d", "convolve2d_small"]);
}

/// Layers of one group, with values of their input and weights.
fn layers() -> impl Iterator<Item = (ConvLayer, [Vec<f32>; 2])> {
    let layer = |image, channels, filters| ConvLayer::new(image, channels, filters);
    let layers = [
        layer(Conv2d::same(9, 11, 3, 3), 3, 8),
        layer(Conv2d::same(14, 13, 3, 3), 30, 33).with_batch(2),
        layer(Conv2d::valid(13, 7, 1, 1), 70, 21).with_batch(3),
        layer(Conv2d::same(6, 18, 1, 1), 68, 35).with_batch(5),
        layer(Conv2d::same(9, 8, 1, 1).with_stride(2, 2), 20, 24).with_batch(2),
        layer(Conv2d::same(29, 30, 7, 5).with_stride(2, 3), 3, 70).with_batch(2),
        layer(Conv2d::valid(16, 30, 3, 2).with_stride(1, 2), 5, 17).with_dilation(4, 7),
        layer(Conv2d::same(3, 2, 5, 5), 2, 3).with_dilation(3, 1),
        layer(Conv2d::same(30, 35, 3, 3), 40, 5),
    ];
    layers.into_iter().map(|layer| {
        let image = &layer.image;
        let input = layer.batch * layer.channels * image.input_rows * image.input_cols;
        (
            layer,
            [noise(input, 1), noise(layer.filters * layer.depth(), 2)],
        )
    })
}

#[test]
fn layers_use_the_fastest_measured_kernel() {
    let tiles = ["layer_128", "layer_32", "layer_64"];
    let pointwise = ["pointwise_128", "pointwise_32", "pointwise_64"];
    for software in [true, false] {
        let gpu = pretend(software);
        for (options, [input, weights]) in layers() {
            let (key, op) = (Key::convolve_layer(&options), Op::ConvolveLayer { options });
            let vectors = options.image == Conv2d::same(6, 18, 1, 1);
            let mut forms = vec!["convolve_layer", "layer_direct"];
            forms.extend(if vectors { pointwise } else { tiles });
            forms.sort_unstable();
            judge_choices(&gpu, key, &op, &[&input, &weights], &forms);
        }
    }
    // Groups have a single kernel, and single places of one image are plain products.
    let gpu = pretend(false);
    let pointwise = ConvLayer::new(Conv2d::valid(8, 9, 1, 1), 20, 36);
    let grouped = ConvLayer::new(Conv2d::same(8, 9, 3, 3), 20, 36).with_groups(4);
    for (options, kernel) in [(pointwise, "matmul_32"), (grouped, "convolve_layer")] {
        let (op, lens) = (Op::ConvolveLayer { options }, [1440, 36 * options.depth()]);
        assert_eq!(recorded(&gpu, &op, &lens, 36 * 72), [kernel]);
        assert_eq!(
            runtime::block_on(gpu.tune(&op, &lens, 36 * 72)),
            Ok(Vec::new())
        );
    }
}

#[test]
fn windows_beyond_the_index_range_are_refused() {
    let options = ConvLayer::new(Conv2d::same(3, 3, 3, 1), 1, 1).with_dilation(1 << 31, 1);
    let op = Op::ConvolveLayer { options };
    let result =
        runtime::block_on(pretend(false).run_into(&op, &[&[1.0; 9], &[1.0; 3]], &mut [0.0; 9]));
    let message = result.unwrap_err().to_string();
    assert!(message.contains("4294967297"), "{message}");
}

#[test]
fn layer_kernels_confine_nan_and_infinity() {
    let gpu = pretend(false);
    for (options, [input, weights]) in layers() {
        let (key, op) = (Key::convolve_layer(&options), Op::ConvolveLayer { options });
        for name in layer::candidates(&gpu, input.len(), &options) {
            gpu.tuned.remember(key, name);
            for special in [f32::INFINITY, f32::NAN] {
                for place in [0, input.len() - 1] {
                    let mut input = input.clone();
                    input[place] = special;
                    judge(&gpu, &op, &[&input, &weights]);
                }
                for place in [0, weights.len() - 1] {
                    let mut weights = weights.clone();
                    weights[place] = special;
                    judge(&gpu, &op, &[&input, &weights]);
                }
            }
        }
    }
}

#[test]
fn choices_persist_unless_the_file_is_damaged() {
    let folder = std::env::temp_dir().join(format!("relampago-tune-{}", std::process::id()));
    let options = Options {
        pipelines: Some(folder.clone()),
        ..any()
    };
    let open = || super::open(&options).unwrap();
    let (key, op) = (Key::softmax([2, 40]), Op::SoftmaxRows { rows: 2, cols: 40 });
    let gpu = open();
    let times = runtime::block_on(gpu.tune(&op, &[80], 80)).unwrap();
    let fastest = Some(times[0].0.to_owned());
    assert_eq!(open().tuned.of(key), fastest);
    let name = cache::file_name(&gpu.device.adapter_info(), "choices");
    let path = folder.join(name);
    let file = std::fs::read(&path).unwrap();
    for place in [0, 8, file.len() - 1] {
        let mut changed = file.clone();
        changed[place] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert_eq!(open().tuned.of(key), None, "at {place}");
    }
    std::fs::write(&path, &file).unwrap();
    assert_eq!(open().tuned.of(key), fastest);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn devices_sharing_a_folder_merge_choices() {
    let folder = std::env::temp_dir().join(format!("relampago-shared-{}", std::process::id()));
    let options = Options {
        pipelines: Some(folder.clone()),
        ..any()
    };
    let open = || super::open(&options).unwrap();
    let gpus = [open(), open()];
    for (gpu, cols) in gpus.iter().zip([40, 48]) {
        let op = Op::SoftmaxRows { rows: 2, cols };
        runtime::block_on(gpu.tune(&op, &[2 * cols], 2 * cols)).unwrap();
    }
    let kept = open();
    for cols in [40, 48] {
        assert!(kept.tuned.of(Key::softmax([2, cols])).is_some(), "{cols}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn unsupported_choices_are_ignored() {
    let mut gpu = pretend(false);
    Arc::get_mut(&mut gpu).unwrap().limits.invocations = 64;
    gpu.tuned
        .adopt("matmul 9 9 9 0 0 0 matmul_128\nmatmul 8 8 8 0 0 0 softmax_row\nsoftmax 9 8 0 0 0 0 softmax_16384\n");
    let [nine, eight] = [9, 8].map(|side| Op::Matmul {
        m: side,
        k: side,
        n: side,
    });
    assert_eq!(recorded(&gpu, &nine, &[81; 2], 81), ["matmul_32_any"]);
    assert_eq!(recorded(&gpu, &eight, &[64; 2], 64), ["matmul_32"]);
    let softmax = Op::SoftmaxRows { rows: 9, cols: 8 };
    assert_eq!(recorded(&gpu, &softmax, &[72], 72), ["softmax_row"]);
}

#[test]
fn matmul_kernels_confine_nan_and_infinity() {
    let gpu = pretend(false);
    for [m, k, n] in [
        [3, 66, 1],
        [5, 333, 1],
        [1, 331, 301],
        [9, 35, 12],
        [41, 259, 133],
        [12, 36, 44],
    ] {
        let (key, op) = (Key::matmul([m, k, n]), Op::Matmul { m, k, n });
        for name in matmul::candidates(&gpu, [m, k, n]) {
            gpu.tuned.remember(key, name);
            for special in [f32::INFINITY, f32::NAN] {
                // The last depth of the first row and column, and the last values.
                for place in [k - 1, m * k - 1] {
                    let (mut a, b) = (noise(m * k, 1), noise(k * n, 2));
                    a[place] = special;
                    judge(&gpu, &op, &[&a, &b]);
                }
                for place in [(k - 1) * n, k * n - 1] {
                    let (a, mut b) = (noise(m * k, 1), noise(k * n, 2));
                    b[place] = special;
                    judge(&gpu, &op, &[&a, &b]);
                }
            }
        }
    }
}
