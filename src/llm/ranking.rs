//! The order of tokens by their probability.

/// The likeliest tokens that are put in order at first; most draws need no more.
const FIRST_RANKED: usize = 256;

/// Tokens in the order of their probability, of which as many are put in order as are asked for.
pub(super) struct Ranking {
    /// A number for each token that is smaller for a likelier one, or for the first of equally likely ones. Its lower
    /// half is the token.
    keys: Vec<u64>,
    sorted: usize,
}

impl Ranking {
    pub(super) fn new(logits: &[f32]) -> Self {
        let key = |(token, logit): (u32, &f32)| {
            let bits = logit.to_bits();
            let descending = if logit.is_sign_negative() {
                bits
            } else {
                !bits & i32::MAX as u32
            };
            u64::from(descending) << 32 | u64::from(token)
        };
        Self {
            keys: (0..).zip(logits).map(key).collect(),
            sorted: 0,
        }
    }

    /// Returns the token of a rank.
    pub(super) fn get(&mut self, rank: usize) -> Option<u32> {
        if rank >= self.sorted {
            let rest = &mut self.keys[self.sorted..];
            let count = match self.sorted {
                0 => FIRST_RANKED.min(rest.len()),
                _ => rest.len(),
            };
            if count < rest.len() {
                rest.select_nth_unstable(count);
            }
            rest[..count].sort_unstable();
            self.sorted += count;
        }
        self.keys.get(rank).map(|&key| key as u32)
    }
}
