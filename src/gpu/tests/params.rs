//! Tests of the buffers that parameters of submissions get.

use std::collections::BTreeSet;

use super::pretend;

#[test]
fn parameters_that_never_repeat_share_a_buffer() {
    let gpu = pretend(true);
    let buffer = |words: &[u32]| {
        let buffer = gpu.params.buffer(&gpu.pool, &gpu.queue, words);
        buffer.unwrap().id
    };
    let ids = (0..100).map(|run| buffer(&[run; 64]));
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn parameters_that_repeat_keep_a_buffer_of_their_own() {
    let gpu = pretend(true);
    let buffer = |words: &[u32]| {
        let buffer = gpu.params.buffer(&gpu.pool, &gpu.queue, words);
        buffer.unwrap().id
    };
    buffer(&[7; 64]);
    let kept = buffer(&[7; 64]);
    let others: Vec<_> = (10..20).map(|run| buffer(&[run; 64])).collect();
    assert!(others.iter().all(|&id| id != kept));
    assert_eq!(buffer(&[7; 64]), kept);
}
