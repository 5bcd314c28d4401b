//! The order of tokens by their probability.

/// The number of bands of logits; the last one has all that are left.
const BANDS: u32 = 4;

/// Tokens in the order of their logits. Only as many as the caller needs are sorted: band after band below the largest
/// logit, each twice as wide as the one before it. No band contains NaN.
pub(super) struct Ranking<'a> {
    logits: &'a [f32],
    bands: u32,
    /// The least logit of the bands so far, or the largest one.
    floor: f32,
    /// The width of the next band.
    width: f32,
    /// The [`key`]s of the tokens of the bands so far.
    keys: Vec<u64>,
}

impl<'a> Ranking<'a> {
    /// Ranks logits whose largest one is given. The first band is `width` wide.
    pub(super) fn new(logits: &'a [f32], largest: f32, width: f32) -> Self {
        Self {
            logits,
            bands: 0,
            floor: largest,
            width,
            keys: Vec::new(),
        }
    }

    /// Returns the token of a rank.
    pub(super) fn get(&mut self, rank: usize) -> Option<u32> {
        while rank >= self.keys.len() && self.bands < BANDS {
            self.add_band();
        }
        self.keys.get(rank).map(|&key| key as u32)
    }

    fn add_band(&mut self) {
        let (is_first, above) = (self.bands == 0, self.floor);
        self.bands += 1;
        self.floor = if self.bands == BANDS {
            f32::NEG_INFINITY
        } else {
            above - self.width
        };
        self.width *= 2.0;
        let is_within = |logit| logit >= self.floor && (is_first || logit < above);
        let start = self.keys.len();
        for (token, &logit) in (0..).zip(self.logits) {
            if is_within(logit) {
                self.keys.push(key(token, logit));
            }
        }
        self.keys[start..].sort_unstable();
    }
}

/// Returns a number that is smaller for a larger logit, or for the first of equal ones. Its lower half is the token.
fn key(token: u32, logit: f32) -> u64 {
    let bits = logit.to_bits();
    let descending = if logit.is_sign_negative() {
        bits
    } else {
        !bits & i32::MAX as u32
    };
    u64::from(descending) << 32 | u64::from(token)
}
