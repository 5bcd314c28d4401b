//! Prompts that are read in several blocks.

use super::random_models::{GEMMA, LLAMA, random_model};
use super::{assert_close, load, on_gpus, tokens};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::LanguageModel;

/// Prompts that a GPU reads in blocks, by kernels for tiles, and the last tokens of a block.
#[test]
fn long_prompts_on_a_gpu_are_those_of_the_pass_in_f64() {
    let tokens = tokens(530, &mut Random(5));
    for shape in [LLAMA, GEMMA] {
        let shape = shape.with_context(640);
        let (bytes, oracle) = random_model(shape, 1);
        let exact = oracle.logits(&tokens);
        for (gpu, options) in on_gpus() {
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            let logits = model.session().unwrap().logits(&tokens).unwrap();
            let rows = logits.chunks_exact(exact[0].len());
            for (position, (row, exact)) in rows.zip(&exact).enumerate() {
                if position % 64 > 61 || position + 2 > tokens.len() {
                    let what = format!("{}, {gpu}, position {position}", shape.name);
                    assert_close(row, exact, &what);
                }
            }
        }
    }
}

#[test]
fn prompts_of_several_blocks_and_rewinding_change_nothing() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let tokens = tokens(200, &mut Random(3));
    let exact = oracle.logits(&tokens);
    let mut session = model.session().unwrap();
    assert_close(
        &session.prefill(&tokens).unwrap(),
        &exact[199],
        "in one call",
    );
    session.rewind(150).unwrap();
    assert_eq!(session.tokens(), &tokens[..150]);
    assert_close(
        &session.prefill(&tokens[150..]).unwrap(),
        &exact[199],
        "rewound",
    );
    assert!(session.rewind(201).is_err());
    session.rewind(0).unwrap();
    assert_close(&session.prefill(&tokens[..1]).unwrap(), &exact[0], "anew");
}
