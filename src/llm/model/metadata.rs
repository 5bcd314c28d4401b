//! The metadata of an architecture, as its hyperparameters need them.

use crate::error::{Error, Result};
use crate::llm::gguf::{Gguf, described, invalid, misfit};
use crate::llm::{Array, Value};

/// The largest count in a model's metadata, so that sums and products of two counts are exact.
const MOST: u64 = 1 << 30;

/// The metadata of an architecture: keys are named without it.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) file: &'a Gguf,
    pub(super) architecture: &'static str,
}

impl<'a> Keys<'a> {
    pub(super) fn get(self, key: &str) -> Option<Value<'a>> {
        self.file.get(&self.full(key))
    }

    fn full(self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// Returns a count, such as the number of heads: at least 1, and at most 2³⁰.
    pub(super) fn size(self, key: &str, default: Option<usize>) -> Result<usize> {
        match (self.get(key), default) {
            (None, Some(default)) => Ok(default),
            (value, _) => self.size_of(key, value),
        }
    }

    /// Returns a count that a file may also give layer by layer, if all layers have the same count.
    pub(super) fn size_of_layers(
        self,
        key: &str,
        layers: usize,
        default: Option<usize>,
    ) -> Result<usize> {
        let Some(Value::Array(array)) = self.get(key) else {
            return self.size(key, default);
        };
        if array.len() != layers {
            let requirement = format!("a number, or one for each of the {layers} layers");
            return Err(self.misfit(key, &requirement));
        }
        let first = array.iter().next();
        let other = array.iter().find(|&value| Some(value) != first);
        match (first, other) {
            (Some(first), Some(other)) => {
                let [first, other] = [first, other].map(described);
                let what = format!(
                    "it is {first} in the first layer and {other} in another one, but must be the same in all layers"
                );
                Err(invalid(what, self.place(key)))
            }
            (first, _) => self.size_of(key, first),
        }
    }

    fn size_of(self, key: &str, value: Option<Value<'_>>) -> Result<usize> {
        let size = value.and_then(Value::as_u64);
        let size = size.filter(|size| (1..=MOST).contains(size));
        let requirement = "an integer from 1 to 1073741824";
        size.map(|size| size as usize)
            .ok_or_else(|| misfit(&self.full(key), value, requirement))
    }

    pub(super) fn number(self, key: &str, default: Option<f64>) -> Result<f64> {
        let number = self.get(key).map_or(default, Value::as_f64);
        number.ok_or_else(|| self.misfit(key, "a number"))
    }

    pub(super) fn positive(self, key: &str, default: f64) -> Result<f64> {
        let number = self.number(key, Some(default))?;
        let number = Some(number).filter(|number| *number > 0.0 && number.is_finite());
        number.ok_or_else(|| self.misfit(key, "a positive number"))
    }

    /// Returns a positive factor; as in llama.cpp, 0 means that the file does not set it.
    pub(super) fn factor(self, key: &str, default: f32) -> Result<f32> {
        if self.number(key, Some(0.0))? == 0.0 {
            return Ok(default);
        }
        self.positive(key, default.into())
            .map(|factor| factor as f32)
    }

    pub(super) fn text(self, key: &str) -> Result<Option<&'a str>> {
        self.file.text(&self.full(key))
    }

    /// Returns the period `p` of layers without a window: every `p`-th layer has none. 0 means that all layers have a
    /// window. A file gives the period, or whether each layer has a window.
    pub(super) fn period(self, layers: usize, default: usize) -> Result<usize> {
        const KEY: &str = "attention.sliding_window_pattern";
        let period = match self.get(KEY) {
            None => Some(default),
            Some(Value::Array(array)) => period_of(array, layers),
            Some(value) => value
                .as_u64()
                .filter(|&period| period <= MOST)
                .map(|period| period as usize),
        };
        period.ok_or_else(|| {
            let requirement = format!(
                "a period, or for each of the {layers} layers whether it has a window, with a period"
            );
            self.misfit(KEY, &requirement)
        })
    }

    /// Returns the number of positions that a layer with a window sees; 0 in a file means no window.
    pub(super) fn window(self, default: Option<usize>) -> Result<Option<usize>> {
        const KEY: &str = "attention.sliding_window";
        match self.get(KEY).map(Value::as_u64) {
            None => Ok(default),
            Some(Some(0)) => Ok(None),
            Some(_) => self.size(KEY, None).map(Some),
        }
    }

    /// Returns the error of a value that does not meet a requirement.
    pub(super) fn misfit(self, key: &str, requirement: &str) -> Error {
        misfit(&self.full(key), self.get(key), requirement)
    }

    /// Returns an error about several keys.
    pub(super) fn invalid(self, what: &str) -> Error {
        invalid(what, format!("metadata of `{}`", self.architecture))
    }

    fn place(self, key: &str) -> String {
        format!("metadata `{}`", self.full(key))
    }
}

/// Returns whether a layer has a window, where the last one of each period has none.
pub(super) fn is_local(layer: usize, period: usize) -> bool {
    period == 0 || layer % period < period - 1
}

/// Returns the period of an array that says of each layer whether it has a window.
fn period_of(array: Array<'_>, layers: usize) -> Option<usize> {
    let has_window = |value: Value<'_>| value.as_bool().or(value.as_u64().map(|value| value != 0));
    let global = array
        .iter()
        .position(|value| has_window(value) == Some(false));
    let period = global.map_or(0, |layer| layer + 1);
    let mut all = array.iter().enumerate();
    let is_periodic = all.all(|(layer, value)| has_window(value) == Some(is_local(layer, period)));
    (array.len() == layers && is_periodic).then_some(period)
}
