//! Random graphs give the same results optimised and as recorded, on every back-end.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use std::io::Write as _;

use relampago::{Backend, GpuDevice, InstructionSet, runtime};
use support::graphs::Graph;

fn compare(device: &GpuDevice, graphs: u64) {
    let (mut operations, mut kernels) = (0, [0, 0]);
    for seed in 0..graphs {
        let graph = Graph::random(seed);
        operations += graph.len();
        let took = runtime::block_on(graph.compare(device));
        let took = took.unwrap_or_else(|error| panic!("{}, graph {seed}: {error}", device.info()));
        kernels = [kernels[0] + took[0], kernels[1] + took[1]];
    }
    let [before, after] = kernels;
    // To the stream itself: what macros print, the test harness keeps from a test that passes.
    let _ = writeln!(
        std::io::stdout(),
        "{}: {graphs} graphs of {operations} operations; {before} kernels as recorded, {after} optimised",
        device.info()
    );
}

#[test]
fn optimised_graphs_match_on_every_instruction_set() {
    for &set in InstructionSet::available() {
        let builder = GpuDevice::builder()
            .backend(Backend::Simd)
            .instruction_set(set);
        compare(&builder.build().expect("SIMD is everywhere"), 10_000);
    }
}

#[test]
fn optimised_graphs_match_on_the_gpu() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build();
    compare(
        &device.expect("the tests need an adapter, llvmpipe for one"),
        1_000,
    );
}
