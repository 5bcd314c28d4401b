//! Sessions that are copied, saved and cut; embeddings, probabilities, and layers by themselves.

use super::allocations::measured;
use super::random_models::{GEMMA, LLAMA, WIDTH, random_model};
use super::{assert_close, load, on_gpus, tokens};
use crate::support::Random;
use relampago::llm::{
    EmbedOptions, FinishReason, ForwardPass, GenerateOptions, Generation, Gguf, LanguageModel,
    LoadOptions, Message, Pooling, QkvLora,
};
use relampago::{Backend, GpuDevice, runtime};
use relampago::{Error, InstructionSet};

/// Options for SIMD and for a GPU by each interface.
pub(super) fn backends() -> impl Iterator<Item = LoadOptions> {
    let gpus = on_gpus().into_iter().map(|(_, options)| options);
    [LoadOptions::default()].into_iter().chain(gpus)
}

#[test]
fn forks_and_saved_sessions_go_on_alike() {
    let (bytes, oracle) = random_model(GEMMA, 0);
    let tokens = tokens(12, &mut Random(1));
    let exact = oracle.logits(&tokens);
    let mut saved = Vec::new();
    for options in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let mut session = model.session().unwrap();
        session.prefill(&tokens[..10]).unwrap();
        saved.push(session.save().unwrap());
        let mut fork = session.fork().unwrap();
        let original = session.decode(tokens[10]).unwrap();
        assert_eq!(fork.tokens(), &tokens[..10]);
        fork.decode(3).unwrap();
        fork.rewind(10).unwrap();
        assert_eq!(fork.decode(tokens[10]).unwrap(), original);
        let last = session.decode(tokens[11]).unwrap();
        assert_close(&last, &exact[11], "after a fork");
        // Also those that the other back-end saved.
        for bytes in &saved {
            let mut loaded = model.load_session(bytes, &[]).unwrap();
            assert_eq!(loaded.tokens(), &tokens[..10]);
            let logits = loaded.logits(&tokens[10..]).unwrap();
            assert_close(&logits, &exact[10..].concat(), "loaded");
        }
    }
}

#[test]
fn damaged_and_foreign_sessions_are_refused() {
    let (bytes, _) = random_model(LLAMA, 0);
    let model = load(&bytes, InstructionSet::best());
    let mut session = model.session().unwrap();
    session.prefill(&[1, 2, 3]).unwrap();
    let saved = session.save().unwrap();
    let code =
        |model: &LanguageModel, bytes: &[u8]| model.load_session(bytes, &[]).unwrap_err().code();
    for len in (0..saved.len()).step_by(37) {
        assert_eq!(code(&model, &saved[..len]), "INVALID_MODEL");
    }
    let mut other = saved.clone();
    other[16..20].fill(0xff);
    assert_eq!(code(&model, &other), "INVALID_MODEL");
    for at in (28..saved.len()).step_by(5) {
        let mut other = saved.clone();
        other[at] ^= 1;
        assert_eq!(code(&model, &other), "INVALID_MODEL");
    }
    let (bytes, _) = random_model(LLAMA, 1);
    assert_eq!(
        code(&load(&bytes, InstructionSet::best()), &saved),
        "INVALID_MODEL"
    );
    let mut options = LoadOptions::default();
    options.context_length = Some(2);
    let (bytes, _) = random_model(LLAMA, 0);
    let short = LanguageModel::from_bytes(bytes, options).unwrap();
    assert_eq!(code(&short, &saved), "LIMIT_EXCEEDED");
}

#[test]
fn removed_tokens_were_never_there() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let tokens = tokens(9, &mut Random(2));
    let mut session = model.session().unwrap();
    session.prefill(&tokens).unwrap();
    let rest = [&tokens[..2], &tokens[5..]].concat();
    let logits = session.remove(2..5).unwrap();
    assert_eq!(session.tokens(), rest);
    assert_close(&logits, oracle.logits(&rest).last().unwrap(), "removed");
    assert_eq!(session.remove(3..6).unwrap_err().code(), "INVALID_ARGUMENT");
    assert_eq!(session.tokens(), rest);
}

#[test]
fn embeddings_are_pooled_values_after_the_last_norm() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let text = "hello, world";
    for options in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let tokens = model.tokenize(text, false).unwrap();
        let hidden = oracle.hidden(&tokens);
        let mean: Vec<f64> = (0..WIDTH)
            .map(|i| hidden.iter().map(|row| row[i]).sum::<f64>() / hidden.len() as f64)
            .collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        let unit: Vec<f64> = mean.iter().map(|x| x / length).collect();
        let mut options = EmbedOptions::default();
        let vectors = model.embed(&[text, "other"], options.clone()).unwrap();
        assert_eq!(vectors.len(), 2);
        assert_close(&vectors[0], &unit, "mean");
        options.pooling = Some(Pooling::Last);
        options.normalize = false;
        let vectors = model.embed(&[text], options.clone()).unwrap();
        assert_close(&vectors[0], hidden.last().unwrap(), "last");
        assert_eq!(
            model.embed(&[""], options.clone()).unwrap_err().code(),
            "EMPTY"
        );
        let long = "hel".repeat(257);
        assert_eq!(
            model.embed(&[long], options).unwrap_err().code(),
            "LIMIT_EXCEEDED"
        );
    }
}

#[test]
fn probabilities_are_those_of_the_logits() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 4;
    options.logprobs = Some(3);
    options.sampling.temperature = 2.0;
    options.sampling.seed = 3;
    let mut answer = model.complete("hello", options).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    let mut session = model.session().unwrap();
    let prompt = model.tokenize("hello", false).unwrap();
    let mut logits = session.prefill(&prompt).unwrap();
    assert_eq!(answer.logprobs().len(), answer.tokens().len());
    for (&token, logprobs) in answer.tokens().iter().zip(answer.logprobs()) {
        let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        let logprob = |token: u32| f64::from(logits[token as usize]) - total.ln();
        assert_eq!(logprobs.chosen.token, token);
        assert_eq!(logprobs.top.len(), 3);
        let mut order: Vec<u32> = (0..logits.len() as u32).collect();
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        for (candidate, &token) in logprobs.top.iter().zip(&order) {
            assert_eq!(candidate.token, token);
            assert!((f64::from(candidate.logprob) - logprob(token)).abs() < 1e-5);
        }
        assert!((f64::from(logprobs.chosen.logprob) - logprob(token)).abs() < 1e-5);
        logits = session.decode(token).unwrap();
    }
}

fn finish(answer: Result<Generation<'_>, Error>) -> (String, Vec<u32>, Result<(), Error>) {
    let (mut text, mut answer) = (String::new(), answer.unwrap());
    loop {
        match answer.next() {
            Some(Ok(piece)) => text.push_str(&piece),
            Some(Err(error)) => return (text, answer.tokens().to_vec(), Err(error)),
            None => return (text, answer.tokens().to_vec(), Ok(())),
        }
    }
}

#[test]
fn answers_go_on_after_tokens_that_exist() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 24;
    options.sampling.temperature = 3.0;
    options.sampling.seed = 11;
    let (whole, tokens, _) = finish(model.complete("hello", options.clone()));
    let mut before = String::new();
    for cut in 0..tokens.len() {
        options.after = tokens[..cut].to_vec();
        let (text, all, _) = finish(model.complete("hello", options.clone()));
        assert_eq!(all, tokens, "after {cut}");
        let returned = whole.strip_suffix(&text).unwrap();
        assert!(returned.starts_with(&before), "after {cut}");
        before = returned.to_owned();
    }
}

/// The first token may begin a stop string: its text is none of the answer, and the stop string counts.
#[test]
fn text_of_tokens_that_exist_is_no_part_of_the_answer() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.stop = vec!["\n\n".to_owned(), "::".to_owned()];
    for (before, next, expected, reason) in [
        ("Answer:\n", "Y", "YY", FinishReason::Length),
        ("Answer:", "Y", "YY", FinishReason::Length),
        ("Answer:\n", "\n", "", FinishReason::Stop),
        ("Answer", ":", "", FinishReason::Stop),
        ("Answer:\n\nmore", "Y", "", FinishReason::Stop),
    ] {
        options.after = model.tokenize(before, false).unwrap();
        options.max_tokens = options.after.len() + 2;
        let token = model.tokenize(next, false).unwrap()[0];
        options.sampling.logit_bias = vec![(token, 1e9)];
        let mut answer = model.complete("hello", options.clone()).unwrap();
        let text: String = answer.by_ref().map(Result::unwrap).collect();
        assert_eq!(text, expected, "{before:?}");
        assert_eq!(answer.finish_reason(), Some(reason), "{before:?}");
    }
}

#[cfg(feature = "gpu")]
#[test]
fn answers_go_on_after_a_lost_device() {
    let gpu = || GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let (bytes, _) = random_model(LLAMA, 1);
    let (mut load, device) = (LoadOptions::default(), gpu());
    load.device = Some(device.clone());
    let mut model = LanguageModel::from_bytes(bytes, load).unwrap();
    let mut options = GenerateOptions::default();
    options.max_tokens = 12;
    let (whole, tokens, _) = finish(model.complete("hello", options.clone()));
    let mut answer = model.complete("hello", options.clone()).unwrap();
    let mut text = answer.next().unwrap().unwrap();
    device.as_wgpu().unwrap().destroy();
    let error = answer.find_map(|piece| match piece {
        Ok(piece) => {
            text.push_str(&piece);
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error.unwrap().code(), "DEVICE_LOST");
    options.after = answer.tokens().to_vec();
    assert!(options.after.len() < tokens.len());
    model.move_to(&gpu()).unwrap();
    let (rest, all, end) = finish(model.complete("hello", options));
    end.unwrap();
    assert_eq!(all, tokens);
    assert_eq!(text + &rest, whole);
}

#[test]
fn layers_by_themselves_are_the_whole_pass() {
    for shape in [LLAMA, GEMMA] {
        let (bytes, oracle) = random_model(shape, 0);
        let tokens = tokens(140, &mut Random(4));
        let exact = oracle.logits(&tokens);
        for options in backends() {
            let file = Gguf::from_bytes(bytes.clone()).unwrap();
            let mut pass = ForwardPass::new(file, options).unwrap();
            let layers = pass.layers();
            let rows = pass.embed(&tokens).unwrap();
            let (first, last) = rows.split_at(139 * pass.width());
            let mut rows = first.to_vec();
            for layer in 0..layers {
                rows = pass.forward(layer..layer + 1, &rows).unwrap();
            }
            assert_close(
                &pass.logits(&rows).unwrap(),
                &exact[..139].concat(),
                "one by one",
            );
            let last = pass.forward(0..layers, last).unwrap();
            assert_close(&pass.logits(&last).unwrap(), &exact[139], "a stack");
            let ones = QkvLora::new(1, 1.0).q(vec![0.01; WIDTH], vec![0.01; WIDTH]);
            pass.set_qkv_lora(&[(0, ones)]).unwrap();
            let adapted = pass.forward(0..layers, first).unwrap();
            assert_ne!(adapted, rows);
            pass.set_qkv_lora(&[]).unwrap();
            pass.forward(0..1, &rows[..WIDTH]).unwrap();
            let mut code = |layers, rows: &[f32]| pass.forward(layers, rows).unwrap_err().code();
            assert_eq!(code(0..2, &rows[..WIDTH]), "INVALID_ARGUMENT");
            assert_eq!(code(0..0, &rows[..WIDTH]), "INVALID_ARGUMENT");
            assert_eq!(code(layers..layers + 1, &rows[..WIDTH]), "INVALID_ARGUMENT");
            assert_eq!(code(0..1, &rows[..5]), "LENGTH_MISMATCH");
            assert_eq!(code(1..2, &vec![0.0; 257 * WIDTH]), "LIMIT_EXCEEDED");
            assert_eq!(pass.embed(&[5000]).unwrap_err().code(), "INVALID_ARGUMENT");
        }
    }
}

#[test]
fn caches_grow_with_the_tokens_and_stay_right() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let mut options = LoadOptions::default();
    // The memory of this thread is measured.
    options.threads = Some(1);
    let model = LanguageModel::from_bytes(bytes, options).unwrap();
    let tokens = tokens(150, &mut Random(9));
    let exact = oracle.logits(&tokens);
    let (session, at_first) = measured(|| model.session().unwrap());
    assert!(at_first.peak < 20_000, "{at_first:?}");
    let mut session = session;
    session.prefill(&tokens[..100]).unwrap();
    // The keys of a layer for the whole context of 256 tokens.
    let keys = model.info().session_bytes / 4;
    for (position, &token) in tokens.iter().enumerate().skip(100) {
        let (logits, allocated) = measured(|| session.decode(token).unwrap());
        assert_close(&logits, &exact[position], &format!("position {position}"));
        let grows = allocated.largest >= keys;
        assert_eq!(grows, position == 128, "position {position}: {allocated:?}");
    }
    // Copies have room for other numbers of tokens than the first one.
    let loaded = model.load_session(&session.save().unwrap(), &[]);
    let mut copies = [session.fork().unwrap(), loaded.unwrap()];
    session.rewind(149).unwrap();
    assert_close(
        &session.decode(tokens[149]).unwrap(),
        &exact[149],
        "rewound",
    );
    let next = session.decode(7).unwrap();
    for copy in &mut copies {
        assert_eq!(copy.decode(7).unwrap(), next);
    }
}

#[test]
fn sessions_of_several_threads_do_not_disturb_each_other() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    for options in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let name = format!("{:?}", model.info().backend);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (model, oracle, name) = (&model, &oracle, &name);
                scope.spawn(move || {
                    let tokens = tokens(40, &mut Random(seed));
                    let exact = oracle.logits(&tokens).concat();
                    for round in 0..3 {
                        // More logits than a GPU computes at a time.
                        let logits = model.session().unwrap().logits(&tokens).unwrap();
                        assert_close(&logits, &exact, &format!("{name}, {seed}, {round}"));
                    }
                });
            }
        });
    }
}

#[test]
fn sessions_answer_conversations_turn_by_turn() {
    let (bytes, _) = random_model(LLAMA, 1);
    for options in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
        let mut generate = GenerateOptions::default();
        generate.max_tokens = 6;
        let mut session = model.session().unwrap();
        let mut messages = Vec::new();
        for turn in ["hello", "he", "hel"] {
            messages.push(Message::user(turn));
            let whole = finish(model.chat(&messages, generate.clone()));
            let mut answer = session.chat(&messages, generate.clone()).unwrap();
            let pieces: Result<String, _> = answer.by_ref().collect();
            let (prompt, tokens) = (answer.prompt_tokens(), answer.tokens().to_vec());
            assert_eq!((pieces.unwrap(), &tokens), (whole.0, &whole.1));
            let read = session.tokens().to_vec();
            assert!(
                read.len() >= prompt + tokens.len() - 1,
                "{prompt} + {tokens:?}"
            );
            assert_eq!(read[prompt..], tokens[..read.len() - prompt]);
            messages.push(Message::assistant("hello"));
        }
        // What does not fit changes nothing but what is not in common.
        let long = "x".repeat(model.context_length() + 1);
        let error = session.complete(&long, generate.clone()).unwrap_err();
        assert_eq!(error.code(), "LIMIT_EXCEEDED");
        let text = session.complete("hello", generate.clone()).unwrap().text();
        assert_eq!(text.unwrap(), finish(model.complete("hello", generate)).0);
    }
}

/// Returns a value that executors of several threads may move.
fn sent<T: Send>(value: T) -> T {
    value
}

#[test]
fn answers_are_generated_without_blocking() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut options = GenerateOptions::default();
    options.max_tokens = 8;
    let wanted = finish(model.complete("hello", options.clone()));
    let answer = async {
        let mut answer = model.complete_async("hello", options.clone()).await?;
        let mut text = String::new();
        while let Some(piece) = answer.next_async().await {
            text.push_str(&piece?);
        }
        let rest = model.complete_async("hello", options.clone()).await?;
        assert_eq!(rest.text_async().await?, text);
        Ok::<_, Error>((text, answer.tokens().to_vec()))
    };
    let (text, tokens) = runtime::block_on(sent(answer)).unwrap();
    assert_eq!((text, tokens), (wanted.0, wanted.1));
}

#[test]
fn options_with_tokens_that_do_not_exist_are_refused() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let refusal = |change: &dyn Fn(&mut GenerateOptions)| {
        let mut options = GenerateOptions::default();
        change(&mut options);
        model.complete("hello", options).unwrap_err().to_string()
    };
    let bias = refusal(&|options| options.sampling.logit_bias = vec![(260, 1.0)]);
    let after = refusal(&|options| options.after = vec![1, 260]);
    assert_eq!(bias, "`logit_bias` is 260, but must be token ids below 260");
    assert_eq!(after, "`after` is 260, but must be token ids below 260");
}

#[test]
fn a_refused_request_leaves_a_session_as_it_was() {
    let (bytes, _) = random_model(LLAMA, 1);
    let model = load(&bytes, InstructionSet::best());
    let mut session = model.session().unwrap();
    session.prefill(&[5, 6, 7]).unwrap();
    let mut options = GenerateOptions::default();
    options.json_schema = Some(r#"{ "not": {} }"#.to_owned());
    let ones = QkvLora::new(1, 1.0).q(vec![0.01; WIDTH], vec![0.01; WIDTH]);
    options.lora = vec![model.qkv_lora(&[(0, ones)]).unwrap().into()];
    let schema = session.complete("hello", options).map(drop).unwrap_err();
    assert_eq!(schema.code(), "INVALID_ARGUMENT");
    let long = "words ".repeat(10_000);
    let long = session.complete(&long, GenerateOptions::default());
    assert_eq!(long.map(drop).unwrap_err().code(), "LIMIT_EXCEEDED");
    assert_eq!(session.tokens(), [5, 6, 7]);
}

/// A server keeps sessions in its own structures and answers on a pool's threads; this test does the same.
#[test]
fn sessions_and_answers_outlive_their_handle_of_the_model() {
    let (bytes, _) = random_model(LLAMA, 1);
    let mut options = GenerateOptions::default();
    options.max_tokens = 6;
    for load in backends() {
        let model = LanguageModel::from_bytes(bytes.clone(), load).unwrap();
        let wanted = finish(model.complete("hello", options.clone())).0;
        let mut sessions: Vec<_> = (0..3).map(|_| model.session().unwrap()).collect();
        let mut answer = model.complete("hello", options.clone()).unwrap();
        let clone = model.clone();
        drop(model);
        let answers = std::thread::spawn({
            let options = options.clone();
            move || {
                let texts = sessions.iter_mut().map(|session| {
                    let answer = session.complete("hello", options.clone())?;
                    answer.text()
                });
                texts.collect::<Result<Vec<_>, _>>()
            }
        });
        assert_eq!(answers.join().unwrap().unwrap(), vec![wanted.clone(); 3]);
        let text: Result<String, _> = answer.by_ref().collect();
        assert_eq!(text.unwrap(), wanted);
        assert_eq!(finish(clone.complete("hello", options.clone())).0, wanted);
    }
}

#[test]
fn a_model_that_moves_leaves_its_clones_and_sessions() {
    let (bytes, oracle) = random_model(LLAMA, 1);
    let exact = oracle.logits(&[1, 2, 3, 4]);
    for (name, load) in on_gpus() {
        let device = load.device.clone().unwrap();
        let mut model = LanguageModel::from_bytes(bytes.clone(), load).unwrap();
        let (clone, mut session) = (model.clone(), model.session().unwrap());
        session.prefill(&[1, 2, 3]).unwrap();
        let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
        model.move_to(&simd).unwrap();
        assert_eq!(model.info().backend, Backend::Simd);
        for there in [&clone, session.model()] {
            assert_eq!(there.info().backend, device.backend(), "{name}");
        }
        let mut moved = model.session().unwrap();
        let logits = [moved.prefill(&[1, 2, 3, 4]), session.decode(4)];
        for logits in logits {
            assert_close(&logits.unwrap(), &exact[3], "after the move");
        }
        let saved = session.save().unwrap();
        assert_eq!(
            model.load_session(&saved, &[]).unwrap().tokens(),
            [1, 2, 3, 4]
        );
    }
}
