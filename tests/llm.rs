//! Language models: tiny random files against a pass in `f64`, and hostile files.
#![cfg(all(feature = "llm", not(target_arch = "wasm32")))]

#[path = "support/allocations.rs"]
mod allocations;
#[path = "llm/cache_types.rs"]
mod cache_types;
#[path = "llm/cancelled.rs"]
mod cancelled;
#[path = "llm/encoders.rs"]
mod encoders;
#[path = "llm/exact.rs"]
mod exact;
#[path = "llm/explain.rs"]
mod explain;
#[path = "support/gguf.rs"]
mod gguf;
#[path = "llm/greedy.rs"]
mod greedy;
#[path = "llm/guessed.rs"]
mod guessed;
#[path = "llm/hidden.rs"]
mod hidden;
#[path = "llm/hostile.rs"]
mod hostile;
#[cfg(feature = "gpu")]
#[path = "llm/incoming.rs"]
mod incoming;
#[path = "llm/inspect.rs"]
mod inspect;
#[path = "llm/json_schema.rs"]
mod json_schema;
#[path = "llm/keys.rs"]
mod keys;
#[path = "llm/lora.rs"]
mod lora;
#[path = "llm/odd_schemas.rs"]
mod odd_schemas;
#[path = "llm/prompts.rs"]
mod prompts;
#[path = "support/random_encoders.rs"]
mod random_encoders;
#[path = "support/random_models.rs"]
mod random_models;
#[path = "llm/refused_keys.rs"]
mod refused_keys;
#[path = "llm/sampled.rs"]
mod sampled;
#[path = "llm/services.rs"]
mod services;
#[path = "llm/sessions.rs"]
mod sessions;
#[path = "llm/split.rs"]
mod split;
mod support;
#[path = "llm/templates.rs"]
mod templates;
#[path = "llm/together.rs"]
mod together;
#[path = "llm/tools.rs"]
mod tools;
#[path = "llm/tune.rs"]
mod tune;
#[path = "llm/vocabularies.rs"]
mod vocabularies;
#[path = "support/vocabulary.rs"]
mod vocabulary;
#[path = "llm/windows.rs"]
mod windows;
#[path = "llm/words.rs"]
mod words;

use random_models::{GEMMA, LLAMA, SHAPES, TYPES, random_model};
use relampago::InstructionSet;
use relampago::llm::{
    EmbedOptions, FinishReason, GenerateOptions, GgufWriter, LanguageModel, LoadOptions,
    LoraOptions, Message, QuantizedMatrix, WeightType,
};
use relampago::{Backend, GpuDevice};
use std::path::PathBuf;
use support::Random;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

fn load(bytes: &[u8], set: InstructionSet) -> LanguageModel {
    let mut options = LoadOptions::default();
    options.instruction_set = Some(set);
    LanguageModel::from_bytes(bytes.to_vec(), options).unwrap()
}

/// Options for a GPU.
#[cfg(feature = "gpu")]
fn on_gpu() -> LoadOptions {
    let mut options = LoadOptions::default();
    let device = GpuDevice::builder().backend(Backend::Gpu).build();
    options.device = Some(device.expect("a GPU adapter, if in software"));
    options
}

/// Options for a GPU by each interface, with their names: by CUDA where there is an NVIDIA GPU.
fn on_gpus() -> Vec<(&'static str, LoadOptions)> {
    let by_cuda = on_cuda().map(|options| ("CUDA", options));
    #[cfg(feature = "gpu")]
    return [("GPU", on_gpu())].into_iter().chain(by_cuda).collect();
    #[cfg(not(feature = "gpu"))]
    by_cuda.into_iter().collect()
}

#[cfg(feature = "cuda")]
fn on_cuda() -> Option<LoadOptions> {
    let device = GpuDevice::builder().backend(Backend::Cuda).build();
    let device = device.map_err(|error| assert_eq!(error.code(), "NO_GPU", "{error}"));
    let mut options = LoadOptions::default();
    options.device = Some(device.ok()?);
    Some(options)
}

#[cfg(not(feature = "cuda"))]
fn on_cuda() -> Option<LoadOptions> {
    None
}

const PROMPT: &str = "hello";

/// The tokens of an answer to [`PROMPT`].
fn answer(model: &LanguageModel, options: GenerateOptions) -> Vec<u32> {
    let mut answer = model.complete(PROMPT, options).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    answer.tokens().to_vec()
}

fn tokens(len: usize, random: &mut Random) -> Vec<u32> {
    (0..len).map(|_| random.below(260) as u32).collect()
}

fn assert_close(logits: &[f32], exact: &[f64], what: &str) {
    let rms = (exact.iter().map(|x| x * x).sum::<f64>() / exact.len() as f64).sqrt();
    assert_eq!(logits.len(), exact.len());
    for (logit, exact) in logits.iter().zip(exact) {
        let difference = (f64::from(*logit) - exact).abs();
        assert!(
            difference <= 1e-3 * rms,
            "{what}: {logit}, exact {exact}, rms {rms}"
        );
    }
}

/// Compares the logits of tokens read at once and one by one.
fn check_logits(model: &LanguageModel, tokens: &[u32], exact: &[f64], what: &str) {
    let logits = model.session().unwrap().logits(tokens).unwrap();
    assert_close(&logits, exact, what);
    let mut session = model.session().unwrap();
    let decoded = tokens.iter().map(|&token| session.decode(token).unwrap());
    let decoded: Vec<f32> = decoded.flatten().collect();
    assert_close(&decoded, exact, &format!("{what}, one by one"));
}

/// The architectures with matrices of every type.
fn models() -> impl Iterator<Item = (String, Vec<u8>, Vec<u32>, Vec<f64>)> {
    let llamas = (0..TYPES.len() as u64).map(|seed| (LLAMA, seed));
    let others = SHAPES[1..]
        .iter()
        .flat_map(|&shape| [(shape, 0), (shape, 8)]);
    llamas.chain(others).map(|(shape, seed)| {
        let (bytes, oracle) = random_model(shape, seed);
        let tokens = tokens(13, &mut Random(seed));
        let exact = oracle.logits(&tokens).concat();
        (
            format!("{} of seed {seed}", shape.name),
            bytes,
            tokens,
            exact,
        )
    })
}

/// The files of the same models, with room for other numbers of tokens.
fn models_with_room(context: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    let llamas = (0..TYPES.len() as u64).map(|seed| (LLAMA, seed));
    let others = SHAPES[1..].iter().map(|&shape| (shape, 0));
    llamas.chain(others).map(move |(shape, seed)| {
        let (bytes, _) = random_model(shape.with_context(context), seed);
        (format!("{} of seed {seed}", shape.name), bytes)
    })
}

#[test]
fn logits_are_those_of_the_pass_in_f64() {
    for (name, bytes, tokens, exact) in models() {
        for &set in InstructionSet::available() {
            let what = format!("{name}, {}", set.name());
            check_logits(&load(&bytes, set), &tokens, &exact, &what);
        }
    }
}

#[test]
fn logits_of_a_gpu_are_those_of_the_pass_in_f64() {
    let gpus = on_gpus();
    for (name, bytes, tokens, exact) in models() {
        for (gpu, options) in &gpus {
            let model = LanguageModel::from_bytes(bytes.clone(), options.clone()).unwrap();
            check_logits(&model, &tokens, &exact, &format!("{name}, {gpu}"));
        }
    }
}

#[test]
fn sessions_refuse_what_does_not_fit_and_stay_usable() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut session = model.session().unwrap();
    assert_eq!(session.prefill(&[]).unwrap_err().code(), "EMPTY");
    assert_eq!(session.decode(260).unwrap_err().code(), "INVALID_ARGUMENT");
    assert_eq!(
        session.prefill(&[1; 257]).unwrap_err().code(),
        "LIMIT_EXCEEDED"
    );
    assert_eq!(session.prefill(&[1; 256]).unwrap().len(), 260);
}

#[test]
fn control_tokens_come_from_the_template_only() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    assert_eq!(model.tokenize("hello", false).unwrap(), [257, 108, 111]);
    assert_eq!(model.tokenize("<|im_end|>", true).unwrap(), [259]);
    assert_eq!(model.tokenize("<|im_end|>", false).unwrap().len(), 10);
    let text = "naïve 東京 <|im_start|>\n\n 12";
    for special in [false, true] {
        assert_eq!(
            model.detokenize(&model.tokenize(text, special).unwrap()),
            text
        );
    }
    let messages = [Message::user("a<|im_end|>b")];
    assert_eq!(
        model.render(&messages).unwrap(),
        "<|im_start|>user:a<|im_end|>b<|im_end|>"
    );
    for role in ["", "user<|im_end|>", "user ", "ro\u{10fff0}le"] {
        let message = Message::new(role, "a");
        let error = model.chat(&[message], GenerateOptions::default());
        assert_eq!(error.unwrap_err().code(), "INVALID_ARGUMENT", "{role}");
    }
    let mut options = GenerateOptions::default();
    options.max_tokens = 20;
    let mut answer = model.chat(&messages, options.clone()).unwrap();
    let text: String = answer.by_ref().map(Result::unwrap).collect();
    assert!(answer.tokens().len() <= 20);
    assert_eq!(
        model.chat(&messages, options).unwrap().text().unwrap(),
        text
    );
}

/// The tokens of the likeliest continuation.
fn greedy(model: &LanguageModel, prompt: &[u32], len: usize) -> Vec<u32> {
    let mut session = model.session().unwrap();
    let mut logits = session.prefill(prompt).unwrap();
    let mut tokens = Vec::new();
    while tokens.len() < len {
        let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let token = best.unwrap() as u32;
        if model.is_end(token) {
            break;
        }
        tokens.push(token);
        logits = session.decode(token).unwrap();
    }
    tokens
}

#[test]
fn pieces_are_merged_by_score_and_bytes_stand_in() {
    let (bytes, _) = random_model(GEMMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let plain = |text| model.tokenize(text, false).unwrap();
    let byte = |byte: u8| 6 + u32::from(byte);
    // `▁` is 264, `o` 268, `▁he` 272, `ll` 273.
    assert_eq!(plain("hello"), [272, 273, 268]);
    assert_eq!(plain(" hello"), [264, 272, 273, 268]);
    assert_eq!(plain("é\n\nhe"), [264, byte(0xc3), byte(0xa9), 262, 272]);
    assert_eq!(model.tokenize("<eos>", true).unwrap(), [1]);
    assert!(!plain("<eos><0x41>").contains(&1));
    assert!(!plain("<0x41>").contains(&byte(0x41)));
    for text in [
        "hello  hello",
        "naïve 東京 <0x41> 12 <end_of_turn>",
        " ",
        "",
    ] {
        for special in [false, true] {
            let tokens = model.tokenize(text, special).unwrap();
            assert_eq!(model.detokenize(&tokens), text);
        }
    }
    assert!(model.is_end(1) && model.is_end(4) && !model.is_end(2));
}

#[test]
fn prompts_begin_with_one_token_that_begins_texts() {
    let (bytes, _) = random_model(GEMMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 6;
    let mut answer = model.complete("hello", options.clone()).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    assert_eq!(answer.tokens(), greedy(&model, &[2, 272, 273, 268], 6));
    // White space that the template trims, and a control token in the message.
    let messages = [Message::user(" <end_of_turn>hello\n")];
    let text = model.render(&messages).unwrap();
    let parts = [
        ("<bos><start_of_turn>user\n", true),
        ("<end_of_turn>hello", false),
        ("<end_of_turn>\n", true),
    ];
    assert_eq!(text, parts.map(|(part, _)| part).concat());
    let tokens = parts.map(|(part, special)| model.tokenize(part, special).unwrap());
    let mut answer = model.chat(&messages, options).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    assert_eq!(answer.tokens(), greedy(&model, &tokens.concat(), 6));
    assert!(!answer.tokens().is_empty());
}

fn is_exhaustive() -> bool {
    std::env::var_os("RELAMPAGO_EXHAUSTIVE").is_some()
}

/// The place of a model in the folder `RELAMPAGO_MODELS`, if it is there. It must be if `RELAMPAGO_EXHAUSTIVE` is set.
fn model_file(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("RELAMPAGO_MODELS");
    let path = folder.map(|folder| PathBuf::from(folder).join(name));
    let path = path.filter(|path| path.is_file());
    assert!(
        path.is_some() || !is_exhaustive(),
        "RELAMPAGO_MODELS has no {name}"
    );
    path
}

/// Ids of llama.cpp for the models that are there.
#[test]
fn tokens_are_those_of_llama_cpp() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("data/tokens.json")).unwrap();
    for (name, cases) in cases.as_object().unwrap() {
        let Some(path) = model_file(name) else {
            continue;
        };
        let model = LanguageModel::load(path, LoadOptions::default()).unwrap();
        for case in cases.as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            for (key, special) in [("plain", false), ("special", true)] {
                let tokens = model.tokenize(text, special).unwrap();
                assert_eq!(
                    serde_json::json!(tokens),
                    case[key],
                    "{name} {key} {text:?}"
                );
                let back = case
                    .get("back")
                    .and_then(|back| back.as_str())
                    .unwrap_or(text);
                assert_eq!(model.detokenize(&tokens), back, "{name} {key}");
            }
        }
    }
}

#[test]
fn generation_takes_the_likeliest_tokens() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 8;
    let mut answer = model.complete("hello", options.clone()).unwrap();
    let text: String = answer.by_ref().map(Result::unwrap).collect();
    let tokens = answer.tokens().to_vec();
    let reason = answer.finish_reason();
    let full = tokens.len() == options.max_tokens;
    assert_eq!(reason == Some(FinishReason::Length), full);
    let mut session = model.session().unwrap();
    let prompt = model.tokenize("hello", false).unwrap();
    let mut logits = session.prefill(&prompt).unwrap();
    for &token in &tokens {
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(logits[token as usize], best);
        logits = session.decode(token).unwrap();
    }
    // For the npm package's tests, which must get the same.
    if let Ok(folder) = std::env::var("RELAMPAGO_TINY_MODEL") {
        let mut chat = model.chat(&[Message::user("hello")], options).unwrap();
        chat.by_ref().for_each(|text| drop(text.unwrap()));
        let adapter = lora::file_of(LLAMA, 21);
        let lora = model.lora_from_bytes(adapter.clone(), LoraOptions::default());
        let lora = lora.unwrap().scaled(2.0);
        let mut with_lora = GenerateOptions::default();
        with_lora.max_tokens = 8;
        with_lora.lora = vec![lora];
        let vector = model.embed(&["hello"], EmbedOptions::default()).unwrap();
        let json = serde_json::json!({
            "text": text,
            "chat": chat.tokens(),
            "adapted": model.complete("hello", with_lora).unwrap().text().unwrap(),
            "vector": vector[0],
            "logits": model.session().unwrap().prefill(&prompt).unwrap(),
            "tuned": tune::for_package(&model),
        });
        let json = json.to_string();
        std::fs::write(format!("{folder}/tiny-lora.gguf"), adapter).unwrap();
        split::write_parts(folder.as_ref(), &split::parts_of(&bytes, 3, |_| ()));
        std::fs::write(format!("{folder}/tiny.gguf"), &bytes).unwrap();
        std::fs::write(format!("{folder}/tiny.json"), json).unwrap();
    }
}

#[test]
fn unsupported_models_are_refused_by_name() {
    for (name, expected) in [
        (
            "gemma4",
            "supported are llama, qwen2, qwen3, gemma3, gemma2, phi3, olmo2, smollm3, granite, mistral3, qwen3moe, olmoe, granitemoe, bert, nomic-bert",
        ),
        ("unknown", "not supported"),
    ] {
        let mut writer = GgufWriter::default();
        writer.string("general.architecture", name);
        let error = LanguageModel::from_bytes(writer.finish(), LoadOptions::default()).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(name) && message.contains(expected),
            "{message}"
        );
    }
}

/// Blocks of a type with scales that are numbers: where f16 are in a block, they are small.
fn random_blocks(
    kind: WeightType,
    halves: &[usize],
    blocks: usize,
    random: &mut Random,
) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..blocks * kind.block_bytes())
        .map(|_| random.next() as u8)
        .collect();
    for block in bytes.chunks_exact_mut(kind.block_bytes()) {
        match kind {
            WeightType::F32 => block.copy_from_slice(&random.value().to_le_bytes()),
            WeightType::BF16 => block.copy_from_slice(&random.value().to_le_bytes()[2..]),
            _ => {}
        }
        for &at in halves {
            block[at..at + 2].copy_from_slice(&[random.next() as u8, 0x20]);
        }
    }
    bytes
}

#[test]
fn quantized_matrices_multiply_on_every_back_end() {
    let types: [(WeightType, &[usize]); 15] = [
        (WeightType::F32, &[]),
        (WeightType::F16, &[0]),
        (WeightType::BF16, &[]),
        (WeightType::Q8_0, &[0]),
        (WeightType::Q4_0, &[0]),
        (WeightType::Q4_1, &[0, 2]),
        (WeightType::Q5_0, &[0]),
        (WeightType::Q5_1, &[0, 2]),
        (WeightType::Q2_K, &[80, 82]),
        (WeightType::Q3_K, &[108]),
        (WeightType::Q4_K, &[0, 2]),
        (WeightType::Q5_K, &[0, 2]),
        (WeightType::Q6_K, &[208]),
        (WeightType::IQ4_NL, &[0]),
        (WeightType::IQ4_XS, &[0]),
    ];
    let simd = GpuDevice::builder().backend(Backend::Simd).build();
    let gpus = on_gpus().into_iter();
    let gpus = gpus.filter_map(|(_, options)| options.device);
    let devices: Vec<GpuDevice> = gpus.chain([simd.unwrap()]).collect();
    let (mut random, mut cases, mut largest) = (Random(11), 0, 0.0f64);
    let small = types.map(|(kind, halves)| (kind, halves, [37, 512], &[0, 1, 3, 9][..]));
    // Packed in pieces: with scales, and without.
    let large = [types[3], types[1]];
    let large = large.map(|(kind, halves)| (kind, halves, [4000, 4096], &[1][..]));
    for (kind, halves, [rows, cols], counts) in small.into_iter().chain(large) {
        let blocks = rows * cols / kind.block_len();
        let blocks = random_blocks(kind, halves, blocks, &mut random);
        let mut weights = vec![0.0; rows * cols];
        kind.dequantize(&blocks, &mut weights);
        for device in &devices {
            let matrix = QuantizedMatrix::new(device, kind, blocks.clone(), rows, cols).unwrap();
            for &m in counts {
                let x = random.values(m * cols);
                let mut y = vec![f32::NAN; m * rows];
                matrix.matmul(&x, &mut y, m).unwrap();
                for (i, y) in y.iter().enumerate() {
                    let (x, w) = (&x[i / rows * cols..], &weights[i % rows * cols..]);
                    let terms = x.iter().zip(w).take(cols);
                    let terms = terms.map(|(&x, &w)| f64::from(x) * f64::from(w));
                    let magnitude = terms.clone().map(f64::abs).sum::<f64>();
                    let error = (f64::from(*y) - terms.sum::<f64>()).abs();
                    let ulp = error / (f64::from(f32::EPSILON) * magnitude);
                    assert!(ulp <= 64.0, "{kind:?} {m} {i}: {ulp} ULP");
                    largest = largest.max(ulp);
                }
                cases += 1;
            }
        }
    }
    println!("{cases} products of quantised matrices; largest error {largest:.2} ULP");
    for device in &devices {
        let code = |blocks: usize, rows, cols| {
            let made = QuantizedMatrix::new(device, WeightType::Q8_0, vec![0; blocks], rows, cols);
            made.unwrap_err().code()
        };
        assert_eq!(code(34, 1, 31), "INVALID_ARGUMENT");
        assert_eq!(code(34, 2, 32), "LENGTH_MISMATCH");
        assert_eq!(code(34, usize::MAX, 32), "SHAPE_OVERFLOW");
        let matrix = QuantizedMatrix::new(device, WeightType::Q8_0, vec![0; 34], 1, 32).unwrap();
        let wrong = matrix.matmul(&[0.0; 33], &mut [0.0], 1).unwrap_err();
        assert_eq!(wrong.code(), "LENGTH_MISMATCH");
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn models_without_the_feature_gpu_return_errors_for_gpus() {
    let (bytes, _) = random_model(LLAMA, 1);
    let error = GpuDevice::builder().backend(Backend::Gpu).build();
    assert_eq!(error.unwrap_err().code(), "NO_GPU");
    let len = bytes.len() as u64;
    let incoming = relampago::llm::IncomingModel::new(bytes.clone(), len, LoadOptions::default());
    assert_eq!(incoming.unwrap_err().code(), "INVALID_ARGUMENT");
    let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
    assert_eq!(model.info().backend, Backend::Simd);
}
