//! Tokens that are guessed from the text so far: prompt lookup. Answers that quote, summarise or edit repeat parts of their
//! prompt, and a pass over several tokens takes little longer than one over a single token.

use std::collections::VecDeque;

/// The number of tokens before the next one that must have occurred together, and the most that are compared.
const LEAST_MATCH: usize = 3;
const MOST_MATCH: usize = 16;

/// The numbers of tokens that may be guessed at a time.
const COUNTS: [usize; 5] = [2, 5, 11, 31, 63];

/// The number of latest guesses that count most, and those that a text begins with: four of five were right.
const MEMORY: f64 = 32.0;
const FIRST: (f64, f64) = (4.0, 5.0);

/// A pass must read this many times the tokens that passes over one token would read in its time.
const LEAST_GAIN: f64 = 1.1;

/// The guessed tokens of an answer that the model has read, and the rate of right guesses. A text that is alike gives a guess
/// for every token, whether it is read with others or not, so that the rate is known before it pays to read.
#[derive(Debug)]
pub(super) struct Guesses {
    /// The guess for the next token.
    next: Option<u32>,
    /// The tokens that were guessed and read but not chosen yet, with the logits after each.
    read: VecDeque<(u32, Vec<f32>)>,
    /// The numbers of right guesses and of all, the latest in full.
    rate: (f64, f64),
    /// The number of tokens that were read as guesses and chosen.
    right: usize,
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            next: None,
            read: VecDeque::new(),
            rate: FIRST,
            right: 0,
        }
    }
}

impl Guesses {
    /// The number of tokens that were read as guesses and chosen.
    #[cfg(feature = "llm")]
    pub(super) fn right(&self) -> usize {
        self.right
    }

    /// Returns the logits after a token that was chosen if it was read as a guess; forgets all guesses otherwise.
    pub(super) fn take(&mut self, token: u32) -> Option<Vec<f32>> {
        if let Some(guess) = self.next.take() {
            self.count(guess == token);
        }
        let logits = match self.read.pop_front() {
            Some((guess, logits)) if guess == token => logits,
            _ => {
                self.read.clear();
                return None;
            }
        };
        self.right += 1;
        self.next = self.read.front().map(|(guess, _)| *guess);
        Some(logits)
    }

    fn count(&mut self, is_right: bool) {
        let (right, all) = self.rate;
        let left = 1.0 - 1.0 / MEMORY;
        self.rate = (left * right + f64::from(is_right), left * all + 1.0);
    }

    /// Guesses the tokens after a text, at most `most` and as many as it pays to read: none if nothing in the text is alike.
    /// `cost` is the time of a pass over a number of tokens from two on, in passes over one token.
    pub(super) fn after(&mut self, text: &[u32], most: usize, cost: fn(usize) -> f64) -> Vec<u32> {
        let mut guesses = continued(text, COUNTS[COUNTS.len() - 1].min(most));
        self.next = guesses.first().copied();
        guesses.truncate(self.paying(guesses.len(), cost));
        guesses
    }

    /// Returns the number of guesses that are the fastest to read, at most `most`; none if one token by itself is.
    fn paying(&self, most: usize, cost: fn(usize) -> f64) -> usize {
        let rate = self.rate.0 / self.rate.1;
        let (mut best, mut paying) = (LEAST_GAIN, 0);
        for count in COUNTS.into_iter().filter(|&count| count <= most) {
            // The first guesses in a row that are right, and the token after them.
            let read: f64 = (0..=count).map(|place| rate.powi(place as i32)).sum();
            let gain = read / cost(1 + count);
            if gain > best {
                (best, paying) = (gain, count);
            }
        }
        paying
    }

    /// Stores guesses that were read after a token, with the logits after all of these, row after row. Returns the first row.
    pub(super) fn store(&mut self, guesses: &[u32], logits: &[f32]) -> Vec<f32> {
        let rows = logits.chunks_exact(logits.len() / (guesses.len() + 1));
        let mut rows = rows.map(<[f32]>::to_vec);
        let first = rows.next().unwrap_or_default();
        self.read = guesses.iter().copied().zip(rows).collect();
        first
    }
}

/// Returns the tokens that followed the longest part of a text that ends like the text itself, the latest one of several. A
/// part that reaches the end goes on with its own continuation.
fn continued(text: &[u32], count: usize) -> Vec<u32> {
    let mut best = (LEAST_MATCH - 1, 0);
    for end in (1..text.len()).rev() {
        let before = text[..end].iter().rev().zip(text.iter().rev());
        let alike = before.take(MOST_MATCH).take_while(|(a, b)| a == b).count();
        if alike > best.0 {
            best = (alike, end);
        }
    }
    let (_, start) = best;
    let mut guesses: Vec<u32> = Vec::new();
    if start > 0 {
        for at in start..start + count {
            let next = text.get(at).copied();
            guesses.push(next.unwrap_or_else(|| guesses[at - text.len()]));
        }
    }
    guesses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_continue_the_longest_match() {
        assert_eq!(continued(&[1, 2, 3, 4, 5, 1, 2, 3], 2), [4, 5]);
        assert_eq!(
            continued(&[9, 1, 2, 3, 4, 8, 1, 2, 3, 5, 9, 1, 2, 3], 1),
            [4]
        );
        assert_eq!(
            continued(&[1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1),
            [5],
            "the latest"
        );
        assert_eq!(continued(&[7, 1, 2, 1, 2, 1, 2], 5), [1, 2, 1, 2, 1]);
        assert!(
            continued(&[1, 2, 3, 4, 2, 3], 4).is_empty(),
            "two alike are too few"
        );
        assert!(continued(&[], 4).is_empty());
    }

    /// Answers with these tokens after a text; returns the cost, and the number of passes.
    fn answered(mut text: Vec<u32>, answer: &[u32], cost: fn(usize) -> f64) -> (f64, usize) {
        let mut guesses = Guesses::default();
        let (mut all, mut passes) = (0.0, 0);
        for &token in answer {
            text.push(token);
            if guesses.take(token).is_some() {
                continue;
            }
            let guessed = guesses.after(&text, 100, cost);
            guesses.store(&guessed, &vec![0.0; guessed.len() + 1]);
            all += if guessed.is_empty() {
                1.0
            } else {
                cost(1 + guessed.len())
            };
            passes += 1;
        }
        (all, passes)
    }

    #[test]
    fn repeated_text_takes_few_passes() {
        let text: Vec<u32> = (0..300).collect();
        let cost = |tokens: usize| 1.0 + 0.1 * (tokens - 1) as f64;
        let (all, passes) = answered(text.clone(), &text, cost);
        assert!(all < 80.0 && passes < 20, "{all} {passes}");
    }

    #[test]
    fn wrong_guesses_take_a_small_part_of_the_time() {
        // Three alike, and another one after them each time.
        let answer: Vec<u32> = (0..2_000)
            .map(|at| if at % 4 < 3 { at % 4 } else { at })
            .collect();
        let cost = |tokens: usize| tokens as f64;
        let (all, _) = answered(Vec::new(), &answer, cost);
        assert!(all <= 2_000.0 * 1.005, "{all}");
        let (all, _) = answered(Vec::new(), &answer, |tokens| {
            1.0 + 0.1 * (tokens - 1) as f64
        });
        assert!(all <= 2_000.0 * 1.03, "{all}");
    }

    #[test]
    fn a_guess_that_was_not_chosen_ends_those_after_it() {
        let mut guesses = Guesses::default();
        guesses.store(&[5, 6, 7], &[0.0, 1.0, 2.0, 3.0]);
        assert_eq!(guesses.take(5), Some(vec![1.0]));
        assert_eq!(guesses.take(9), None);
        assert_eq!(guesses.take(7), None);
        assert_eq!(guesses.right(), 1);
    }
}
