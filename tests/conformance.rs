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

/// Judges all cases and reports every failure at once.
fn check(title: &str, on_gpu: bool, mut run: impl FnMut(&Case) -> Vec<f32>) {
    let mut summary = Summary::default();
    let mut complaints = Vec::new();
    for case in all_cases(LONGEST) {
        match case.judge(&run(&case), on_gpu) {
            Ok(error) => summary.note(&case, error),
            Err(complaint) => complaints.push(complaint),
        }
    }
    println!("{}", summary.line(title));
    assert!(complaints.is_empty(), "{title}:\n{}", complaints.join("\n"));
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
fn simd_conforms_on_every_instruction_set() {
    for &instruction_set in InstructionSet::available() {
        let device = simd(instruction_set);
        check(&format!("SIMD, {instruction_set}"), false, |case| {
            run_alone(&device, case)
        });
    }
}

#[test]
fn gpu_conforms() {
    let device = gpu();
    check(&format!("GPU, {}", device.info()), true, |case| {
        run_alone(&device, case)
    });
}

#[test]
fn batch_conforms_on_simd() {
    let device = simd(InstructionSet::best());
    check("batch on SIMD", false, |case| run_in_batch(&device, case));
}

#[test]
fn batch_conforms_on_gpu() {
    let device = gpu();
    check("batch on GPU", true, |case| run_in_batch(&device, case));
}
