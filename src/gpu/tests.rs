//! Kernels that are chosen by what the adapter is, run on whichever there is.

use super::{Gpu, Preference};
use crate::ops::Op;
use crate::{reference, runtime};
use std::sync::Arc;

fn noise(len: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7_919 + seed * 104_729) % 1_009) as f32 / 504.5 - 1.0;
    (0..len).map(value).collect()
}

#[test]
fn matmul_is_right_by_the_kernels_of_hardware_and_of_software_adapters() {
    for software in [true, false] {
        let opened = runtime::block_on(Gpu::open(Preference::Any));
        let mut gpu = opened.expect("the tests need an adapter, llvmpipe for one");
        let only = Arc::get_mut(&mut gpu).expect("nothing else holds it yet");
        only.adapter.software = software;
        for [m, k, n] in [
            [1, 1, 1],
            [1, 300, 70],
            [70, 300, 1],
            [3, 5, 7],
            [17, 33, 65],
            [64, 16, 64],
            [127, 129, 131],
        ] {
            let op = Op::Matmul { m, k, n };
            let (a, b, mut c) = (noise(m * k, 1), noise(k * n, 2), vec![0.0; m * n]);
            runtime::block_on(gpu.run_into(&op, &[&a, &b], &mut c)).unwrap();
            for (i, want) in reference::evaluate(&op, &[&a, &b]).iter().enumerate() {
                let is = c[i];
                assert!(
                    want.accepts(is, op.ulp()),
                    "{op:?}, software {software}: value {i} is {is}, not {want:?}"
                );
            }
        }
    }
}
