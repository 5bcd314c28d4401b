//! Metadata and tensors that a model does not have, which are refused by name, and those that change nothing.

use super::keys::{assert_refused, refusal};
use super::random_models::{
    GEMMA, GRANITE, LLAMA, OLMO2, PHI, QWEN2, QWEN3, QWEN3_MOE, SHAPES, random_model_with,
};
use super::{check_logits, load, tokens};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::GgufWriter;

/// Settings that the pass does not have: the key without the architecture, a value, and one that changes nothing.
enum Setting {
    Number(f32, f32),
    Truth(bool, bool),
    Text(&'static str, &'static str),
    Numbers(&'static [i32], &'static [i32]),
}

use Setting::{Number, Numbers, Text, Truth};

/// Keys of llama.cpp and of other tools, for every architecture.
const REFUSED: &[(&str, Setting)] = &[
    ("attention.causal", Truth(false, true)),
    ("attention.clamp_kqv", Number(8.0, 0.0)),
    ("attention.max_alibi_bias", Number(8.0, 0.0)),
    ("attention.output_scale", Number(0.5, 1.0)),
    ("attention.value_scale", Number(0.5, 1.0)),
    ("attention.scale", Number(0.5, 0.176_776_69)),
    ("attention.key_length_swa", Number(16.0, 32.0)),
    ("attention.value_length_swa", Number(16.0, 32.0)),
    ("attention.value_length", Number(16.0, 32.0)),
    ("attention.group_norm_groups", Number(4.0, 0.0)),
    ("attention.group_norm_epsilon", Number(1e-5, 0.0)),
    ("attention.q_lora_rank", Number(8.0, 0.0)),
    ("attention.kv_lora_rank", Number(8.0, 0.0)),
    ("attention.relative_buckets_count", Number(32.0, 0.0)),
    ("attention.shared_kv_layers", Number(1.0, 0.0)),
    ("attention.temperature_length", Number(64.0, 0.0)),
    ("attention.temperature_scale", Number(0.1, 0.0)),
    ("attention.indexer.top_k", Number(8.0, 0.0)),
    ("attention.key_length_mla", Number(8.0, 0.0)),
    ("attention.recurrent_layers", Numbers(&[1, 0], &[0, 0])),
    ("attention.compress_ratios", Numbers(&[1, 2], &[])),
    ("attention.of_tomorrow", Number(1.0, 0.0)),
    ("attn_logit_softcapping", Number(50.0, 0.0)),
    ("final_logit_softcapping", Number(30.0, 0.0)),
    ("router_logit_softcapping", Number(30.0, 0.0)),
    ("logit_scale", Number(0.5, 1.0)),
    ("residual_scale", Number(0.5, 1.0)),
    ("embedding_scale", Number(3.0, 0.0)),
    ("swiglu_clamp_exp", Numbers(&[7, 7], &[0, 0])),
    ("hidden_activation", Text("relu", "")),
    ("use_parallel_residual", Truth(true, false)),
    ("expert_count", Number(8.0, 0.0)),
    ("nextn_predict_layers", Number(1.0, 0.0)),
    ("n_deepstack_layers", Number(3.0, 0.0)),
    ("embedding_length_out", Number(64.0, 256.0)),
    ("embedding_length_per_layer_input", Number(64.0, 0.0)),
    ("full_attention_interval", Number(4.0, 0.0)),
    ("token_shift_count", Number(2.0, 0.0)),
    ("rescale_every_n_layers", Number(2.0, 0.0)),
    ("swin_norm", Truth(true, false)),
    ("num_loops", Number(2.0, 1.0)),
    ("ssm.state_size", Number(16.0, 0.0)),
    ("ssm.conv_kernel", Number(4.0, 0.0)),
    ("wkv.head_size", Number(64.0, 0.0)),
    ("shortconv.l_cache", Number(3.0, 0.0)),
    ("kda.head_dim", Number(64.0, 0.0)),
    ("hyper_connection.count", Number(4.0, 0.0)),
    ("rope.scaling.type", Text("llama3", "linear")),
    ("rope.scaling.type", Number(1.0, f32::NAN)),
    ("rope.scaling.factor", Number(-2.0, 1.0)),
    ("rope.scaling.factor", Number(f32::INFINITY, 1.0)),
    ("rope.scaling.factor", Text("2", "")),
    ("rope.scale_linear", Number(-2.0, 1.0)),
    ("rope.scaling.attn_factor", Number(-1.0, 1.0)),
    ("rope.scaling.alpha", Number(1000.0, 0.0)),
    ("rope.scaling.yarn_ext_factor", Number(1.0, 0.0)),
    ("rope.scaling.yarn_attn_factor", Number(0.5, 1.0)),
    (
        "rope.dimension_sections",
        Numbers(&[8, 4, 4, 0], &[0, 0, 0, 0]),
    ),
    ("rope.dimension_count_swa", Number(16.0, 32.0)),
    ("rope.dimension_count", Number(33.0, 32.0)),
    ("rope.freq_base", Number(0.0, f32::NAN)),
    ("rope.global.freq_base", Number(1e6, 0.0)),
];

/// Keys that change nothing.
const FREE: &[(&str, Setting)] = &[
    ("vocab_size", Number(32_000.0, 0.0)),
    ("rope.scaling.yarn_beta_fast", Number(8.0, 32.0)),
    ("rope.scaling.yarn_beta_slow", Number(2.0, 1.0)),
    ("rope.scaling.yarn_log_multiplier", Number(0.1, 0.0)),
    ("tensor_data_layout", Text("Meta AI original pth", "")),
    ("rope.scaling.finetuned", Truth(true, false)),
    ("rope.scaling.original_context_length", Number(64.0, 128.0)),
    ("attention.layer_norm_epsilon", Number(1e-6, 1e-5)),
    ("expert_used_count", Number(2.0, 0.0)),
    ("expert_weights_scale", Number(2.5, 0.0)),
    ("leading_dense_block_count", Number(1.0, 0.0)),
    ("pooling_type", Number(3.0, 1.0)),
    ("classifier.output_labels", Text("yes", "no")),
    ("vision.attention.head_count", Number(16.0, 8.0)),
    ("mm.tokens_per_image", Number(256.0, 0.0)),
    ("note", Text("of its author", "")),
];

/// Writes one of the two values; one that is no number, or an empty text, stands for leaving the key out.
fn write(file: &mut GgufWriter, key: &str, setting: &Setting, is_other: bool) {
    let number = |file: &mut GgufWriter, x: f32| {
        if x.fract() == 0.0 && x >= 0.0 {
            file.unsigned(key, x as u32);
        } else if !x.is_nan() {
            file.float(key, x);
        }
    };
    match *setting {
        Number(other, same) => number(file, if is_other { other } else { same }),
        Truth(other, same) => file.boolean(key, if is_other { other } else { same }),
        Text(other, same) => {
            let text = if is_other { other } else { same };
            if !text.is_empty() {
                file.string(key, text);
            }
        }
        Numbers(other, same) => file.integers(key, if is_other { other } else { same }),
    }
}

#[test]
fn settings_that_the_pass_does_not_have_are_refused_by_name() {
    let mut tried = 0;
    for shape in [LLAMA, QWEN2, QWEN3, GEMMA, PHI] {
        let full = |key: &str| format!("{}.{key}", shape.name);
        for (key, setting) in REFUSED {
            let key = full(key);
            let set = |file: &mut GgufWriter| write(file, &key, setting, true);
            assert_refused(&random_model_with(shape, 4, set).0, &key, &[&key]);
            tried += 1;
        }
        let tokens = tokens(5, &mut Random(4));
        let logits = |set: &dyn Fn(&mut GgufWriter)| {
            let (bytes, _) = random_model_with(shape, 4, set);
            assert_eq!(refusal(&bytes).map(|error| error.to_string()), None);
            let model = load(&bytes, InstructionSet::best());
            model.session().unwrap().logits(&tokens).unwrap()
        };
        let plain = logits(&|_| ());
        let all = |settings: &[(&str, Setting)], is_other: bool, file: &mut GgufWriter| {
            for (key, setting) in settings {
                write(file, &full(key), setting, is_other);
            }
        };
        assert_eq!(logits(&|file| all(REFUSED, false, file)), plain);
        for is_other in [false, true] {
            assert_eq!(logits(&|file| all(FREE, is_other, file)), plain);
        }
        tried += FREE.len();
    }
    println!("{tried} keys tried");
}

#[test]
fn tensors_that_no_step_reads_are_refused_by_name() {
    let others = [
        (LLAMA, "blk.0.attn_q_norm.weight", 32),
        (LLAMA, "blk.0.attn_norm.bias", 256),
        (LLAMA, "blk.1.attn_sinks.weight", 8),
        (LLAMA, "blk.0.attn_q.scale", 1),
        (LLAMA, "blk.0.ffn_down.input_scale", 1),
        (LLAMA, "blk.0.post_ffw_norm.weight", 256),
        (LLAMA, "blk.0.ffn_gate_inp.weight", 256),
        (LLAMA, "blk.2.attn_norm.weight", 256),
        (LLAMA, "output.bias", 260),
        (LLAMA, "output_norm.bias", 256),
        (LLAMA, "token_embd_norm.weight", 256),
        (LLAMA, "position_embd.weight", 256),
        (SHAPES[1], "rope_factors_short.weight", 16),
        (QWEN2, "blk.0.attn_k_norm.weight", 32),
        (QWEN3, "blk.0.post_attention_norm.weight", 256),
        (GEMMA, "blk.0.layer_output_scale.weight", 1),
        (PHI, "blk.0.attn_qkv.bias", 512),
        (GRANITE, "blk.0.attn_q_norm.weight", 32),
        (OLMO2, "blk.0.attn_norm.weight", 256),
        (QWEN3_MOE, "blk.0.exp_probs_b.bias", 6),
    ];
    for (shape, name, len) in others {
        let set = |file: &mut GgufWriter| {
            file.f32_tensor(name, &[len], &vec![1.0; len]).unwrap();
        };
        let (bytes, _) = random_model_with(shape, 1, set);
        assert_refused(&bytes, name, &[&format!("tensor `{name}`"), shape.name]);
    }
    let free = [
        "v.blk.0.attn_q.weight",
        "mm.input_projection.weight",
        "cls.output.weight",
        "blk.0.attn_rot_embd.weight",
    ];
    for name in free {
        let set = |file: &mut GgufWriter| file.f32_tensor(name, &[4], &[1.0; 4]).unwrap();
        let (bytes, oracle) = random_model_with(LLAMA, 1, set);
        let tokens = tokens(5, &mut Random(1));
        let exact = oracle.logits(&tokens).concat();
        check_logits(&load(&bytes, InstructionSet::best()), &tokens, &exact, name);
    }
    println!("{} tensors refused, {} not", others.len(), free.len());
}
