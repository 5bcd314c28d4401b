//! Passes that several answers of a model share.

use super::LanguageModel;
use super::generate::{Due, Generator};
use super::model::Model;
use super::sequence::Sequence;
use crate::error::Result;
use std::ops::DerefMut;

/// An answer among several, by a number that rises from one to the next.
pub(crate) struct Member<'a, S> {
    pub(crate) number: u64,
    pub(crate) generator: &'a mut Generator<S>,
    /// The text that becomes certain, or the error that ends the answer.
    pub(crate) text: &'a mut Option<Result<String>>,
}

/// Advances answers by at most a token each. Few tokens of several answers are read in one pass; of the prompts with more, the
/// one after the number `turn` is read by a block, so that no long prompt holds up the others for longer than that. `turn`
/// becomes its number.
///
/// None of the answers may have ended, or have a text. If one fails, the others go on. If the future is dropped, each has read
/// all or none of the tokens that were due, and what has been generated is in the texts.
pub(crate) async fn advance<S: DerefMut<Target = Sequence>>(
    model: &LanguageModel,
    members: &mut [Member<'_, S>],
    turn: &mut u64,
) {
    if let [member] = members {
        *member.text = Some(advance_alone(model, member.generator).await);
        return;
    }
    let mut dues = Vec::new();
    for (index, member) in members.iter_mut().enumerate() {
        let generator = &mut *member.generator;
        if generator.has_chosen() {
            *member.text = Some(generator.step(model).await);
        } else if let Some(due) = generator.due(model) {
            dues.push((index, due));
        } else {
            *member.text = Some(generator.next_token(model, None));
        }
    }
    let (mut short, long): (Vec<_>, Vec<_>) = dues
        .into_iter()
        .partition(|(_, due)| Model::may_share(due.tokens.len()));
    let next = long
        .into_iter()
        .min_by_key(|(index, _)| members[*index].number.wrapping_sub(*turn + 1));
    if let Some((index, due)) = next {
        let member = &mut members[index];
        *turn = member.number;
        *member.text = Some(read_alone(model, member.generator, due).await);
    }
    while let Some((first, _)) = short.first() {
        let lora = members[*first].generator.sequence().lora().to_vec();
        let mut together = Vec::new();
        let (mut tokens, mut others) = (0, Vec::new());
        for (index, due) in short {
            let fits = tokens + due.tokens.len() <= model.model.block();
            if fits && members[index].generator.sequence().lora() == lora {
                tokens += due.tokens.len();
                together.push((index, due));
            } else {
                others.push((index, due));
            }
        }
        read_together(model, members, together).await;
        short = others;
    }
}

/// Reads a block of the prompt, or generates a token after it.
async fn advance_alone<S: DerefMut<Target = Sequence>>(
    model: &LanguageModel,
    generator: &mut Generator<S>,
) -> Result<String> {
    match generator.read_prompt(model).await {
        Ok(false) => generator.step(model).await,
        read => read.map(|_| String::new()),
    }
}

/// Reads what is due of an answer, and chooses a token if the prompt ends with it.
async fn read_alone<S: DerefMut<Target = Sequence>>(
    model: &LanguageModel,
    generator: &mut Generator<S>,
    due: Due,
) -> Result<String> {
    let sequence = generator.sequence();
    let result = sequence.read(model, &due.tokens, due.wanted).await?;
    taken(model, generator, &due, result)
}

/// Takes the result of what was due, and chooses a token if the prompt has been read.
fn taken<S: DerefMut<Target = Sequence>>(
    model: &LanguageModel,
    generator: &mut Generator<S>,
    due: &Due,
    result: Vec<f32>,
) -> Result<String> {
    generator.take(due, result)?;
    if generator.may_choose() {
        generator.next_token(model, None)
    } else {
        Ok(String::new())
    }
}

/// Reads what is due of several answers in one pass; each by itself if that fails, so that one alone has the error.
async fn read_together<S: DerefMut<Target = Sequence>>(
    model: &LanguageModel,
    members: &mut [Member<'_, S>],
    dues: Vec<(usize, Due)>,
) {
    let results = {
        let mut places = dues.iter().peekable();
        let mut reads = Vec::new();
        for (index, member) in members.iter_mut().enumerate() {
            if let Some((_, due)) = places.next_if(|(place, _)| *place == index) {
                reads.push((member.generator.sequence(), &due.tokens[..], due.wanted));
            }
        }
        Sequence::read_together(model, &mut reads).await
    };
    match results {
        Ok(results) => {
            for ((index, due), result) in dues.into_iter().zip(results) {
                let member = &mut members[index];
                *member.text = Some(taken(model, member.generator, &due, result));
            }
        }
        Err(_) => {
            for (index, due) in dues {
                let member = &mut members[index];
                *member.text = Some(read_alone(model, member.generator, due).await);
            }
        }
    }
}
