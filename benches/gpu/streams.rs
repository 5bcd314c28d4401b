//! Values that come and go a part at a time, beside the same parts one after the other.

use crate::{Options, Trip, median, values};
use anyhow::Result;
use relampago::{GpuCommandBatch, GpuDevice, GpuDevicePool, PoolProgram};
use std::ops::ControlFlow;
use std::time::Instant;

/// 1 GiB each way.
const LEN: usize = 1 << 28;

pub(crate) fn rows(
    device: &GpuDevice,
    options: &Options,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Trip>> {
    let mut trips = Vec::new();
    for name in ["relu", "gelu"] {
        let len = LEN / options.divide;
        let title = format!("{name} {len}, a stream");
        if wanted(&title) {
            let compile = |parts| program(device, name, len, parts);
            let programs = [compile(options.in_flight)?, compile(1)?];
            let [many, one] = race(&programs, len, options.rounds.min(5))?;
            let of = |time: f64| format!("{:.2} GB/s", 4e-9 * len as f64 / time);
            println!(
                "{title}: {} with {} parts of {} in flight, {} with one",
                of(many),
                options.in_flight,
                programs[0].parts(),
                of(one),
            );
            trips.push(Trip {
                name: title,
                times: vec![("relampago", many), ("one part at a time", one)],
            });
        }
    }
    Ok(trips)
}

fn program(device: &GpuDevice, name: &str, len: usize, parts: usize) -> Result<PoolProgram> {
    let pool = GpuDevicePool::from_devices([device.clone()])?.in_flight(parts);
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.placeholder(len);
    let y = if name == "gelu" {
        batch.gelu(x)
    } else {
        batch.relu(x)
    };
    Ok(pool.compile(&batch, &[y])?)
}

/// Median seconds of each, in turns.
fn race(programs: &[PoolProgram; 2], len: usize, rounds: usize) -> Result<[f64; 2]> {
    let (from, mut to) = (values(len), vec![0.0; len]);
    let mut times = [const { Vec::new() }; 2];
    for round in 0..=rounds {
        for (program, times) in programs.iter().zip(&mut times) {
            let start = Instant::now();
            program.stream(
                &mut |_, start, values| {
                    values.copy_from_slice(&from[start..start + values.len()]);
                    Ok(())
                },
                &mut |_, start, values| {
                    to[start..start + values.len()].copy_from_slice(values);
                    Ok(())
                },
                &mut |_| ControlFlow::Continue(()),
            )?;
            if round > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(times.map(median))
}
