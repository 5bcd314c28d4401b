//! Every operation on every native back-end, alone and in a batch, against the oracles.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use relampago::{Backend, GpuCommandBatch, GpuDevice, InstructionSet};
use support::{Case, Summary, all_cases};

const LONGEST: usize = 1_000_003;

fn gpu() -> GpuDevice {
    // No adapter is a failure: llvmpipe is enough, and `cargo xtask setup` installs it.
    GpuDevice::builder()
        .backend(Backend::Gpu)
        .build()
        .expect("a GPU adapter, if in software")
}

fn simd(instruction_set: InstructionSet) -> GpuDevice {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    let device = builder
        .instruction_set(instruction_set)
        .build()
        .expect("SIMD is always there");
    assert_eq!(device.info().instruction_set, instruction_set);
    device
}

type Run = fn(&GpuDevice, &Case) -> Vec<f32>;

/// A way to compute cases.
struct Contestant {
    title: String,
    on_gpu: bool,
    device: GpuDevice,
    run: Run,
}

/// Computes every case in every way, beside one oracle, and reports all faults at once.
fn check(contestants: &[Contestant]) {
    let mut summaries: Vec<_> = contestants.iter().map(|_| Summary::default()).collect();
    for case in all_cases(LONGEST) {
        let oracle = case.oracle();
        for (contestant, summary) in contestants.iter().zip(&mut summaries) {
            let result = (contestant.run)(&contestant.device, &case);
            summary.note(&case, oracle.judge(&result, contestant.on_gpu));
        }
    }
    for (contestant, summary) in contestants.iter().zip(&summaries) {
        summary.report(&contestant.title, |line| {
            println!("{line}");
        });
    }
}

fn run_alone(device: &GpuDevice, case: &Case) -> Vec<f32> {
    device.run(&case.op, &case.inputs()).expect("a valid case")
}

fn run_in_batch(device: &GpuDevice, case: &Case) -> Vec<f32> {
    let mut batch = GpuCommandBatch::new(device.clone());
    let inputs: Vec<_> = case
        .inputs
        .iter()
        .map(|values| batch.upload(values))
        .collect();
    let output = batch.record(case.op.clone(), &inputs);
    batch.execute_sync().expect("a valid case");
    batch.read_sync(output).expect("an executed batch")
}

#[test]
fn every_instruction_set_conforms() {
    let alone = |&instruction_set| Contestant {
        title: format!("SIMD, {instruction_set}"),
        on_gpu: false,
        device: simd(instruction_set),
        run: run_alone,
    };
    let mut contestants: Vec<_> = InstructionSet::available().iter().map(alone).collect();
    contestants.push(Contestant {
        title: "batch on SIMD".into(),
        on_gpu: false,
        device: simd(InstructionSet::best()),
        run: run_in_batch,
    });
    check(&contestants);
}

#[test]
fn gpu_conforms() {
    let device = gpu();
    let ways: [(&str, Run); 2] = [("GPU", run_alone), ("batch on GPU", run_in_batch)];
    check(&ways.map(|(title, run)| Contestant {
        title: format!("{title}, {}", device.info()),
        on_gpu: true,
        device: device.clone(),
        run,
    }));
}
