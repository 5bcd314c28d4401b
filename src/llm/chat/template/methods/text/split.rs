//! Methods that divide a text.

use super::super::super::budget::Budget;
use super::super::super::fault::{Result, refused};
use super::super::super::lexer::is_space;
use super::super::super::text::Text;
use super::super::super::value::Value;
use super::super::text_argument;
use std::ops::Range;

pub(super) fn split(
    text: &Text,
    separator: Option<&Value>,
    most: usize,
    from_end: bool,
    budget: &Budget,
) -> Result<Value> {
    let ranges = match separator {
        None | Some(Value::None) if from_end => words_from_end(text.as_str(), most),
        None | Some(Value::None) => words(text.as_str(), most),
        value => {
            let separator = text_argument("split", value)?.as_str();
            if separator.is_empty() {
                return refused("`split` by an empty string");
            }
            split_at(text.as_str(), separator, most, from_end)
        }
    };
    texts(text, ranges, budget)
}

/// A list of parts of a text.
fn texts(text: &Text, ranges: Vec<Range<usize>>, budget: &Budget) -> Result<Value> {
    budget.step(ranges.len())?;
    let parts = ranges
        .into_iter()
        .map(|range| Value::Text(text.part(range)));
    Value::list(parts.collect())
}

fn split_at(text: &str, separator: &str, most: usize, from_end: bool) -> Vec<Range<usize>> {
    let mut places: Vec<usize> = if from_end {
        text.rmatch_indices(separator)
            .take(most)
            .map(|(at, _)| at)
            .collect()
    } else {
        text.match_indices(separator)
            .take(most)
            .map(|(at, _)| at)
            .collect()
    };
    if from_end {
        places.reverse();
    }
    let starts = std::iter::once(0).chain(places.iter().map(|at| at + separator.len()));
    let ends = places.iter().copied().chain([text.len()]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Returns the first `most` words of a text, and the rest of the text as one more word.
fn words(text: &str, most: usize) -> Vec<Range<usize>> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find(|c| !is_space(c)).map(|start| at + start) {
        let end = text[start..]
            .find(is_space)
            .map_or(text.len(), |end| start + end);
        let is_last = words.len() == most;
        words.push(start..if is_last { text.len() } else { end });
        if is_last {
            break;
        }
        at = end;
    }
    words
}

/// Returns the last `most` words of a text, and the text before them as one more word.
fn words_from_end(text: &str, most: usize) -> Vec<Range<usize>> {
    let (mut words, mut rest) = (Vec::new(), text.trim_end_matches(is_space));
    while !rest.is_empty() {
        let start = rest.trim_end_matches(|c| !is_space(c)).len();
        let is_last = words.len() == most;
        words.push(if is_last { 0 } else { start }..rest.len());
        if is_last {
            break;
        }
        rest = rest[..start].trim_end_matches(is_space);
    }
    words.reverse();
    words
}

pub(super) fn lines(text: &Text, keeps_ends: bool, budget: &Budget) -> Result<Value> {
    let (source, mut ranges, mut start) = (text.as_str(), Vec::new(), 0);
    let is_end = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while let Some(at) = source[start..].find(is_end).map(|at| start + at) {
        let len = if source[at..].starts_with("\r\n") {
            2
        } else {
            source[at..].chars().next().map_or(1, char::len_utf8)
        };
        ranges.push(start..if keeps_ends { at + len } else { at });
        start = at + len;
    }
    if start < source.len() {
        ranges.push(start..source.len());
    }
    texts(text, ranges, budget)
}

pub(super) fn partition(text: &Text, separator: &Text, from_end: bool) -> Result<Value> {
    let (source, separator) = (text.as_str(), separator.as_str());
    if separator.is_empty() {
        return refused("`partition` by an empty string");
    }
    let at = if from_end {
        source.rfind(separator)
    } else {
        source.find(separator)
    };
    let parts = match at {
        Some(at) => [
            0..at,
            at..at + separator.len(),
            at + separator.len()..text.len(),
        ],
        None if from_end => [0..0, 0..0, 0..text.len()],
        None => [0..text.len(), 0..0, 0..0],
    };
    Value::tuple(parts.map(|part| Value::Text(text.part(part))).to_vec())
}
