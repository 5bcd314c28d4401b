//! Positions that a token does not see, in models' attention.

use super::on_gpus;
use super::random_models::{GEMMA, LLAMA, WIDTH, WINDOW, random_model};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{ForwardPass, Gguf, LoadOptions};

/// Options for each instruction set, and for a GPU.
fn executors() -> Vec<(String, LoadOptions)> {
    let simd = InstructionSet::available().iter().map(|&set| {
        let mut options = LoadOptions::default();
        options.instruction_set = Some(set);
        (set.name().to_owned(), options)
    });
    let gpus = on_gpus().into_iter();
    let gpus = gpus.map(|(name, options)| (name.to_owned(), options));
    simd.chain(gpus).collect()
}

/// A row of what is no number must reach the tokens that see it, and no others.
#[test]
fn rows_that_are_not_finite_reach_only_the_tokens_that_see_them() {
    // In the first layer of gemma3 a token sees a window of positions.
    for (shape, window) in [(LLAMA, usize::MAX), (GEMMA, WINDOW)] {
        let (bytes, _) = random_model(shape, 0);
        for (name, options) in executors() {
            let run = |rows: &[f32]| {
                let file = Gguf::from_bytes(bytes.clone()).unwrap();
                let mut pass = ForwardPass::new(file, options.clone()).unwrap();
                pass.forward(0..1, rows).unwrap()
            };
            let rows = Random(7).values(40 * WIDTH);
            let clean = run(&rows);
            for (poison, at) in [(f32::NAN, 0), (f32::INFINITY, 20), (f32::NAN, 39)] {
                let mut rows = rows.clone();
                rows[at * WIDTH..][..WIDTH].fill(poison);
                let out = run(&rows);
                let both = out.chunks_exact(WIDTH).zip(clean.chunks_exact(WIDTH));
                for (token, (out, clean)) in both.enumerate() {
                    let what = format!("{} on {name}: {poison} at {at}, token {token}", shape.name);
                    if token >= at && token - at < window {
                        assert!(out.iter().all(|x| x.is_nan()), "{what}");
                        continue;
                    }
                    for (x, clean) in out.iter().zip(clean) {
                        let difference = (x - clean).abs();
                        assert!(
                            difference <= 1e-4 * (1.0 + clean.abs()),
                            "{what}: {x}, {clean}"
                        );
                    }
                }
            }
        }
    }
}
