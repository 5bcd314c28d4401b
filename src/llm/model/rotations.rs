//! The rotations of a file's model.

use super::architecture::{Architecture, LocalRotation, Windows};
use super::metadata::Keys;
use super::rotation::{Rotation, Temperature};
use super::yarn::Yarn;
use crate::error::Result;
use crate::llm::gguf::{Gguf, invalid};

/// The longest head in elements, so that no file makes its reader allocate more. Models have heads of 64 to 256.
const MOST_HEAD: usize = 1 << 14;

/// Returns the number of elements of a head that are rotated.
pub(super) fn rotated(keys: Keys<'_>, head_len: usize) -> Result<usize> {
    if head_len > MOST_HEAD {
        let what = format!("heads of {head_len} elements, beyond the limit of {MOST_HEAD}");
        return Err(keys.invalid(&what));
    }
    let rotated = keys.size("rope.dimension_count", Some(head_len))?;
    if rotated > head_len || !rotated.is_multiple_of(2) {
        let requirement = format!("an even number up to {head_len}, the length of a head");
        return Err(keys.misfit("rope.dimension_count", &requirement));
    }
    Ok(rotated)
}

/// Returns the rotations of layers that see everything and of layers with a window: for heads of `head_len` elements, of
/// which `rotated` are rotated, in sessions of `capacity` tokens of a model that was trained with `context`.
pub(super) fn rotations(
    keys: Keys<'_>,
    architecture: &Architecture,
    [rotated, head_len]: [usize; 2],
    [capacity, context]: [usize; 2],
) -> Result<[Rotation; 2]> {
    let new = |base, magnitude| Rotation::new(architecture.pairs, rotated, base, magnitude);
    let magnitude = keys.positive("rope.scaling.attn_factor", 1.0)?;
    let base = keys.positive("rope.freq_base", 1e4)?;
    let scaling = Scaling::new(keys, context)?;
    let mut global = new(base, magnitude * scaling.magnitude());
    global.divide(&scaling.divisors(rotated, base));
    if let Some(name) = factors(keys, capacity)? {
        // There are none where only the file's beginning is there.
        let factors = super::weights::vector(keys.file, name, rotated / 2)?;
        let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
        if !factors
            .iter()
            .all(|factor| *factor > 0.0 && factor.is_finite())
        {
            return Err(invalid(
                "a factor that is no positive number",
                format!("tensor `{name}`"),
            ));
        }
        global.divide(&factors);
    }
    if architecture.has_temperature {
        global.temperature = temperature(keys, [rotated, head_len], context)?;
    }
    let local = match architecture.windows {
        Windows::Periodic {
            rotation: LocalRotation::OwnBase,
            ..
        } => new(keys.positive("rope.freq_base_swa", 1e4)?, magnitude),
        Windows::Periodic {
            rotation: LocalRotation::Unscaled,
            ..
        } => new(base, 1.0),
        Windows::Periodic {
            rotation: LocalRotation::Same,
            ..
        }
        | Windows::None
        | Windows::All => global.clone(),
    };
    Ok([global, local])
}

/// The scaling of frequencies for contexts that are longer than the original one.
enum Scaling {
    /// All frequencies are divided by a factor.
    Linear(f64),
    Yarn(Yarn),
}

impl Scaling {
    /// Reads the scaling of layers that see everything. As in llama.cpp, a file that names no type scales linearly, older
    /// files have the factor under another key, and a factor of 0 means no scaling.
    fn new(keys: Keys<'_>, context: usize) -> Result<Self> {
        const TYPE: &str = "rope.scaling.type";
        const EXTRAPOLATION: &str = "rope.scaling.yarn_ext_factor";
        let kind = keys.text(TYPE)?;
        let names = ["rope.scaling.factor", "rope.scale_linear"];
        let name = names.into_iter().find(|name| keys.get(name).is_some());
        let factor = match name {
            None => 1.0,
            Some(name) if keys.number(name, None)? == 0.0 => 1.0,
            Some(name) => keys.positive(name, 1.0)?,
        };
        // Negative means that the type decides.
        let usual = if kind == Some("yarn") { 1.0 } else { 0.0 };
        let extrapolation = keys.number(EXTRAPOLATION, Some(usual))?;
        if ![usual, -1.0].contains(&extrapolation) {
            let requirement = format!("{usual} or -1: others are not supported");
            return Err(keys.misfit(EXTRAPOLATION, &requirement));
        }
        match kind {
            Some("none") => Ok(Self::Linear(1.0)),
            None | Some("linear" | "longrope") => Ok(Self::Linear(factor)),
            Some("yarn") => Yarn::new(keys, factor, context).map(Self::Yarn),
            Some(_) => Err(keys.misfit(TYPE, "`none`, `linear`, `longrope` or `yarn`")),
        }
    }

    /// Returns the divisors of frequencies: one for all, or one for each.
    fn divisors(&self, rotated: usize, base: f64) -> Vec<f64> {
        match self {
            Self::Linear(factor) => vec![*factor],
            Self::Yarn(yarn) => yarn.divisors(rotated, base),
        }
    }

    /// Returns the factor of rotated elements.
    fn magnitude(&self) -> f64 {
        match self {
            Self::Linear(_) => 1.0,
            Self::Yarn(yarn) => yarn.magnitude,
        }
    }
}

/// Reads the temperature of queries. As in llama.cpp, a scale of 0 means that there is none, and its length is the original
/// context.
fn temperature(
    keys: Keys<'_>,
    [rotated, head_len]: [usize; 2],
    context: usize,
) -> Result<Option<Temperature>> {
    const SCALE: &str = "attention.temperature_scale";
    if keys.number(SCALE, Some(0.0))? == 0.0 {
        return Ok(None);
    }
    if rotated != head_len {
        // Angles carry the temperature.
        let requirement =
            format!("{head_len}, the length of a head, where queries have a temperature");
        return Err(keys.misfit("rope.dimension_count", &requirement));
    }
    Ok(Some(Temperature {
        scale: keys.positive(SCALE, 0.0)?,
        length: original_context(keys, context)? as f64,
    }))
}

/// Returns the number of tokens that a model was trained with before its rotation was scaled.
pub(super) fn original_context(keys: Keys<'_>, context: usize) -> Result<usize> {
    keys.size("rope.scaling.original_context_length", Some(context))
}

/// The tensors with a factor for each frequency: one tensor of Llama 3, and two of Phi 3, for contexts up to the
/// original length and for longer ones.
const FACTORS: &str = "rope_freqs.weight";
const SHORT_AND_LONG: [&str; 2] = ["rope_factors_short.weight", "rope_factors_long.weight"];

/// Returns whether rotations may depend on a tensor, by its name.
pub(super) fn is_factors(file: &Gguf, name: &str) -> bool {
    name == FACTORS || (SHORT_AND_LONG.contains(&name) && file.tensor(FACTORS).is_none())
}

/// Returns the tensor with the factors for sessions of `capacity` tokens, if there is one.
fn factors(keys: Keys<'_>, capacity: usize) -> Result<Option<&'static str>> {
    let has = |name: &&str| keys.file.tensor(name).is_some();
    if has(&FACTORS) {
        return Ok(Some(FACTORS));
    }
    let original = original_context(keys, capacity)?;
    let name = SHORT_AND_LONG[usize::from(capacity > original)];
    Ok(Some(name).filter(has))
}
