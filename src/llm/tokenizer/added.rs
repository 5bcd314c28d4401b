//! Tokens that are found in a text before it is split into words.

use super::vocabulary::{TokenKind, Vocabulary};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The control, unknown and user-defined tokens of a vocabulary.
#[derive(Debug)]
pub(super) struct AddedTokens {
    /// The tokens in the order of their texts.
    sorted: Vec<Added>,
    /// Where the tokens of each first byte start in `sorted`.
    starts: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Added {
    id: u32,
    /// The position in the order of precedence, from the longest token to the shortest.
    rank: usize,
    /// Whether the token is found in templates only.
    control: bool,
    /// Whether the token takes the white space after it.
    strips: bool,
}

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Fragment<'a> {
    Text(&'a str),
    Token(u32),
}

/// A token in a text, in the order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Occurrence {
    rank: usize,
    start: usize,
    end: usize,
    /// The token's position in `AddedTokens::sorted`.
    index: usize,
}

impl AddedTokens {
    /// `strips` says by a token's text whether the token takes the white space after it.
    pub(super) fn new(vocabulary: &Vocabulary, strips: impl Fn(&str) -> bool) -> Self {
        let ids = 0..vocabulary.len() as u32;
        let mut sorted: Vec<Added> = ids
            .filter_map(|id| {
                let control = match vocabulary.kind(id) {
                    TokenKind::Control | TokenKind::Unknown => true,
                    TokenKind::UserDefined => false,
                    TokenKind::Normal | TokenKind::Byte | TokenKind::Unused => return None,
                };
                let text = std::str::from_utf8(vocabulary.text(id)).ok()?;
                (!text.is_empty()).then(|| Added {
                    id,
                    rank: 0,
                    control,
                    strips: strips(text),
                })
            })
            .collect();
        sorted.sort_by_key(|added| Reverse(vocabulary.text(added.id).len()));
        for (rank, added) in sorted.iter_mut().enumerate() {
            added.rank = rank;
        }
        sorted.sort_by_key(|added| vocabulary.text(added.id));
        let first = |added: &Added| vocabulary.text(added.id)[0];
        let starts = (0..=256).map(|byte| sorted.partition_point(|a| usize::from(first(a)) < byte));
        Self {
            starts: starts.collect(),
            sorted,
        }
    }

    /// The tokens in a text and the texts between them. The longest tokens are found first. Control
    /// tokens are found only within the ranges of `template`, which are in order.
    pub(super) fn split<'a>(
        &self,
        vocabulary: &Vocabulary,
        text: &'a str,
        template: &[Range<usize>],
    ) -> Vec<Fragment<'a>> {
        let mut fragments = Vec::new();
        let mut end = 0;
        for (id, place) in self.find(vocabulary, text.as_bytes(), template) {
            if end < place.start {
                fragments.push(Fragment::Text(&text[end..place.start]));
            }
            fragments.push(Fragment::Token(id));
            end = place.end;
        }
        if end < text.len() {
            fragments.push(Fragment::Text(&text[end..]));
        }
        fragments
    }

    /// The tokens in a text and their places, in order.
    fn find(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        template: &[Range<usize>],
    ) -> Vec<(u32, Range<usize>)> {
        let next = |start: usize, beyond: Option<usize>| {
            self.next_at(vocabulary, text, start, beyond, template)
                .map(Reverse)
        };
        let mut queue: BinaryHeap<Reverse<Occurrence>> = (0..text.len())
            .filter_map(|start| next(start, None))
            .collect();
        let mut taken = vec![false; if queue.is_empty() { 0 } else { text.len() }];
        let mut found = Vec::new();
        while let Some(Reverse(occurrence)) = queue.pop() {
            let Occurrence { start, end, .. } = occurrence;
            // What is taken is not shorter, so it overlaps at an end if at all.
            if taken[start] {
                continue;
            }
            if taken[end - 1] {
                queue.extend(next(start, Some(occurrence.rank)));
                continue;
            }
            let added = self.sorted[occurrence.index];
            let is_space = |at: &usize| !taken[*at] && matches!(text[*at], b' ' | b'\t'..=b'\r');
            let mut place = start..end;
            if added.strips {
                place.end += (end..text.len()).take_while(is_space).count();
            }
            taken[place.clone()].fill(true);
            found.push((added.id, place));
        }
        found.sort_by_key(|(_, place)| place.start);
        found
    }

    /// The token of the highest precedence that a text has at a position, or the next one beyond a
    /// rank.
    fn next_at(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        start: usize,
        beyond: Option<usize>,
        template: &[Range<usize>],
    ) -> Option<Occurrence> {
        let is_template = |end: usize| {
            let next = template.partition_point(|range| range.end < end);
            template.get(next).is_some_and(|range| range.start <= start)
        };
        let first = usize::from(text[start]);
        let (mut low, mut high) = (self.starts[first], self.starts[first + 1]);
        let (mut end, mut best) = (start + 1, None);
        // All tokens here begin with the text from `start` to `end`; the shortest is the first.
        while low < high {
            let (added, len) = (self.sorted[low], end - start);
            if vocabulary.text(added.id).len() == len {
                let rank = added.rank;
                if Some(rank) > beyond && (!added.control || is_template(end)) {
                    let index = low;
                    // A longer token precedes a shorter one.
                    best = Some(Occurrence {
                        rank,
                        start,
                        end,
                        index,
                    });
                }
                low += 1;
                continue;
            }
            let Some(next) = text.get(end) else {
                break;
            };
            let tokens = &self.sorted[low..high];
            let byte = |added: &Added| vocabulary.text(added.id).get(len);
            // In long runs of one character nearly always all go on alike.
            if byte(&tokens[0]) != Some(next) || byte(&tokens[tokens.len() - 1]) != Some(next) {
                high = low + tokens.partition_point(|added| byte(added) <= Some(next));
                low += tokens.partition_point(|added| byte(added) < Some(next));
            }
            end += 1;
        }
        best
    }
}
