//! Adapters in GGUF files, as llama.cpp's `convert_lora_to_gguf.py` writes them.

use super::{AdapterFile, LoraOptions};
use crate::error::Result;
use crate::llm::gguf::{Gguf, TensorInfo, invalid, misfit};
use crate::llm::model::{LowRank, Model};
use crate::llm::{GgufWriter, Value};

/// Endings of the names of A and B.
const A: &str = ".lora_a";
const B: &str = ".lora_b";

/// Reads the matrices of an adapter for a model of the same architecture.
pub(super) fn read(bytes: Vec<u8>, model: &Model, options: &LoraOptions) -> Result<Vec<LowRank>> {
    let file = Gguf::from_bytes(bytes)?;
    expect(&file, "general.type", "adapter")?;
    expect(&file, "adapter.type", "lora")?;
    let architecture = model.file.get("general.architecture");
    let architecture = architecture.and_then(Value::as_str).unwrap_or_default();
    expect(&file, "general.architecture", architecture)?;
    let alpha = file
        .typed("adapter.lora.alpha", Value::as_f64, "a number")?
        .map(|alpha| alpha as f32)
        // Files of no scale have 0.
        .filter(|&alpha| alpha != 0.0);
    let alpha = options.alpha.or(alpha);
    let mut all = Vec::new();
    for a in file.tensors() {
        let Some(tensor) = a.name().strip_suffix(A) else {
            if a.name().ends_with(B) {
                continue;
            }
            let what = format!("its name ends neither in `{A}` nor in `{B}`");
            return Err(invalid(what, place(a)));
        };
        let b = file.tensor(&format!("{tensor}{B}"));
        let b =
            b.ok_or_else(|| invalid(format!("there is no `{tensor}{B}` beside it"), place(a)))?;
        let rank = a.shape().get(1).copied().unwrap_or_default();
        if a.shape().len() != 2 || b.shape().len() != 2 || b.shape()[0] != rank {
            let what = format!(
                "the shapes of A and B are {:?} and {:?}",
                a.shape(),
                b.shape()
            );
            return Err(invalid(what, place(a)));
        }
        let mut low_rank = LowRank {
            tensor: tensor.to_owned(),
            rank,
            a: file.dequantized(a)?,
            b: file.dequantized(b)?,
        };
        low_rank.scale_by_rank(alpha)?;
        all.push(low_rank);
    }
    let pairs = file.tensors().len();
    if pairs != 2 * all.len() || all.is_empty() {
        let what = format!("{pairs} tensors are not pairs of A and B");
        return Err(invalid(what, "the table of tensors"));
    }
    Ok(all)
}

/// Writes the matrices of an adapter for a model.
///
/// # Errors
/// `InvalidArgument` for a tensor with a name that is too long.
pub(super) fn write(adapter: &AdapterFile, model: &Model) -> Result<Vec<u8>> {
    let mut writer = GgufWriter::default();
    let architecture = model.file.text("general.architecture")?;
    writer.string("general.type", "adapter");
    writer.string("general.architecture", architecture.unwrap_or_default());
    writer.string("adapter.type", "lora");
    writer.float("adapter.lora.alpha", adapter.alpha);
    for LowRank { tensor, rank, a, b } in &adapter.matrices {
        let (cols, rows) = (a.len() / rank, b.len() / rank);
        writer.f32_tensor(&format!("{tensor}{A}"), &[cols, *rank], a)?;
        writer.f32_tensor(&format!("{tensor}{B}"), &[*rank, rows], b)?;
    }
    Ok(writer.finish())
}

fn place(tensor: &TensorInfo) -> String {
    format!("tensor `{}`", tensor.name())
}

fn expect(file: &Gguf, key: &str, wanted: &str) -> Result<()> {
    if file.text(key)? == Some(wanted) {
        return Ok(());
    }
    Err(misfit(key, file.get(key), &format!("`{wanted}`")))
}
