//! Mistakes give errors by their code, on every back-end, and leave results alone; `messages` has the texts.

#![cfg(not(target_arch = "wasm32"))]

mod messages;

use relampago::{
    Attention, Backend, Conv2d, ConvLayer, Error, GpuCommandBatch, GpuDevice, Op, OpClass, Policy,
    Result, Rope,
};

fn devices() -> Vec<GpuDevice> {
    let build = |backend| {
        GpuDevice::builder()
            .backend(backend)
            .build()
            .expect("an adapter, if in software")
    };
    vec![build(Backend::Simd), build(Backend::Gpu)]
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("a mistake").code()
}

#[test]
fn invalid_norms_return_errors() {
    for device in devices() {
        let norm = |epsilon: f32, gain: &[f32], bias: &[f32]| {
            let op = Op::LayerNorm {
                rows: 1,
                cols: 2,
                epsilon,
            };
            device.run(&op, &[&[1.0, 2.0], gain, bias])
        };
        for epsilon in [0.0, -1.0, 1e-39, f32::INFINITY, f32::NAN] {
            let error = norm(epsilon, &[1.0; 2], &[0.0; 2]).expect_err("no such epsilon");
            assert!(error.to_string().contains("epsilon"), "{error}");
            assert_eq!(error.code(), "INVALID_ARGUMENT");
        }
        let error = norm(0.1, &[1.0; 2], &[0.0; 3]).expect_err("three columns");
        assert!(error.to_string().contains("`bias` has 3"), "{error}");
        assert_eq!(code(norm(0.1, &[1.0], &[0.0; 2])), "LENGTH_MISMATCH");
        let rms = Op::RmsNorm {
            rows: usize::MAX,
            cols: 3,
            epsilon: 0.1,
        };
        let inputs: [&[f32]; 2] = [&[1.0], &[1.0; 3]];
        assert_eq!(code(device.run(&rms, &inputs)), "SHAPE_OVERFLOW");
        assert!(norm(1e-5, &[1.0; 2], &[0.0; 2]).is_ok());
    }
}

#[test]
fn invalid_layers_return_errors() {
    for device in devices() {
        let layer = ConvLayer::new(Conv2d::valid(3, 3, 2, 2), 4, 6);
        let run = |options| device.run(&Op::ConvolveLayer { options }, &[&[1.0; 36], &[1.0; 96]]);
        assert_eq!(run(layer), Ok(vec![16.0; 24]));
        for (wrong, code, says) in [
            (layer.with_groups(0), "INVALID_ARGUMENT", "groups"),
            (layer.with_groups(4), "INVALID_ARGUMENT", "filters"),
            (layer.with_groups(3), "INVALID_ARGUMENT", "channels"),
            (
                layer.with_dilation(0, 1),
                "INVALID_ARGUMENT",
                "dilation_rows",
            ),
            (layer.with_dilation(3, 1), "INVALID_ARGUMENT", "kernel_rows"),
            (
                layer.with_dilation(1, usize::MAX),
                "LIMIT_EXCEEDED",
                "dilation of the columns",
            ),
            (layer.with_groups(2), "LENGTH_MISMATCH", "weights"),
            (layer.with_batch(2), "LENGTH_MISMATCH", "input"),
            (layer.with_batch(usize::MAX), "SHAPE_OVERFLOW", "input"),
        ] {
            let error = run(wrong).expect_err(says);
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn wrong_indices_return_errors_or_give_nan() {
    for device in devices() {
        let (rows, cols) = (3, 2);
        let op = Op::GatherRows { rows, cols };
        let table = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let wrong = [3.0, -1.0, 0.5, 1e30, f32::INFINITY, f32::NAN];
        for index in wrong {
            let error = device.run(&op, &[&table, &[0.0, index]]).unwrap_err();
            assert_eq!(error.code(), "INVALID_ARGUMENT");
            let needed = "but must be whole numbers from 0 and below 3";
            let expected = format!("`indices` is {index} at position 1, {needed}");
            assert_eq!(error.to_string(), expected);
            let mut batch = GpuCommandBatch::new(device.clone());
            let [table, indices] = [&table[..], &[index]].map(|values| batch.upload(values));
            let _ = batch.gather_rows(table, indices, rows, cols);
            assert_eq!(code(batch.execute_sync()), "INVALID_ARGUMENT");
        }
        check_arguments_that_are_indices(&device, &table, &wrong);
        // Only the device has these.
        let mut batch = GpuCommandBatch::new(device.clone());
        let indices = [[2.0].as_slice(), &wrong, &[1.0]].concat();
        let indices = batch.input(&device.upload(&indices).unwrap());
        let table = batch.upload(&table);
        let y = batch.gather_rows(table, indices, rows, cols);
        let empty = batch.upload(&[]);
        let none = batch.gather_rows(empty, indices, 0, cols);
        batch.execute_sync().unwrap();
        let none = batch.read_sync(none).unwrap();
        assert!(none.iter().all(|y| y.is_nan()), "{none:?}");
        let y = batch.read_sync(y).unwrap();
        assert_eq!((&y[..2], &y[14..]), (&[5.0, 6.0][..], &[3.0, 4.0][..]));
        assert!(y[2..14].iter().all(|y| y.is_nan()), "{y:?}");
        let huge = Op::GatherRows {
            rows: (1 << 24) + 1,
            cols: 0,
        };
        assert_eq!(code(device.run(&huge, &[&[], &[]])), "LIMIT_EXCEEDED");
    }
}

/// A program checks the indices among its arguments where they are values, and no others.
fn check_arguments_that_are_indices(device: &GpuDevice, table: &[f32; 6], wrong: &[f32]) {
    let mut batch = GpuCommandBatch::new(device.clone());
    let (table, rows, cols) = (
        batch.upload(table),
        batch.placeholder(2),
        batch.placeholder(3),
    );
    let gathered = batch.gather_rows(table, rows, 3, 2);
    let taken = batch.take_along_rows(table, cols, 3, 2, 1);
    let program = batch.compile(&[gathered, taken]).unwrap();
    let read = |rows: &[f32; 2], cols: &[f32; 3]| program.read(&[rows.into(), cols.into()]);
    let expected = [vec![5.0, 6.0, 1.0, 2.0], vec![2.0, 3.0, 6.0]];
    assert_eq!(read(&[2.0, 0.0], &[1.0, 0.0, 1.0]).unwrap(), expected);
    for &index in wrong {
        let error = read(&[0.0, index], &[0.0; 3]).unwrap_err().to_string();
        assert!(error.contains(&format!("{index} at position 1")), "{error}");
        let error = read(&[0.0; 2], &[0.0, 0.0, index]).unwrap_err().to_string();
        assert!(error.contains(&format!("{index} at position 2")), "{error}");
        let rows = device.upload(&[index, 1.0]).unwrap();
        let results = program.read(&[(&rows).into(), (&[0.0; 3]).into()]);
        let results = results.unwrap();
        assert!(results[0][..2].iter().all(|x| x.is_nan()), "{results:?}");
        assert_eq!(results[0][2..], [3.0, 4.0]);
    }
    let one = program.read(&[(&[0.0, 3.0]).into(), (&[2.0, 0.0, 0.0]).into()]);
    assert_eq!(
        one.unwrap_err().to_string(),
        "`indices` is 3 at position 1, but must be whole numbers from 0 and below 3"
    );
}

#[test]
fn invalid_rotations_return_errors() {
    for device in devices() {
        let rope = Rope::new(2, 1, 4);
        let run = |options| device.run(&Op::Rope { options }, &[&[1.0; 8]]);
        assert_eq!(run(rope.clone()).unwrap()[..4], [1.0; 4]);
        let rotated = run(rope.clone().with_rotated(3)).unwrap_err();
        assert_eq!(
            rotated.to_string(),
            "`rotated` is 3, but must be an even number up to `head_len` (4)"
        );
        for (wrong, expected, says) in [
            (rope.clone().with_rotated(6), "INVALID_ARGUMENT", "rotated"),
            (rope.clone().with_base(0.5), "INVALID_ARGUMENT", "base"),
            (rope.clone().with_base(f32::NAN), "INVALID_ARGUMENT", "base"),
            (
                rope.clone().with_factors(&[1.0]),
                "LENGTH_MISMATCH",
                "factors",
            ),
            (
                rope.clone().with_factors(&[1.0, 0.0]),
                "INVALID_ARGUMENT",
                "factors",
            ),
            (
                rope.clone().with_first(1 << 24),
                "LIMIT_EXCEEDED",
                "positions",
            ),
            (
                rope.clone().with_first(usize::MAX),
                "LIMIT_EXCEEDED",
                "positions",
            ),
            (Rope::new(3, 1, 4), "LENGTH_MISMATCH", "`x`"),
            (Rope::new(2, usize::MAX, 4), "SHAPE_OVERFLOW", "`x`"),
        ] {
            let error = run(wrong).unwrap_err();
            assert_eq!(error.code(), expected, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn invalid_attention_returns_errors() {
    for device in devices() {
        let all = Attention::new(2, 2, 2);
        let x = &[1.0; 8][..];
        let run = |options| device.run(&Op::Attention { options }, &[x, x, x]);
        assert_eq!(run(all), Ok(vec![1.0; 8]));
        let wrong = run(all.causal(1)).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "`positions` is 2, but must be at least 1 + 2, the end of the tokens"
        );
        for (wrong, expected, says) in [
            (
                Attention::new(1, 1, 257),
                "LIMIT_EXCEEDED",
                "length of a head",
            ),
            (all.with_kv_heads(0), "INVALID_ARGUMENT", "kv_heads"),
            (all.with_kv_heads(3), "INVALID_ARGUMENT", "kv_heads"),
            (all.with_positions(0), "EMPTY", "attention"),
            (all.with_window(1), "INVALID_ARGUMENT", "window"),
            (all.causal(0).with_window(0), "INVALID_ARGUMENT", "window"),
            (all.with_soft_cap(0.0), "INVALID_ARGUMENT", "soft_cap"),
            (all.with_scale(f32::NAN), "INVALID_ARGUMENT", "scale"),
            (all.with_positions(3), "LENGTH_MISMATCH", "keys"),
            (
                Attention::new(usize::MAX, 2, 2),
                "SHAPE_OVERFLOW",
                "queries",
            ),
        ] {
            let error = run(wrong).unwrap_err();
            assert_eq!(error.code(), expected, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn invalid_rankings_return_errors() {
    for device in devices() {
        let top = |rows, cols, k| device.run(&Op::TopKRows { rows, cols, k }, &[&[1.0; 6]]);
        assert_eq!(top(2, 3, 2), Ok(vec![0.0, 1.0, 0.0, 1.0]));
        assert_eq!(top(2, 3, 0), Ok(vec![]));
        let error = top(2, 3, 4).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`k` is 4, but must be at most `cols` (3)"
        );
        assert_eq!(code(top(2, 0, 1)), "EMPTY");
        assert_eq!(code(top(2, 4, 1)), "LENGTH_MISMATCH");
        assert_eq!(code(top(1, (1 << 24) + 1, 1)), "LIMIT_EXCEEDED");
        let (rows, cols) = (2, 0);
        let empty = device.run(&Op::ArgmaxRows { rows, cols }, &[&[]]);
        assert_eq!(code(empty), "EMPTY");
    }
}

#[test]
fn invalid_arguments_return_their_codes() {
    for device in devices() {
        let run = |op: Op, inputs: &[&[f32]]| code(device.run(&op, inputs));
        let (one, two) = (&[1.0][..], &[1.0, 2.0][..]);
        assert_eq!(run(Op::VecAdd, &[one, two]), "LENGTH_MISMATCH");
        assert_eq!(run(Op::VecAdd, &[one]), "LENGTH_MISMATCH");
        assert_eq!(run(Op::Relu, &[]), "LENGTH_MISMATCH");
        assert_eq!(run(Op::Dot, &[one, two]), "LENGTH_MISMATCH");
        assert_eq!(
            run(Op::Matmul { m: 1, k: 2, n: 1 }, &[two, one]),
            "LENGTH_MISMATCH"
        );
        assert_eq!(
            run(Op::SoftmaxRows { rows: 2, cols: 2 }, &[two]),
            "LENGTH_MISMATCH"
        );
        assert_eq!(
            run(
                Op::Transpose {
                    rows: usize::MAX,
                    cols: 3
                },
                &[two]
            ),
            "SHAPE_OVERFLOW"
        );
        assert_eq!(
            run(
                Op::Matmul {
                    m: usize::MAX,
                    k: 0,
                    n: 2
                },
                &[&[], &[]]
            ),
            "SHAPE_OVERFLOW"
        );
        for op in [Op::Max, Op::Min, Op::Mean, Op::Argmax] {
            assert_eq!(run(op, &[&[]]), "EMPTY");
        }
        assert_eq!(
            run(Op::Clip { min: 2.0, max: 1.0 }, &[one]),
            "INVALID_ARGUMENT"
        );
        assert_eq!(
            run(
                Op::Clip {
                    min: f32::NAN,
                    max: 1.0
                },
                &[one]
            ),
            "INVALID_ARGUMENT"
        );
        let conv = |options| run(Op::Convolve2d { options }, &[one, one]);
        assert_eq!(conv(Conv2d::valid(1, 1, 2, 1)), "INVALID_ARGUMENT");
        assert_eq!(conv(Conv2d::valid(1, 1, 0, 1)), "INVALID_ARGUMENT");
        assert_eq!(
            conv(Conv2d::valid(1, 1, 1, 1).with_stride(0, 1)),
            "INVALID_ARGUMENT"
        );
        assert_eq!(conv(Conv2d::same(2, 1, 1, 1)), "LENGTH_MISMATCH");
    }
}

#[test]
fn errors_name_value_and_limit_and_write_nothing() {
    for device in devices() {
        let mut y = [5.0; 3];
        let error = device.relu(&[1.0, 2.0], &mut y).unwrap_err();
        let expected = Error::LengthMismatch {
            what: "y",
            expected: 2,
            actual: 3,
            reason: "",
        };
        assert_eq!(error, expected);
        assert_eq!(error.to_string(), "`y` has 3 values, but must have 2");
        assert_eq!(y, [5.0; 3]);
    }
}

#[test]
fn batch_returns_its_first_error() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let x = batch.upload(&[1.0, 2.0]);
        let y = batch.upload(&[1.0]);
        let wrong = batch.vec_add(x, y);
        let later = batch.relu(wrong);
        let error = batch.execute_sync().unwrap_err();
        assert_eq!(error.code(), "LENGTH_MISMATCH");
        let Error::Record { location, .. } = &error else {
            panic!("{error:?} has no place");
        };
        assert_eq!(location.file(), file!());
        assert_eq!(code(batch.read_sync(later)), "LENGTH_MISMATCH");
        assert_eq!(code(batch.execute_sync()), "LENGTH_MISMATCH");
    }
}

#[test]
fn batch_executes_once_and_owns_its_buffers() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.upload(&[1.0, -2.0]);
        let y = batch.relu(x);
        assert_eq!(code(batch.read_sync(y)), "NOT_EXECUTED");
        let mut other = GpuCommandBatch::new(device.clone());
        assert_eq!(code(other.read_sync(y)), "FOREIGN");
        let _ = other.relu(y);
        assert_eq!(code(other.execute_sync()), "FOREIGN");

        batch.execute_sync().unwrap();
        assert_eq!(code(batch.execute_sync()), "ALREADY_EXECUTED");
        let late = batch.relu(y);
        assert_eq!(code(batch.read_sync(late)), "ALREADY_EXECUTED");
        assert_eq!(code(batch.compile(&[late])), "ALREADY_EXECUTED");
        assert_eq!(batch.read_sync(y).unwrap(), [1.0, 0.0]);
    }
}

#[test]
fn resident_buffers_belong_to_their_device_and_outlive_batches() {
    let devices = devices();
    for (device, other) in [(&devices[0], &devices[1]), (&devices[1], &devices[0])] {
        let weights = device.upload(&[3.0, -4.0]).unwrap();
        let mut first = GpuCommandBatch::new(device.clone());
        let x = first.input(&weights);
        let y = first.abs(x);
        first.execute_sync().unwrap();
        let kept = first.keep(y).unwrap();
        drop(first);

        let mut second = GpuCommandBatch::new(device.clone());
        let (a, b) = (second.input(&kept), second.input(&weights));
        let sum = second.vec_add(a, b);
        second.execute_sync().unwrap();
        assert_eq!(second.read_sync(sum).unwrap(), [6.0, 0.0]);
        assert_eq!(kept.read().unwrap(), [3.0, 4.0]);

        let mut foreign = GpuCommandBatch::new(other.clone());
        foreign.input(&weights);
        assert_eq!(code(foreign.execute_sync()), "FOREIGN");
    }
}

#[test]
fn argmax_is_exact_beyond_float_precision() {
    for device in devices() {
        let mut x = vec![0.0; (1 << 24) + 5];
        x[(1 << 24) + 3] = 1.0;
        assert_eq!(device.argmax(&x).unwrap(), (1 << 24) + 3);
        x[1 << 24] = f32::NAN;
        assert_eq!(device.argmax(&x).unwrap(), 1 << 24);
        let mut batch = GpuCommandBatch::new(device);
        let id = batch.upload(&x);
        let _ = batch.argmax(id);
        assert_eq!(code(batch.execute_sync()), "LIMIT_EXCEEDED");
    }
}

#[test]
fn software_adapters_are_not_chosen_automatically() {
    let device = GpuDevice::new().unwrap();
    let info = device.info();
    assert!(!info.software, "{info}");
    assert_eq!(
        device.backend() == Backend::Gpu,
        GpuDevice::is_available(),
        "{info}"
    );
    assert!(!info.reason.is_empty());
}

#[test]
fn the_policy_sends_only_work_that_gains() {
    let policy = Policy::default();
    let large = Op::Matmul {
        m: 4_096,
        k: 4_096,
        n: 4_096,
    };
    let small = Op::Matmul { m: 8, k: 8, n: 8 };
    assert!(policy.prefers_gpu(&large, &[1 << 24, 1 << 24]));
    assert!(!policy.prefers_gpu(&small, &[64, 64]));
    assert!(
        !policy.prefers_gpu(&Op::Relu, &[1 << 30]),
        "copies cost more than a pass"
    );
    assert!(Policy::ALWAYS_GPU.prefers_gpu(&Op::Relu, &[0]));
    let most = policy.with_threshold(OpClass::Elementwise, u64::MAX - 1);
    assert!(most.prefers_gpu(&Op::Mul, &[usize::MAX; 2]));
}

#[test]
fn output_shape_never_panics() {
    for side in [0, 1, usize::MAX] {
        for kernel in [0, 1, usize::MAX] {
            for stride in [0, 1, usize::MAX] {
                let of = [Conv2d::valid, Conv2d::same].map(|of| of(side, 1, kernel, 1));
                for conv in of.map(|conv| conv.with_stride(stride, 1)) {
                    let rows = conv.output_shape().0;
                    assert!(kernel == 0 || rows <= side, "{conv:?} gives {rows} rows");
                    assert!(conv.padding_before().0 <= kernel);
                }
            }
        }
    }
}
