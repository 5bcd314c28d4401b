//! Several answers of a model at once.

use super::model::next_number;
use super::round::{Member, advance};
use super::{Delta, Generation, LanguageModel};
use crate::error::{Error, Result};
use crate::runtime::pause;

/// The name of an answer among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnswerId(u64);

/// A part of an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerEvent {
    /// A piece of text, reasoning or a call.
    Delta(Delta),
    /// The answer has ended, and is no longer among the answers.
    Ended(Generation<'static>),
    /// The answer has failed, and is no longer among the answers.
    Failed(Error, Generation<'static>),
}

/// Answers of a model that are generated together, from [`LanguageModel::answers`]. They share passes over the model's weights:
/// eight answers have more tokens a second in all than one, since each weight is read once for all of them. Answers join and
/// leave at any token.
///
/// Each answer is the one that it has by itself: bit for bit on SIMD, and on GPUs up to the rounding of passes over several
/// tokens. Prompts are read block by block between the tokens of other answers.
///
/// ```no_run
/// use relampago::llm::{AnswerEvent, GenerateOptions, LanguageModel, Message};
///
/// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
/// let mut answers = model.answers();
/// for question in ["What is a tensor?", "What is a gradient?"] {
///     let messages = [Message::user(question)];
///     answers.add(model.begin_chat(&messages, GenerateOptions::default())?)?;
/// }
/// while let Some((id, event)) = answers.next() {
///     match event {
///         AnswerEvent::Delta(delta) => println!("{id:?}: {delta:?}"),
///         AnswerEvent::Ended(answer) => println!("{id:?}: {:?}", answer.finish_reason()),
///         AnswerEvent::Failed(error, _) => return Err(error),
///         _ => {}
///     }
/// }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Debug)]
pub struct Answers {
    model: LanguageModel,
    running: Vec<Running>,
    /// The number of all sequences, of which no two run at the same time.
    number: u64,
    /// The number of answers so far.
    count: u64,
    /// The answer whose prompt was read last.
    turn: u64,
    /// The index of the answer whose pieces come next.
    next: usize,
}

/// An answer that has not ended.
#[derive(Debug)]
struct Running {
    id: AnswerId,
    answer: Generation<'static>,
    /// The text that the answer has not divided into pieces yet.
    text: Option<Result<String>>,
}

impl LanguageModel {
    /// Returns a set for answers that are generated together.
    pub fn answers(&self) -> Answers {
        Answers {
            model: self.clone(),
            running: Vec::new(),
            number: next_number(),
            count: 0,
            turn: 0,
            next: 0,
        }
    }
}

impl Answers {
    /// Adds an answer; it joins the others with its next token.
    ///
    /// # Errors
    /// `Foreign` for another model's answer.
    pub fn add(&mut self, mut answer: Generation<'static>) -> Result<AnswerId> {
        if !self.model.model.is_same(&answer.model().model) {
            return Err(Error::Foreign {
                what: "answer",
                owner: "model",
            });
        }
        answer.generator().sequence().set_number(self.number);
        self.count += 1;
        let id = AnswerId(self.count);
        let text = None;
        self.running.push(Running { id, answer, text });
        Ok(id)
    }

    /// The number of answers that have not ended.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns an answer that has not ended.
    pub fn get(&self, id: AnswerId) -> Option<&Generation<'static>> {
        let running = self.running.iter().find(|running| running.id == id)?;
        Some(&running.answer)
    }

    /// Removes an answer, which cancels the rest of it unless [`Generation::next_async`] goes on; `None` if it has ended.
    pub fn remove(&mut self, id: AnswerId) -> Option<Generation<'static>> {
        let index = self.running.iter().position(|running| running.id == id)?;
        Some(self.take(index))
    }

    fn take(&mut self, index: usize) -> Generation<'static> {
        if index < self.next {
            self.next -= 1;
        }
        self.read_texts();
        let mut answer = self.running.remove(index).answer;
        answer.generator().sequence().set_number(next_number());
        answer
    }

    /// Generates until there is a part of an answer, and returns it; `None` if there are no answers. The future computes on the
    /// thread that polls it, and is pending once after each 20 ms of work: dropping it there loses no tokens.
    pub async fn next_async(&mut self) -> Option<(AnswerId, AnswerEvent)> {
        loop {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            if self.running.is_empty() {
                return None;
            }
            self.step_async().await;
        }
    }

    /// Advances each answer by a token at most, and one of those with long prompts by a block, for programs that add or remove
    /// answers between: [`Answers::ready`] returns the parts.
    pub async fn step_async(&mut self) {
        self.read_texts();
        self.next = 0;
        let members = self.running.iter_mut();
        let members = members.filter(|running| !running.answer.has_ended());
        let members = members.map(|running| Member {
            number: running.id.0,
            generator: running.answer.generator(),
            text: &mut running.text,
        });
        let mut members: Vec<_> = members.collect();
        advance(&self.model, &mut members, &mut self.turn).await;
        pause().await;
    }

    fn read_texts(&mut self) {
        for running in &mut self.running {
            if let Some(text) = running.text.take() {
                running.answer.accept(text);
            }
        }
    }

    /// Returns a part of what has been generated, if there is one.
    pub fn ready(&mut self) -> Option<(AnswerId, AnswerEvent)> {
        self.read_texts();
        while let Some(running) = self.running.get_mut(self.next) {
            let (id, answer) = (running.id, &mut running.answer);
            match answer.ready() {
                Some(Ok(delta)) => return Some((id, AnswerEvent::Delta(delta))),
                Some(Err(error)) => {
                    let answer = self.take(self.next);
                    return Some((id, AnswerEvent::Failed(error, answer)));
                }
                None if answer.has_ended() => {
                    let answer = self.take(self.next);
                    return Some((id, AnswerEvent::Ended(answer)));
                }
                None => self.next += 1,
            }
        }
        None
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl Answers {
    /// Blocking version of [`Answers::step_async`].
    pub fn step(&mut self) {
        crate::runtime::block_on(self.step_async());
    }
}

/// Blocking version of [`Answers::next_async`].
#[cfg(not(target_arch = "wasm32"))]
impl Iterator for Answers {
    type Item = (AnswerId, AnswerEvent);

    fn next(&mut self) -> Option<Self::Item> {
        crate::runtime::block_on(self.next_async())
    }
}
