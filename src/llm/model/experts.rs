//! The experts of a file's model.

use super::architecture::Architecture;
use super::metadata::Keys;
use crate::error::Result;

/// Whether the weights of the chosen experts add up to 1; else those of all experts do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Normalises(pub(super) bool);

/// The experts of each layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experts {
    pub(super) count: usize,
    /// The number of experts that a token uses.
    pub(super) used: usize,
    /// The length of an expert's values between its matrices.
    pub(super) hidden: usize,
    /// Whether the weights of the experts that a token uses add up to 1.
    pub(super) normalises: bool,
}

impl Experts {
    /// Reads the experts of an architecture that has some.
    pub(super) fn new(
        keys: Keys<'_>,
        architecture: &Architecture,
        layers: usize,
    ) -> Result<Option<Self>> {
        const USED: &str = "expert_used_count";
        const HIDDEN: &str = "expert_feed_forward_length";
        let Some(Normalises(normalises)) = architecture.experts else {
            return Ok(None);
        };
        let count = keys.size("expert_count", None)?;
        let used = keys.size(USED, None)?;
        if used > count {
            return Err(keys.misfit(USED, &format!("at most {count}, the number of experts")));
        }
        let hidden = match keys.get(HIDDEN) {
            Some(_) => keys.size(HIDDEN, None)?,
            None => keys.size_of_layers("feed_forward_length", layers, None)?,
        };
        Ok(Some(Self {
            count,
            used,
            hidden,
            normalises,
        }))
    }
}
