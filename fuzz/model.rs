//! A model of one layer, small enough to be read thousands of times a second, and changes of files.

use relampago::llm::GgufWriter;

#[path = "../tests/support/vocabulary.rs"]
#[allow(dead_code)]
mod vocabulary;

/// Elements of a token's row.
pub const WIDTH: usize = 8;

/// Returns the file of a model with this chat template.
///
/// # Panics
/// If a tensor is refused.
#[must_use]
pub fn model(template: &str) -> Vec<u8> {
    let mut writer = GgufWriter::default();
    writer.string("general.architecture", "llama");
    for (key, value) in [
        ("block_count", 1),
        ("context_length", 64),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
    ] {
        writer.unsigned(&format!("llama.{key}"), value as u32);
    }
    writer.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
    let tokens = vocabulary::write_byte_pairs(&mut writer);
    writer.string("tokenizer.chat_template", template);
    let half = WIDTH / 2;
    for (name, shape) in [
        ("token_embd", &[WIDTH, tokens][..]),
        ("output_norm", &[WIDTH]),
        ("blk.0.attn_norm", &[WIDTH]),
        ("blk.0.ffn_norm", &[WIDTH]),
        ("blk.0.attn_q", &[WIDTH, WIDTH]),
        ("blk.0.attn_k", &[WIDTH, half]),
        ("blk.0.attn_v", &[WIDTH, half]),
        ("blk.0.attn_output", &[WIDTH, WIDTH]),
        ("blk.0.ffn_gate", &[WIDTH, WIDTH]),
        ("blk.0.ffn_up", &[WIDTH, WIDTH]),
        ("blk.0.ffn_down", &[WIDTH, WIDTH]),
    ] {
        let values = vec![0.5; shape.iter().product()];
        let written = writer.f32_tensor(&format!("{name}.weight"), shape, &values);
        written.expect("a tensor whose shape fits its values");
    }
    writer.finish()
}

/// Changes a file as bytes say: four are a place and a length, the others are added to what stands there. A fuzzer would
/// take hours to find a valid file by itself.
#[must_use]
pub fn changed(mut file: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let Some((&[a, b, c, d], change)) = bytes.split_first_chunk() else {
        return file;
    };
    let [place, cut] = [[a, b], [c, d]].map(|pair| usize::from(u16::from_le_bytes(pair)));
    let place = place % file.len();
    for (byte, &more) in file[place..].iter_mut().zip(change) {
        *byte = byte.wrapping_add(more);
    }
    file.truncate(file.len() - cut % file.len());
    file
}
