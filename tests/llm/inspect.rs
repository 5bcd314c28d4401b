//! Tests of reports about models by the beginnings of their files.

use super::random_models::{LLAMA, SHAPES, random_model};
use relampago::Error;
use relampago::llm::{
    CacheType, Gguf, GgufWriter, LanguageModel, LoadOptions, LoraOptions, Message, Value,
    WeightType,
};
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a file before its weights.
pub(super) fn head_len(bytes: &[u8]) -> usize {
    let file = Gguf::from_bytes(bytes.to_vec()).unwrap();
    let starts = file.tensors().iter().map(|tensor| tensor.range().start);
    starts.min().unwrap() as usize
}

#[test]
fn inspections_are_what_the_loaded_model_says() {
    for shape in SHAPES {
        let (bytes, _) = random_model(shape, 3);
        let head = bytes[..head_len(&bytes)].to_vec();
        let found =
            LanguageModel::inspect_heads(vec![(head, bytes.len() as u64)], Some(64)).unwrap();
        let mut options = LoadOptions::default();
        options.context_length = Some(64);
        let model = LanguageModel::from_bytes(bytes, options).unwrap();
        let info = model.info();
        assert_eq!(found.architecture, info.architecture);
        assert_eq!(found.name, info.name);
        assert_eq!(found.parameters, info.parameters);
        assert_eq!(found.vocabulary, info.vocabulary);
        assert_eq!(found.max_context_length, info.max_context_length);
        assert_eq!(found.has_chat_template, info.has_chat_template);
        assert_eq!(found.context_length, model.context_length());
        assert_eq!(found.file_bytes, info.file_bytes);
        assert_eq!(found.session_bytes, info.session_bytes as u64);
        assert_eq!(found.simd_bytes, found.file_bytes + found.session_bytes);
        let halved = found.clone().with_cache_type(CacheType::F16);
        assert_eq!(2 * halved.session_bytes, found.session_bytes);
        let saved = found.session_bytes / 2;
        assert_eq!(halved.simd_bytes, found.simd_bytes - saved);
        assert_eq!(halved.gpu_bytes, found.gpu_bytes - saved);
        let quantized = found.clone().with_cache_type(CacheType::Q8_0);
        let saved = found.session_bytes - quantized.session_bytes;
        assert_eq!(quantized.simd_bytes, found.simd_bytes - saved);
        assert!(quantized.session_bytes < halved.session_bytes);
        let weights: u64 = found.weight_types.iter().map(|&(_, bytes)| bytes).sum();
        assert!(weights <= found.file_bytes && weights > found.file_bytes / 2);
        assert!(found.weight_types.is_sorted_by(|a, b| a.1 >= b.1));
    }
}

#[test]
fn models_without_a_chat_template_report_it() {
    let (bytes, _) = random_model(LLAMA, 3);
    let key = b"tokenizer.chat_template";
    let at = bytes.windows(key.len()).position(|part| part == key);
    let mut without = bytes.clone();
    // Another key of the same length.
    without[at.unwrap()] = b'T';
    for (bytes, has_template) in [(bytes, true), (without, false)] {
        let head = (bytes.clone(), bytes.len() as u64);
        let found = LanguageModel::inspect_heads(vec![head], None).unwrap();
        assert_eq!(found.has_chat_template, has_template);
        let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
        assert_eq!(model.info().has_chat_template, has_template);
        let text = model.render(&[Message::user("hello")]);
        assert_eq!(text.is_ok(), has_template);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn the_bytes_on_a_gpu_are_those_that_a_token_reads() {
    // The last one has gains of heads.
    for (shape, seed) in [
        (LLAMA, 0),
        (LLAMA, 3),
        (LLAMA, 8),
        (super::random_models::GEMMA, 0),
    ] {
        let (bytes, _) = random_model(shape, seed);
        let len = bytes.len() as u64;
        let found = LanguageModel::inspect_heads(vec![(bytes.clone(), len)], None).unwrap();
        let model = LanguageModel::from_bytes(bytes, super::on_gpu()).unwrap();
        let steps = model.explain().steps;
        let on_gpu = steps
            .iter()
            .filter(|step| step.backend == relampago::Backend::Gpu);
        let read: usize = on_gpu.map(|step| step.weight_bytes).sum();
        let weights = found.gpu_bytes - found.session_bytes;
        // Products that each normalise their rows read the norm's gain again.
        let gains = 2 * shape.layers as u64 * 2 * 256 * 4;
        assert!(
            (weights..=weights + gains).contains(&(read as u64)),
            "{weights}, {read}"
        );
    }
}

#[test]
fn heads_that_are_too_short_say_how_many_bytes_are_needed() {
    let (bytes, _) = random_model(LLAMA, 1);
    let whole = head_len(&bytes);
    let inspect = |len: usize| {
        LanguageModel::inspect_heads(vec![(bytes[..len].to_vec(), bytes.len() as u64)], None)
    };
    for len in (0..whole - 32).step_by(101) {
        let error = inspect(len).unwrap_err();
        assert_eq!(error.code(), "LIMIT_EXCEEDED", "{len}: {error}");
    }
    assert!(inspect(whole).is_ok());
    // The size of a file that is not known is the end of its last tensor.
    let head = bytes[..whole].to_vec();
    let found = LanguageModel::inspect_heads(vec![(head.clone(), u64::MAX)], None).unwrap();
    assert!(found.file_bytes <= bytes.len() as u64 && found.file_bytes + 32 > bytes.len() as u64);
    // A file that ends before its weights do is damaged, not short.
    let error =
        LanguageModel::inspect_heads(vec![(head.clone(), whole as u64 + 10)], None).unwrap_err();
    assert_eq!(error.code(), "INVALID_MODEL", "{error}");
    let error =
        LanguageModel::inspect_heads(vec![(head.clone(), bytes.len() as u64)], Some(1 << 20));
    assert_eq!(error.unwrap_err().code(), "INVALID_ARGUMENT");
    // There are no weights to run.
    let file = Gguf::from_heads(vec![(head, bytes.len() as u64)]).unwrap();
    let error = relampago::llm::ForwardPass::new(file, LoadOptions::default()).unwrap_err();
    assert_eq!(error.code(), "INVALID_MODEL");
}

#[test]
fn files_are_inspected_where_they_lie() {
    let (bytes, _) = random_model(LLAMA, 1);
    let path = std::env::temp_dir().join(format!("relampago-inspect-{}.gguf", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let found = LanguageModel::inspect(&path, None);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found.unwrap().file_bytes, bytes.len() as u64);
    let mut writer = GgufWriter::default();
    writer.string("general.architecture", "gemma2");
    let file = writer.finish();
    let len = file.len() as u64;
    let error = LanguageModel::inspect_heads(vec![(file, len)], None).unwrap_err();
    assert!(error.to_string().contains("gemma2"), "{error}");
}

#[test]
fn tensors_that_no_reader_takes_are_not_written() {
    let mut writer = GgufWriter::default();
    writer.f32_tensor("a", &[2], &[1.0, 2.0]).unwrap();
    let long = "n".repeat(65);
    for (name, shape) in [
        ("a", &[1][..]),
        ("", &[1]),
        (&long, &[1]),
        ("b", &[]),
        ("b", &[1, 0]),
        ("b", &[1; 5]),
        ("b", &[1 << 63, 2]),
    ] {
        let error = writer.f32_tensor(name, shape, &[1.0]).unwrap_err();
        assert_eq!(
            error.code(),
            "INVALID_ARGUMENT",
            "{name}, {shape:?}: {error}"
        );
    }
    let error = writer.f32_tensor("b", &[2, 3], &[1.0]).unwrap_err();
    assert_eq!(error.to_string(), "`values` has 1 values, but must have 6");
    let error = writer.tensor("b", &[33], WeightType::Q8_0, &[0; 34]);
    assert_eq!(error.unwrap_err().code(), "INVALID_ARGUMENT");
    let file = Gguf::from_bytes(writer.finish()).unwrap();
    assert_eq!(file.tensors().len(), 1);
}

#[test]
fn metadata_is_read_as_it_was_set_last() {
    let mut writer = GgufWriter::default();
    writer.string("key", "first");
    writer.boolean("truth", true);
    writer.floats("numbers", &[0.5, -2.0]);
    writer.unsigned("key", 7);
    writer.unsigned("general.alignment", 4096);
    writer
        .f32_tensor("ones", &[2], &[1.0, 1.0])
        .expect("a tensor");
    let file = Gguf::from_bytes(writer.finish()).unwrap();
    assert_eq!(file.get("key").and_then(Value::as_u64), Some(7));
    assert_eq!(file.get("truth").and_then(Value::as_bool), Some(true));
    let numbers = file.get("numbers").and_then(Value::as_array).unwrap();
    let numbers: Vec<_> = numbers.iter().map(Value::as_f64).collect();
    assert_eq!(numbers, [Some(0.5), Some(-2.0)]);
    assert_eq!(file.get("general.alignment"), None);
    let ones = [1f32; 2].map(f32::to_le_bytes);
    assert_eq!(file.data(&file.tensors()[0]), ones.as_flattened());
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let missing = std::env::temp_dir().join("relampago-no-such-model.gguf");
    let adapter = Path::new("no-such-adapter.gguf");
    let (bytes, _) = random_model(LLAMA, 1);
    let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
    let errors = [
        LanguageModel::load(&missing, LoadOptions::default()).err(),
        LanguageModel::inspect(&missing, None).err(),
        Gguf::open(std::env::temp_dir()).err(),
        model.load_lora(adapter, LoraOptions::default()).err(),
    ];
    let kind = ErrorKind::NotFound;
    assert!(matches!(&errors[0], Some(Error::File { kind: found, .. }) if *found == kind));
    for error in errors {
        let error = error.expect("there is no file");
        assert_eq!(error.code(), "FILE", "{error}");
        let named = error.to_string();
        assert!(
            named.contains("no-such") || named.contains("tmp"),
            "{named}"
        );
    }
}
