//! Answers that are generated together are those that each has by itself.

use super::random_models::{GEMMA, LLAMA, QWEN3_MOE, random_model};
use super::{load, models_with_room, on_gpus};
use relampago::InstructionSet;
use relampago::llm::{
    AnswerEvent, AnswerId, Answers, Delta, GenerateOptions, Generation, LanguageModel, Sampling,
    Session,
};
use std::collections::HashMap;

/// The tokens of an answer, and the bits of their log-probabilities.
type Answered = (Vec<u32>, Vec<u32>);

fn answered(answer: &Generation<'_>) -> Answered {
    let logprobs = answer.logprobs().iter();
    let bits = logprobs.map(|token| token.chosen.logprob.to_bits());
    (answer.tokens().to_vec(), bits.collect())
}

/// A text of about this number of tokens.
fn text(len: usize) -> String {
    let letters = "abcdefgijkmnpqrstuvwxyz".chars();
    letters.cycle().skip(len).take(len).collect()
}

/// Eight requests: prompts of one token up to three blocks, greedy and drawn, one ends after the other.
fn requests() -> Vec<(String, GenerateOptions)> {
    let lens = [2, 1, 20, 130, 3, 300, 7, 5];
    let requests = lens.into_iter().enumerate().map(|(i, len)| {
        let mut sampling = Sampling::default().with_logit_bias([(1, f32::NEG_INFINITY)]);
        if i % 2 == 1 {
            sampling = sampling.with_temperature(0.8).with_seed(i as u64);
            sampling.frequency_penalty = 0.2;
        }
        let options = GenerateOptions::default()
            .with_max_tokens(9 + 5 * i)
            .with_logprobs(0)
            .with_sampling(sampling);
        (text(len), options)
    });
    requests.collect()
}

fn alone(model: &LanguageModel, (text, options): &(String, GenerateOptions)) -> Answered {
    let mut answer = model.complete(text, options.clone()).unwrap();
    answer.by_ref().for_each(|text| drop(text.unwrap()));
    answered(&answer)
}

fn add(
    answers: &mut Answers,
    model: &LanguageModel,
    request: &(String, GenerateOptions),
) -> AnswerId {
    let (text, options) = request;
    answers
        .add(model.begin_complete(text, options.clone()).unwrap())
        .unwrap()
}

/// Answers requests together: three at first, and one more after each five pieces. Returns the answers in the order of the
/// requests.
fn together(model: &LanguageModel, requests: &[(String, GenerateOptions)]) -> Vec<Answered> {
    let mut answers = model.answers();
    let (mut waiting, mut ids) = (requests.iter(), Vec::new());
    ids.extend(
        waiting
            .by_ref()
            .take(3)
            .map(|request| add(&mut answers, model, request)),
    );
    let (mut ended, mut pieces) = (HashMap::new(), 0);
    while let Some((id, event)) = answers.next() {
        match event {
            AnswerEvent::Delta(_) => pieces += 1,
            AnswerEvent::Ended(answer) => {
                ended.insert(id, answered(&answer));
            }
            other => panic!("{other:?}"),
        }
        if pieces % 5 == 0 || answers.is_empty() {
            ids.extend(
                waiting
                    .next()
                    .map(|request| add(&mut answers, model, request)),
            );
        }
    }
    ids.iter().map(|id| ended.remove(id).unwrap()).collect()
}

#[test]
fn answers_together_have_the_bits_of_answers_alone() {
    let requests = requests();
    for (name, bytes) in models_with_room(400) {
        let model = load(&bytes, InstructionSet::best());
        let answers = together(&model, &requests);
        for (request, answer) in requests.iter().zip(answers) {
            assert_eq!(answer, alone(&model, request), "{name}, {:?}", request.0);
        }
    }
}

#[test]
fn answers_together_have_their_bits_on_every_instruction_set() {
    let requests = requests();
    for shape in [LLAMA, QWEN3_MOE] {
        let (bytes, _) = random_model(shape.with_context(400), 3);
        for &set in InstructionSet::available() {
            let model = load(&bytes, set);
            let answers = together(&model, &requests);
            for (request, answer) in requests.iter().zip(answers) {
                assert_eq!(
                    answer,
                    alone(&model, request),
                    "{}, {}",
                    shape.name,
                    set.name()
                );
            }
        }
    }
}

#[test]
fn answers_together_on_gpus_have_the_tokens_of_answers_alone() {
    let requests = &requests()[..6];
    for shape in [LLAMA, GEMMA, QWEN3_MOE] {
        let (bytes, _) = random_model(shape.with_context(400), 1);
        for (gpu, options) in on_gpus() {
            let model = LanguageModel::from_bytes(bytes.clone(), options).unwrap();
            let answers = together(&model, requests);
            for (request, (tokens, _)) in requests.iter().zip(answers) {
                let (wanted, _) = alone(&model, request);
                assert_eq!(tokens, wanted, "{}, {gpu}, {:?}", shape.name, request.0);
            }
        }
    }
}

/// Generates `count` parts.
fn run(answers: &mut Answers, count: usize) {
    for _ in 0..count {
        answers.next();
    }
}

/// Ends all answers but one, and returns that one's session.
fn session_of(answers: &mut Answers, id: AnswerId) -> Session {
    loop {
        match answers.next() {
            Some((other, AnswerEvent::Ended(answer))) if other == id => {
                return answer.into_session().unwrap();
            }
            Some(_) => {}
            None => panic!("{id:?} has not ended"),
        }
    }
}

#[test]
fn a_removed_answer_leaves_the_others_as_they_are() {
    let requests = requests();
    let (bytes, _) = random_model(GEMMA.with_context(400), 1);
    let model = load(&bytes, InstructionSet::best());
    for parts in [0, 1, 7, 20] {
        let mut answers = model.answers();
        let ids = [3, 4, 5].map(|i| add(&mut answers, &model, &requests[i]));
        run(&mut answers, parts);
        let removed = answers.remove(ids[1]).unwrap();
        assert!(answers.get(ids[1]).is_none() && answers.remove(ids[1]).is_none());
        assert_eq!(answers.len(), 2);
        let (tokens, _) = answered(&removed);
        assert!(alone(&model, &requests[4]).0.starts_with(&tokens));
        // The rest by itself.
        let mut removed = removed;
        removed.by_ref().for_each(|text| drop(text.unwrap()));
        assert_eq!(
            answered(&removed),
            alone(&model, &requests[4]),
            "{parts} parts"
        );
        let mut ended = 0;
        for (id, event) in answers {
            if let AnswerEvent::Ended(answer) = event {
                let place = [3, 5][usize::from(id == ids[2])];
                assert_eq!(answered(&answer), alone(&model, &requests[place]));
                ended += 1;
            }
        }
        assert_eq!(ended, 2);
    }
}

#[test]
fn sessions_of_answers_are_forked_and_rewound_between() {
    let requests = requests();
    for shape in [LLAMA, GEMMA] {
        let (bytes, _) = random_model(shape.with_context(400), 2);
        let model = load(&bytes, InstructionSet::best());
        let answer = |session: &mut Session, i: usize| {
            let (text, options) = &requests[i];
            let mut answer = session.complete(text, options.clone()).unwrap();
            answer.by_ref().for_each(|text| drop(text.unwrap()));
            answered(&answer)
        };
        // One session after the other.
        let mut one = model.session().unwrap();
        answer(&mut one, 6);
        one.rewind(4).unwrap();
        let mut fork = one.fork().unwrap();
        let wanted = [answer(&mut one, 2), answer(&mut fork, 7)];
        // The same with another answer beside them.
        let mut answers = model.answers();
        add(&mut answers, &model, &requests[5]);
        let id = add(&mut answers, &model, &requests[6]);
        let mut session = session_of(&mut answers, id);
        session.rewind(4).unwrap();
        let fork = session.fork().unwrap();
        let ids = [(session, 2), (fork, 7)].map(|(session, i)| {
            let (text, options) = &requests[i];
            let answer = session.into_complete(text, options.clone());
            answers.add(answer.unwrap()).unwrap()
        });
        let mut results = HashMap::new();
        for (id, event) in answers {
            if let AnswerEvent::Ended(answer) = event {
                results.insert(id, answered(&answer));
            }
        }
        for (id, wanted) in ids.iter().zip(wanted) {
            assert_eq!(results[id], wanted, "{}", shape.name);
        }
    }
}

#[test]
fn a_long_prompt_is_read_between_the_tokens_of_others() {
    let (bytes, _) = random_model(LLAMA.with_context(600), 1);
    let model = load(&bytes, InstructionSet::best());
    let mut answers = model.answers();
    let options = requests()[0].1.clone().with_max_tokens(40);
    let first = add(&mut answers, &model, &(text(2), options.clone()));
    answers.step();
    // Five blocks of 128 tokens, and four.
    let long = [530, 400].map(|len| add(&mut answers, &model, &(text(len), options.clone())));
    let tokens = |answers: &Answers, id| answers.get(id).unwrap().tokens().len();
    let (before, mut steps, mut order) = (tokens(&answers, first), 0, Vec::new());
    while order.len() < 2 {
        answers.step();
        steps += 1;
        for id in long {
            if tokens(&answers, id) > 0 && !order.contains(&id) {
                order.push(id);
            }
        }
    }
    assert_eq!(steps, 9, "a block a step");
    assert_eq!(tokens(&answers, first) - before, 9, "a token a step");
    assert_eq!(order, [long[1], long[0]], "the prompts take turns");
}

#[test]
fn dropped_futures_lose_nothing() {
    use std::pin::pin;
    use std::task::{Context, Waker};
    let requests = &requests()[..4];
    let (bytes, _) = random_model(LLAMA.with_context(400), 1);
    let model = load(&bytes, InstructionSet::best());
    let mut answers = model.answers();
    let ids: Vec<_> = requests
        .iter()
        .map(|request| add(&mut answers, &model, request))
        .collect();
    let mut ended = HashMap::new();
    let mut texts: HashMap<AnswerId, String> = HashMap::new();
    while !answers.is_empty() {
        let mut context = Context::from_waker(Waker::noop());
        // Each future is polled once.
        let polled = pin!(answers.next_async()).poll(&mut context);
        match polled {
            std::task::Poll::Ready(Some((id, AnswerEvent::Ended(answer)))) => {
                ended.insert(id, answered(&answer));
            }
            std::task::Poll::Ready(Some((id, AnswerEvent::Delta(Delta::Content(text))))) => {
                texts.entry(id).or_default().push_str(&text);
            }
            _ => {}
        }
    }
    for (id, request) in ids.iter().zip(requests) {
        assert_eq!(ended[id], alone(&model, request));
        let (text, options) = request;
        let whole = model
            .complete(text, options.clone())
            .unwrap()
            .text()
            .unwrap();
        assert_eq!(texts[id], whole);
    }
}

#[test]
fn answers_of_another_model_are_refused() {
    let (bytes, _) = random_model(LLAMA, 1);
    let [model, other] = [(); 2].map(|()| load(&bytes, InstructionSet::best()));
    let answer = other.begin_complete("hello", GenerateOptions::default());
    let mut answers = model.answers();
    assert_eq!(answers.add(answer.unwrap()).unwrap_err().code(), "FOREIGN");
    assert!(answers.is_empty() && answers.next().is_none());
}
