//! Futures that are dropped while a GPU works must not disturb other work on the same device.

#![cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]

mod support;

use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use relampago::{
    Backend, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuDevicePool, GpuMatmulCache, Op,
    PoolProgram, Program, Result, TensorView, WeightFormat, runtime,
};
use support::{Case, Random};

/// Returns the number of futures that each of three threads drops; `cargo xtask test --exhaustive` drops more.
fn dropped_by_thread() -> usize {
    match std::env::var_os("RELAMPAGO_EXHAUSTIVE") {
        Some(_) => 10_000,
        None => 1_000,
    }
}

/// Sides of products. The largest keeps a software adapter busy for longer than any future lives here.
const SIDES: [usize; 3] = [32, 128, 512];

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future for a while, as executors with timeouts do, and drops it then.
fn poll_for<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return Some(result);
        }
        thread::park_timeout(patience.checked_sub(start.elapsed())?);
    }
}

/// A device with something of every kind on it.
struct Rig {
    device: GpuDevice,
    values: Vec<f32>,
    /// Checked operations, each with the result that it had while nothing was dropped.
    cases: Vec<(Case, Vec<f32>)>,
    resident: DeviceBuffer,
    program: Program,
    pool: PoolProgram,
    weights: GpuMatmulCache,
}

type Work<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Starts work of one kind, of a size that the number chooses.
type Start = for<'a> fn(&'a Rig, usize) -> Work<'a>;

const KINDS: [(&str, Start); 12] = [
    ("product", |rig, size| {
        let side = SIDES[size];
        let (a, mut c) = (&rig.values[..side * side], vec![0.0; side * side]);
        Box::pin(async move {
            rig.device
                .matmul_async(a, a, &mut c, side, side, side)
                .await
        })
    }),
    ("elementwise operation", |rig, size| {
        let (x, mut y) = (rig.sized(size), vec![0.0; SIDES[size] * SIDES[size]]);
        Box::pin(async move { rig.device.gelu_async(x, &mut y).await })
    }),
    ("reduction", |rig, size| {
        Box::pin(async move { rig.device.sum_async(rig.sized(size)).await.map(drop) })
    }),
    ("upload", |rig, size| {
        Box::pin(async move { rig.device.upload_async(rig.sized(size)).await.map(drop) })
    }),
    ("read of a buffer", |rig, _| {
        Box::pin(async move { rig.resident.read_async().await.map(drop) })
    }),
    ("batch", |rig, size| {
        let side = SIDES[size];
        let mut batch = GpuCommandBatch::new(rig.device.clone());
        let x = batch.upload(rig.sized(size));
        let product = batch.matmul(x, x, side, side, side);
        let result = batch.relu(product);
        Box::pin(async move {
            batch.execute_async().await?;
            batch.read_async(result).await.map(drop)
        })
    }),
    ("program", |rig, _| {
        Box::pin(async move {
            rig.program
                .read_async(&[(&rig.values).into()])
                .await
                .map(drop)
        })
    }),
    ("repeated program", |rig, size| {
        Box::pin(async move {
            let argument = [(&rig.resident).into()];
            let runs = rig.program.run_n_async(&argument, 1 + 8 * size, &[(0, 0)]);
            runs.await.map(drop)
        })
    }),
    ("program of a pool", |rig, _| {
        Box::pin(async move { rig.pool.read_async(&[(&rig.values).into()]).await.map(drop) })
    }),
    ("tiled reduction", |rig, size| {
        let side = SIDES[size];
        Box::pin(async move {
            let sum = rig.device.tiled_sum_2d_async(rig.sized(size), side, side);
            sum.await.map(drop)
        })
    }),
    ("product with cached weights", |rig, size| {
        let mut c = vec![0.0; 128 << size];
        Box::pin(async move {
            let a = &rig.values[..128 << size];
            rig.weights
                .matmul_cached_async("weights", a, &mut c, 1 << size)
                .await
        })
    }),
    ("product of views", |rig, size| {
        let side = SIDES[size];
        let mut c = vec![0.0; side * side];
        Box::pin(async move {
            let view = TensorView::new_2d(side, side)?;
            let transposed = view.transpose(0, 1)?;
            let (a, b) = (
                view.bind(rig.sized(size))?,
                transposed.bind(rig.sized(size))?,
            );
            rig.device.matmul_view_async(&a, &b, &mut c).await
        })
    }),
];

impl Rig {
    fn new() -> Self {
        let device = GpuDevice::builder().backend(Backend::Gpu).build();
        let device = device.expect("a GPU adapter, if in software");
        let mut random = Random(32);
        let values = random.values(SIDES[2] * SIDES[2]);
        let cases = checked(&values).into_iter().map(|case| {
            let result = device.run(&case.op, &case.inputs()).unwrap();
            case.judge(&result, true)
                .unwrap_or_else(|complaint| panic!("{complaint}"));
            (case, result)
        });
        let cases = cases.collect();
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.placeholder(values.len());
        let y = batch.tanh(x);
        let z = batch.softmax_rows(y, SIDES[2], SIDES[2]);
        let program = batch.compile(&[z]).unwrap();
        let devices = [device.clone(), device.clone()];
        let pool = GpuDevicePool::from_devices(devices)
            .unwrap()
            .least_values(1);
        let pool = pool.compile(&batch, &[z]).unwrap();
        let mut weights = GpuMatmulCache::new(device.clone());
        let view = TensorView::new_2d(128, 128).unwrap();
        let bound = view.bind(&values[..128 * 128]).unwrap();
        weights
            .insert_view("weights", &bound, WeightFormat::Q8_0)
            .unwrap();
        let resident = device.upload(&values).unwrap();
        Self {
            device,
            values,
            cases,
            resident,
            program,
            pool,
            weights,
        }
    }

    /// Returns as many elements as a matmul of this size has.
    fn sized(&self, size: usize) -> &[f32] {
        &self.values[..SIDES[size] * SIDES[size]]
    }

    /// Starts work of any kind and drops it at a random moment; returns whether it was under way.
    fn drop_one(&self, random: &mut Random) -> bool {
        let (kind, start) = KINDS[random.below(KINDS.len())];
        let is_large = random.below(32) == 0;
        let size = if is_large { 2 } else { random.below(2) };
        let is_polled_once = random.below(4) == 0;
        let patience = if is_polled_once {
            0
        } else {
            1 << random.below(11)
        };
        match poll_for(Duration::from_micros(patience), start(self, size)) {
            Some(Ok(())) => false,
            Some(Err(error)) => panic!("{kind}: {error}"),
            None => true,
        }
    }

    /// Runs a checked operation to its end and compares its result bit by bit.
    fn check_one(&self, random: &mut Random) {
        let (case, expected) = &self.cases[random.below(self.cases.len())];
        let result = runtime::block_on(self.device.run_async(&case.op, &case.inputs()));
        let result = result.unwrap_or_else(|error| panic!("{:?}: {error}", case.op));
        let pairs = result.iter().zip(expected);
        let wrong = pairs
            .filter(|(y, want)| y.to_bits() != want.to_bits())
            .count();
        let len = expected.len();
        assert_eq!(wrong, 0, "{:?}: {wrong} of {len} values are wrong", case.op);
    }
}

/// Operations of the sizes that dropped work has, so that they take the memory that it gives back.
fn checked(values: &[f32]) -> Vec<Case> {
    let mut cases = Vec::new();
    for side in SIDES {
        let x = || values[..side * side].to_vec();
        cases.push((Op::Relu, vec![x()]));
        cases.push((Op::VecAdd, vec![x(), x()]));
        cases.push((Op::Sum, vec![x()]));
        cases.push((
            Op::SoftmaxRows {
                rows: side,
                cols: side,
            },
            vec![x()],
        ));
        let (m, k, n) = (side, 16, side);
        cases.push((
            Op::Matmul { m, k, n },
            vec![x()[..side * 16].to_vec(), x()[..side * 16].to_vec()],
        ));
    }
    cases
        .into_iter()
        .map(|(op, inputs)| Case { op, inputs })
        .collect()
}

#[test]
fn dropped_futures_do_not_affect_other_results() {
    let rig = Rig::new();
    let start = Instant::now();
    let counts = thread::scope(|scope| {
        let threads = [1, 2, 3].map(|seed| {
            let rig = &rig;
            scope.spawn(move || drop_and_check(rig, &mut Random(seed)))
        });
        threads.map(|thread| thread.join().expect("no result was wrong"))
    });
    let [under_way, checked] = [0, 1].map(|i| counts.iter().map(|count| count[i]).sum::<usize>());
    let (kinds, seconds) = (KINDS.len(), start.elapsed().as_secs_f64());
    // Straight to the stream, so that the runner does not capture it.
    let printed = writeln!(
        io::stdout(),
        "dropped {} futures of {kinds} kinds, {under_way} of them under way, and checked {checked} \
         results between them in {seconds:.1} s",
        3 * dropped_by_thread(),
    );
    printed.expect("standard output is open");
    assert!(
        under_way >= dropped_by_thread(),
        "only {under_way} futures were under way"
    );
}

/// Drops futures and checks every fourth time; returns how many were under way and how many results
/// were checked.
fn drop_and_check(rig: &Rig, random: &mut Random) -> [usize; 2] {
    let mut counts = [0; 2];
    for _ in 0..dropped_by_thread() {
        counts[0] += usize::from(rig.drop_one(random));
        if random.below(4) == 0 {
            rig.check_one(random);
            counts[1] += 1;
        }
    }
    counts
}
