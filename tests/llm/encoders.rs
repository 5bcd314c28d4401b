//! Encoders: their vectors beside a pass in `f64`, their tokenizer beside `tokenizers`, and what they refuse.

use super::gguf::random_tensor;
use super::random_encoders::{
    BERT, CONTEXT, Encoder, NOMIC, RANKING, Shape, WIDTH, metadata, random_encoder,
    random_encoder_of, score, write_ranking_head, write_wordpiece,
};
use super::{load, model_file, on_gpus};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{
    EmbedOptions, ForwardPass, GenerateOptions, Gguf, GgufWriter, LanguageModel, LoadOptions,
    Message, Pooling, RankOptions, WeightType,
};
use serde_json::Value;

/// Texts of 2 to 160 tokens, more than go through the layers together.
fn texts() -> Vec<String> {
    let lens = [3, 0, 1, 40, 7, 158, 2, 90, 17, 31, 64, 5, 100, 8, 1];
    let mut random = Random(3);
    let mut word = |_| char::from(b'a' + random.below(26) as u8).to_string();
    lens.map(|len| (0..len).map(&mut word).collect::<Vec<_>>().join(" "))
        .to_vec()
}

/// The architectures with matrices of every type.
fn shapes() -> impl Iterator<Item = (Shape, u64)> {
    let seeds = 0..4;
    seeds.flat_map(|seed| [(BERT, seed), (NOMIC, seed)])
}

fn pooled(values: &[Vec<f64>], pooling: Pooling) -> Vec<f64> {
    let mean = |column| values.iter().map(|row| row[column]).sum::<f64>() / values.len() as f64;
    match pooling {
        Pooling::Mean => (0..WIDTH).map(mean).collect(),
        Pooling::Cls => values[0].clone(),
        _ => values[values.len() - 1].clone(),
    }
}

fn embed(model: &LanguageModel, texts: &[String], options: &EmbedOptions) -> Vec<Vec<f32>> {
    model.embed(texts, options.clone()).unwrap()
}

/// The largest difference of vectors whose elements are about 1 from exact ones.
fn difference(vectors: &[Vec<f32>], exact: &[Vec<f64>]) -> f64 {
    assert_eq!(vectors.len(), exact.len());
    let pairs = vectors.iter().zip(exact).flat_map(|(vector, exact)| {
        assert_eq!(vector.len(), exact.len());
        vector.iter().zip(exact)
    });
    let differences = pairs.map(|(&x, exact)| (f64::from(x) - exact).abs());
    differences.fold(0.0, |most, difference| {
        assert!(!difference.is_nan());
        most.max(difference)
    })
}

#[test]
fn vectors_are_those_of_the_pass_in_f64() {
    let texts = texts();
    for (shape, seed) in shapes() {
        let (bytes, encoder) = random_encoder(shape, seed, |_| ());
        let sets = InstructionSet::available().iter();
        let mut models: Vec<(String, LanguageModel)> = sets
            .map(|&set| (set.name().to_owned(), load(&bytes, set)))
            .collect();
        for (name, options) in on_gpus() {
            if name == "CUDA" {
                continue;
            }
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            models.push((name.to_owned(), model));
        }
        let values: Vec<_> = texts
            .iter()
            .map(|text| {
                let mut tokens = models[0].1.tokenize(text, false).unwrap();
                tokens.insert(0, 2);
                tokens.push(3);
                encoder.values(&tokens)
            })
            .collect();
        for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Last] {
            let exact: Vec<_> = values.iter().map(|rows| pooled(rows, pooling)).collect();
            let options = EmbedOptions::default()
                .with_pooling(pooling)
                .with_normalize(false);
            for (name, model) in &models {
                let most = difference(&embed(model, &texts, &options), &exact);
                assert!(
                    most < 2e-5,
                    "{name}, {} of seed {seed}, {pooling:?}: {most}",
                    shape.name
                );
            }
        }
    }
}

#[test]
fn batches_give_the_vectors_of_single_texts_bit_for_bit_on_simd() {
    let texts = texts();
    let options = EmbedOptions::default();
    for (shape, seed) in shapes() {
        let (bytes, _) = random_encoder(shape, seed, |_| ());
        for &set in InstructionSet::available() {
            let model = load(&bytes, set);
            let together = embed(&model, &texts, &options);
            for (text, vector) in texts.iter().zip(&together) {
                let alone = embed(&model, std::slice::from_ref(text), &options);
                assert_eq!(
                    alone[0],
                    *vector,
                    "{}, {shape:?}, seed {seed}: {text:?}",
                    set.name()
                );
            }
        }
    }
}

#[test]
fn the_file_says_how_tokens_are_pooled() {
    let texts = texts();
    for (number, pooling) in [(1, Pooling::Mean), (2, Pooling::Cls), (3, Pooling::Last)] {
        let set = |writer: &mut GgufWriter| writer.unsigned("bert.pooling_type", number);
        let model = load(&random_encoder(BERT, 1, set).0, InstructionSet::best());
        let by_file = embed(&model, &texts, &EmbedOptions::default());
        let by_option = embed(
            &model,
            &texts,
            &EmbedOptions::default().with_pooling(pooling),
        );
        assert_eq!(by_file, by_option);
    }
    let model = load(&ranking_encoder().0, InstructionSet::best());
    let error = model.embed(&texts, EmbedOptions::default()).unwrap_err();
    assert!(error.to_string().contains("pooling_type"), "{error}");
}

/// An encoder that ranks texts, its weights and those of its head.
fn ranking_encoder() -> (Vec<u8>, Encoder, [[Vec<f64>; 2]; 2]) {
    let mut head = None;
    let (bytes, encoder) = random_encoder(RANKING, 1, |writer| {
        writer.unsigned("bert.pooling_type", 4);
        head = Some(write_ranking_head(writer, &mut Random(9)));
    });
    (bytes, encoder, head.unwrap())
}

#[test]
fn scores_are_those_of_the_pass_in_f64() {
    let (bytes, encoder, head) = ranking_encoder();
    let texts = ["a b c", "", "the 3 words"];
    let simd = [("SIMD", LoadOptions::default())].into_iter();
    for (name, options) in simd.chain(on_gpus()).filter(|(name, _)| *name != "CUDA") {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let scores = model.rank("q", &texts, RankOptions::default()).unwrap();
        for (text, found) in texts.iter().zip(&scores) {
            let of = |text: &str| model.tokenize(text, false).unwrap();
            let tokens = [vec![2], of("q"), vec![3], of(text), vec![3]].concat();
            let exact = score(&head, &encoder.values(&tokens)[0]);
            let difference = (f64::from(*found) - exact).abs();
            assert!(
                difference < 1e-5,
                "{name}: {text:?}: {found}, exact {exact}"
            );
        }
        let long = "a ".repeat(CONTEXT);
        let options = RankOptions::default;
        let error = model.rank("q", &[&long], options()).unwrap_err();
        assert_eq!(error.code(), "LIMIT_EXCEEDED");
        let cut = model
            .rank("q", &[&long], options().with_truncate(true))
            .unwrap();
        let fits = "a ".repeat(CONTEXT - 4);
        assert_eq!(cut, model.rank("q", &[&fits], options()).unwrap());
    }
    let other = load(&random_encoder(BERT, 1, |_| ()).0, InstructionSet::best());
    let error = other.rank("q", &texts, RankOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("one that ranks texts"),
        "{error}"
    );
    let (bytes, _) = random_encoder(BERT, 1, |writer| {
        writer.unsigned("bert.pooling_type", 4);
        write_ranking_head(writer, &mut Random(9));
    });
    let error = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("several types of tokens"),
        "{error}"
    );
}

#[test]
fn options_cut_and_prompt() {
    let model = load(&random_encoder(BERT, 1, |_| ()).0, InstructionSet::best());
    let options = EmbedOptions::default;
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let whole = embed(&model, &texts(&["query: a b"]), &options());
    let prompted = embed(&model, &texts(&["a b"]), &options().with_prompt("query: "));
    assert_eq!(whole, prompted);

    let short = embed(
        &model,
        &texts(&["query: a b"]),
        &options().with_dimensions(16),
    );
    let norm = whole[0][..16].iter().map(|x| x * x).sum::<f32>().sqrt();
    let exact: Vec<f64> = whole[0][..16].iter().map(|x| f64::from(x / norm)).collect();
    assert!(difference(&short, &[exact]) < 1e-6);
    for dimensions in [0, WIDTH + 1] {
        let error = model.embed(&["a"], options().with_dimensions(dimensions));
        assert_eq!(error.unwrap_err().code(), "INVALID_ARGUMENT");
    }

    let long = "a ".repeat(CONTEXT);
    let error = model.embed(&[&long], options()).unwrap_err().to_string();
    assert!(error.contains("162") && error.contains("160"), "{error}");
    let cut = embed(&model, &texts(&[&long]), &options().with_truncate(true));
    let fits = embed(&model, &texts(&[&"a ".repeat(CONTEXT - 2)]), &options());
    assert_eq!(cut, fits);
    assert!(embed(&model, &[], &options()).is_empty());

    // Fewer tokens than go through the layers together.
    let mut context = LoadOptions::default();
    context.context_length = Some(1);
    let tiny = LanguageModel::from_bytes(random_encoder(BERT, 1, |_| ()).0, context).unwrap();
    assert_eq!(
        tiny.embed(&["a"], options()).unwrap_err().code(),
        "LIMIT_EXCEEDED"
    );
    let cut = embed(&tiny, &texts(&["a", "b"]), &options().with_truncate(true));
    assert!(cut[0] == cut[1] && cut[0].iter().all(|x| x.is_finite()));
}

#[test]
fn methods_that_continue_texts_are_refused() {
    let (bytes, _) = random_encoder(BERT, 1, |_| ());
    let model = load(&bytes, InstructionSet::best());
    let options = GenerateOptions::default;
    let file = Gguf::from_bytes(bytes).unwrap();
    let errors = [
        model.session().map(drop),
        model.complete("a", options()).map(drop),
        model.chat(&[Message::user("a")], options()).map(drop),
        model.render(&[Message::user("a")]).map(drop),
        ForwardPass::new(file, LoadOptions::default()).map(drop),
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT");
        assert!(
            error
                .to_string()
                .contains("an encoder has only `embed` and `rank`"),
            "{error}"
        );
    }
    assert!(!model.explain().to_string().is_empty());
}

#[test]
fn files_with_other_mathematics_are_refused() {
    let vector = |writer: &mut GgufWriter, name: &str| {
        random_tensor(writer, name, &[WIDTH], WeightType::F32, &mut Random(1));
    };
    let refused = |set: &dyn Fn(&mut GgufWriter), expected: &str| {
        let (bytes, _) = random_encoder(BERT, 1, set);
        let error = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(
        &|writer| writer.boolean("bert.attention.causal", true),
        "bert.attention.causal",
    );
    refused(
        &|writer| writer.float("bert.attention.max_alibi_bias", 8.0),
        "bert.attention.max_alibi_bias",
    );
    refused(
        &|writer| vector(writer, "blk.0.attn_q_norm.weight"),
        "blk.0.attn_q_norm.weight",
    );
    refused(
        &|writer| vector(writer, "blk.1.ffn_gate.weight"),
        "blk.1.ffn_gate.weight",
    );
    let missing = metadata(BERT).finish();
    let error = LanguageModel::from_bytes(missing, LoadOptions::default()).unwrap_err();
    assert_eq!(error.code(), "INVALID_MODEL");
}

/// The file `data/encoders/generate.py` writes.
fn cases(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tokens_are_those_of_tokenizers() {
    let all = cases(include_str!("../data/encoders/wordpiece.json"));
    let tokens = all["vocabulary"].as_array().unwrap().iter();
    let tokens: Vec<String> = tokens.map(|token| token.as_str().unwrap().into()).collect();
    let vocabulary = |writer: &mut GgufWriter| write_wordpiece(writer, &tokens);
    let (bytes, _) = random_encoder_of(BERT, tokens.len(), 1, vocabulary);
    let model = load(&bytes, InstructionSet::best());
    for case in all["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ids = model.tokenize(text, false).unwrap();
        assert_eq!(serde_json::json!(ids), case["ids"], "{text:?}");
    }
    // For the npm package's tests, which must get the same.
    if let Ok(folder) = std::env::var("RELAMPAGO_TINY_MODEL") {
        let texts = all["cases"].as_array().unwrap().iter();
        let texts = texts.map(|case| case["text"].as_str().unwrap().to_owned());
        // In UTF-16, whose units JavaScript counts.
        let texts = texts.filter(|text| text.encode_utf16().count() < 60);
        let texts: Vec<String> = texts.collect();
        let vectors = embed(&model, &texts, &EmbedOptions::default());
        let json = serde_json::json!({ "cases": all["cases"], "vectors": vectors });
        std::fs::write(format!("{folder}/encoder.gguf"), bytes).unwrap();
        std::fs::write(format!("{folder}/encoder.json"), json.to_string()).unwrap();
    }
}

/// Compares the tokens of a unigram tokenizer with those of a file.
fn check_unigram(all: &Value) {
    let array = |key: &str| all[key].as_array().unwrap();
    let integers = |key: &str| {
        let values = array(key).iter();
        let values = values.map(|value| value.as_i64().unwrap() as i32);
        values.collect::<Vec<_>>()
    };
    let texts = array("tokens").iter();
    let texts: Vec<&str> = texts.map(|token| token.as_str().unwrap()).collect();
    let scores = array("scores").iter();
    let scores: Vec<f32> = scores.map(|x| x.as_f64().unwrap() as f32).collect();
    let vocabulary = |writer: &mut GgufWriter| {
        writer.string("tokenizer.ggml.model", "t5");
        writer.strings("tokenizer.ggml.tokens", &texts);
        writer.floats("tokenizer.ggml.scores", &scores);
        writer.integers("tokenizer.ggml.token_type", &integers("types"));
        writer.integers("tokenizer.ggml.precompiled_charsmap", &integers("charsmap"));
        writer.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
        writer.unsigned("tokenizer.ggml.unknown_token_id", 0);
        writer.unsigned("tokenizer.ggml.bos_token_id", 1);
        writer.unsigned("tokenizer.ggml.eos_token_id", 2);
    };
    let (bytes, _) = random_encoder_of(BERT, texts.len(), 1, vocabulary);
    let model = load(&bytes, InstructionSet::best());
    for case in array("cases") {
        let text = case["text"].as_str().unwrap();
        let ids = model.tokenize(text, false).unwrap();
        assert_eq!(serde_json::json!(ids), case["ids"], "{text:?}");
    }
    println!("{} texts by a unigram tokenizer", array("cases").len());
    assert_eq!(
        embed(&model, &["a".into()], &EmbedOptions::default()).len(),
        1
    );
}

#[test]
fn tokens_are_those_of_sentencepiece() {
    check_unigram(&cases(include_str!("../data/encoders/unigram.json")));
    if let Some(path) = model_file("unigram.json") {
        check_unigram(&cases(&std::fs::read_to_string(path).unwrap()));
    }
}

/// The cosine of two vectors.
fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let norm = |squares: f64| squares.sqrt();
    let dot: f64 = a.iter().zip(b).map(|(&a, b)| f64::from(a) * b).sum();
    let squares: f64 = a.iter().map(|&a| f64::from(a).powi(2)).sum();
    dot / norm(squares) / norm(b.iter().map(|b| b * b).sum())
}

#[test]
fn minilm_gives_the_vectors_of_a_plain_pass() {
    let Some(path) = model_file("minilm.json") else {
        return;
    };
    let cases = cases(&std::fs::read_to_string(path).unwrap());
    let cases = cases.as_array().unwrap();
    let text = |case: &Value| case["text"].as_str().unwrap().to_owned();
    let devices = [("SIMD", LoadOptions::default())]
        .into_iter()
        .chain(on_gpus());
    for (name, options) in devices.filter(|(name, _)| *name != "CUDA") {
        // A GPU may be one in software.
        let most = if name == "SIMD" { 1000 } else { 50 };
        for (file, least) in [("minilm-f32.gguf", 0.999_99), ("minilm-q8_0.gguf", 0.998)] {
            let model = LanguageModel::load(model_file(file).unwrap(), options.clone()).unwrap();
            for case in cases {
                let mut ids = model.tokenize(&text(case), false).unwrap();
                ids.insert(0, 101);
                ids.push(102);
                assert_eq!(serde_json::json!(ids), case["ids"], "{:?}", text(case));
            }
            let cases: Vec<&Value> = cases
                .iter()
                .filter(|case| case["vector"].is_array())
                .take(most)
                .collect();
            let texts: Vec<String> = cases.iter().map(|case| text(case)).collect();
            let vectors = embed(&model, &texts, &EmbedOptions::default().with_truncate(true));
            let cosines = vectors.iter().zip(&cases).map(|(vector, case)| {
                let exact: Vec<f64> = serde_json::from_value(case["vector"].clone()).unwrap();
                cosine(vector, &exact)
            });
            let cosines: Vec<f64> = cosines.collect();
            let lowest = cosines.iter().copied().fold(f64::INFINITY, f64::min);
            let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
            let (all, low) = (
                texts.len(),
                cosines.iter().filter(|&&cosine| cosine < 0.999),
            );
            let low = low.count();
            println!(
                "{file} on {name}: {all} texts, cosine {lowest} to 1, mean {mean}, {low} below 0.999"
            );
            assert!(lowest >= least);
        }
    }
}
