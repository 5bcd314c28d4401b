//! Futures of answers that are dropped while they read a prompt.

use super::random_models::{GEMMA, LLAMA, random_model};
use super::{load, tokens};
use crate::support::Random;
use relampago::llm::{EmbedOptions, GenerateOptions, LanguageModel, Session};
use relampago::{InstructionSet, runtime};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls a future at most `times` times; returns whether it was ready, and drops it.
fn polled<T>(times: usize, future: impl Future<Output = T>) -> bool {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).any(|_| future.as_mut().poll(&mut context).is_ready())
}

/// Returns the number of polls that a future takes.
fn polls<T>(future: impl Future<Output = T>) -> usize {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let mut polls = 1;
    while future.as_mut().poll(&mut context).is_pending() {
        polls += 1;
    }
    polls
}

/// A text of more than three blocks.
fn long_text() -> String {
    let letters = "abcdefgijkmnpqrstuvwxyz".chars();
    letters.cycle().take(450).collect()
}

fn models() -> impl Iterator<Item = LanguageModel> {
    [LLAMA, GEMMA].into_iter().map(|shape| {
        let (bytes, _) = random_model(shape.with_context(640), 1);
        load(&bytes, InstructionSet::best())
    })
}

fn greedy(session: &mut Session, text: &str) -> Vec<u32> {
    let mut options = GenerateOptions::default();
    options.max_tokens = 12;
    let mut answer = session.complete(text, options).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    answer.tokens().to_vec()
}

#[test]
fn prompts_are_read_in_several_polls() {
    let text = long_text();
    for model in models() {
        let options = GenerateOptions::default();
        assert!(!polled(1, model.complete_async(&text, options.clone())));
        assert!(polls(model.complete_async(&text, options)) > 3);
        let tokens = model.tokenize(&text, false).unwrap();
        let mut session = model.session().unwrap();
        assert!(!polled(1, session.prefill_async(&tokens)));
        assert!(polls(session.prefill_async(&tokens)) > 3);
        assert!(polls(model.embed_async(&[&text], EmbedOptions::default())) > 3);
        session.rewind(1).unwrap();
        let mut options = GenerateOptions::default();
        options.max_tokens = 20;
        options.sampling.temperature = 2.0;
        let answer = runtime::block_on(model.complete_async("hello", options)).unwrap();
        let polls = polls(answer.text_async());
        assert!(polls > 1, "{polls} polls of a whole answer");
    }
}

#[test]
fn sessions_keep_what_a_dropped_answer_has_read() {
    let text = long_text();
    for model in models() {
        let mut whole = model.session().unwrap();
        let fresh = greedy(&mut whole, &text);
        let mut most = 0;
        for times in [1, 2, 3, 5, 20] {
            let mut session = model.session().unwrap();
            polled(
                times,
                session.complete_async(&text, GenerateOptions::default()),
            );
            let read = session.tokens();
            assert!(whole.tokens().starts_with(read), "{times} polls");
            most = most.max(read.len());
            assert_eq!(greedy(&mut session, &text), fresh, "after {times} polls");
        }
        assert!(most > 100, "{most} tokens");
    }
}

/// Also while the layers with a window read again what a rewind needs.
#[test]
fn sessions_stay_usable_after_dropped_reads() {
    let mut random = Random(9);
    for model in models() {
        let first = tokens(600, &mut random);
        let second = tokens(300, &mut random);
        let mut fresh = model.session().unwrap();
        fresh.prefill(&first[..20]).unwrap();
        let wanted = fresh.prefill(&second).unwrap();
        // Three blocks are ready at the third poll at the earliest.
        for times in 0..3 {
            let mut session = model.session().unwrap();
            session.prefill(&first).unwrap();
            session.rewind(20).unwrap();
            assert!(!polled(times, session.prefill_async(&second)));
            assert_eq!(session.tokens(), &first[..20], "{times} polls");
            let saved = session.save().unwrap();
            let mut restored = model.load_session(&saved, &[]).unwrap();
            for session in [&mut session, &mut restored] {
                let logits = session.prefill(&second).unwrap();
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
                assert!(logits.iter().zip(&wanted).all(close), "after {times} polls");
            }
        }
    }
}

#[test]
fn a_dropped_answer_can_be_polled_by_other_threads() {
    let text = long_text();
    let model = models().next().unwrap();
    let answer = async move {
        let options = GenerateOptions::default();
        model.complete_async(&text, options).await.map(drop)
    };
    let mut answer = Box::pin(answer);
    let polled = std::thread::spawn(move || {
        let mut context = Context::from_waker(Waker::noop());
        let poll = answer.as_mut().poll(&mut context);
        (matches!(poll, Poll::Pending), answer)
    });
    let (is_pending, answer) = polled.join().unwrap();
    assert!(is_pending);
    runtime::block_on(answer).unwrap();
}
