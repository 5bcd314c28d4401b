//! Adapters that a model learns.

use super::lora::{Part, parts};
use super::random_models::{
    GEMMA, LLAMA, Oracle, PHI, QWEN2, QWEN3_MOE, SHAPES, Shape, WIDTH, random_model,
};
use super::{is_exhaustive, load, model_file, on_gpus};
use crate::support::Random;
use relampago::InstructionSet;
use relampago::llm::{
    GenerateOptions, Gguf, GgufWriter, LanguageModel, LoadOptions, LoraOptions, Message, Progress,
    ScaledLora, Schedule, TuneExample, TuneOptions, TunedLora,
};
use std::ops::ControlFlow;

const TEXT: &str = "hello 12 naïve hello 東京";
const RANK: usize = 5;
const ALPHA: f32 = 10.0;
const NAMES: [(&str, &str); 9] = [
    ("attn_q", "q_proj"),
    ("attn_k", "k_proj"),
    ("attn_v", "v_proj"),
    ("attn_qkv", "qkv_proj"),
    ("attn_output", "o_proj"),
    ("ffn_gate", "gate_proj"),
    ("ffn_up", "up_proj"),
    ("ffn_up", "gate_up_proj"),
    ("ffn_down", "down_proj"),
];

/// The architectures that can be tuned.
fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES.into_iter().filter(|shape| shape.experts.is_none())
}

/// The tokens of [`TEXT`].
fn text_tokens(model: &LanguageModel, shape: Shape) -> Vec<u32> {
    let gemma = shape.name.starts_with("gemma");
    let begin = gemma.then_some(2).into_iter();
    begin.chain(model.tokenize(TEXT, false).unwrap()).collect()
}

/// The mean of `−ln p` of all tokens after the first one.
fn loss_of(logits: &[Vec<f64>], tokens: &[u32]) -> f64 {
    let losses = logits.iter().zip(&tokens[1..]).map(|(logits, &token)| {
        let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|x| (x - highest).exp()).sum();
        highest + sum.ln() - logits[token as usize]
    });
    losses.sum::<f64>() / (tokens.len() - 1) as f64
}

fn all_linear() -> TuneOptions {
    TuneOptions::default()
        .with_rank(RANK, ALPHA)
        .with_targets(["all-linear"])
        .with_epochs(1)
}

fn logits_with(model: &LanguageModel, lora: ScaledLora) -> Vec<f32> {
    let mut session = model.session().unwrap();
    session.set_lora(&[lora]).unwrap();
    session.logits(&[1, 2, 3, 4, 5]).unwrap()
}

#[test]
fn the_first_loss_is_that_of_the_model() {
    for shape in shapes() {
        let (bytes, oracle) = random_model(shape, 3);
        let model = load(&bytes, InstructionSet::best());
        let tokens = text_tokens(&model, shape);
        let logits = model.session().unwrap().logits(&tokens).unwrap();
        let logits = logits.chunks(logits.len() / tokens.len());
        let logits = logits.map(|row| row.iter().map(|&x| f64::from(x)).collect());
        let inferred = loss_of(&logits.collect::<Vec<_>>(), &tokens);
        let exact = loss_of(&oracle.logits(&tokens), &tokens);
        let tuned = model.tune(&[TEXT.into()], all_linear()).unwrap();
        let loss = f64::from(tuned.losses()[0]);
        let name = shape.name;
        assert!(
            (loss - inferred).abs() < 2e-6 * inferred,
            "{name}: {loss}, inferred {inferred}"
        );
        assert!(
            (loss - exact).abs() < 1e-5 * exact,
            "{name}: {loss}, exact {exact}"
        );
    }
}

/// Adds `scale · (B + step · D) · (A + step · C)` to an oracle's weights, for matrices of random directions.
fn moved(shape: Shape, parts: &[Part], directions: &[Part], name: &str, step: f64) -> Oracle {
    let (_, mut oracle) = random_model(shape, 3);
    for ((tensor, _, a, b), (_, _, to_a, to_b)) in parts.iter().zip(directions) {
        let (block, own) = tensor["blk.".len()..].split_once('.').unwrap();
        let step = if own == name { step } else { 0.0 };
        let along = |x: &[f32], to: &[f32]| -> Vec<f64> {
            let both = x.iter().zip(to);
            both.map(|(x, to)| f64::from(*x) + step * f64::from(*to))
                .collect()
        };
        let (a, b) = (along(a, to_a), along(b, to_b));
        let mut product = Vec::new();
        for b in b.chunks_exact(RANK) {
            let mut row = vec![0.0; WIDTH];
            for (b, a) in b.iter().zip(a.chunks_exact(WIDTH)) {
                let scale = f64::from(ALPHA) / RANK as f64 * b;
                row.iter_mut().zip(a).for_each(|(to, a)| *to += scale * a);
            }
            product.extend(row);
        }
        oracle.add(block.parse().unwrap(), own, &product);
    }
    oracle
}

/// Returns the gradient of a matrix after one step that nothing bounded: ten times the mean of gradients.
fn gradient(state: &Gguf, tensor: &str, ending: &str) -> Vec<f32> {
    let name = format!("{tensor}.weight.{ending}.mean");
    let mean = state.data(state.tensor(&name).unwrap_or_else(|| panic!("{name}")));
    let (words, _) = mean.as_chunks::<4>();
    words
        .iter()
        .map(|&word| 10.0 * f32::from_le_bytes(word))
        .collect()
}

fn check_gradients(shape: Shape, options: LoadOptions) {
    let random = &mut Random(5);
    let (bytes, _) = random_model(shape, 3);
    let model = LanguageModel::from_bytes(bytes, options).unwrap();
    let tokens = text_tokens(&model, shape);
    let (parts, directions) = (parts(shape, random), parts(shape, random));
    let mut tuning = all_linear().with_resume(super::lora::gguf(shape, &parts));
    tuning.max_norm = 1e9;
    let tuned = model.tune(&[TEXT.into()], tuning).unwrap();
    let state = Gguf::from_bytes(tuned.state().to_vec()).unwrap();
    for (name, _) in Oracle::linear(shape) {
        let step = 1e-3;
        let loss = |step| {
            let oracle = moved(shape, &parts, &directions, name, step);
            loss_of(&oracle.logits(&tokens), &tokens)
        };
        let exact = (loss(step) - loss(-step)) / (2.0 * step);
        let (mut found, mut size) = (0.0, 0.0);
        for (tensor, _, a, b) in directions
            .iter()
            .filter(|(tensor, ..)| tensor.ends_with(name))
        {
            for (ending, direction) in [("lora_a", a), ("lora_b", b)] {
                let gradient = gradient(&state, tensor, ending);
                for (g, d) in gradient.iter().zip(direction) {
                    let [g, d] = [*g, *d].map(f64::from);
                    found += g * d;
                    size += (g * d) * (g * d);
                }
            }
        }
        let what = format!("{} {name}", shape.name);
        let bound = 1e-3 * size.sqrt() + 1e-8;
        assert!(
            (found - exact).abs() < bound,
            "{what}: {found}, exact {exact}, bound {bound}"
        );
    }
}

#[test]
fn gradients_are_those_of_differences_in_f64() {
    shapes().for_each(|shape| check_gradients(shape, LoadOptions::default()));
}

#[test]
fn gradients_on_a_gpu_are_those_of_differences_in_f64() {
    for (_, options) in on_gpus() {
        for shape in [LLAMA, QWEN2, GEMMA] {
            check_gradients(shape, options.clone());
        }
    }
}

#[test]
fn an_example_is_learned_and_saved_as_gguf_and_for_peft() {
    for shape in [LLAMA, PHI] {
        let (bytes, _) = random_model(shape, 1);
        let model = load(&bytes, InstructionSet::best());
        let options = all_linear().with_epochs(12).with_learning_rate(1e-2);
        let tuned = model.tune(&[TEXT.into()], options).unwrap();
        let losses = tuned.losses();
        assert!(losses[11] < losses[0] - 0.3, "{losses:?}");
        let own = logits_with(&model, tuned.lora().clone().into());
        let of_gguf = model.lora_from_bytes(tuned.to_gguf().unwrap(), LoraOptions::default());
        assert_eq!(logits_with(&model, of_gguf.unwrap().into()), own);
        let folder = std::env::temp_dir().join(format!("relampago-tuned-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("adapter_model.safetensors");
        std::fs::write(&path, tuned.to_safetensors().unwrap()).unwrap();
        std::fs::write(folder.join("adapter_config.json"), tuned.adapter_config()).unwrap();
        let of_peft = model.load_lora(&path, LoraOptions::default()).unwrap();
        assert_eq!(logits_with(&model, of_peft.into()), own, "{}", shape.name);
        std::fs::remove_dir_all(folder).unwrap();
        let config: serde_json::Value = serde_json::from_str(&tuned.adapter_config()).unwrap();
        let modules = config["target_modules"].as_array().unwrap();
        let is_known = |name: &serde_json::Value| NAMES.iter().any(|(_, peft)| name == peft);
        assert_eq!(modules.len(), Oracle::linear(shape).len());
        assert!(modules.iter().all(is_known), "{modules:?}");
    }
}

#[test]
fn answers_are_learned_and_nothing_else() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let messages = [Message::user("hello"), Message::assistant("12 hello")];
    let prompt = model.conversation(&messages[..1]).unwrap();
    // The template writes the role after the prompt, so that the model learns it, too.
    let all = model.conversation(&messages).unwrap();
    assert!(all.starts_with(&prompt) && all.ends_with(&[259]));
    let logits = model.session().unwrap().logits(&all).unwrap();
    let logits = logits
        .chunks(logits.len() / all.len())
        .skip(prompt.len() - 1);
    let logits = logits.map(|row| row.iter().map(|&x| f64::from(x)).collect());
    let exact = loss_of(&logits.collect::<Vec<_>>(), &all[prompt.len() - 1..]);
    let tuned = model.tune(&[messages.into()], all_linear()).unwrap();
    let loss = f64::from(tuned.losses()[0]);
    assert!((loss - exact).abs() < 1e-5 * exact, "{loss}, exact {exact}");
}

/// Examples in one row do not see each other: the loss is the mean of their tokens' losses.
#[test]
fn examples_that_share_a_row_have_the_losses_of_their_own() {
    let texts = ["hello 12 o", "naïve 東京 12", "hello hello"];
    for shape in [LLAMA, GEMMA] {
        let (bytes, _) = random_model(shape, 1);
        let model = load(&bytes, InstructionSet::best());
        let loss = |texts: &[&str]| {
            let examples: Vec<_> = texts.iter().map(|&text| text.into()).collect();
            let tuned = model.tune(&examples, all_linear()).unwrap();
            f64::from(tuned.losses()[0])
        };
        let (mut sum, mut count) = (0.0, 0);
        for text in texts {
            let own = model.tokenize(text, false).unwrap().len();
            let own = if shape.name == "llama" { own - 1 } else { own };
            sum += loss(&[text]) * own as f64;
            count += own;
        }
        let (mean, shared) = (sum / count as f64, loss(&texts));
        assert!(
            (shared - mean).abs() < 1e-5 * mean,
            "{shared}, by themselves {mean}"
        );
    }
}

/// The examples that `pkg-tests/app/tune.js` teaches a model, and what it learns natively.
pub(super) fn for_package(model: &LanguageModel) -> serde_json::Value {
    let conversation = [Message::user("hello"), Message::assistant("12 o")];
    let examples = [conversation.into(), "naïve".into(), "東京 hello".into()];
    let mut options = all_linear().with_epochs(8).with_learning_rate(1e-2);
    options.batch = 1;
    options.held_back = 0.4;
    options.seed = 3;
    let tuned = model.tune(&examples, options).unwrap();
    let mut adapted = GenerateOptions::default().with_lora([tuned.lora().clone().into()]);
    adapted.max_tokens = 8;
    serde_json::json!({
        "losses": tuned.losses(),
        "heldBackLosses": tuned.held_back_losses(),
        "text": model.complete("hello", adapted).unwrap().text().unwrap(),
    })
}

#[test]
fn lines_of_files_are_examples() {
    let read = |line: &str| TuneExample::from_json(line);
    assert_eq!(read(r#"{"text": "hello"}"#).unwrap(), "hello".into());
    let messages = [Message::user("hello"), Message::assistant("12")];
    let list: Vec<String> = messages.iter().map(Message::to_json).collect();
    let line = format!(r#"{{"messages": [{}]}}"#, list.join(", "));
    assert_eq!(read(&line).unwrap(), messages.into());
    for line in [
        "hello",
        "[]",
        "{}",
        r#"{"text": 5}"#,
        r#"{"messages": "hello"}"#,
        r#"{"text": "a", "messages": []}"#,
    ] {
        let error = read(line).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{line}: {error}");
    }
}

#[test]
fn tuning_goes_on_where_it_ended() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let examples = ["hello", "12 o", "naïve", "東京 hello"].map(TuneExample::from);
    let options = || {
        let mut options = all_linear().with_epochs(3);
        options.batch = 1;
        options.held_back = 0.25;
        options
    };
    let whole = model.tune(&examples, options()).unwrap();
    let steps = whole.losses().len();
    assert_eq!(whole.held_back_losses().len(), 3);
    let until = move |last: usize| {
        move |progress: &Progress| {
            assert!(progress.tokens_per_second > 0.0 && progress.steps == steps);
            match progress.step {
                step if step == last => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    };
    let begun = model
        .tune(&examples, options().with_on_step(until(1)))
        .unwrap();
    assert_eq!(begun.losses().len(), 1);
    let rest = options().with_resume(begun.state().to_vec());
    let rest = model.tune(&examples, rest).unwrap();
    assert_eq!([begun.losses(), rest.losses()].concat(), whole.losses());
    assert_eq!(rest.to_gguf().unwrap(), whole.to_gguf().unwrap());
    // The adapter has no moments and no number of steps.
    let further = options().with_resume(whole.to_gguf().unwrap());
    let further = model.tune(&examples, further).unwrap();
    assert_eq!(further.losses().len(), steps);
    assert!(further.losses()[0] < whole.losses()[0]);
}

#[test]
fn options_and_models_that_do_not_fit_are_refused() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let refused = |model: &LanguageModel, example: TuneExample, options: TuneOptions| {
        model.tune(&[example], options).unwrap_err().to_string()
    };
    let text = || TuneExample::from(TEXT);
    let unknown = all_linear().with_targets(["q_proj", "lm_head"]);
    let message = refused(&model, text(), unknown);
    assert!(
        message.contains("`lm_head`") || message.contains("is lm_head"),
        "{message}"
    );
    let mut beyond = all_linear();
    beyond.layers = Some(1..3);
    assert!(refused(&model, text(), beyond).contains("the 2 layers"));
    assert!(refused(&model, text(), all_linear().with_rank(0, 1.0)).contains("rank"));
    assert!(
        refused(&model, text(), all_linear().with_learning_rate(f32::NAN))
            .contains("learning_rate")
    );
    let steep = all_linear().with_rank(RANK, 1e30);
    assert!(refused(&model, text(), steep).contains("the norm of its gradients inf"));
    let far = all_linear().with_epochs(2).with_learning_rate(1e30);
    assert!(refused(&model, text(), far).contains("the loss is NaN at step 1"));
    assert!(refused(&model, "h".into(), all_linear()).contains("none to learn"));
    let question = TuneExample::from([Message::user("hello")]);
    assert!(refused(&model, question, all_linear()).contains("none to learn"));
    let (mixture, _) = random_model(QWEN3_MOE, 1);
    let mixture = load(&mixture, InstructionSet::best());
    assert!(refused(&mixture, text(), all_linear()).contains("qwen3moe"));
    let other = all_linear().with_rank(3, 6.0);
    let tuned: TunedLora = model.tune(&[text()], other).unwrap();
    for bytes in [tuned.to_gguf().unwrap(), tuned.state().to_vec()] {
        let error = model
            .tune(&[text()], all_linear().with_resume(bytes))
            .unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
    }
    let nothing = model.tune(&[], all_linear()).unwrap_err();
    assert_eq!(nothing.code(), "EMPTY");
}

/// Adapters of rank 8 for the queries and values of `SmolLM2`, with the first matrices of `tests/data/tuning/generate.py`.
fn first_adapter() -> Vec<u8> {
    let mut writer = GgufWriter::default();
    writer.string("general.type", "adapter");
    writer.string("general.architecture", "llama");
    writer.string("adapter.type", "lora");
    writer.float("adapter.lora.alpha", 16.0);
    for layer in 0..30 {
        for (part, (name, rows)) in [("attn_q", 576), ("attn_v", 192)].into_iter().enumerate() {
            let seed = 2 * layer + part;
            let value = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f64 / 1009.0 - 0.5;
            let a: Vec<f32> = (0..8 * 576).map(|at| (value(at) * 0.08) as f32).collect();
            let name = format!("blk.{layer}.{name}.weight.lora");
            writer
                .f32_tensor(&format!("{name}_a"), &[576, 8], &a)
                .unwrap();
            writer
                .f32_tensor(&format!("{name}_b"), &[8, rows], &vec![0.0; 8 * rows])
                .unwrap();
        }
    }
    writer.finish()
}

/// Four texts of at least 256 tokens.
fn licence() -> [String; 4] {
    let lines: Vec<&str> = include_str!("../../LICENSE-APACHE")
        .split_inclusive('\n')
        .collect();
    let len = lines.len() / 4;
    [0, 1, 2, 3].map(|part| lines[part * len..(part + 1) * len].concat())
}

/// The losses of `PyTorch` and PEFT, on the dequantised weights. The first steps suffice but for exhaustive tests.
#[test]
fn losses_are_those_of_peft() {
    let Some(path) = model_file("smollm2-135m.gguf") else {
        return;
    };
    let model = LanguageModel::load(path, LoadOptions::default()).unwrap();
    let tokens = include_str!("../data/tuning/tokens.txt").lines();
    for (text, tokens) in licence().iter().zip(tokens) {
        let own = model.tokenize(text, false).unwrap();
        let own: Vec<String> = own[..256].iter().map(u32::to_string).collect();
        assert_eq!(own.join(" "), tokens);
    }
    let losses = include_str!("../data/tuning/losses.txt").lines();
    let losses: Vec<f32> = losses.map(|loss| loss.parse().unwrap()).collect();
    let steps = if is_exhaustive() { losses.len() } else { 2 };
    let mut options = TuneOptions::default()
        .with_epochs(steps)
        .with_learning_rate(1e-3)
        .with_resume(first_adapter());
    options.schedule = Schedule::Constant;
    let tuned = model
        .tune(&licence().map(TuneExample::from), options)
        .unwrap();
    let mut largest: f32 = 0.0;
    for (step, (loss, wanted)) in tuned.losses().iter().zip(losses).enumerate() {
        largest = largest.max((loss / wanted - 1.0).abs());
        assert!(
            largest < 0.01,
            "step {step}: {loss}, but PEFT's is {wanted}"
        );
    }
    println!("{steps} losses differ from PEFT's by at most {largest:.1e}");
}

/// The losses that `pkg-tests/tests/llm-tune.test.mjs` expects of the npm package.
#[test]
fn losses_of_seeds_stay() {
    let Some(path) = model_file("smollm2-135m.gguf") else {
        return;
    };
    let model = LanguageModel::load(path, LoadOptions::default()).unwrap();
    let losses = include_str!("../data/tuning/seeded.txt").lines();
    let losses: Vec<f32> = losses.map(|loss| loss.parse().unwrap()).collect();
    let mut options = TuneOptions::default()
        .with_epochs(losses.len())
        .with_learning_rate(1e-3);
    options.schedule = Schedule::Constant;
    let tuned = model
        .tune(&licence().map(TuneExample::from), options)
        .unwrap();
    for (loss, wanted) in tuned.losses().iter().zip(losses) {
        assert!((loss / wanted - 1.0).abs() < 1e-4, "{loss}, not {wanted}");
    }
}

/// A model that was taught 20 answers gives them.
#[test]
fn taught_answers_are_given() {
    let Some(path) = model_file("smollm2-135m.gguf").filter(|_| is_exhaustive()) else {
        return;
    };
    let model = LanguageModel::load(path, LoadOptions::default()).unwrap();
    let pairs = include_str!("../data/tuning/pairs.txt").lines();
    let pairs: Vec<[&str; 2]> = pairs
        .map(|pair| pair.split_once('|').expect("two texts").into())
        .collect();
    assert_eq!(pairs.len(), 20);
    let example = |&[question, answer]: &[&str; 2]| {
        TuneExample::from([Message::user(question), Message::assistant(answer)])
    };
    let examples: Vec<_> = pairs.iter().map(example).collect();
    let options = TuneOptions::default()
        .with_targets(["all-linear"])
        .with_epochs(8)
        .with_learning_rate(3e-3);
    let tuned = model.tune(&examples, options).unwrap();
    let ask = |question: &str, lora: Vec<ScaledLora>| {
        let mut options = GenerateOptions::default().with_lora(lora);
        options.max_tokens = 24;
        let answer = model.chat(&[Message::user(question)], options);
        answer.unwrap().text().unwrap()
    };
    for [question, answer] in pairs {
        assert_eq!(
            ask(question, vec![tuned.lora().clone().into()]),
            answer,
            "{question}"
        );
        assert_ne!(ask(question, Vec::new()), answer, "{question}");
    }
}
