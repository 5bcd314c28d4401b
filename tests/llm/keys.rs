//! Metadata and tensors that change the mathematics of a model: used as llama.cpp uses them, or refused by name.

use super::random_models::{
    GEMMA, GEMMA2, GRANITE, HEAD, LLAMA, MISTRAL3, OLMO2, Oracle, PHI, QWEN2, QWEN3, QWEN3_MOE,
    SHAPES, Shape, WIDTH, random_model_with, yarn,
};
use super::{assert_close, check_logits, load, on_gpus, tokens};
use crate::support::Random;
use relampago::llm::{EmbedOptions, GgufWriter, LanguageModel, LoadOptions, Pooling};
use relampago::{Error, InstructionSet};

/// Writes metadata.
type Set = fn(&mut GgufWriter);
/// Changes the pass in `f64` alike.
type Change = fn(&mut Oracle);

/// Loads a file, and asks what it is by its beginning; returns the error of both, which must be one.
pub(super) fn refusal(bytes: &[u8]) -> Option<Error> {
    let load = LanguageModel::from_bytes(bytes.to_vec(), LoadOptions::default()).err();
    let head = (bytes.to_vec(), bytes.len() as u64);
    let inspect = LanguageModel::inspect_heads(vec![head], None).err();
    let text = |error: &Option<Error>| error.as_ref().map(ToString::to_string);
    assert_eq!(text(&load), text(&inspect));
    load
}

/// Asserts that a file is refused with an error that has all parts.
pub(super) fn assert_refused(bytes: &[u8], what: &str, parts: &[&str]) {
    let error = refusal(bytes).unwrap_or_else(|| panic!("{what} is not refused"));
    let message = error.to_string();
    assert_eq!(error.code(), "INVALID_MODEL", "{what}: {message}");
    for part in parts {
        assert!(message.contains(part), "{what}: {message}, not {part}");
    }
}

/// Settings that the pass has, beside the pass in `f64`.
const USED: &[(&str, Shape, Set, Change)] = &[
    ("the plain model", LLAMA, |_| (), |_| ()),
    (
        "a factor without a type",
        LLAMA,
        |file| file.float("llama.rope.scaling.factor", 2.0),
        |oracle| oracle.scaling = 2.0,
    ),
    (
        "the factor of older files",
        LLAMA,
        |file| file.float("llama.rope.scale_linear", 4.0),
        |oracle| oracle.scaling = 4.0,
    ),
    (
        "an integer factor",
        QWEN2,
        |file| file.unsigned("qwen2.rope.scale_linear", 4),
        |oracle| oracle.scaling = 4.0,
    ),
    (
        "both factors, of which the newer counts",
        LLAMA,
        |file| {
            file.float("llama.rope.scaling.factor", 2.0);
            file.float("llama.rope.scale_linear", 4.0);
        },
        |oracle| oracle.scaling = 2.0,
    ),
    (
        "linear scaling",
        QWEN3,
        |file| {
            file.string("qwen3.rope.scaling.type", "linear");
            file.float("qwen3.rope.scaling.factor", 2.5);
        },
        |oracle| oracle.scaling = 2.5,
    ),
    (
        "no scaling",
        LLAMA,
        |file| {
            file.string("llama.rope.scaling.type", "none");
            file.float("llama.rope.scaling.factor", 2.0);
        },
        |_| (),
    ),
    (
        "a factor of 0, which is none",
        LLAMA,
        |file| file.float("llama.rope.scaling.factor", 0.0),
        |_| (),
    ),
    (
        "a factor beside one for each frequency",
        SHAPES[1],
        |file| file.float("llama.rope.scaling.factor", 2.0),
        |oracle| oracle.scaling = 2.0,
    ),
    (
        "a factor of layers that see everything",
        GEMMA,
        |file| file.float("gemma3.rope.scaling.factor", 8.0),
        |oracle| oracle.scaling = 8.0,
    ),
    (
        "a factor where all layers have windows",
        PHI,
        |file| file.float("phi3.rope.scaling.factor", 2.0),
        |oracle| oracle.scaling = 2.0,
    ),
    (
        "a factor beside those for short and long contexts",
        PHI,
        |file| {
            file.string("phi3.rope.scaling.type", "longrope");
            file.float("phi3.rope.scaling.factor", 2.0);
        },
        |oracle| oracle.scaling = 2.0,
    ),
    (
        "the magnitude of a rotation",
        LLAMA,
        |file| file.float("llama.rope.scaling.attn_factor", 1.5),
        |oracle| oracle.magnitude = 1.5,
    ),
    (
        "the magnitude beside a factor for each frequency",
        SHAPES[1],
        |file| file.float("llama.rope.scaling.attn_factor", 1.5),
        |oracle| oracle.magnitude = 1.5,
    ),
    (
        "the magnitude of layers with and without windows",
        GEMMA,
        |file| file.float("gemma3.rope.scaling.attn_factor", 1.25),
        |oracle| oracle.magnitude = 1.25,
    ),
    (
        "the base",
        LLAMA,
        |file| file.float("llama.rope.freq_base", 500.0),
        |oracle| oracle.bases = [500.0; 2],
    ),
    (
        "the base of layers with windows",
        GEMMA,
        |file| file.float("gemma3.rope.freq_base_swa", 500.0),
        |oracle| oracle.bases[1] = 500.0,
    ),
    (
        "a part of heads that is rotated",
        QWEN2,
        |file| file.unsigned("qwen2.rope.dimension_count", 16),
        |oracle| oracle.rotated = 16,
    ),
    (
        "another period of windows",
        GEMMA,
        |file| file.unsigned("gemma3.attention.sliding_window_pattern", 3),
        |oracle| oracle.period = 3,
    ),
    (
        "a period of windows layer by layer",
        GEMMA,
        |file| {
            file.integers(
                "gemma3.attention.sliding_window_pattern",
                &[1, 1, 0, 1, 1, 0, 1],
            );
        },
        |oracle| oracle.period = 3,
    ),
    (
        "windows in all layers",
        GEMMA,
        |file| file.unsigned("gemma3.attention.sliding_window_pattern", 0),
        |oracle| oracle.period = 0,
    ),
    (
        "the windows of Phi 3 in some layers",
        PHI,
        |file| file.integers("phi3.attention.sliding_window_pattern", &[1, 0]),
        |oracle| oracle.period = 2,
    ),
    (
        "no window",
        GEMMA,
        |file| file.unsigned("gemma3.attention.sliding_window", 0),
        |oracle| oracle.period = 1,
    ),
    (
        "the length of a window",
        GEMMA,
        |file| file.unsigned("gemma3.attention.sliding_window", 3),
        |oracle| oracle.window = 3,
    ),
    (
        "the epsilon of norms",
        LLAMA,
        |file| file.float("llama.attention.layer_norm_rms_epsilon", 0.5),
        |oracle| oracle.epsilon = 0.5,
    ),
    (
        "numbers layer by layer, all the same",
        LLAMA,
        |file| {
            file.integers("llama.attention.head_count", &[8, 8]);
            file.integers("llama.attention.head_count_kv", &[4, 4]);
            file.integers("llama.feed_forward_length", &[256, 256]);
        },
        |_| (),
    ),
    (
        "a rotation that is not finetuned, which is none",
        GRANITE,
        |file| file.boolean("granite.rope.scaling.finetuned", false),
        |oracle| oracle.unrotated = 1,
    ),
    (
        "a rotation that is not finetuned elsewhere, which is a remark",
        LLAMA,
        |file| file.boolean("llama.rope.scaling.finetuned", false),
        |_| (),
    ),
    (
        "a divisor of logits that is not set",
        GRANITE,
        |file| file.float("granite.logit_scale", 0.0),
        |oracle| oracle.multipliers[3] = 1.0,
    ),
    (
        "bounds of scores and logits that are not set",
        GEMMA2,
        |file| {
            file.float("gemma2.attn_logit_softcapping", 0.0);
            file.float("gemma2.final_logit_softcapping", 0.0);
        },
        |oracle| oracle.soft_caps = [50.0, 30.0],
    ),
    (
        "a factor in layers with and without windows",
        GEMMA2,
        |file| file.float("gemma2.rope.scaling.factor", 4.0),
        |oracle| oracle.scaling = 4.0,
    ),
    (
        "a factor and a magnitude of layers that see everything",
        OLMO2,
        |file| {
            file.float("olmo2.rope.scaling.factor", 4.0);
            file.float("olmo2.rope.scaling.attn_factor", 1.5);
        },
        |oracle| (oracle.scaling, oracle.magnitude) = (4.0, 1.5),
    ),
    (
        "YaRN",
        QWEN3,
        |file| {
            file.string("qwen3.rope.scaling.type", "yarn");
            file.float("qwen3.rope.scaling.factor", 4.0);
            file.unsigned("qwen3.rope.scaling.original_context_length", 64);
        },
        |oracle| {
            oracle.factors = yarn(4.0, 64, [32.0, 1.0]);
            oracle.magnitude = 1.0 + 0.1 * 4f64.ln();
        },
    ),
    (
        "YaRN from the context, with other turns and magnitudes",
        QWEN2,
        |file| {
            file.string("qwen2.rope.scaling.type", "yarn");
            file.float("qwen2.rope.scaling.factor", 2.0);
            file.float("qwen2.rope.scaling.yarn_beta_fast", 8.0);
            file.float("qwen2.rope.scaling.yarn_beta_slow", 0.5);
            file.float("qwen2.rope.scaling.yarn_log_multiplier", 0.5);
            file.float("qwen2.rope.scaling.attn_factor", 1.5);
        },
        |oracle| {
            oracle.factors = yarn(2.0, 256, [8.0, 0.5]);
            let magnitude = |multiplier: f64| 1.0 + 0.1 * multiplier * 2f64.ln();
            oracle.magnitude = 1.5 * magnitude(1.0) / magnitude(0.5);
        },
    ),
    (
        "YaRN that changes nothing",
        LLAMA,
        |file| file.string("llama.rope.scaling.type", "yarn"),
        |_| (),
    ),
    (
        "no temperature",
        MISTRAL3,
        |file| file.float("mistral3.attention.temperature_scale", 0.0),
        |oracle| oracle.temperature = (0.0, 1),
    ),
    (
        "no scaling beside the keys of YaRN",
        MISTRAL3,
        |file| file.string("mistral3.rope.scaling.type", "none"),
        |oracle| oracle.factors = vec![1.0; HEAD / 2],
    ),
    (
        "the settings of a mixture as it is",
        QWEN3_MOE,
        |file| {
            file.unsigned("qwen3moe.expert_gating_func", 1);
            file.boolean("qwen3moe.expert_weights_norm", true);
            file.float("qwen3moe.expert_weights_scale", 1.0);
        },
        |_| (),
    ),
    (
        "no experts",
        LLAMA,
        |file| {
            file.unsigned("llama.expert_count", 0);
            file.unsigned("llama.expert_used_count", 0);
        },
        |_| (),
    ),
];

#[test]
fn settings_are_those_of_the_pass_in_f64() {
    let gpus = on_gpus();
    let mut moved = 0;
    for &(what, shape, set, change) in USED {
        let (bytes, mut oracle) = random_model_with(shape, 3, set);
        let tokens = tokens(13, &mut Random(3));
        let plain = oracle.logits(&tokens[..3]);
        change(&mut oracle);
        let exact = oracle.logits(&tokens);
        moved += usize::from(exact[..3] != plain);
        let exact = exact.concat();
        let head = (bytes.clone(), bytes.len() as u64);
        LanguageModel::inspect_heads(vec![head], None).unwrap();
        let model = load(&bytes, InstructionSet::best());
        check_logits(&model, &tokens, &exact, what);
        for (gpu, options) in &gpus {
            let model = LanguageModel::from_bytes(bytes.clone(), options.clone()).unwrap();
            let logits = model.session().unwrap().logits(&tokens).unwrap();
            assert_close(&logits, &exact, &format!("{what}, {gpu}"));
        }
    }
    println!("{} settings used, {moved} with other logits", USED.len());
    assert!(moved > USED.len() / 2);
}

#[test]
fn windows_of_other_architectures_are_refused_where_a_session_fills_them() {
    let (bytes, _) = random_model_with(LLAMA, 1, |file| {
        file.unsigned("llama.attention.sliding_window", 100);
    });
    let parts = [
        "llama.attention.sliding_window",
        "it is 100",
        "context of 256",
    ];
    assert_refused(&bytes, "a window", &parts);
    let mut options = LoadOptions::default();
    options.context_length = Some(100);
    LanguageModel::from_bytes(bytes, options).unwrap();
}

/// The refusal of numbers that differ from layer to layer, or have another type.
#[test]
fn values_of_other_types_are_named() {
    let cases: &[(&str, Set, &[&str])] = &[
        (
            "heads that differ",
            |file| file.integers("llama.attention.head_count", &[8, 4]),
            &[
                "attention.head_count`",
                "8 in the first layer and 4",
                "same in all layers",
            ],
        ),
        (
            "heads of keys that differ",
            |file| file.integers("llama.attention.head_count_kv", &[4, 8]),
            &["attention.head_count_kv`", "4 in the first layer and 8"],
        ),
        (
            "feed-forward lengths that differ",
            |file| file.integers("llama.feed_forward_length", &[256, 128]),
            &["feed_forward_length`", "256 in the first layer and 128"],
        ),
        (
            "too few numbers",
            |file| file.integers("llama.attention.head_count", &[8]),
            &["an array of 1 values", "each of the 2 layers"],
        ),
        (
            "no numbers of heads",
            |file| file.strings("llama.attention.head_count", &["8", "8"]),
            &[
                "attention.head_count`",
                "the string `8`",
                "an integer from 1",
            ],
        ),
        (
            "no heads",
            |file| file.unsigned("llama.attention.head_count", 0),
            &["it is 0", "an integer from 1 to 1073741824"],
        ),
        (
            "a width in an array",
            |file| file.integers("llama.embedding_length", &[256, 256]),
            &["embedding_length`", "an array of 2 values", "an integer"],
        ),
        (
            "a text for a number",
            |file| file.string("llama.block_count", "two"),
            &["block_count`", "the string `two`", "an integer"],
        ),
        (
            "a text for an epsilon",
            |file| file.string("llama.attention.layer_norm_rms_epsilon", "small"),
            &["layer_norm_rms_epsilon`", "the string `small`", "a number"],
        ),
        (
            "a window in a text",
            |file| file.string("phi3.attention.sliding_window", "4"),
            &["sliding_window`", "the string `4`"],
        ),
        (
            "windows without a period",
            |file| file.integers("phi3.attention.sliding_window_pattern", &[0, 1]),
            &["sliding_window_pattern`", "an array of 2 values"],
        ),
        (
            "a number for an architecture",
            |file| file.unsigned("general.architecture", 3),
            &["general.architecture`", "it is 3", "a string"],
        ),
    ];
    for (what, set, parts) in cases {
        let shape = if parts[0].starts_with("sliding") {
            PHI
        } else {
            LLAMA
        };
        let (bytes, _) = random_model_with(shape, 1, set);
        assert_refused(&bytes, what, parts);
    }
    println!("{} values of other types", cases.len());
    let empty = GgufWriter::default().finish();
    assert_refused(
        &empty,
        "no architecture",
        &["it is missing", "one of llama, qwen2"],
    );
}

#[test]
fn settings_that_mixtures_do_not_have_are_named() {
    let of_experts: &[(Set, &str)] = &[
        (
            |file| file.unsigned("qwen3moe.expert_used_count", 7),
            "at most 6",
        ),
        (
            |file| file.unsigned("qwen3moe.expert_count", 1 << 20),
            "ffn_gate_inp",
        ),
        (
            |file| file.unsigned("qwen3moe.expert_gating_func", 2),
            "expert_gating_func",
        ),
        (
            |file| file.boolean("qwen3moe.expert_weights_norm", false),
            "must be true",
        ),
        (
            |file| file.float("qwen3moe.expert_weights_scale", 2.5),
            "expert_weights_scale",
        ),
        (
            |file| file.unsigned("qwen3moe.expert_shared_count", 1),
            "expert_shared_count",
        ),
        (
            |file| file.unsigned("qwen3moe.leading_dense_block_count", 1),
            "leading_dense",
        ),
    ];
    for (set, part) in of_experts {
        let (bytes, _) = random_model_with(QWEN3_MOE, 1, set);
        assert_refused(&bytes, part, &[part]);
    }
}

#[test]
fn embeddings_are_pooled_as_the_file_says() {
    let text = "hello";
    let cases: [(Option<u32>, bool, Option<bool>); 6] = [
        (None, false, Some(false)),
        (Some(0), false, Some(false)),
        (Some(1), true, Some(false)),
        (Some(3), false, Some(true)),
        (Some(3), true, Some(true)),
        (Some(4), false, None),
    ];
    for (pooling, adds_end, is_last) in cases {
        let (bytes, oracle) = random_model_with(QWEN3, 2, |file| {
            if let Some(pooling) = pooling {
                file.unsigned("qwen3.pooling_type", pooling);
            }
            file.boolean("tokenizer.ggml.add_eos_token", adds_end);
        });
        let model = load(&bytes, InstructionSet::best());
        let mut options = EmbedOptions::default();
        options.normalize = false;
        let vectors = model.embed(&[text], options.clone());
        let mut tokens = model.tokenize(text, false).unwrap();
        tokens.extend(Some(259).filter(|_| adds_end));
        let hidden = oracle.hidden(&tokens);
        let mean = (0..WIDTH).map(|i| hidden.iter().map(|row| row[i]).sum::<f64>());
        let mean: Vec<f64> = mean.map(|sum| sum / hidden.len() as f64).collect();
        let what = format!("{pooling:?}, {adds_end}");
        match is_last {
            Some(true) => assert_close(&vectors.unwrap()[0], hidden.last().unwrap(), &what),
            Some(false) => assert_close(&vectors.unwrap()[0], &mean, &what),
            None => {
                let message = vectors.unwrap_err().to_string();
                assert!(message.contains("qwen3.pooling_type`"), "{message}");
                options.pooling = Some(Pooling::Mean);
                let vectors = model.embed(&[text], options).unwrap();
                assert_close(&vectors[0], &mean, &what);
            }
        }
    }
}
