//! Round trips from host memory and back, blocking.

use crate::plain::PlainRelu;
use crate::race::race;
use crate::resident::warm;
use crate::{Options, Trip, values};
use anyhow::Result;
use relampago::{
    Backend, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, TensorView, WeightFormat,
};
use std::hint::black_box;

const MILLION: usize = 1_000_000;
/// F16 weights on a device that multiplies in f16.
const F16_MATMUL: &str = "f16, multiplied in f16";

/// A function that fills a million elements and has no peer.
type FillOnly<'a> = &'a mut (dyn FnMut(&mut [f32]) -> relampago::Result<()> + Send);

pub(crate) fn rows(
    device: &GpuDevice,
    options: &Options,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Trip>> {
    let rounds = options.rounds;
    let mut trips = Vec::new();
    warm(device, options.divide)?;
    for len in [1_024, 16_384, 100_000, MILLION] {
        let name = format!("relu {len}");
        if wanted(&name) {
            trips.push(relu(device, name, len, 20 * rounds)?);
        }
    }
    let x = values(MILLION);
    let mut y = vec![0.0; MILLION];
    let mut alone = |name: &str, run: FillOnly<'_>| {
        if wanted(name) {
            let [time] = race([&mut || run(&mut y)], 4 * rounds)?;
            trips.push(Trip {
                name: name.to_owned(),
                times: vec![("relampago", time)],
            });
        }
        anyhow::Ok(())
    };
    alone("softmax 1000000", &mut |y| device.softmax(black_box(&x), y))?;
    alone("sum 1000000", &mut |_| {
        device.sum(black_box(&x)).map(|sum| {
            black_box(sum);
        })
    })?;
    alone("relu → scale → add 1000000", &mut |_| {
        chain(device, black_box(&x))
    })?;
    let program = program(device)?;
    alone("relu → scale → add 1000000, a program", &mut |_| {
        let results = program.read(&[black_box(&x[..]).into()])?;
        black_box(results);
        Ok(())
    })?;
    trips.extend(cached(options, wanted)?);
    Ok(trips)
}

/// Measures matmuls with cached quantized weights against `f32` weights, and f16 weights with and
/// without f16 matmul.
fn cached(options: &Options, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Trip>> {
    let side = 4096 / options.divide;
    let rows = [1, 4, 8, 12, 16, 24, 32, 64, 128, 256, 1024];
    let name = |m: usize, what: &str| format!("{m}×{side}×{side} of cached {what}");
    // Eight matrices of weights take a while.
    let some = |m: &usize| {
        ["Q8_0", "Q4_0", "f16", F16_MATMUL]
            .iter()
            .any(|what| wanted(&name(*m, what)))
    };
    if !rows.iter().any(some) {
        return Ok(Vec::new());
    }
    let plain = cache(false, side)?;
    let halves = cache(true, side)?;
    let contests = [
        ("Q8_0", (&plain, "Q8_0"), ("f32", (&plain, "F32"))),
        ("Q4_0", (&plain, "Q4_0"), ("f32", (&plain, "F32"))),
        ("f16", (&plain, "F16"), ("f32", (&plain, "F32"))),
        (
            F16_MATMUL,
            (&halves, "F16"),
            ("f16, in f32", (&plain, "F16")),
        ),
    ];
    let mut trips = Vec::new();
    for m in rows {
        for (what, ours, (other, theirs)) in contests {
            let name = name(m, what);
            if wanted(&name) {
                let times = race_cached(options.rounds, [ours, theirs], [m, side])?;
                let times = vec![("relampago", times[0]), (other, times[1])];
                trips.push(Trip { name, times });
            }
        }
    }
    Ok(trips)
}

/// Returns a cache with one square matrix in every format, by the format's name.
fn cache(half_precision: bool, side: usize) -> Result<GpuMatmulCache> {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder.half_precision(half_precision).build()?;
    let mut cache = GpuMatmulCache::new(device);
    let weights = values(side * side);
    let view = TensorView::new_2d(side, side)?.bind(&weights)?;
    for format in [
        WeightFormat::F32,
        WeightFormat::F16,
        WeightFormat::Q8_0,
        WeightFormat::Q4_0,
    ] {
        cache.insert_view(&format!("{format:?}"), &view, format)?;
    }
    Ok(cache)
}

fn race_cached(
    rounds: usize,
    [ours, theirs]: [(&GpuMatmulCache, &str); 2],
    [m, side]: [usize; 2],
) -> Result<[f64; 2]> {
    let (x, mut y) = (values(m * side), vec![0.0; m * side]);
    let mut out = y.clone();
    let times = race(
        [
            &mut || ours.0.matmul_cached(ours.1, black_box(&x), &mut y, m),
            &mut || theirs.0.matmul_cached(theirs.1, black_box(&x), &mut out, m),
        ],
        rounds,
    )?;
    Ok(times)
}

fn relu(device: &GpuDevice, name: String, len: usize, rounds: usize) -> Result<Trip> {
    let (x, mut y) = (values(len), vec![0.0; len]);
    let mut plain = PlainRelu::new(len);
    let [ours, theirs] = race(
        [&mut || device.relu(black_box(&x), &mut y), &mut || {
            black_box(plain.run(black_box(&x)));
            Ok(())
        }],
        rounds,
    )?;
    let times = vec![("relampago", ours), ("plain wgpu, cached", theirs)];
    Ok(Trip { name, times })
}

fn chain(device: &GpuDevice, x: &[f32]) -> relampago::Result<()> {
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.upload(x);
    let y = batch.relu(x);
    let z = batch.scale(y, 0.5);
    let sum = batch.vec_add(z, x);
    batch.execute_sync()?;
    batch.read_sync(sum).map(|values| drop(black_box(values)))
}

/// Compiles the batch as a program.
fn program(device: &GpuDevice) -> relampago::Result<Program> {
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.placeholder(MILLION);
    let y = batch.relu(x);
    let z = batch.scale(y, 0.5);
    let sum = batch.vec_add(z, x);
    batch.compile(&[sum])
}
