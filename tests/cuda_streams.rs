//! Streams, events, graphs and pinned memory, on NVIDIA GPUs; elsewhere these tests are ignored.

#![cfg(all(feature = "cuda", not(target_arch = "wasm32")))]

use relampago::cuda::{CudaBuffer, CudaDevice, CudaKernel, Error, Stream};
use relampago::ptx::half::f32_to_bf16;
use relampago::ptx::{GemmKernel, Kernel, PtxType, Target};
use std::time::Duration;

/// The side of matrices, large enough that a missing wait is noticed.
const SIDE: usize = 2048;

/// Opens the first GPU.
fn device() -> CudaDevice {
    CudaDevice::open(0).expect("an NVIDIA GPU")
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

fn square(device: &CudaDevice, a: &CudaBuffer<f32>, c: &mut CudaBuffer<f32>) -> Result<(), Error> {
    device.matmul(a, a, c, SIDE, SIDE, SIDE)
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn results_do_not_depend_on_streams() {
    let device = device();
    let x = numbers(SIDE * SIDE);
    let on_x = device.upload(&x).unwrap();
    let [mut y, mut z] = [0; 2].map(|_| device.zeros(x.len()).unwrap());
    square(&device, &on_x, &mut y).unwrap();
    device.softmax_rows(&y, &mut z, SIDE, SIDE).unwrap();
    let expected = z.download().unwrap();

    let streams = [0; 3].map(|_| Stream::new(&device).unwrap());
    let mut host = device.pinned::<f32>(x.len()).unwrap();
    host.as_mut_slice().unwrap().copy_from_slice(&x);
    for round in 0..6 {
        let on = |step: usize| &streams[(round + step) % 3];
        let mut from = device.pinned::<f32>(x.len()).unwrap();
        from.as_mut_slice().unwrap().copy_from_slice(&x);
        let [mut x, mut y, mut z] = [0; 3].map(|_| device.zeros(from.len()).unwrap());
        on(0).copy_in(&from, &mut x).unwrap();
        // Dropped while it is read: the memory must last.
        drop(from);
        square(on(1).device(), &x, &mut y).unwrap();
        drop(x);
        on(2).device().softmax_rows(&y, &mut z, SIDE, SIDE).unwrap();
        // The next write waits for that reader.
        on(0).device().copy(&on_x, &mut y).unwrap();
        on(0).copy_out(&z, &mut host).unwrap();
        assert_eq!(host.as_slice().unwrap(), expected, "round {round}");
        assert_eq!(y.download().unwrap(), self::numbers(y.len()));
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn default_queue_and_streams_wait_for_each_other() {
    let device = device();
    let (x, stream) = (numbers(SIDE * SIDE), Stream::new(&device).unwrap());
    let on_x = device.upload(&x).unwrap();
    let [mut y, mut z] = [0; 2].map(|_| device.zeros(x.len()).unwrap());
    square(&device, &on_x, &mut y).unwrap();
    let expected = y.download().unwrap();
    for _ in 0..4 {
        y.write(&x).unwrap();
        square(stream.device(), &on_x, &mut y).unwrap();
        device.copy(&y, &mut z).unwrap();
        assert_eq!(z.download().unwrap(), expected);
        square(&device, &on_x, &mut z).unwrap();
        stream.device().copy(&z, &mut y).unwrap();
        assert_eq!(y.download().unwrap(), expected);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn events_measure_order_and_time() {
    let device = device();
    let stream = Stream::new(&device).unwrap();
    let x = device.upload(&numbers(SIDE * SIDE)).unwrap();
    let mut y = device.zeros(x.len()).unwrap();
    square(&device, &x, &mut y).unwrap();
    let began = stream.record().unwrap();
    for _ in 0..20 {
        square(stream.device(), &x, &mut y).unwrap();
    }
    let ended = stream.record().unwrap();
    assert!(!ended.is_done().unwrap(), "20 products in no time");
    let other = Stream::new(&device).unwrap();
    other.wait(&ended).unwrap();
    let after = other.record().unwrap();
    after.wait().unwrap();
    assert!(ended.is_done().unwrap());
    let took = ended.elapsed_since(&began).unwrap();
    // 0.34 TFLOP; no GPU computes f32 at more than 500 TFLOP/s, or below 10 GFLOP/s.
    assert!(took > Duration::from_micros(680) && took < Duration::from_secs(34));
    assert_eq!(began.elapsed_since(&ended).unwrap(), Duration::ZERO);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn graph_replays_captured_work() {
    let device = device();
    let x = numbers(SIDE * SIDE);
    let mut on_x = device.upload(&x).unwrap();
    let [mut y, mut z] = [0; 2].map(|_| device.zeros(x.len()).unwrap());
    square(&device, &on_x, &mut y).unwrap();
    device.softmax_rows(&y, &mut z, SIDE, SIDE).unwrap();
    let expected = z.download().unwrap();

    z.write(&x).unwrap();
    let mut escaped = None;
    let graph = device
        .capture(|on| {
            escaped = Some(on.clone());
            square(on, &on_x, &mut y)?;
            on.softmax_rows(&y, &mut z, SIDE, SIDE)?;
            on.copy(&z, &mut on_x)
        })
        .unwrap();
    assert_eq!(z.download().unwrap(), x, "capturing ran something");
    let error = square(&escaped.unwrap(), &on_x, &mut y);
    assert!(matches!(error, Err(Error::CaptureEnded)), "{error:?}");
    // The graph needs its values between, not whoever else had them.
    drop(y);
    let streams = [0; 2].map(|_| Stream::new(&device).unwrap());
    for round in 0..3 {
        on_x.write(&x).unwrap();
        graph.launch(&streams[round % 2]).unwrap();
        assert_eq!(z.download().unwrap(), expected, "round {round}");
        assert_eq!(on_x.download().unwrap(), expected);
    }
    graph.launch(&streams[0]).unwrap();
    graph.launch(&streams[1]).unwrap();
    drop(graph);
    device.synchronize().unwrap();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn graph_allocates_memory_between_kernels() {
    let device = device();
    if device.target() != Target::Sm90a {
        return;
    }
    let (m, k, n) = (3, 1032, 264);
    let round = |count| -> Vec<u16> { numbers(count).into_iter().map(f32_to_bf16).collect() };
    let (a, b) = (
        device.upload(&round(m * k)).unwrap(),
        device.upload(&round(k * n)).unwrap(),
    );
    let [mut direct, mut c] = [0; 2].map(|_| device.zeros(m * n).unwrap());
    let product = |on: &CudaDevice, c: &mut _| on.matmul_half(PtxType::BF16, &a, &b, c, [m, k, n]);
    product(&device, &mut direct).unwrap();
    let graph = device.capture(|on| product(on, &mut c)).unwrap();
    let stream = Stream::new(&device).unwrap();
    for _ in 0..10 {
        graph.launch(&stream).unwrap();
    }
    assert_eq!(c.download().unwrap(), direct.download().unwrap());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn capture_blocks_other_users_of_the_device() {
    let device = device();
    let (a, mut c) = (device.upload(&[2.0]).unwrap(), device.zeros(1).unwrap());
    let graph = device.capture(|on| {
        std::thread::scope(|scope| scope.spawn(|| device.synchronize()).join().unwrap())?;
        // Dropped at once, after what may have used it.
        let kernel = GemmKernel::naive().build(device.target())?;
        drop(CudaKernel::compile(&device, kernel)?);
        on.matmul(&a, &a, &mut c, 1, 1, 1)
    });
    graph
        .unwrap()
        .launch(&Stream::new(&device).unwrap())
        .unwrap();
    device.synchronize().unwrap();
    assert_eq!(c.download().unwrap(), [4.0]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn failed_capture_leaves_the_device_usable() {
    let device = device();
    let (a, mut c) = (device.upload(&[2.0]).unwrap(), device.zeros(1).unwrap());
    let failed = device.capture(|on| on.matmul(&a, &a, &mut c, 1, 1, 2));
    assert!(matches!(failed, Err(Error::Length { .. })), "{failed:?}");
    device.matmul(&a, &a, &mut c, 1, 1, 1).unwrap();
    assert_eq!(c.download().unwrap(), [4.0]);
    // Nothing captured is a graph, too.
    let stream = Stream::new(&device).unwrap();
    device.capture(|_| Ok(())).unwrap().launch(&stream).unwrap();
    stream.synchronize().unwrap();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn invalid_use_returns_errors() {
    let (device, again) = (device(), device());
    let stream = Stream::new(&device).unwrap();
    let host = device.pinned::<f32>(3).unwrap();
    assert_eq!(host.as_slice().unwrap(), [0.0; 3]);
    let mut four = device.zeros::<f32>(4).unwrap();
    let short = stream.copy_in(&host, &mut four);
    assert!(matches!(short, Err(Error::Length { .. })), "{short:?}");
    let mut foreign = again.zeros::<f32>(3).unwrap();
    let elsewhere = stream.copy_in(&host, &mut foreign);
    assert!(
        matches!(elsewhere, Err(Error::Foreign { what: "to" })),
        "{elsewhere:?}"
    );
    let graph = device.capture(|_| Ok(())).unwrap();
    let elsewhere = graph.launch(&Stream::new(&again).unwrap());
    assert!(matches!(elsewhere, Err(Error::Foreign { .. })));
    let huge = device.pinned::<f32>(usize::MAX);
    assert!(matches!(huge, Err(Error::Limit { .. })));
    let large = device.pinned::<u8>(1 << 50);
    assert!(matches!(large, Err(Error::OutOfMemory { .. })));
    assert!(device.pinned::<f32>(0).unwrap().is_empty());
}
