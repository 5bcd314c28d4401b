//! Examples as tokens.

use super::TuneExample;
use crate::error::{Error, Result};
use crate::llm::chat::{ChatRequest, Text};
use crate::llm::{LanguageModel, Message};

/// The tokens of an example.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    /// Whether the model learns each token.
    pub(super) learned: Vec<bool>,
}

impl Tokens {
    fn extend(&mut self, ids: Vec<u32>, learned: bool) {
        let len = self.ids.len() + ids.len();
        self.ids.extend(ids);
        self.learned.resize(len, learned);
    }

    /// The number of tokens that are learned: the first one follows none.
    pub(super) fn count(&self) -> usize {
        self.learned
            .iter()
            .skip(1)
            .filter(|&&learned| learned)
            .count()
    }
}

impl LanguageModel {
    /// Returns the tokens of examples, at most `most` of each.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`]; `InvalidArgument` for an example of which nothing is learned.
    pub(super) fn example_tokens(
        &self,
        examples: &[TuneExample],
        most: usize,
    ) -> Result<Vec<Tokens>> {
        let tokens = examples.iter().enumerate().map(|(index, example)| {
            let mut tokens = match example {
                TuneExample::Text(text) => self.text_tokens(text)?,
                TuneExample::Conversation(messages) => self.answer_tokens(messages)?,
            };
            tokens.ids.truncate(most);
            tokens.learned.truncate(most);
            if tokens.count() == 0 {
                let value = format!("{index}, whose first {most} tokens have none to learn");
                let requirement = "one with an answer, or a text of several tokens";
                return Err(Error::invalid("example", value, requirement));
            }
            Ok(tokens)
        });
        tokens.collect()
    }

    fn text_tokens(&self, text: &str) -> Result<Tokens> {
        let mut tokens = Tokens::default();
        tokens.extend(self.continuation(text)?, true);
        Ok(tokens)
    }

    /// The text of a conversation, whose functions no example has.
    fn conversation_text(&self, messages: &[Message]) -> Result<Text> {
        Ok(self.rendered(&ChatRequest::of_messages(messages)?)?.text)
    }

    /// Returns a conversation up to the last answer. Answers are learned as they are generated: after the tokens of the
    /// text with which the template begins them, up to the first token that ends an answer.
    fn answer_tokens(&self, messages: &[Message]) -> Result<Tokens> {
        let is_answer = |message: &Message| message.role == "assistant";
        let Some(last) = messages.iter().rposition(is_answer) else {
            return Ok(Tokens::default());
        };
        let whole = self.conversation_text(&messages[..=last])?;
        let mut tokens = Tokens::default();
        tokens.extend(self.tokenizer.begin().into_iter().collect(), false);
        let mut done = 0;
        for (index, message) in messages[..=last].iter().enumerate() {
            if !is_answer(message) {
                continue;
            }
            let prompt = self.conversation_text(&messages[..index])?;
            let begins = whole.as_str().starts_with(prompt.as_str()) && prompt.len() >= done;
            if !begins {
                // Templates may leave out parts of earlier answers.
                if index < last {
                    continue;
                }
                let requirement = "ones after whose prompt the model's template writes the answer";
                return Err(Error::invalid("messages", "refused", requirement));
            }
            self.push(&mut tokens, &whole.part(done..prompt.len()), false)?;
            done = self.push_answer(&mut tokens, &whole, prompt.len())?;
        }
        Ok(tokens)
    }

    /// Adds the tokens of a part of a conversation.
    fn push(&self, tokens: &mut Tokens, text: &Text, learned: bool) -> Result<()> {
        let mut ids = self.tokenizer.encode_parts(text.parts())?;
        // Many templates write the first token themselves.
        if let (Some(begin), [first]) = (self.tokenizer.begin(), &tokens.ids[..])
            && begin == *first
            && ids.first() == Some(first)
        {
            ids.remove(0);
        }
        tokens.extend(ids, learned);
        Ok(())
    }

    /// Adds the answer that begins at a byte of a conversation; returns the byte after it.
    fn push_answer(&self, tokens: &mut Tokens, whole: &Text, start: usize) -> Result<usize> {
        let rest = whole.part(start..whole.len());
        let (mut end, mut is_over) = (start, false);
        for (part, trusted) in rest.parts() {
            if trusted && let Some(len) = self.end_of_answer(part)? {
                end += len;
                is_over = true;
                break;
            }
            end += part.len();
        }
        if !is_over {
            // Nothing ends it: the text goes on with the next prompt, of which nothing is learned.
            let own = rest.parts().take_while(|(_, trusted)| !trusted);
            end = start + own.map(|(part, _)| part.len()).sum::<usize>();
        }
        self.push(tokens, &whole.part(start..end), true)?;
        Ok(end)
    }

    /// Returns the length of a template's text up to the first token that ends an answer, that included.
    fn end_of_answer(&self, text: &str) -> Result<Option<usize>> {
        let ids = self.tokenizer.encode(text, true)?;
        let Some(end) = ids.iter().position(|&id| self.is_end(id)) else {
            return Ok(None);
        };
        let mark = self.tokenizer.decode_all(&ids[end..=end]);
        let mark = String::from_utf8_lossy(&mark).into_owned();
        Ok(text.find(&mark).map(|at| at + mark.len()))
    }
}
