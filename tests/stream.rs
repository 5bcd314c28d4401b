//! Tests of streams: results are those of one part, and errors anywhere are returned.

#![cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]

mod support;

use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use relampago::{
    Backend, BufferId, Conv2d, CustomOp, Error, GpuCommandBatch, GpuDevice, GpuDevicePool,
    PoolProgram, Result, StreamProgress, wgpu,
};
use support::{Random, opened};

/// Returns a device with its wgpu handle, so that a test can destroy it.
fn logical() -> (GpuDevice, wgpu::Device) {
    opened(|_| ())
}

fn simd() -> GpuDevice {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    builder.build().expect("SIMD is always there")
}

/// One of each kind, several at once, and parts in flight.
fn pools() -> Vec<GpuDevicePool> {
    let of = |devices: Vec<GpuDevice>| GpuDevicePool::from_devices(devices).unwrap();
    let pools = [
        of(vec![simd()]),
        of(vec![simd()]).in_flight(1),
        of(vec![logical().0]).in_flight(3),
        of(vec![logical().0, logical().0]),
    ];
    pools.map(|pool| pool.least_values(1)).into()
}

fn goes_on(_: StreamProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Streams from and to memory; how often the source was asked.
fn stream(
    program: &PoolProgram,
    arguments: &[&[f32]],
    lens: &[usize],
) -> Result<(Vec<Vec<f32>>, usize)> {
    let mut results: Vec<Vec<f32>> = lens.iter().map(|_| Vec::new()).collect();
    let mut questions = 0;
    program.stream(
        &mut |argument, start, values| {
            questions += 1;
            values.copy_from_slice(&arguments[argument][start..start + values.len()]);
            Ok(())
        },
        &mut |result, start, values| {
            assert_eq!(results[result].len(), start, "in ascending order");
            results[result].extend_from_slice(values);
            Ok(())
        },
        &mut goes_on,
    )?;
    for (result, &len) in results.iter().zip(lens) {
        assert_eq!(result.len(), len);
    }
    Ok((results, questions))
}

/// A layer with a norm before it, and its mean square: weights of the batch, and a gain that is an
/// argument.
fn layer(device: &GpuDevice, rows: usize) -> (GpuCommandBatch, [BufferId; 2]) {
    let mut random = Random(31);
    let mut batch = GpuCommandBatch::new(device.clone());
    let (x, gain) = (batch.placeholder(rows * 24), batch.placeholder(24));
    let normed = batch.rms_norm(x, gain, rows, 24, 1e-5);
    let weights = batch.upload(&random.values(24 * 7));
    let y = batch.matmul(normed, weights, rows, 24, 7);
    let residual = batch.upload(&random.values(rows * 7));
    let sum = batch.vec_add(y, residual);
    (batch, [normed, sum])
}

#[test]
fn stream_matches_read() {
    let rows = 1_301;
    let (x, gain) = (Random(32).values(rows * 24), Random(33).values(24));
    for pool in pools() {
        let device = pool.device().unwrap().clone();
        let (batch, outputs) = layer(&device, rows);
        let whole = batch.compile(&outputs).unwrap();
        let whole = whole.read(&[(&x).into(), (&gain).into()]).unwrap();
        let program = pool.compile(&batch, &outputs).unwrap();
        assert_eq!(program.parts(), 10);
        let (results, questions) = stream(&program, &[&x, &gain], &[rows * 24, rows * 7]).unwrap();
        assert_eq!(results, whole);
        // The gain once, and each part's rows.
        assert_eq!(questions, 11);
        assert_eq!(
            results,
            program.read(&[(&x).into(), (&gain).into()]).unwrap()
        );
    }
}

#[test]
fn parts_of_a_convolution_overlap() {
    let options = Conv2d::valid(700, 33, 5, 3);
    let (image, kernel) = (Random(34).values(700 * 33), Random(35).values(15));
    for pool in pools() {
        let device = pool.device().unwrap().clone();
        let mut batch = GpuCommandBatch::new(device);
        let (x, k) = (batch.placeholder(700 * 33), batch.placeholder(15));
        let y = batch.convolve2d_with(x, k, options);
        let program = pool.compile(&batch, &[y]).unwrap();
        let whole = program.read(&[(&image).into(), (&kernel).into()]).unwrap();
        let (results, _) = stream(&program, &[&image, &kernel], &[696 * 31]).unwrap();
        assert_eq!(results, whole);
    }
}

/// A source that reads a file in order has each part once.
#[test]
fn two_convolutions_read_a_shared_image_once() {
    let options = Conv2d::valid(3_000, 60, 3, 3);
    let (image, weights) = (Random(36).values(3_000 * 60), Random(37).values(18));
    for pool in pools() {
        let questions = [1, 2].map(|convolutions| {
            let mut batch = GpuCommandBatch::new(pool.device().unwrap().clone());
            let x = batch.placeholder(image.len());
            let results: Vec<_> = weights
                .chunks(9)
                .take(convolutions)
                .map(|weights| {
                    let kernel = batch.upload(weights);
                    batch.convolve2d_with(x, kernel, options)
                })
                .collect();
            let y = batch.maximum(results[0], results[convolutions - 1]);
            let program = pool.compile(&batch, &[y]).unwrap();
            let (results, questions) = stream(&program, &[&image], &[2_998 * 58]).unwrap();
            assert_eq!(results, program.read(&[(&image).into()]).unwrap());
            questions
        });
        assert_eq!(questions[0], questions[1]);
    }
}

#[test]
fn indivisible_graph_is_one_part() {
    for pool in pools() {
        let mut batch = GpuCommandBatch::new(pool.device().unwrap().clone());
        let x = batch.placeholder(3_001);
        let (sum, y) = (batch.sum(x), batch.softmax(x));
        let program = pool.compile(&batch, &[sum, y]).unwrap();
        let values = Random(36).values(3_001);
        let (results, questions) = stream(&program, &[&values], &[1, 3_001]).unwrap();
        assert_eq!(results, program.read(&[(&values).into()]).unwrap());
        assert_eq!((program.parts(), questions), (1, 1));
    }
}

/// Compiles `y = x / 2` for `len` elements.
fn halves(pool: &GpuDevicePool, len: usize) -> PoolProgram {
    let mut batch = GpuCommandBatch::new(pool.device().unwrap().clone());
    let x = batch.placeholder(len);
    let y = batch.scale(x, 0.5);
    pool.compile(&batch, &[y]).unwrap()
}

#[test]
fn watch_receives_progress_and_can_stop() {
    for pool in pools() {
        let program = halves(&pool, 10_000);
        let mut told = Vec::new();
        let mut watch = |progress: StreamProgress| {
            told.push(progress.rows);
            assert_eq!(progress.of, 10_000);
            ControlFlow::Continue(())
        };
        let mut one = |_: usize, _: usize, values: &mut [f32]| {
            values.fill(1.0);
            Ok(())
        };
        let written = AtomicUsize::new(0);
        let mut sink = |_: usize, _: usize, values: &[f32]| {
            written.fetch_add(values.len(), Ordering::Relaxed);
            Ok(())
        };
        program.stream(&mut one, &mut sink, &mut watch).unwrap();
        assert_eq!(told.len(), program.parts());
        assert!(told.is_sorted() && told.last() == Some(&10_000), "{told:?}");
        let before = written.swap(0, Ordering::Relaxed);
        assert_eq!(before, 10_000);
        let mut third = |progress: StreamProgress| {
            if progress.rows >= 2_000 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let ended = program.stream(&mut one, &mut sink, &mut third);
        assert_eq!(ended, Err(Error::Aborted));
        assert!(written.load(Ordering::Relaxed) < 10_000);
        // Nothing of it is left.
        program.stream(&mut one, &mut sink, &mut goes_on).unwrap();
    }
}

#[test]
fn source_and_sink_errors_are_returned() {
    for pool in pools() {
        let program = halves(&pool, 10_000);
        let mut ends = |_: usize, start: usize, values: &mut [f32]| {
            if start + values.len() > 5_000 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "5,000 values"));
            }
            values.fill(1.0);
            Ok(())
        };
        let mut full = |_: usize, _: usize, _: &[f32]| Err(io::Error::other("no room"));
        let mut any = |_: usize, _: usize, _: &mut [f32]| Ok(());
        let mut nowhere = |_: usize, _: usize, _: &[f32]| Ok(());
        for (error, by, message) in [
            (
                program.stream(&mut ends, &mut nowhere, &mut goes_on),
                "source",
                "5,000 values",
            ),
            (
                program.stream(&mut any, &mut full, &mut goes_on),
                "sink",
                "no room",
            ),
        ] {
            let error = error.unwrap_err();
            let message = message.to_owned();
            assert_eq!(error, Error::Stream { by, message });
            assert_eq!(error.code(), "STREAM");
        }
        assert!(program.stream(&mut any, &mut nowhere, &mut goes_on).is_ok());
    }
}

#[test]
fn sink_receives_nothing_after_an_error() {
    let devices = || (0..4).map(|_| simd());
    let pool = GpuDevicePool::from_devices(devices()).unwrap();
    let program = halves(&pool.least_values(1), 128 * 16);
    let wait = || std::thread::sleep(std::time::Duration::from_micros(200));
    for round in 0..300 {
        let (failed, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let breaks = round % 2 == 0;
        let result = program.stream(
            &mut |_, _, _| Ok(()),
            &mut |_, start, _| {
                late.fetch_add(failed.load(Ordering::SeqCst), Ordering::SeqCst);
                if breaks || start < 384 {
                    return Ok(());
                }
                failed.store(1, Ordering::SeqCst);
                wait();
                Err(io::Error::other("no room"))
            },
            &mut |progress| {
                if !breaks || progress.rows < 384 {
                    return ControlFlow::Continue(());
                }
                failed.store(1, Ordering::SeqCst);
                wait();
                ControlFlow::Break(())
            },
        );
        assert!(result.is_err());
        assert_eq!(late.into_inner(), 0, "round {round}");
    }
}

#[test]
fn panic_in_the_source_ends_the_stream() {
    let pool = GpuDevicePool::from_devices([simd()]).unwrap();
    let program = halves(&pool.least_values(1), 128 * 64);
    let mut questions = 0;
    let mut source = |_: usize, _: usize, _: &mut [f32]| {
        questions += 1;
        assert!(questions != 3, "enough");
        Ok(())
    };
    let stream = || program.stream(&mut source, &mut |_, _, _| Ok(()), &mut goes_on);
    assert!(catch_unwind(AssertUnwindSafe(stream)).is_err());
}

#[test]
fn parts_waiting_for_a_slow_one_are_bounded() {
    let pool = GpuDevicePool::from_devices([simd(), simd()]).unwrap();
    let pool = pool.least_values(1).in_flight(1);
    let slow = |[x]: [f32; 1], []: [f32; 0]| {
        std::thread::sleep(std::time::Duration::from_millis(if x > 0.0 {
            100
        } else {
            0
        }));
        x
    };
    let slow = CustomOp::new("slow", &["x"], &[], "x", slow).unwrap();
    let mut batch = GpuCommandBatch::new(pool.device().unwrap().clone());
    let x = batch.placeholder(128 * 64);
    let y = batch.custom_elementwise(&slow, &[x], &[]);
    let program = pool.compile(&batch, &[y]).unwrap();
    let (read, written, most) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    program
        .stream(
            &mut |_, start, values| {
                values.fill(0.0);
                values[0] = if start == 0 { 1.0 } else { 0.0 };
                let there = read.fetch_add(1, Ordering::SeqCst) - written.load(Ordering::SeqCst);
                most.fetch_max(there + 1, Ordering::SeqCst);
                Ok(())
            },
            &mut |_, _, _| {
                written.fetch_add(1, Ordering::SeqCst);
                Ok(())
            },
            &mut goes_on,
        )
        .unwrap();
    let (most, parts) = (most.into_inner(), program.parts());
    assert!(most <= 4 * 2 && parts == 16, "{most} of {parts}");
    assert_eq!(written.into_inner(), parts);
}

#[test]
fn stream_survives_a_lost_device() {
    let ((lost, raw), (last, raw_last)) = (logical(), logical());
    let pool = GpuDevicePool::from_devices([lost, last]).unwrap();
    let program = halves(&pool.least_values(1), 100_000);
    let x = Random(37).values(100_000);
    let half: Vec<f32> = x.iter().map(|x| x / 2.0).collect();
    let mut results = Vec::new();
    program
        .stream(
            &mut |_, start, values| {
                if start > 30_000 {
                    raw.destroy();
                }
                values.copy_from_slice(&x[start..start + values.len()]);
                Ok(())
            },
            &mut |_, start, values| {
                assert_eq!(results.len(), start);
                results.extend_from_slice(values);
                Ok(())
            },
            &mut goes_on,
        )
        .unwrap();
    assert_eq!(results, half);
    raw_last.destroy();
    let error = stream(&program, &[&x], &[100_000]).unwrap_err();
    assert_eq!(error.code(), "DEVICE_LOST");
}
