//! Kernels alone, on values that are there already.

use crate::{Options, Row, median, resnet, values};
use anyhow::{Context, Result};
use relampago::{
    Backend, BufferId, Conv2d, ConvLayer, GpuCommandBatch, GpuDevice, HalfPrecision, Op, Program,
    wgpu,
};
use std::time::Instant;

/// The number of elements: 256 MB, several times the size of any cache.
const LEN: usize = 1 << 26;
const IMAGE: usize = 4096;
/// Lengths of rows.
const ROWS: [usize; 5] = [64, 256, 1024, 4096, 16384];
/// A layer's batch.
pub(crate) const IMAGES: usize = 32;

pub(crate) const PRODUCTS: [[usize; 3]; 11] = [
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [1024, 768, 320],
    [1000, 777, 333],
    [4095, 4095, 4095],
    [4096, 4096, 1],
    [1, 4096, 4096],
];

/// The shapes that are also computed in f16.
const IN_HALVES: [[usize; 3]; 5] = [
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [4095, 4095, 4095],
];

/// A benchmark: an operation and the operations after it, the lengths of its inputs, and its work.
struct Task {
    name: String,
    ops: Vec<Op>,
    lens: Vec<usize>,
    flop: f64,
    /// Values that must be read or written.
    moved: usize,
}

pub(crate) fn rows(
    device: &GpuDevice,
    options: &Options,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for task in tasks(options.divide) {
        if wanted(&task.name) {
            rows.push(row(device, task, options.rounds)?);
        }
    }
    rows.extend(in_halves(options, wanted)?);
    Ok(rows)
}

/// Products on a device of their own, where the adapter has cooperative matrices.
fn in_halves(options: &Options, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder.half_precision(true).build()?;
    let half_precision = device.info().half_precision;
    if half_precision != HalfPrecision::Used {
        println!("no matmuls in f16: {half_precision}");
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for dims in IN_HALVES {
        let mut task = product(dims.map(|d| d.div_ceil(options.divide)));
        task.name += ", f16";
        if wanted(&task.name) {
            let row = row(&device, task, options.rounds)?;
            rows.push(Row {
                ceiling: false,
                ..row
            });
        }
    }
    Ok(rows)
}

fn tasks(divide: usize) -> Vec<Task> {
    let len = LEN / divide;
    let mut tasks: Vec<Task> = PRODUCTS
        .map(|dims| product(dims.map(|d| d.div_ceil(divide))))
        .into();
    for op in [Op::Relu, Op::Scale { factor: 2.0 }, Op::Gelu] {
        tasks.push(vector(op, 1, len, len));
    }
    tasks.push(twenty(len));
    tasks.push(vector(Op::VecAdd, 2, len, len));
    for op in [Op::Sum, Op::Max] {
        tasks.push(vector(op, 1, len, 1));
    }
    tasks.push(vector(Op::Dot, 2, len, 1));
    for cols in ROWS {
        let op = Op::SoftmaxRows {
            rows: len / cols,
            cols,
        };
        let mut task = vector(op, 1, len / cols * cols, len / cols * cols);
        task.name = format!("softmax, rows of {cols}");
        tasks.push(task);
    }
    tasks.extend(ROWS.map(|cols| norm(len / cols, cols)));
    tasks.extend([3, 7, 15].map(|side| convolution(IMAGE / divide, side)));
    let batch = IMAGES.div_ceil(divide);
    tasks.extend(resnet::layers(batch).map(|(name, options)| layer(name, options)));
    tasks
}

fn product([m, k, n]: [usize; 3]) -> Task {
    Task {
        name: format!("matmul {m}×{k}×{n}"),
        ops: vec![Op::Matmul { m, k, n }],
        lens: vec![m * k, k * n],
        flop: 2.0 * (m * k * n) as f64,
        moved: m * k + k * n + m * n,
    }
}

fn vector(op: Op, inputs: usize, len: usize, outputs: usize) -> Task {
    Task {
        name: format!("{} {len}", op.name()),
        ops: vec![op],
        lens: vec![len; inputs],
        flop: 0.0,
        moved: inputs * len + outputs,
    }
}

/// One kernel of operations none of which undoes or repeats another.
fn twenty(len: usize) -> Task {
    let mut task = vector(Op::Scale { factor: 0.5 }, 1, len, len);
    task.name = format!("20 unary operations {len}");
    task.ops.clear();
    for i in 0..5 {
        let (factor, max) = (1.5 + i as f32, 2.0 + i as f32);
        let (negative_slope, min) = (0.1, -3.0);
        task.ops.extend([
            Op::Scale { factor },
            Op::LeakyRelu { negative_slope },
            Op::Clip { min, max },
            Op::Neg,
        ]);
    }
    task
}

fn norm(rows: usize, cols: usize) -> Task {
    let epsilon = 1e-5;
    Task {
        name: format!("layer norm, rows of {cols}"),
        ops: vec![Op::LayerNorm {
            rows,
            cols,
            epsilon,
        }],
        lens: vec![rows * cols, cols, cols],
        flop: 0.0,
        moved: 2 * rows * cols,
    }
}

fn convolution(side: usize, kernel: usize) -> Task {
    Task {
        name: format!("convolve2d {side}², {kernel}×{kernel}"),
        ops: vec![Op::Convolve2d {
            options: Conv2d::same(side, side, kernel, kernel),
        }],
        lens: vec![side * side, kernel * kernel],
        flop: 2.0 * (side * side * kernel * kernel) as f64,
        moved: 2 * side * side,
    }
}

fn row(device: &GpuDevice, task: Task, rounds: usize) -> Result<Row> {
    let longest = task.lens.iter().copied().max().unwrap_or(0);
    let noise = values(longest);
    let mut batch = GpuCommandBatch::new(device.clone());
    let upload = |&len: &usize| device.upload(&noise[..len]);
    let inputs = task
        .lens
        .iter()
        .map(upload)
        .collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<BufferId> = inputs.iter().map(|input| batch.input(input)).collect();
    let mut result = ids;
    for op in task.ops {
        result = vec![batch.record(op, &result)];
    }
    let program = batch.compile(&result)?;
    let time = rate(device, &program, rounds)?;
    Ok(Row {
        name: task.name,
        gflop: task.flop * 1e-9,
        gbyte: 4e-9 * task.moved as f64,
        time,
        ceiling: true,
    })
}

fn layer(name: String, options: ConvLayer) -> Task {
    let (rows, cols) = options.output_shape();
    let lens = resnet::lens(&options);
    let result = options.batch * options.filters * rows * cols;
    Task {
        name,
        flop: 2.0 * (result * resnet::depth(&options)) as f64,
        moved: lens.iter().sum::<usize>() + result,
        ops: vec![Op::ConvolveLayer { options }],
        lens: lens.into(),
    }
}

/// Returns the seconds of one run of a program among many: the difference between 2n runs and n
/// runs, so that memory for the results and the work before and after the kernels cancel out. A
/// busy GPU's clock is several times an idle one's, so each submission lasts a while.
pub(crate) fn rate(device: &GpuDevice, program: &Program, rounds: usize) -> Result<f64> {
    let run = |times: usize| -> Result<f64> {
        let results = program.run_n(&[], times, &[])?;
        let start = Instant::now();
        wait(device)?;
        let time = start.elapsed().as_secs_f64();
        drop(results);
        Ok(time)
    };
    let mut times = 2;
    while run(times)? < LONG && times < MOST {
        times = (2 * times).min(MOST);
    }
    let samples = (0..rounds).map(|_| Ok((run(2 * times)? - run(times)?) / times as f64));
    Ok(median(samples.collect::<Result<_>>()?))
}

/// Seconds that a submission should last at least, and most runs: twice as many must still be
/// one submission.
const LONG: f64 = 0.02;
const MOST: usize = 200;

fn wait(device: &GpuDevice) -> Result<()> {
    let device = device.as_wgpu().context("a GPU was asked for")?;
    device.poll(wgpu::PollType::wait_indefinitely())?;
    Ok(())
}

/// Work that brings the GPU's clock up.
pub(crate) fn warm(device: &GpuDevice, divide: usize) -> Result<()> {
    let side = 2048 / divide;
    row(device, product([side; 3]), 3).map(drop)
}
