//! Generation: an iterator of text.

use super::ahead::Ahead;
use super::answer_text::AnswerText;
use super::chat::{Constraint, forbid};
use super::guesses::Guesses;
use super::logprobs::{Distribution, TokenLogprobs};
use super::model::{MOST_CHOICES, Wanted};
use super::prompt::Prompt;
use super::sampling::{Sampler, Sampling, require_token};
use super::sequence::Sequence;
use super::{LanguageModel, ScaledLora, Tool, ToolChoice, ToolFormat};
use crate::error::{Error, Result};
use crate::graph::choice::RANKED;
#[cfg(feature = "llm")]
use std::ops::Deref;
use std::ops::DerefMut;

/// When generation ends and how tokens are chosen.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct GenerateOptions {
    /// The largest number of tokens of the answer, including those of `after`. Generation also ends where the context
    /// does.
    pub max_tokens: usize,
    /// Texts that end the answer, without being part of it.
    pub stop: Vec<String>,
    /// Tokens of the answer that exist already, such as those of a generation that a lost device cut off.
    /// Generation goes on after them: it returns the text that follows their whole characters. A stop string may begin in
    /// their text: it ends the answer as if there had been no cut.
    pub after: Vec<u32>,
    /// The choice of tokens.
    pub sampling: Sampling,
    /// A JSON schema, as JSON. The answer is JSON that it allows, and ends where that is complete;
    /// `{"type": "object"}` is any object.
    pub json_schema: Option<String>,
    /// The adapters to answer with. They are no part of the serialised options.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub lora: Vec<ScaledLora>,
    /// The number of likeliest tokens whose log-probabilities are reported beside that of each chosen token. `Some(0)`
    /// reports those of the chosen tokens only, `None` reports nothing.
    pub logprobs: Option<usize>,
    /// The functions that the model may call in a conversation.
    pub tools: Vec<Tool>,
    /// Which of them it calls.
    pub tool_choice: ToolChoice,
    /// Whether an answer may have several calls, where the model's format has them.
    pub parallel_tool_calls: bool,
    /// The form of calls; by default that of the template's family.
    pub tool_format: Option<ToolFormat>,
    /// Further variables of the chat template, as a JSON object: `{"enable_thinking": false}`.
    pub chat_template_kwargs: Option<String>,
    /// Whether tokens are guessed from what the text has had before, and checked several in one pass, while that is faster.
    /// The answer is the one without guesses, up to the rounding of passes over several tokens.
    pub guess: bool,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            max_tokens: 512,
            stop: Vec::new(),
            after: Vec::new(),
            sampling: Sampling::default(),
            json_schema: None,
            lora: Vec::new(),
            logprobs: None,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_calls: true,
            tool_format: None,
            chat_template_kwargs: None,
            guess: true,
        }
    }
}

impl GenerateOptions {
    /// Returns the options with this largest number of tokens.
    #[must_use]
    pub fn with_max_tokens(self, max_tokens: usize) -> Self {
        Self { max_tokens, ..self }
    }

    /// Returns the options with these texts that end the answer.
    #[must_use]
    pub fn with_stop(self, stop: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            stop: stop.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Returns the options with these tokens of the answer.
    #[must_use]
    pub fn with_after(self, after: impl Into<Vec<u32>>) -> Self {
        Self {
            after: after.into(),
            ..self
        }
    }

    /// Returns the options with this choice of tokens.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Returns the options with this JSON schema of the answer.
    #[must_use]
    pub fn with_json_schema(self, json_schema: impl Into<String>) -> Self {
        Self {
            json_schema: Some(json_schema.into()),
            ..self
        }
    }

    /// Returns the options with these adapters.
    #[must_use]
    pub fn with_lora(self, lora: impl Into<Vec<ScaledLora>>) -> Self {
        Self {
            lora: lora.into(),
            ..self
        }
    }

    /// Returns the options with the log-probabilities of this number of likeliest tokens.
    #[must_use]
    pub fn with_logprobs(self, logprobs: usize) -> Self {
        Self {
            logprobs: Some(logprobs),
            ..self
        }
    }

    /// Returns the options with these functions.
    #[must_use]
    pub fn with_tools(self, tools: impl Into<Vec<Tool>>) -> Self {
        Self {
            tools: tools.into(),
            ..self
        }
    }

    /// Returns the options with this choice of functions.
    #[must_use]
    pub fn with_tool_choice(self, tool_choice: ToolChoice) -> Self {
        Self {
            tool_choice,
            ..self
        }
    }

    /// Returns the options with or without several calls in an answer.
    #[must_use]
    pub fn with_parallel_tool_calls(self, parallel_tool_calls: bool) -> Self {
        Self {
            parallel_tool_calls,
            ..self
        }
    }

    /// Returns the options with this form of calls.
    #[must_use]
    pub fn with_tool_format(self, tool_format: ToolFormat) -> Self {
        Self {
            tool_format: Some(tool_format),
            ..self
        }
    }

    /// Returns the options with these variables of the chat template, a JSON object.
    #[must_use]
    pub fn with_chat_template_kwargs(self, kwargs: impl Into<String>) -> Self {
        Self {
            chat_template_kwargs: Some(kwargs.into()),
            ..self
        }
    }

    /// Returns the options with or without guesses.
    #[must_use]
    pub fn with_guess(self, guess: bool) -> Self {
        Self { guess, ..self }
    }
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended its answer, or a stop string occurred.
    Stop,
    /// `max_tokens`, or the end of the context.
    Length,
    /// The model calls functions.
    ToolCalls,
}

impl FinishReason {
    /// The reason of an answer whose calls are complete, if it has some.
    pub(crate) fn with_calls(self, has_calls: bool) -> Self {
        match self {
            FinishReason::Stop if has_calls => FinishReason::ToolCalls,
            reason => reason,
        }
    }
}

/// Writes the reason as chat APIs name it: `stop`, `length` or `tool_calls`.
impl std::fmt::Display for FinishReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
        })
    }
}

/// The sequence that a generation continues: its own, or one of a session.
#[cfg(feature = "llm")]
#[derive(Debug)]
pub(crate) enum Continued<'a> {
    Own(Sequence),
    Of(&'a mut Sequence),
}

#[cfg(feature = "llm")]
impl Continued<'_> {
    /// Returns the sequence, if it is the generation's own.
    pub(super) fn into_own(self) -> Option<Sequence> {
        match self {
            Continued::Own(sequence) => Some(sequence),
            Continued::Of(_) => None,
        }
    }
}

#[cfg(feature = "llm")]
impl Deref for Continued<'_> {
    type Target = Sequence;

    fn deref(&self) -> &Sequence {
        match self {
            Continued::Own(sequence) => sequence,
            Continued::Of(sequence) => sequence,
        }
    }
}

#[cfg(feature = "llm")]
impl DerefMut for Continued<'_> {
    fn deref_mut(&mut self) -> &mut Sequence {
        match self {
            Continued::Own(sequence) => sequence,
            Continued::Of(sequence) => sequence,
        }
    }
}

/// Tokens that an answer needs the model to read.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) tokens: Vec<u32>,
    /// The result that is wanted of them.
    pub(super) wanted: Wanted,
    kind: DueKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueKind {
    Prompt,
    /// The last token of the answer.
    Token,
    /// The last token, and guesses of those after it.
    Guesses,
}

/// Generation as a state that does not borrow the model. Its methods take the model that it was
/// made for.
#[derive(Debug)]
pub(crate) struct Generator<S> {
    sequence: S,
    /// The tokens of the prompt.
    prompt: Vec<u32>,
    /// The number of tokens of the prompt that are in the sequence.
    read: usize,
    options: GenerateOptions,
    sampler: Sampler,
    constraint: Option<Constraint>,
    /// The control tokens whose texts are part of the answer's.
    visible: Vec<u32>,
    /// The tokens that the constraint allows next, once they are known.
    allowed: Option<Vec<u32>>,
    /// The result to compute for the last token of the prompt: the index of the largest logit where the choice needs no
    /// more, or all logits.
    wanted: Wanted,
    /// Whether the back-end chooses tokens after the first.
    is_ahead: bool,
    /// This result for the last token that was read, or all logits after a guess; empty until the prompt has been read.
    logits: Vec<f32>,
    ahead: Ahead,
    guesses: Guesses,
    text: AnswerText,
    /// The tokens of the answer. The last one may not be in the sequence yet.
    generated: Vec<u32>,
    unread: Option<u32>,
    /// The text of the whole characters of tokens that existed before.
    existing: String,
    /// The number of tokens of the answer that existed before.
    resumed: usize,
    logprobs: Vec<TokenLogprobs>,
    finished: Option<FinishReason>,
}

impl<S: DerefMut<Target = Sequence>> Generator<S> {
    /// Begins to continue a prompt. Tokens at its beginning that the sequence has already read are not read again.
    pub(crate) fn new(
        model: &LanguageModel,
        mut sequence: S,
        prompt: Prompt,
        mut options: GenerateOptions,
    ) -> Result<Self> {
        options.sampling.check(model.model.vocabulary())?;
        // Of one token nothing is to guess.
        options.guess &= model.model.vocabulary() > 1;
        let after = std::mem::take(&mut options.after);
        for &token in &after {
            require_token("after", token, model.model.vocabulary())?;
        }
        let mut tokens = prompt.tokens;
        tokens.extend(&after);
        if tokens.is_empty() {
            return Err(Error::Empty { op: "complete" });
        }
        let constraint = match (&prompt.grammar, &options.json_schema) {
            (Some(grammar), _) => Some(model.grammar_constraint(grammar)?),
            (None, Some(schema)) => Some(model.schema_constraint(schema)?),
            (None, None) => None,
        };
        let read = sequence.keep_prefix(model, &tokens, &options.lora)?;
        let mut generator = Self {
            sequence,
            prompt: tokens,
            read,
            wanted: wanted(model, &options, constraint.is_some()),
            is_ahead: is_ahead(model, &options),
            sampler: Sampler::new(options.sampling.clone()),
            constraint,
            visible: prompt.visible,
            allowed: None,
            finished: (options.max_tokens == 0).then_some(FinishReason::Length),
            text: AnswerText::new(&options.stop),
            options,
            logits: Vec::new(),
            ahead: Ahead::default(),
            guesses: Guesses::default(),
            generated: Vec::new(),
            existing: String::new(),
            unread: None,
            resumed: after.len(),
            logprobs: Vec::new(),
        };
        generator.sampler.skip(after.len());
        for token in after {
            let text = generator.accept(model, token)?;
            generator.existing.push_str(&text);
        }
        generator.existing.push_str(generator.text.begin());
        generator.unread = None;
        Ok(generator)
    }

    /// Reads the next block of the prompt; returns whether there was one.
    pub(crate) async fn read_prompt(&mut self, model: &LanguageModel) -> Result<bool> {
        let Some(due) = self.due_of_prompt(model) else {
            return Ok(false);
        };
        let result = self.sequence.read(model, &due.tokens, due.wanted).await?;
        self.take(&due, result)?;
        Ok(true)
    }

    fn due_of_prompt(&self, model: &LanguageModel) -> Option<Due> {
        let rest = &self.prompt[self.read..];
        let block = &rest[..rest.len().min(model.model.block())];
        (!block.is_empty()).then(|| Due {
            tokens: block.to_vec(),
            wanted: self.wanted,
            kind: DueKind::Prompt,
        })
    }

    /// Returns what is to be read before the next token can be chosen: a block of the prompt, or the last token of the answer,
    /// with guesses of those after it. `None` if the logits are there.
    pub(super) fn due(&mut self, model: &LanguageModel) -> Option<Due> {
        if let Some(due) = self.due_of_prompt(model) {
            return Some(due);
        }
        let token = self.unread?;
        if let Some(logits) = self.guesses.take(token) {
            self.sequence.advance(token);
            self.logits = logits;
            self.unread = None;
            return None;
        }
        let block = self.with_guesses(model, token);
        let (wanted, kind) = match block.len() {
            1 => (self.wanted, DueKind::Token),
            _ => (Wanted::All, DueKind::Guesses),
        };
        Some(Due {
            tokens: block,
            wanted,
            kind,
        })
    }

    /// Takes the result of what was due, which the sequence has read.
    pub(super) fn take(&mut self, due: &Due, result: Vec<f32>) -> Result<()> {
        self.logits = match due.kind {
            DueKind::Prompt => {
                self.read += due.tokens.len();
                result
            }
            DueKind::Token => result,
            DueKind::Guesses => {
                let guessed = due.tokens.len() - 1;
                let read = self.sequence.tokens().len();
                self.sequence.rewind(read - guessed)?;
                self.guesses.store(&due.tokens[1..], &result)
            }
        };
        if due.kind != DueKind::Prompt {
            self.unread = None;
        }
        Ok(())
    }

    /// Whether the prompt has been read, and the logits after the last token.
    pub(super) fn may_choose(&self) -> bool {
        self.read == self.prompt.len() && self.unread.is_none()
    }

    /// Whether a GPU has chosen tokens that were not returned yet.
    pub(super) fn has_chosen(&self) -> bool {
        !self.ahead.is_empty()
    }

    pub(super) fn sequence(&mut self) -> &mut Sequence {
        &mut self.sequence
    }

    #[cfg(feature = "llm")]
    pub(super) fn into_sequence(self) -> S {
        self.sequence
    }

    /// The tokens generated so far, without the one that ends the answer.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.generated
    }

    /// The text of the whole characters of tokens that existed before.
    pub(crate) fn existing_text(&self) -> &str {
        &self.existing
    }

    /// The probabilities of the new tokens, if they were requested.
    pub(crate) fn logprobs(&self) -> &[TokenLogprobs] {
        &self.logprobs
    }

    /// The number of tokens that were guessed right.
    #[cfg(feature = "llm")]
    pub(crate) fn guessed(&self) -> usize {
        self.guesses.right()
    }

    /// Why generation ended, if it has.
    pub(crate) fn finished(&self) -> Option<FinishReason> {
        self.finished
    }

    /// The number of tokens of the prompt.
    pub(crate) fn prompt_tokens(&self) -> usize {
        self.prompt.len() - self.resumed
    }

    /// Generates a token after the prompt, and returns the text that is certain by now, which may be
    /// empty.
    pub(crate) async fn step(&mut self, model: &LanguageModel) -> Result<String> {
        while self.read_prompt(model).await? {}
        let mut chosen = None;
        if let Some(due) = self.due(model) {
            if due.kind == DueKind::Token {
                chosen = self.choose_ahead(model, due.tokens[0]).await?;
            }
            if chosen.is_none() {
                let result = self.sequence.read(model, &due.tokens, due.wanted).await?;
                self.take(&due, result)?;
            }
            self.unread = None;
        }
        self.next_token(model, chosen)
    }

    /// Adds the next token, which the back-end chose or else the logits give, and returns the text that is certain by now.
    pub(super) fn next_token(
        &mut self,
        model: &LanguageModel,
        chosen: Option<u32>,
    ) -> Result<String> {
        let distribution = self
            .options
            .logprobs
            .map(|top| (top, Distribution::new(&self.logits)));
        let token = match chosen {
            Some(token) => token,
            None => self.choose()?,
        };
        if model.is_end(token) {
            return Ok(self.finish(FinishReason::Stop));
        }
        if let Some((top, distribution)) = distribution {
            self.logprobs.push(distribution.of(token, top));
        }
        self.accept(model, token)
    }

    /// The most tokens that may follow, by the context and by the options.
    fn most(&self, model: &LanguageModel) -> usize {
        let read = self.sequence.tokens().len();
        let room = model.context_length().saturating_sub(read);
        let left = self.options.max_tokens.saturating_sub(self.generated.len());
        room.min(left)
    }

    /// Reads the last token of the answer, and returns the next one if the back-end chooses it.
    async fn choose_ahead(&mut self, model: &LanguageModel, token: u32) -> Result<Option<u32>> {
        if !self.is_ahead {
            return Ok(None);
        }
        self.find_allowed()?;
        let limits = (self.allowed.as_deref(), self.most(model));
        let (sequence, sampler) = (&mut *self.sequence, &mut self.sampler);
        self.ahead
            .next(model, sequence, sampler, token, limits)
            .await
    }

    /// Returns the last token of an answer, and guesses of those after it if it pays to read them.
    fn with_guesses(&mut self, model: &LanguageModel, token: u32) -> Vec<u32> {
        if !self.options.guess || self.has_chosen() {
            return vec![token];
        }
        let most = self.most(model).min(model.model.block()).saturating_sub(1);
        let mut tokens = self.sequence.tokens().to_vec();
        let read = tokens.len();
        tokens.push(token);
        let guesses = self.guesses.after(&tokens, most, model.model.pass_cost());
        tokens.extend(guesses);
        tokens.split_off(read)
    }

    /// Finds the tokens that the constraint allows next, unless they are known.
    fn find_allowed(&mut self) -> Result<()> {
        if let (Some(constraint), None) = (&mut self.constraint, &self.allowed) {
            self.allowed = Some(constraint.allowed()?);
        }
        Ok(())
    }

    /// Chooses a token from the result for the last one that was read.
    fn choose(&mut self) -> Result<u32> {
        self.find_allowed()?;
        if let Some(allowed) = &self.allowed {
            forbid(allowed, &mut self.logits);
        }
        // One value is the index of the largest logit.
        Ok(match *self.logits {
            [index] if self.wanted == Wanted::Largest => index as u32,
            _ => self
                .sampler
                .choose(&mut self.logits, self.sequence.tokens()),
        })
    }

    /// Adds a token to the answer, and returns the text that is certain by now.
    fn accept(&mut self, model: &LanguageModel, token: u32) -> Result<String> {
        self.allowed = None;
        let complete = match &mut self.constraint {
            Some(constraint) => constraint.accept(token)?,
            None => false,
        };
        self.generated.push(token);
        self.unread = Some(token);
        let mut bytes = Vec::new();
        let is_visible = self.visible.contains(&token);
        model.tokenizer.decode(token, is_visible, &mut bytes);
        let text = self.text.push(&bytes);
        if self.text.is_stopped() {
            self.finished = Some(FinishReason::Stop);
        }
        let full = self.generated.len() >= self.options.max_tokens
            || self.sequence.tokens().len() >= model.context_length();
        if self.finished.is_some() || !(complete || full) {
            return Ok(text);
        }
        let reason = if complete {
            FinishReason::Stop
        } else {
            FinishReason::Length
        };
        Ok(text + &self.finish(reason))
    }

    /// Returns the text that is held back, for an answer that breaks off.
    pub(crate) fn flush(&mut self) -> String {
        self.text.flush()
    }

    fn finish(&mut self, reason: FinishReason) -> String {
        self.finished = Some(reason);
        self.text.finish()
    }
}

/// Returns whether logits are needed only to choose a token, and an `f32` can represent the token's number.
fn only_chooses(model: &LanguageModel, options: &GenerateOptions) -> bool {
    options.logprobs.is_none() && model.model.vocabulary() <= MOST_CHOICES
}

/// Returns the result of the prompt that the choice of the first token needs.
fn wanted(model: &LanguageModel, options: &GenerateOptions, is_constrained: bool) -> Wanted {
    let is_largest = options.sampling.is_largest() && !is_constrained;
    if only_chooses(model, options) && is_largest {
        Wanted::Largest
    } else {
        Wanted::Last
    }
}

/// Returns whether the back-end can choose the other tokens.
fn is_ahead(model: &LanguageModel, options: &GenerateOptions) -> bool {
    let is_ranked = options.sampling.top_k <= RANKED;
    only_chooses(model, options) && is_ranked && model.model.ahead() > 0
}
