//! Hostile files: whatever they say, reading them gives a model or an error, never a panic or a large allocation.
//!
//! `RELAMPAGO_MUTATIONS` is the number of cases; `cargo xtask test --exhaustive` runs a million.

use super::allocations::{Allocated, measured};
use super::inspect::head_len;
use super::lora::{gguf as gguf_adapter, parts, safetensors};
use super::random_encoders::{BERT, NOMIC, random_encoder};
use super::random_models::{GEMMA, LLAMA, SHAPES, metadata, random_model};
use super::split::parts_of;
use crate::gguf::random_tensor;
use crate::support::Random;
use relampago::Result;
use relampago::llm::{
    EmbedOptions, Gguf, LanguageModel, LoadOptions, LoraOptions, Message, Value, WeightType,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most memory beyond the file.
const LIMIT: usize = 64 << 20;

/// The errors that files may cause.
const CODES: [&str; 3] = ["INVALID_MODEL", "INVALID_ARGUMENT", "LIMIT_EXCEEDED"];

/// Returns `share` of the number of cases, which is `default` by itself.
fn cases(default: usize, share: usize) -> usize {
    let count = std::env::var("RELAMPAGO_MUTATIONS");
    count.map_or(default, |count| count.parse::<usize>().unwrap() / share)
}

/// Reads `count` mutated files. Their first `head` bytes change; what follows are weights.
fn check(
    what: &str,
    count: usize,
    file: &[u8],
    head: usize,
    read: impl Fn(Vec<u8>, &mut Random) -> Result<()>,
) {
    let (mut refused, mut most) = (0, Allocated::default());
    let (head, weights) = file.split_at(head.min(file.len()));
    for seed in 0..count as u64 {
        let random = &mut Random(seed << 20);
        let mut bytes = mutated(head, random);
        // A file that was cut short or moved has no place for its weights.
        if bytes.len() == head.len() {
            bytes.extend(weights);
        }
        let len = bytes.len();
        let read = AssertUnwindSafe(|| measured(|| read(bytes, random)));
        let (result, allocated) =
            catch_unwind(read).unwrap_or_else(|_| panic!("{what}: case {seed} panics"));
        assert!(
            allocated.peak <= LIMIT + len,
            "{what}: case {seed} of {len} bytes: {allocated:?}"
        );
        most = most.max(allocated);
        if let Err(error) = result {
            assert!(
                CODES.contains(&error.code()),
                "{what}: case {seed}: {error}"
            );
            refused += 1;
        }
    }
    println!("{what}: {count} files, {refused} refused, {most:?}");
    assert!(refused > count / 5, "{what}: {refused} of {count}");
}

/// Returns a file with some bytes changed, moved or left out.
pub(crate) fn mutated(file: &[u8], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [u64; 12] = [
        0,
        1,
        0x7f,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 40,
        1 << 61,
        1 << 62,
        u64::MAX >> 1,
        u64::MAX,
    ];
    let mut bytes = file.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(16) {
            0..4 => bytes[at] = random.next() as u8,
            4..7 => bytes[at] = random.one_of(vec![0, 1, 0x7f, 0x80, 0xff]),
            7..10 => bytes[at] ^= 1 << random.below(8),
            10..14 => {
                let number = random.one_of(NUMBERS.to_vec()).to_le_bytes();
                let len = random.one_of(vec![4, 8]).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&number[..len]);
            }
            // Names and values of elsewhere: what occurs twice, and other types.
            14 => {
                let len = random.below(40).min(bytes.len() - at);
                let from = random.below(bytes.len() - len + 1);
                bytes.copy_within(from..from + len, at);
            }
            _ => drop(bytes.remove(at)),
        }
    }
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

/// Reads everything that the metadata holds.
fn read_metadata(file: &Gguf) {
    for key in file.keys() {
        if let Some(Value::Array(array)) = file.get(key) {
            assert_eq!(array.iter().count(), array.len());
        }
    }
    for tensor in file.tensors() {
        let range = tensor.range();
        assert_eq!(file.data(tensor).len() as u64, range.end - range.start);
    }
}

/// Makes a model of a file, and uses all of it.
fn use_model(bytes: Vec<u8>) -> Result<()> {
    let mut options = LoadOptions::default();
    options.context_length = Some(32);
    options.threads = Some(1);
    let model = LanguageModel::from_bytes(bytes, options)?;
    model.info();
    let tokens = model.tokenize("hello <|im_end|>\n 東京 12", true)?;
    model.detokenize(&tokens);
    let mut session = model.session()?;
    session.prefill(&tokens[..tokens.len().min(3)])?;
    model.render(&[Message::user("hello")]).map(drop)
}

/// Makes an encoder of a file, and uses all of it.
fn use_encoder(bytes: Vec<u8>) -> Result<()> {
    let mut options = LoadOptions::default();
    options.context_length = Some(32);
    options.threads = Some(1);
    let model = LanguageModel::from_bytes(bytes, options)?;
    model.info();
    model.explain();
    let texts = ["hello", "Crème brûlée, 東京 12 [SEP]"];
    let options = EmbedOptions::default().with_truncate(true);
    model.embed(&texts, options).map(drop)
}

#[test]
fn mutated_encoders_give_errors() {
    for shape in [BERT, NOMIC] {
        let (bytes, _) = random_encoder(shape, 1, |_| ());
        let head = head_len(&bytes);
        let what = format!("encoders of {}", shape.name);
        check(&what, cases(200, 8), &bytes, head, |bytes, _| {
            use_encoder(bytes)
        });
    }
}

#[test]
fn mutated_metadata_gives_errors() {
    let (mut writer, _) = metadata(LLAMA);
    random_tensor(&mut writer, "t", &[32, 2], WeightType::Q4_0, &mut Random(1));
    random_tensor(&mut writer, "u", &[4], WeightType::F32, &mut Random(1));
    let file = writer.finish();
    check(
        "metadata",
        cases(60_000, 1),
        &file,
        file.len(),
        |bytes, _| {
            let file = Gguf::from_bytes(bytes)?;
            read_metadata(&file);
            Ok(())
        },
    );
}

#[test]
fn mutated_models_give_errors() {
    for (shape, default, share) in [(LLAMA, 200, 4), (GEMMA, 100, 8), (SHAPES[5], 100, 8)] {
        let (bytes, _) = random_model(shape, 1);
        let head = head_len(&bytes);
        let what = format!("models of {}", shape.name);
        check(&what, cases(default, share), &bytes, head, |bytes, _| {
            use_model(bytes)
        });
    }
}

#[test]
fn heads_of_absurd_lengths_are_refused_before_memory_is_allocated() {
    for key in [
        "attention.key_length",
        "rope.dimension_count",
        "embedding_length",
    ] {
        let (mut writer, _) = metadata(LLAMA);
        let file = if key == "embedding_length" {
            let mut bytes = writer.finish();
            let place = bytes
                .windows(key.len())
                .position(|part| part == key.as_bytes());
            let value = place.unwrap() + key.len() + 4;
            bytes[value..value + 4].copy_from_slice(&(1u32 << 30).to_le_bytes());
            bytes
        } else {
            writer.unsigned(&format!("llama.{key}"), 1 << 29);
            writer.finish()
        };
        let len = file.len() as u64;
        let inspect = || LanguageModel::inspect_heads(vec![(file, len)], None);
        let (result, allocated) = measured(inspect);
        assert_eq!(result.unwrap_err().code(), "INVALID_MODEL", "{key}");
        assert!(allocated.peak < 100_000, "{key}: {allocated:?}");
    }
}

#[test]
fn mutated_heads_and_parts_give_errors() {
    let (bytes, _) = random_model(LLAMA, 1);
    let head = head_len(&bytes);
    check(
        "heads",
        cases(10_000, 2),
        &bytes[..head],
        head,
        |bytes, random| {
            let sizes = [1 << 22, u64::MAX, random.next() >> 24];
            let size = random.one_of(sizes.to_vec());
            LanguageModel::inspect_heads(vec![(bytes, size)], None).map(drop)
        },
    );
    let parts = parts_of(&bytes, 3, |_| ());
    // The table of tensors; only the first part has metadata.
    let head = 600;
    check("parts", cases(500, 100), &parts[1], head, |bytes, _| {
        let file = Gguf::from_parts(vec![parts[0].clone(), bytes, parts[2].clone()])?;
        read_metadata(&file);
        Ok(())
    });
}

#[test]
fn mutated_adapters_give_errors() {
    let random = &mut Random(17);
    let (bytes, _) = random_model(LLAMA, 0);
    let mut options = LoadOptions::default();
    options.threads = Some(1);
    let model = LanguageModel::from_bytes(bytes, options).unwrap();
    let mut all = parts(LLAMA, random);
    all.truncate(2);
    for (what, file) in [
        ("GGUF adapters", gguf_adapter(LLAMA, &all)),
        ("safetensors", safetensors(LLAMA, &all)),
    ] {
        let use_lora = |bytes: Vec<u8>, _: &mut Random| {
            let mut options = LoraOptions::default();
            options.alpha = Some(10.0);
            let lora = model.lora_from_bytes(bytes, options)?;
            let mut session = model.session()?;
            session.set_lora(&[lora.into()])
        };
        check(what, cases(5_000, 2), &file, 700, use_lora);
    }
}

#[test]
fn mutated_sessions_give_errors() {
    let (bytes, _) = random_model(LLAMA, 0);
    let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
    let mut session = model.session().unwrap();
    session.prefill(&[1, 2, 3]).unwrap();
    let file = session.save().unwrap();
    check("sessions", cases(2_000, 10), &file, 40, |mut bytes, _| {
        set_checksum(&mut bytes);
        model.load_session(&bytes, &[]).map(drop)
    });
}

/// Makes the checksum of a saved session right: FNV-1a of the words after the header.
fn set_checksum(session: &mut [u8]) {
    let Some((header, rest)) = session.split_at_mut_checked(36) else {
        return;
    };
    let words = rest.as_chunks::<4>().0.iter();
    let hash = words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &word| {
        (hash ^ u64::from(u32::from_le_bytes(word))).wrapping_mul(0x100_0000_01b3)
    });
    header[28..].copy_from_slice(&hash.to_le_bytes());
}
