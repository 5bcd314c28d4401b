//! The state of tuning as bytes: matrices, moments of their gradients, and the number of steps that are done.

use super::options::TuneOptions;
use super::parameters::{self, LayerParameters, Target};
use crate::error::{Error, Result};
use crate::lazy::{Optimizer, OptimizerState, Tensor, Tensors};
use crate::llm::gguf::{Gguf, invalid};
use crate::llm::lora::low_ranks_of_file;
use crate::llm::{GgufWriter, LanguageModel, LoraOptions, Value};

/// The type of files with a state, and the key of the number of steps.
const TYPE: &str = "tuning";
const STEPS: &str = "tuning.steps";

/// The endings of the names of A's and B's tensors: the matrix and its moments.
const ENDINGS: [[&str; 3]; 2] = [
    [".lora_a", ".lora_a.mean", ".lora_a.square"],
    [".lora_b", ".lora_b.mean", ".lora_b.square"],
];

/// The point at which tuning begins.
pub(super) struct Start {
    /// The number of steps that are done.
    pub(super) step: usize,
    pub(super) layers: Vec<LayerParameters>,
}

/// Returns the state of parameters after a number of steps.
pub(super) async fn write(layers: &[LayerParameters], steps: usize) -> Result<Vec<u8>> {
    let mut writer = GgufWriter::default();
    writer.string("general.type", TYPE);
    writer.unsigned(STEPS, steps as u32);
    for layer in layers {
        let Some(moments) = &layer.moments else {
            continue;
        };
        let moments = moments.tensors();
        for (at, matrix) in layer.matrices.iter().enumerate() {
            for (part, own) in [&matrix.a, &matrix.b].into_iter().enumerate() {
                let [mean, square] = [0, 1].map(|moment| moments[4 * at + 2 * part + moment]);
                let shape = [own.shape()[1], own.shape()[0]];
                for (tensor, ending) in [own, mean, square].into_iter().zip(ENDINGS[part]) {
                    let name = format!("{}{ending}", matrix.tensor);
                    writer.f32_tensor(&name, &shape, &tensor.read_async().await?)?;
                }
            }
        }
    }
    Ok(writer.finish())
}

impl LanguageModel {
    /// Reads a state, or the matrices of an adapter.
    pub(super) fn resumed(
        &self,
        tensors: &Tensors,
        bytes: &[u8],
        (targets, options): (&[Vec<Target>], &TuneOptions),
        optimizer: Optimizer,
    ) -> Result<Start> {
        if bytes.starts_with(b"GGUF") {
            let file = Gguf::from_bytes(bytes.to_vec())?;
            if file.text("general.type")? == Some(TYPE) {
                return read(&file, tensors, targets, options.rank);
            }
        }
        let of_options = LoraOptions::default().with_alpha(options.alpha);
        let all = low_ranks_of_file(bytes.to_vec(), &self.model, &of_options)?;
        let adapter = (&all[..], optimizer);
        let layers = parameters::of_adapter(tensors, targets, options, adapter)?;
        Ok(Start { step: 0, layers })
    }
}

fn read(file: &Gguf, tensors: &Tensors, targets: &[Vec<Target>], rank: usize) -> Result<Start> {
    let steps = file.get(STEPS).and_then(Value::as_u64);
    let missing = || invalid("missing", format!("metadata `{STEPS}`"));
    let step = steps.ok_or_else(missing)? as usize;
    let layers = targets.iter().map(|own| {
        let (mut matrices, mut moments) = (Vec::new(), Vec::new());
        for target in own {
            let part = |part: usize, shape: [usize; 2]| -> Result<Vec<Tensor>> {
                let names = ENDINGS[part].iter();
                let names = names.map(|ending| format!("{}{ending}", target.tensor));
                names
                    .map(|name| tensor(file, tensors, &name, shape))
                    .collect()
            };
            let [a, b] = [(0, [rank, target.cols]), (1, [target.rows, rank])];
            let (mut a, mut b) = (part(a.0, a.1)?, part(b.0, b.1)?);
            moments.extend(a.drain(1..).chain(b.drain(1..)));
            matrices.push(crate::llm::model::LowRankTensors {
                tensor: target.tensor.as_str().into(),
                a: a.remove(0),
                b: b.remove(0),
            });
        }
        let steps = tensors.own(vec![step as f32], &[])?;
        let moments = (!own.is_empty()).then(|| OptimizerState::restored(steps, moments));
        Ok(LayerParameters { matrices, moments })
    });
    Ok(Start {
        step,
        layers: layers.collect::<Result<_>>()?,
    })
}

fn tensor(file: &Gguf, tensors: &Tensors, name: &str, shape: [usize; 2]) -> Result<Tensor> {
    let [rows, cols] = shape;
    let found = file
        .tensor(name)
        .filter(|found| found.shape() == [cols, rows]);
    let other = || {
        let value = format!("a state without `{name}` of {rows} rows of {cols}");
        Error::invalid("resume", value, "one of the same model and options")
    };
    tensors.own(file.dequantized(found.ok_or_else(other)?)?, &shape)
}
