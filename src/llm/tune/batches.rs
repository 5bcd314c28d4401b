//! Examples in rows and rows in batches.

use super::examples::Tokens;
use crate::llm::model::TextRows;
use crate::random::Philox;

/// The rows are a multiple of this number of tokens, so that other examples need no other programs.
const ROW_STEP: usize = 32;

/// The number of rows of learned tokens is a multiple of this one.
const LEARNED_STEP: usize = 16;

/// The batches of an epoch or of held-back examples: the examples of each row of each batch.
pub(super) type Batches = Vec<Vec<Vec<usize>>>;

/// The shape of all batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchShape {
    pub(super) rows: usize,
    /// The number of tokens of a row.
    pub(super) len: usize,
    /// The most tokens that a batch learns, rounded up.
    pub(super) learned: usize,
}

/// A batch as the layers take it.
pub(super) struct Batch {
    pub(super) texts: TextRows,
    pub(super) ids: Vec<u32>,
    /// The rows, of all tokens, before the tokens that are learned, and these tokens; padded with 0.
    pub(super) rows: Vec<f32>,
    pub(super) targets: Vec<u32>,
    /// The number of tokens that are learned.
    pub(super) count: usize,
    /// The number of tokens without padding.
    pub(super) tokens: usize,
}

/// Returns the length of rows for examples.
pub(super) fn row_len(examples: &[Tokens]) -> usize {
    let longest = examples.iter().map(|example| example.ids.len()).max();
    longest.unwrap_or(1).next_multiple_of(ROW_STEP)
}

/// Puts examples into rows of `len` tokens, in their order: each into the first row with room for it.
pub(super) fn packed(order: &[usize], examples: &[Tokens], len: usize) -> Vec<Vec<usize>> {
    let mut rows: Vec<(usize, Vec<usize>)> = Vec::new();
    for &index in order {
        let own = examples[index].ids.len();
        match rows.iter_mut().find(|(used, _)| used + own <= len) {
            Some((used, row)) => {
                *used += own;
                row.push(index);
            }
            None => rows.push((own, vec![index])),
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Divides rows among batches.
pub(super) fn batches(rows: &[Vec<usize>], batch: usize) -> Batches {
    let batches = rows.chunks(batch.max(1));
    batches.map(<[Vec<usize>]>::to_vec).collect()
}

impl BatchShape {
    /// Returns the shape that all batches fit in.
    pub(super) fn of<'a>(
        all: impl Iterator<Item = &'a Batches>,
        examples: &[Tokens],
        len: usize,
    ) -> Self {
        let mut shape = Self {
            rows: 1,
            len,
            learned: LEARNED_STEP,
        };
        for batch in all.flatten() {
            let learned = batch.iter().flatten().map(|&index| examples[index].count());
            let learned = learned.sum::<usize>().next_multiple_of(LEARNED_STEP);
            shape.rows = shape.rows.max(batch.len());
            shape.learned = shape.learned.max(learned);
        }
        shape
    }

    /// Lays out the examples of a batch.
    pub(super) fn batch(self, rows: &[Vec<usize>], examples: &[Tokens]) -> Batch {
        let tokens = self.rows * self.len;
        let mut batch = Batch {
            texts: TextRows {
                shape: [self.rows, self.len],
                positions: vec![0; tokens],
            },
            ids: vec![0; tokens],
            rows: Vec::new(),
            targets: Vec::new(),
            count: 0,
            tokens: 0,
        };
        for (row, indices) in rows.iter().enumerate() {
            let mut at = row * self.len;
            for &index in indices {
                batch.put(at, &examples[index]);
                at += examples[index].ids.len();
            }
        }
        batch.count = batch.targets.len();
        batch.rows.resize(self.learned, 0.0);
        batch.targets.resize(self.learned, 0);
        batch
    }
}

impl Batch {
    fn put(&mut self, at: usize, example: &Tokens) {
        self.tokens += example.ids.len();
        for (position, &id) in example.ids.iter().enumerate() {
            self.ids[at + position] = id;
            self.texts.positions[at + position] = position;
            if position > 0 && example.learned[position] {
                self.rows.push((at + position - 1) as f32);
                self.targets.push(id);
            }
        }
    }
}

/// Returns the numbers below `count` in a random order.
pub(super) fn shuffled(count: usize, random: Philox, stream: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        let counter = u128::from(stream) << 64 | at as u128;
        let [low, high, ..] = random.block(counter);
        let word = u64::from(high) << 32 | u64::from(low);
        order.swap(at, (word % (at as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(len: usize, learned: usize) -> Tokens {
        Tokens {
            ids: (0..len as u32).collect(),
            learned: (0..len).map(|at| at >= len - learned).collect(),
        }
    }

    #[test]
    fn examples_share_rows_and_know_their_positions() {
        let examples = [example(20, 4), example(40, 1), example(10, 10)];
        let len = row_len(&examples);
        assert_eq!(len, 64);
        let rows = packed(&[0, 1, 2], &examples, len);
        assert_eq!(rows, [vec![0, 1], vec![2]]);
        let all = batches(&rows, 4);
        let shape = BatchShape::of([&all].into_iter(), &examples, len);
        let wanted = BatchShape {
            rows: 2,
            len: 64,
            learned: 16,
        };
        assert_eq!(shape, wanted);
        let batch = shape.batch(&all[0], &examples);
        assert_eq!((batch.count, batch.tokens), (14, 70));
        assert_eq!(batch.texts.positions[19..22], [19, 0, 1]);
        assert_eq!(batch.rows[..5], [15.0, 16.0, 17.0, 18.0, 58.0]);
        assert_eq!(batch.targets[..5], [16, 17, 18, 19, 39]);
        // The first token of an example follows none.
        assert_eq!(batch.targets[5..14], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn orders_have_each_number_once() {
        let random = Philox::new(3);
        let mut order = shuffled(50, random, 1);
        assert_ne!(order, shuffled(50, random, 2));
        assert_eq!(order, shuffled(50, random, 1));
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
