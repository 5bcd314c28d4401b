//! Adapters in safetensors files, with the names of Hugging Face's PEFT.

use super::{AdapterFile, LoraOptions};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::llm::gguf::invalid;
use crate::llm::model::{HeadOrder, LowRank, Model};
use crate::tensor::ggml::WeightType;
use ::safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::BTreeSet;

/// Endings of the names of A and B.
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// Names of linear layers, and their names in GGUF.
pub(in crate::llm) const LAYERS: [(&str, &str); 9] = [
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// Returns whether a name is that of the matrix that joins the gate and the values which it multiplies.
pub(in crate::llm) fn is_joined(name: &str) -> bool {
    name.ends_with("gate_up_proj")
}

/// Reads the matrices of an adapter.
pub(super) fn read(bytes: &[u8], model: &Model, options: &LoraOptions) -> Result<Vec<LowRank>> {
    let fault = |error: ::safetensors::SafeTensorError| {
        let what = format!("neither GGUF nor safetensors: {error}");
        invalid(what, "the adapter's header")
    };
    let file = SafeTensors::deserialize(bytes).map_err(fault)?;
    let Some(alpha) = options.alpha else {
        return Err(crate::error::Error::invalid(
            "alpha",
            "left out",
            "given for a safetensors file, as `lora_alpha` of adapter_config.json",
        ));
    };
    let mut all = Vec::new();
    for (name, a) in file.iter() {
        let place = || format!("tensor `{name}`");
        let Some(layer) = name.strip_suffix(A) else {
            if name
                .strip_suffix(B)
                .is_some_and(|layer| file.tensor(&format!("{layer}{A}")).is_ok())
            {
                continue;
            }
            return Err(invalid("it is neither A nor B of a linear layer", place()));
        };
        let tensor = gguf_name(layer)
            .ok_or_else(|| invalid("it belongs to no known linear layer", place()))?;
        let b = file.tensor(&format!("{layer}{B}")).map_err(fault)?;
        let (&[rank, _], &[rows, b_rank]) = (a.shape(), b.shape()) else {
            return Err(invalid("A and B must have two dimensions", place()));
        };
        if b_rank != rank {
            let what = format!("the rank is {rank} in A, but {b_rank} in B");
            return Err(invalid(what, place()));
        }
        let mut low_rank = LowRank {
            rank,
            a: values(&a, name)?,
            b: values(&b, name)?,
            tensor,
        };
        low_rank.b = model.ordered(&low_rank.tensor, rows, low_rank.b, HeadOrder::File)?;
        low_rank.scale_by_rank(Some(alpha))?;
        all.push(low_rank);
    }
    if all.is_empty() {
        return Err(invalid("there are no tensors", "the adapter's header"));
    }
    Ok(all)
}

/// Writes the matrices of an adapter for a model.
///
/// # Errors
/// `InvalidModel` for a linear layer without a name in PEFT, `OutOfMemory`.
pub(super) fn write(adapter: &AdapterFile, model: &Model) -> Result<Vec<u8>> {
    let fault = |error: ::safetensors::SafeTensorError| invalid(error.to_string(), "the adapter");
    let mut all = Vec::new();
    for LowRank { tensor, rank, a, b } in &adapter.matrices {
        let (layer, name) = peft_name(tensor, model.joins_gates())
            .ok_or_else(|| invalid("PEFT has no name for it", format!("tensor `{tensor}`")))?;
        let layer = format!("base_model.model.model.layers.{layer}.{name}");
        let (cols, rows) = (a.len() / rank, b.len() / rank);
        let b = model.ordered(tensor, rows, b.clone(), HeadOrder::Halves)?;
        all.push((format!("{layer}{A}"), [*rank, cols], bytes(a)));
        all.push((format!("{layer}{B}"), [rows, *rank], bytes(&b)));
    }
    let views = all.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
        Ok((name, view.map_err(fault)?))
    });
    serialize(views.collect::<Result<Vec<_>>>()?, None).map_err(fault)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Returns `adapter_config.json` of an adapter.
pub(super) fn config(adapter: &AdapterFile, model: &Model) -> String {
    let (mut layers, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for matrix in &adapter.matrices {
        if let Some((layer, name)) = peft_name(&matrix.tensor, model.joins_gates()) {
            layers.insert(layer);
            modules.insert(name.rsplit('.').next().unwrap_or(name));
        }
    }
    // PEFT declares it as an integer.
    let alpha = if adapter.alpha.fract() == 0.0 {
        serde_json::json!(adapter.alpha as i64)
    } else {
        serde_json::json!(adapter.alpha)
    };
    let some = (layers.len() < model.config.layers).then_some(layers);
    let config = serde_json::json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": model.file.text("general.name").ok().flatten(),
        "r": adapter.rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "target_modules": modules,
        "layers_to_transform": some,
    });
    config.to_string()
}

/// Returns the layer of a tensor of a GGUF file, and the name of the linear layer.
fn peft_name(tensor: &str, joins_gates: bool) -> Option<(usize, &'static str)> {
    let (layer, own) = tensor.strip_prefix("blk.")?.split_once('.')?;
    let own = own.strip_suffix(".weight")?;
    let fits = |(name, gguf): &&(&str, &str)| {
        *gguf == own && (own != "ffn_up" || is_joined(name) == joins_gates)
    };
    let (name, _) = LAYERS.iter().find(fits)?;
    Some((layer.parse().ok()?, name))
}

/// Returns `lora_alpha` of `adapter_config.json`, or the equivalent value if the scale is divided by the root of the
/// rank.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn alpha(config: &[u8]) -> Result<f32> {
    let place = "adapter_config.json";
    let config: serde_json::Value =
        serde_json::from_slice(config).map_err(|error| invalid(error.to_string(), place))?;
    for key in [
        "use_dora",
        "alpha_pattern",
        "rank_pattern",
        "fan_in_fan_out",
    ] {
        let used = match &config[key] {
            serde_json::Value::Bool(used) => *used,
            serde_json::Value::Object(patterns) => !patterns.is_empty(),
            _ => false,
        };
        if used {
            return Err(invalid(format!("`{key}` is not supported"), place));
        }
    }
    let number = |key: &str| {
        let missing = || invalid(format!("`{key}` is missing"), place);
        config[key].as_f64().ok_or_else(missing)
    };
    let alpha = number("lora_alpha")?;
    let by_root = config["use_rslora"].as_bool() == Some(true);
    Ok(if by_root {
        alpha * number("r")?.sqrt()
    } else {
        alpha
    } as f32)
}

/// Returns the name of a layer's weights in GGUF files.
fn gguf_name(layer: &str) -> Option<String> {
    if layer.rsplit('.').next() == Some("lm_head") {
        return Some("output.weight".to_owned());
    }
    let (_, rest) = layer.rsplit_once(".layers.")?;
    let (number, layer) = rest.split_once('.')?;
    let number: usize = number.parse().ok()?;
    let (_, name) = LAYERS.iter().find(|(name, _)| *name == layer)?;
    Some(format!("blk.{number}.{name}.weight"))
}

fn values(tensor: &TensorView<'_>, name: &str) -> Result<Vec<f32>> {
    let kind = match tensor.dtype() {
        Dtype::F32 => WeightType::F32,
        Dtype::F16 => WeightType::F16,
        Dtype::BF16 => WeightType::BF16,
        other => {
            let what = format!("its type is {other:?}, but must be F32, F16 or BF16");
            return Err(invalid(what, format!("tensor `{name}`")));
        }
    };
    let mut values = try_zeros(tensor.shape().iter().product())?;
    kind.dequantize(tensor.data(), &mut values);
    Ok(values)
}
