//! The matrices of an adapter that is learned.

use super::options::TuneOptions;
use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::lazy::{Optimizer, OptimizerState, Tensor, Tensors};
use crate::llm::lora::{LAYERS, is_joined};
use crate::llm::model::{LowRank, LowRankTensors, Model};
use crate::random::Philox;

/// The name of all linear layers.
const ALL: &str = "all-linear";

/// The matrices of a layer, and the moments of their gradients.
pub(super) struct LayerParameters {
    pub(super) matrices: Vec<LowRankTensors>,
    pub(super) moments: Option<OptimizerState>,
}

impl LayerParameters {
    fn new(matrices: Vec<LowRankTensors>, optimizer: Optimizer) -> Result<Self> {
        let moments = match &matrices[..] {
            [] => None,
            all => Some(optimizer.init(&tensors(all))?),
        };
        Ok(Self { matrices, moments })
    }

    /// Returns A and B of each linear layer.
    pub(super) fn tensors(&self) -> Vec<&Tensor> {
        tensors(&self.matrices)
    }

    /// Replaces A and B of each linear layer.
    pub(super) fn replace(&mut self, moved: Vec<Tensor>, moments: OptimizerState) {
        let mut moved = moved.into_iter();
        for matrix in &mut self.matrices {
            if let (Some(a), Some(b)) = (moved.next(), moved.next()) {
                (matrix.a, matrix.b) = (a, b);
            }
        }
        self.moments = Some(moments);
    }
}

fn tensors(matrices: &[LowRankTensors]) -> Vec<&Tensor> {
    let both = matrices.iter().map(|matrix| [&matrix.a, &matrix.b]);
    both.flatten().collect()
}

/// A linear layer that gets matrices.
pub(super) struct Target {
    pub(super) tensor: String,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// Returns the linear layers that options name, layer by layer.
///
/// # Errors
/// `InvalidArgument` for layers that the model does not have.
pub(super) fn targets(model: &Model, options: &TuneOptions) -> Result<Vec<Vec<Target>>> {
    let count = model.config.layers;
    let layers = options.layers.clone().unwrap_or(0..count);
    if layers.is_empty() || layers.end > count {
        let requirement = format!("some of the {count} layers of the model");
        return Err(Error::invalid("layers", format!("{layers:?}"), requirement));
    }
    let mut all = Vec::new();
    for layer in 0..count {
        let own = if layers.contains(&layer) {
            of_layer(model, layer, &options.targets)?
        } else {
            Vec::new()
        };
        all.push(own);
    }
    Ok(all)
}

fn of_layer(model: &Model, layer: usize, names: &[String]) -> Result<Vec<Target>> {
    let mut own = Vec::new();
    let mut known = Vec::new();
    for (peft, gguf) in LAYERS {
        let tensor = format!("blk.{layer}.{gguf}.weight");
        let Some([rows, cols]) = model.linear_shape(&tensor) else {
            continue;
        };
        // Both names of the feed-forward network's first matrices mean the same tensor.
        if gguf == "ffn_up" && is_joined(peft) != model.joins_gates() {
            continue;
        }
        let name = peft.rsplit('.').next().unwrap_or(peft);
        known.push(name);
        if names.iter().any(|own| own == name || own == ALL) {
            own.push(Target { tensor, rows, cols });
        }
    }
    let unknown = names
        .iter()
        .find(|own| *own != ALL && !known.contains(&own.as_str()));
    if unknown.is_some() || names.is_empty() {
        let requirement = format!("some of {}, or {ALL}", known.join(", "));
        let value = unknown.map_or("empty", String::as_str);
        return Err(Error::invalid("targets", value, requirement));
    }
    Ok(own)
}

/// Makes the first matrices: A is uniform and B zero, so that the adapter changes nothing yet.
pub(super) fn first(
    tensors: &Tensors,
    targets: &[Vec<Target>],
    options: &TuneOptions,
    optimizer: Optimizer,
) -> Result<Vec<LayerParameters>> {
    let random = Philox::new(options.seed);
    let mut index = 0;
    let layers = targets.iter().map(|own| {
        let matrices = own.iter().map(|target| {
            let mut a = try_zeros(options.rank * target.cols)?;
            random.uniform(index, &mut a);
            index += a.len() as u64;
            // PyTorch's bounds of a linear layer.
            let bound = 1.0 / libm::sqrtf(target.cols as f32);
            for x in &mut a {
                *x = (2.0 * *x - 1.0) * bound;
            }
            let b = try_zeros(target.rows * options.rank)?;
            low_rank(tensors, target, options.rank, [a, b])
        });
        LayerParameters::new(matrices.collect::<Result<_>>()?, optimizer)
    });
    layers.collect()
}

/// Makes the matrices that an adapter has, which must be those of the options.
///
/// # Errors
/// `InvalidArgument` for an adapter of other layers, or of another rank.
pub(super) fn of_adapter(
    tensors: &Tensors,
    targets: &[Vec<Target>],
    options: &TuneOptions,
    (all, optimizer): (&[LowRank], Optimizer),
) -> Result<Vec<LayerParameters>> {
    let wanted = targets.iter().flatten().count();
    let layers = targets.iter().map(|own| {
        let matrices = own.iter().map(|target| {
            let found = all.iter().find(|one| one.tensor == target.tensor);
            let fits = |one: &&LowRank| one.rank == options.rank && all.len() == wanted;
            let Some(one) = found.filter(fits) else {
                return Err(other_adapter(options, wanted, all));
            };
            // Readers include the scale.
            let scale = options.alpha / options.rank as f32;
            let b = one.b.iter().map(|x| x / scale).collect();
            low_rank(tensors, target, options.rank, [one.a.clone(), b])
        });
        LayerParameters::new(matrices.collect::<Result<_>>()?, optimizer)
    });
    layers.collect()
}

fn other_adapter(options: &TuneOptions, wanted: usize, all: &[LowRank]) -> Error {
    let rank = all.first().map_or(0, |one| one.rank);
    let value = format!("an adapter of rank {rank} for {} linear layers", all.len());
    let requirement = format!(
        "one of rank {} for the {wanted} layers of the options",
        options.rank
    );
    Error::invalid("resume", value, requirement)
}

fn low_rank(
    tensors: &Tensors,
    target: &Target,
    rank: usize,
    [a, b]: [Vec<f32>; 2],
) -> Result<LowRankTensors> {
    Ok(LowRankTensors {
        tensor: target.tensor.as_str().into(),
        a: tensors.own(a, &[rank, target.cols])?,
        b: tensors.own(b, &[target.rows, rank])?,
    })
}
