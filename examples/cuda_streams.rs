//! Copies while kernels run, and many kernels by one call.
//!
//! `cargo run --release --no-default-features --features cuda --example cuda_streams`

use relampago::cuda::{CudaBuffer, CudaDevice, Error, PinnedBuffer, Stream};
use std::time::{Duration, Instant};

/// The matrices that are squared, one after the other.
const SIDE: usize = 4096;
const MATRICES: usize = 32;
/// Small kernels of a graph.
const KERNELS: usize = 100;
const ROUNDS: usize = 20;

fn main() -> Result<(), Error> {
    let device = match CudaDevice::open(0) {
        Err(error @ (Error::NoDriver { .. } | Error::NoDevice { .. })) => {
            println!("{error}");
            return Ok(());
        }
        device => device?,
    };
    println!("{}", device.name());
    for slots in [1, 2, 3] {
        let times = [0; 3].map(|_| squares(&device, slots));
        let best = times.into_iter().collect::<Result<Vec<_>, _>>()?;
        let best = best.into_iter().min().unwrap_or_default();
        println!(
            "{slots} at a time: {MATRICES} matrices to the GPU, squared, and back in {best:.1?}"
        );
    }
    graphs(&device)
}

/// The buffers of one matrix in flight; several are in flight at once.
struct Slot {
    stream: Stream,
    host: PinnedBuffer<f32>,
    result: PinnedBuffer<f32>,
    x: CudaBuffer<f32>,
    y: CudaBuffer<f32>,
}

impl Slot {
    fn new(device: &CudaDevice) -> Result<Self, Error> {
        let mut host = device.pinned(SIDE * SIDE)?;
        host.as_mut_slice()?.fill(1.0 / 64.0);
        Ok(Slot {
            stream: Stream::new(device)?,
            host,
            result: device.pinned(SIDE * SIDE)?,
            x: device.zeros(SIDE * SIDE)?,
            y: device.zeros(SIDE * SIDE)?,
        })
    }

    /// Asks for all of it and returns at once.
    fn start(&mut self) -> Result<(), Error> {
        let Slot { x, y, .. } = self;
        self.stream.copy_in(&self.host, x)?;
        self.stream.device().matmul(x, x, y, SIDE, SIDE, SIDE)?;
        self.stream.copy_out(y, &mut self.result)
    }
}

/// Measures the time to square all matrices with this many of them in flight.
fn squares(device: &CudaDevice, slots: usize) -> Result<Duration, Error> {
    let slots = (0..slots).map(|_| Slot::new(device));
    let mut slots = slots.collect::<Result<Vec<Slot>, Error>>()?;
    slots[0].start()?;
    device.synchronize()?;
    let began = Instant::now();
    for matrix in 0..MATRICES {
        let free = matrix % slots.len();
        // Waits until the slot's last matrix is back.
        slots[free].result.as_slice()?;
        slots[free].start()?;
    }
    for slot in &slots {
        assert_eq!(slot.result.as_slice()?[0], SIDE as f32 / 4096.0);
    }
    Ok(began.elapsed())
}

/// Small kernels, asked for one by one and as a graph.
fn graphs(device: &CudaDevice) -> Result<(), Error> {
    let stream = Stream::new(device)?;
    let mut ends = [device.upload(&vec![1.0f32; 1024])?, device.zeros(1024)?];
    let mut kernels = |on: &CudaDevice| -> Result<(), Error> {
        let [a, b] = &mut ends;
        for _ in 0..KERNELS / 2 {
            on.softmax_rows(a, b, 1, 1024)?;
            on.softmax_rows(b, a, 1, 1024)?;
        }
        Ok(())
    };
    let graph = device.capture(&mut kernels)?;
    let timed = |name: &str, work: &mut dyn FnMut() -> Result<(), Error>| {
        let mut best = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            device.synchronize()?;
            let began = Instant::now();
            work()?;
            let asked = began.elapsed();
            device.synchronize()?;
            best = [best[0].min(asked), best[1].min(began.elapsed())];
        }
        let [asked, done] = best;
        println!("{KERNELS} kernels {name}: asked for in {asked:.1?}, done in {done:.1?}");
        Ok::<(), Error>(())
    };
    timed("on the default queue", &mut || kernels(device))?;
    timed("on a stream", &mut || kernels(stream.device()))?;
    timed("by a graph", &mut || graph.launch(&stream))
}
