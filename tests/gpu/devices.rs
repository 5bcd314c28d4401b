//! Devices that threads open and close, and GPUs that do not answer.

use std::thread;
use std::time::{Duration, Instant};

use relampago::{Backend, GpuCommandBatch, GpuDevice, runtime};

fn open() -> GpuDevice {
    GpuDevice::builder().backend(Backend::Gpu).build().unwrap()
}

#[test]
fn threads_can_end_while_others_close_devices() {
    for _ in 0..4 {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let device = open();
                    assert_eq!(device.sum(&[1.0; 4_096]).unwrap(), 4_096.0);
                });
            }
        });
    }
}

/// The time that the next test takes, `RELAMPAGO_STRESS_SECONDS` or one second.
fn stress() -> Duration {
    let seconds = std::env::var("RELAMPAGO_STRESS_SECONDS");
    let seconds = seconds.ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// Some threads live as long as the test and others end at once, and each result is awaited in another way.
#[test]
fn threads_open_use_and_close_devices() {
    const THREADS: usize = 16;
    let end = Instant::now() + stress();
    let rounds = |number: usize| {
        let mut rounds = 0;
        while Instant::now() < end {
            match number % 4 {
                0 => thread::scope(|scope| drop(scope.spawn(|| use_once(number)))),
                _ => use_once(number),
            }
            rounds += 1;
        }
        rounds
    };
    let rounds: usize = thread::scope(|scope| {
        let threads = [(); THREADS].into_iter().enumerate();
        let threads: Vec<_> = threads
            .map(|(number, ())| scope.spawn(move || rounds(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    println!("{THREADS} threads opened, used and closed {rounds} devices");
    assert!(rounds >= THREADS);
}

fn use_once(number: usize) {
    let device = open();
    let x = vec![number as f32; 5_000];
    assert_eq!(device.sum(&x).unwrap(), (number * 5_000) as f32);
    let mut batch = GpuCommandBatch::new(device);
    let input = batch.upload(&x);
    let scaled = batch.scale(input, 2.0);
    let read = async {
        batch.execute_async().await?;
        batch.read_async(scaled).await
    };
    assert_eq!(
        runtime::block_on(read).unwrap(),
        vec![2.0 * number as f32; 5_000]
    );
}

#[test]
fn a_gpu_that_does_not_answer_counts_as_lost() {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder
        .wait_limit(Duration::from_micros(1))
        .build()
        .unwrap();
    // Work that takes longer than a thread polls before it waits, on a fast GPU as well.
    let mut sides = [1_500, 3_000, 6_000, 12_000].into_iter();
    let (error, c) = loop {
        let n = sides.next().expect("a product that takes a moment");
        let a = vec![1.0; n * n];
        let mut c = vec![7.0; n * n];
        if let Err(error) = device.matmul(&a, &a, &mut c, n, n, n) {
            break (error, c);
        }
    };
    assert_eq!(error.code(), "DEVICE_LOST");
    assert!(
        error.to_string().contains("not answered for 1µs"),
        "{error}"
    );
    assert!(c.iter().all(|&c| c == 7.0), "nothing is written");
    let error = device.sum(&[1.0; 4_096]).unwrap_err();
    assert_eq!(error.code(), "DEVICE_LOST");
    let device = device.rebuild().unwrap();
    drop(device);
}

#[test]
fn a_device_opens() {
    assert_eq!(open().backend(), Backend::Gpu);
}

/// Without a display server libwayland complains as soon as a driver asks it for one.
#[test]
fn opening_a_device_writes_nothing_on_a_headless_machine() {
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "devices::a_device_opens"]);
    for name in ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
