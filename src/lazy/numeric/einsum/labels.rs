//! Labels of axes, as a caller writes them.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The labels of the axes of all tensors and of the result. The axes of `...` have digits, counted from the last one.
pub(super) struct Labels {
    pub(super) inputs: Vec<Vec<char>>,
    pub(super) output: Vec<char>,
}

/// Reads labels for tensors with these numbers of axes.
///
/// # Errors
/// `InvalidArgument` for a character that is no label, for another number of terms or axes than those of the tensors, and
/// for a label of the result that is there twice or in no term.
pub(super) fn parse(text: &str, ranks: &[usize]) -> Result<Labels> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (terms, output) = match plain.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (&plain[..], None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != ranks.len() {
        let count = ranks.len();
        return Err(wrong(
            text,
            format!("with {count} terms, one for each tensor"),
        ));
    }
    let mut rest = 0;
    let mut inputs = Vec::new();
    for (term, &rank) in terms.into_iter().zip(ranks) {
        let labels = Term::read(text, term)?;
        rest = rest.max(labels.rest(text, rank)?);
        inputs.push(labels.of_rank(text, rank)?);
    }
    let output = match output {
        None => implicit(&inputs, rest),
        Some(output) => Term::read(text, output)?.with_rest(rest),
    };
    check_output(text, &inputs, &output)?;
    Ok(Labels { inputs, output })
}

/// The labels before and after `...`, if it is there.
struct Term {
    before: Vec<char>,
    after: Option<Vec<char>>,
}

impl Term {
    fn read(text: &str, term: &str) -> Result<Self> {
        let letters = |part: &str| {
            let letter = |c: char| {
                if c.is_ascii_alphabetic() {
                    return Ok(c);
                }
                Err(wrong(
                    text,
                    format!("of letters, `...`, `,` and `->`, without `{c}`"),
                ))
            };
            part.chars().map(letter).collect::<Result<Vec<char>>>()
        };
        let (before, after) = match term.split_once("...") {
            Some((before, after)) => (before, Some(after)),
            None => (term, None),
        };
        Ok(Self {
            before: letters(before)?,
            after: after.map(letters).transpose()?,
        })
    }

    /// Returns the number of axes that `...` stands for.
    fn rest(&self, text: &str, rank: usize) -> Result<usize> {
        let named = self.before.len() + self.after.as_ref().map_or(0, Vec::len);
        match rank.checked_sub(named) {
            Some(rest) if rest == 0 || self.after.is_some() => Ok(rest),
            _ => {
                let requirement = format!("with {rank} labels for a tensor of {rank} axes");
                Err(wrong(text, requirement))
            }
        }
    }

    fn of_rank(&self, text: &str, rank: usize) -> Result<Vec<char>> {
        Ok(self.with_rest(self.rest(text, rank)?))
    }

    fn with_rest(&self, rest: usize) -> Vec<char> {
        match &self.after {
            None => self.before.clone(),
            Some(after) => [&self.before[..], &digits(rest), after].concat(),
        }
    }
}

/// Returns the labels of the axes of `...`, of which there are at most 6.
fn digits(rest: usize) -> Vec<char> {
    let digit = |at: usize| char::from(b'0' + at as u8);
    (0..rest).rev().map(digit).collect()
}

/// Returns the labels of the result where the caller gives none.
fn implicit(inputs: &[Vec<char>], rest: usize) -> Vec<char> {
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    for label in inputs
        .iter()
        .flatten()
        .filter(|label| !label.is_ascii_digit())
    {
        *counts.entry(*label).or_default() += 1;
    }
    let single = counts.into_iter().filter(|&(_, count)| count == 1);
    digits(rest)
        .into_iter()
        .chain(single.map(|(label, _)| label))
        .collect()
}

fn check_output(text: &str, inputs: &[Vec<char>], output: &[char]) -> Result<()> {
    for (at, label) in output.iter().enumerate() {
        if output[..at].contains(label) {
            return Err(wrong(text, format!("with `{label}` once in the result")));
        }
        if !inputs.iter().flatten().any(|own| own == label) {
            return Err(wrong(text, format!("with `{label}` in a term before `->`")));
        }
    }
    Ok(())
}

fn wrong(text: &str, requirement: String) -> Error {
    Error::invalid("labels", format!("`{text}`"), requirement)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    fn read(text: &str, ranks: &[usize]) -> Option<(Vec<String>, String)> {
        let labels = parse(text, ranks).ok()?;
        let inputs = labels.inputs.iter().map(|own| own.iter().collect());
        Some((inputs.collect(), labels.output.iter().collect()))
    }

    #[test]
    fn results_without_labels_have_those_that_appear_once() {
        let of = |inputs: &[&str], output: &str| {
            let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
            Some((inputs, output.to_owned()))
        };
        assert_eq!(read("ba, ac", &[2, 2]), of(&["ba", "ac"], "bc"));
        assert_eq!(read("ii", &[2]), of(&["ii"], ""));
        assert_eq!(read("...ij,j...", &[4, 2]), of(&["10ij", "j0"], "10i"));
        assert_eq!(read("i...->i", &[3]), of(&["i10"], "i"));
        assert_eq!(read("->", &[0]), of(&[""], ""));
    }

    #[test]
    fn wrong_labels_are_errors() {
        for (text, ranks) in [
            ("ij", &[1][..]),
            ("ij,jk", &[2]),
            ("i->ii", &[1]),
            ("i->j", &[1]),
            ("i1", &[2]),
            ("......i", &[2]),
            ("i->i->i", &[1]),
            ("ijk...", &[2]),
        ] {
            assert_eq!(read(text, ranks), None, "{text}");
        }
    }
}
