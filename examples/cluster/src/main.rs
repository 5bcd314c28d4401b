//! Clusters points that lie on several machines by k-means. relampago computes on each machine; timely dataflow sends
//! the sums of every block of points to all of them. `cargo run --release -p cluster -- --help` lists the options.

mod exchange;
mod kmeans;
mod options;

use anyhow::{Error, Result};
use exchange::Exchange;
use kmeans::{Block, COLUMNS, POINTS, first_centres, next_centres};
use options::Options;
use relampago::{GpuDevice, Tensors};
use std::time::Instant;
use timely::worker::Worker;

fn main() -> Result<()> {
    let Some((config, options)) = Options::from_args()? else {
        return Ok(());
    };
    let workers = timely::execute(config, move |worker| run(worker, &options));
    for worker in workers.map_err(Error::msg)?.join() {
        worker.map_err(Error::msg)??;
    }
    Ok(())
}

/// Runs all rounds on one worker, of which each machine has one.
fn run(worker: &mut Worker, options: &Options) -> Result<()> {
    // Before anything can fail: an error then closes the exchange, and no other worker waits for this one.
    let mut exchange = Exchange::new(worker);
    let (index, workers) = (worker.index() as u64, worker.peers());
    let mut device = GpuDevice::builder().backend(options.backend);
    if let Some(threads) = options.threads {
        device = device.threads(threads);
    }
    let device = device.build()?;
    let tensors = Tensors::new(&device);
    let own = (index..options.blocks).step_by(workers);
    let blocks = own.map(|number| Block::draw(&tensors, number));
    let blocks = blocks.collect::<Result<Vec<_>>>()?;
    let mut centres = first_centres(&tensors)?;
    let start = Instant::now();
    for _ in 0..options.rounds {
        let resident = tensors.tensor(&centres, &[centres.len() / COLUMNS, COLUMNS])?;
        for block in &blocks {
            exchange.send(block.number, block.sums(&resident)?);
        }
        let sums = exchange.receive(worker, options.blocks)?;
        next_centres(&mut centres, sums.values());
    }
    if index == 0 {
        let time = start.elapsed().as_secs_f64() * 1e3 / options.rounds as f64;
        let points = options.blocks * POINTS as u64;
        eprintln!("{}", device.info());
        eprintln!("{workers} workers, {points} points, {time:.2} ms a round");
        for centre in centres.chunks(COLUMNS) {
            println!("{centre:?}");
        }
    }
    Ok(())
}
