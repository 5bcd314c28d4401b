//! Tests of custom elementwise operations: correct on every back-end, fused like others, and
//! refused if their WGSL is invalid.

#![cfg(not(target_arch = "wasm32"))]

#[path = "custom/wgsl.rs"]
mod wgsl;

use relampago::{Backend, CustomOp, Error, GpuCommandBatch, GpuDevice, InstructionSet, Result};

fn devices() -> Vec<GpuDevice> {
    let mut devices = vec![GpuDevice::builder().backend(Backend::Gpu).build()];
    for &set in InstructionSet::available() {
        let simd = GpuDevice::builder().backend(Backend::Simd);
        devices.push(simd.instruction_set(set).build());
    }
    let all: Result<Vec<_>> = devices.into_iter().collect();
    all.expect("the tests need an adapter, llvmpipe for one")
}

/// `|x|` beyond a limit, with the sign of `x`.
fn shrink() -> CustomOp {
    let op = CustomOp::new(
        "shrink",
        &["x"],
        &["limit"],
        "select(0.0, x - sign(x) * limit, abs(x) > limit)",
        |[x], [limit]| {
            if x.abs() > limit {
                x - x.signum() * limit
            } else {
                0.0
            }
        },
    );
    op.unwrap()
}

/// Returns a custom operation whose WGSL is a function body.
fn either() -> CustomOp {
    let wgsl = "
        // Where it is not positive, the other.
        var chosen = b; /* as yet */
        if condition > 0.0 {
            chosen = a;
        }
        return chosen;";
    CustomOp::new(
        "either",
        &["condition", "a", "b"],
        &[],
        wgsl,
        |[condition, a, b], []| {
            if condition > 0.0 { a } else { b }
        },
    )
    .unwrap()
}

fn larger() -> CustomOp {
    CustomOp::new(
        "larger",
        &["a", "b"],
        &["low", "high"],
        "minimum(maximum(maximum(a, b), low), high)",
        |[a, b], [low, high]| {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else {
                a.max(b).max(low).min(high)
            }
        },
    )
    .unwrap()
}

#[test]
fn every_arity_matches_its_function_on_every_back_end() {
    for device in devices() {
        for len in [0, 1, 5, 16, 1_000, 70_001] {
            let a: Vec<f32> = (0..len).map(|i| (i % 13) as f32 - 6.0).collect();
            let b: Vec<f32> = (0..len).map(|i| (i % 7) as f32 - 3.0).collect();
            let c: Vec<f32> = (0..len).map(|i| (i % 3) as f32).collect();
            let at = |i: usize| [a[i], b[i], c[i]];
            let check = |op: relampago::Op, inputs: &[&[f32]], want: &dyn Fn([f32; 3]) -> f32| {
                let wanted: Vec<f32> = (0..len).map(|i| want(at(i))).collect();
                assert_eq!(
                    device.run(&op, inputs).unwrap(),
                    wanted,
                    "{}",
                    device.info()
                );
            };
            check(shrink().with(&[2.0]).unwrap(), &[&a], &|[a, ..]| {
                if a.abs() > 2.0 {
                    a - a.signum() * 2.0
                } else {
                    0.0
                }
            });
            check(
                larger().with(&[-1.0, 4.0]).unwrap(),
                &[&a, &b],
                &|[a, b, _]| a.max(b).clamp(-1.0, 4.0),
            );
            check(either().with(&[]).unwrap(), &[&b, &a, &c], &|[a, b, c]| {
                if b > 0.0 { a } else { c }
            });
        }
    }
}

/// Scaled, of a user's, and so on: everything in one kernel, also around a product.
fn record(batch: &mut GpuCommandBatch) -> relampago::BufferId {
    let (x, w) = (
        batch.upload(&[1.0, -2.0, 3.0, -4.0]),
        batch.upload(&[1.0, 0.0, 0.0, 2.0]),
    );
    let product = batch.matmul(x, w, 2, 2, 2);
    let shrunk = batch.custom_elementwise(&shrink(), &[product], &[1.5]);
    let scaled = batch.scale(shrunk, 2.0);
    batch.custom_elementwise(&either(), &[scaled, x, scaled], &[])
}

#[test]
fn custom_operations_are_fused_and_named_in_plans() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let y = record(&mut batch);
        let kernels = batch.explain().kernels;
        assert_eq!(kernels.len(), 1);
        assert_eq!(
            kernels[0].operations,
            ["matmul", "shrink", "scale", "either"]
        );
        let program = batch.compile(&[y]).unwrap();
        batch.execute_sync().unwrap();
        let wanted = [0.0, -5.0, 3.0, -13.0];
        assert_eq!(batch.read_sync(y).unwrap(), wanted);
        assert_eq!(program.read(&[]).unwrap(), [wanted]);
    }
}

#[test]
fn identical_custom_calls_are_merged() {
    let mut batch = GpuCommandBatch::new(GpuDevice::new().unwrap());
    let (x, op) = (batch.placeholder(4), shrink());
    let same = [0; 2].map(|_| batch.custom_elementwise(&op, &[x], &[1.0]));
    let other = batch.custom_elementwise(&op, &[x], &[-0.0]);
    let zero = batch.custom_elementwise(&op, &[x], &[0.0]);
    let alike = batch.custom_elementwise(&shrink(), &[x], &[1.0]);
    let mut sum = batch.vec_add(same[0], same[1]);
    for value in [other, zero, alike] {
        sum = batch.vec_add(sum, value);
    }
    let operations = &batch.explain().kernels[0].operations;
    let shrinks = operations.iter().filter(|&&name| name == "shrink");
    assert_eq!(shrinks.count(), 4, "{operations:?}");
}

#[test]
fn one_kernel_can_call_an_operation_with_different_parameters() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let op = shrink();
        let mut x = batch.upload(&[100.0, -100.0, 3.0]);
        for limit in 0..10 {
            x = batch.custom_elementwise(&op, &[x], &[limit as f32]);
        }
        assert_eq!(batch.explain().kernels.len(), 1);
        batch.execute_sync().unwrap();
        assert_eq!(batch.read_sync(x).unwrap(), [55.0, -55.0, 0.0]);
    }
}

#[test]
fn invalid_definitions_return_errors() {
    let code = |op: Result<CustomOp>| op.unwrap_err().code();
    let four = CustomOp::new("f", &["a", "b", "c", "d"], &[], "a", |[a, ..], []| a);
    assert_eq!(code(four), "LIMIT_EXCEEDED");
    let three = CustomOp::new("f", &["x"], &["a", "b", "c"], "x", |[x], _| x);
    assert_eq!(code(three), "LIMIT_EXCEEDED");
    let none = CustomOp::new("f", &[], &[], "1.0", |[], []| 1.0);
    assert_eq!(code(none), "INVALID_ARGUMENT");
    let unnamed = CustomOp::new("f", &["x: i32, y"], &[], "x", |[x], []| x);
    assert_eq!(code(unnamed), "INVALID_ARGUMENT");
    let reserved = CustomOp::new("f", &["fn"], &[], "1.0", |[x], []| x);
    assert_eq!(code(reserved), "WGSL");
    let twice = CustomOp::new("f", &["x", "x"], &[], "x", |[x, _], []| x);
    assert_eq!(code(twice), "WGSL");
}

#[test]
fn recording_errors_name_the_line() {
    for (inputs, parameters) in [(2, 1), (1, 0), (0, 1)] {
        let mut batch = GpuCommandBatch::new(GpuDevice::new().unwrap());
        let x = batch.upload(&[1.0]);
        let line = line!() + 1;
        batch.custom_elementwise(&shrink(), &[x; 2][..inputs], &[1.0][..parameters]);
        let Err(Error::Record { location, source }) = batch.execute_sync() else {
            panic!("{inputs} inputs and {parameters} parameters are none of its");
        };
        assert_eq!((location.line(), location.file()), (line, file!()));
        assert_eq!(source.code(), "LENGTH_MISMATCH");
    }
    let mut batch = GpuCommandBatch::new(GpuDevice::new().unwrap());
    let (a, b) = (batch.upload(&[1.0]), batch.upload(&[1.0, 2.0]));
    batch.custom_elementwise(&larger(), &[a, b], &[0.0, 1.0]);
    let error = batch.execute_sync().unwrap_err();
    assert!(error.to_string().contains("`b` has 2 values"), "{error}");
}
