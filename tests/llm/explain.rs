//! The steps of a token, which `explain` lists.

use super::random_models::{SHAPES, USED_EXPERTS, random_model};
use relampago::Backend;
use relampago::llm::{Gguf, LanguageModel, LoadOptions, ModelStep};

#[test]
fn the_steps_on_simd_read_each_matrix_once() {
    for shape in SHAPES {
        let (bytes, _) = random_model(shape, 0);
        let file = Gguf::from_bytes(bytes.clone()).unwrap();
        let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
        let explanation = model.explain();
        let [embedding, steps @ ..] = &explanation.steps[..] else {
            panic!("no steps")
        };
        assert_eq!(explanation.backend, Backend::Simd);
        assert_eq!(embedding.operations, ["gather_rows"]);
        assert!(steps.iter().all(|step| step.backend == Backend::Simd));
        let has_head = file.tensor("output.weight").is_some();
        let matrices = file.tensors().iter();
        let matrices = matrices
            .filter(|tensor| tensor.shape().len() > 1)
            .filter(|tensor| !has_head || tensor.name() != "token_embd.weight");
        let expected: usize = matrices
            .map(|tensor| {
                let bytes = (tensor.range().end - tensor.range().start) as usize;
                match tensor.shape() {
                    [_, _, experts] => bytes / experts * USED_EXPERTS,
                    _ => bytes,
                }
            })
            .sum();
        let products = steps.iter().filter(|step| step.weight_type.is_some());
        let read: usize = products.map(|step| step.weight_bytes).sum();
        assert_eq!(read, expected, "{}", shape.name);
        let layers = steps.iter().filter_map(|step| step.layer);
        assert_eq!(layers.max(), Some(shape.layers - 1));
        assert!(steps.is_sorted_by_key(|step| step.layer.unwrap_or(usize::MAX)));
        let sum: usize = explanation.steps.iter().map(|step| step.weight_bytes).sum();
        assert_eq!(explanation.weight_bytes, sum);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn the_steps_on_a_gpu_are_the_kernels_that_run() {
    for shape in SHAPES {
        let (bytes, _) = random_model(shape, 0);
        let options = super::on_gpu();
        let device = options.device.clone().unwrap();
        let model = LanguageModel::from_bytes(bytes, options).unwrap();
        let mut session = model.session().unwrap();
        session.prefill(&[1, 2, 3]).unwrap();
        let profiler = device.profile().expect("llvmpipe keeps timestamps");
        session.decode(4).unwrap();
        let ran = profiler.finish().unwrap().kernels;
        let ran: Vec<&str> = ran.iter().map(|kernel| kernel.kernel).collect();
        let steps = model.explain().steps;
        let on_gpu = steps.iter().filter(|step| step.backend == Backend::Gpu);
        let expected: Vec<&str> = on_gpu.map(|step| step.kernel).collect();
        assert_eq!(ran, expected, "{}", shape.name);
    }
}

#[test]
fn explanations_are_tables() {
    let (bytes, _) = random_model(SHAPES[0], 0);
    let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
    let explanation = model.explain();
    let text = explanation.to_string();
    let find = |tensor: &str| {
        let has = |step: &&ModelStep| step.tensors.iter().any(|name| name == tensor);
        explanation.steps.iter().find(has).unwrap()
    };
    let down = find("blk.1.ffn_down.weight");
    assert_eq!(down.operations, ["matmul", "add"]);
    let line = format!(
        "| 1 | matmul + add | multiply_blocks | Simd | {} × {} | blk.1.ffn_down.weight, {:?} | {} |",
        down.shape[0],
        down.shape[1],
        down.weight_type.unwrap(),
        down.weight_bytes
    );
    assert!(text.contains(&line), "{line}\n{text}");
    assert_eq!(text.lines().count(), 3 + explanation.steps.len());
}
