//! Every operation on every native back-end, alone and in a batch, against the oracles.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use relampago::{Backend, GpuCommandBatch, GpuDevice, InstructionSet, Op};
use support::{Case, Random, Summary, all_cases};

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

/// The oracles take words for numbers, so that they cannot tell words that are no numbers from each other.
#[test]
fn bytes_of_all_words_come_back() {
    let mut random = Random(11);
    let mut words: Vec<u32> = (0..70_001).map(|_| random.next() as u32).collect();
    // Zeros, denormal numbers, infinities, and what is not a number.
    words.extend([
        0,
        1,
        0x007f_ffff,
        0x8000_0001,
        0x7f80_0000,
        0x7f80_0001,
        0xffff_ffff,
    ]);
    let x: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|x| x.to_bits()).collect() };
    let sets = InstructionSet::available().iter().copied().map(simd);
    for device in sets.chain([gpu()]) {
        let numbers = device.run(&Op::UnpackBytes { stride: 1 }, &[&x]).unwrap();
        for (number, byte) in numbers
            .iter()
            .zip(words.iter().flat_map(|word| word.to_le_bytes()))
        {
            let exact = f64::from(byte) / 255.0;
            assert!(
                (f64::from(*number) - exact).abs() <= 2e-7,
                "{number} of {byte}"
            );
        }
        let packed = device
            .run(&Op::PackBytes { stride: 1 }, &[&numbers])
            .unwrap();
        assert!(bits(&packed) == words, "{:?}", device.backend());
        // The last word lacks three numbers.
        let packed = device
            .run(&Op::PackBytes { stride: 1 }, &[&numbers[..5]])
            .unwrap();
        assert_eq!(bits(&packed), [words[0], words[1] & 0xff]);
        let error = device.run(&Op::PackBytes { stride: 3 }, &[&numbers[..8]]);
        let message = error.unwrap_err().to_string();
        assert!(message.contains("`stride` is 3"), "{message}");
        let mut batch = GpuCommandBatch::new(device.clone());
        let input = batch.upload(&x);
        let numbers = batch.unpack_bytes(input, words.len());
        let half = batch.scale(numbers, 0.5);
        let doubled = batch.scale(half, 2.0);
        let packed = batch.pack_bytes(doubled, words.len());
        batch.execute_sync().unwrap();
        assert!(
            bits(&batch.read_sync(packed).unwrap()) == words,
            "in a batch"
        );
    }
}
