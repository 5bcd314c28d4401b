//! Models that are split into several files.

use super::random_models::{LLAMA, metadata, random_model};
use relampago::llm::{Gguf, GgufWriter, LanguageModel, LoadOptions};
use std::path::Path;

/// The metadata of a part: its index, the number of parts, and the number of tensors of all parts.
type Split = [u32; 3];

/// The parts of a model, of which the first one has the metadata. `change` alters what the parts say.
pub(crate) fn parts_of(model: &[u8], count: usize, change: impl Fn(&mut Split)) -> Vec<Vec<u8>> {
    let file = Gguf::from_bytes(model.to_vec()).unwrap();
    let tensors = file.tensors();
    let parts = tensors.chunks(tensors.len().div_ceil(count)).enumerate();
    let parts = parts.map(|(index, part)| {
        let mut writer = match index {
            0 => metadata(LLAMA).0,
            _ => GgufWriter::default(),
        };
        let mut split = [index, count, tensors.len()].map(|value| value as u32);
        change(&mut split);
        for (key, value) in ["no", "count", "tensors.count"].into_iter().zip(split) {
            writer.unsigned(&format!("split.{key}"), value);
        }
        for tensor in part {
            let (name, shape, kind) = (tensor.name(), tensor.shape(), tensor.weight_type());
            writer.tensor(name, shape, kind, file.data(tensor)).unwrap();
        }
        writer.finish()
    });
    parts.collect()
}

/// Writes parts as `tiny-00001-of-00003.gguf` and so on.
pub(crate) fn write_parts(folder: &Path, parts: &[Vec<u8>]) {
    let count = parts.len();
    for (index, part) in parts.iter().enumerate() {
        let name = format!("tiny-{:05}-of-{count:05}.gguf", index + 1);
        std::fs::write(folder.join(name), part).unwrap();
    }
}

fn logits(model: &LanguageModel) -> Vec<f32> {
    model.session().unwrap().prefill(&[1, 2, 3]).unwrap()
}

#[test]
fn split_models_are_the_whole_model() {
    let (bytes, _) = random_model(LLAMA, 1);
    let whole = LanguageModel::from_bytes(bytes.clone(), LoadOptions::default()).unwrap();
    let parts = parts_of(&bytes, 3, |_| ());
    assert_eq!(parts.len(), 3);
    let size: usize = parts.iter().map(Vec::len).sum();
    let folder = std::env::temp_dir().join(format!("relampago-split-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    write_parts(&folder, &parts);
    let first = folder.join("tiny-00001-of-00003.gguf");
    let opened = LanguageModel::load(&first, LoadOptions::default()).unwrap();
    let joined = LanguageModel::from_parts(parts, LoadOptions::default()).unwrap();
    for model in [&opened, &joined] {
        assert_eq!(logits(model), logits(&whole));
        assert_eq!(model.info().parameters, whole.info().parameters);
        assert_eq!(model.info().file_bytes, size as u64);
    }
    drop(opened);
    std::fs::remove_file(folder.join("tiny-00002-of-00003.gguf")).unwrap();
    let error = LanguageModel::load(first, LoadOptions::default()).unwrap_err();
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(error.code(), "FILE");
    let message = error.to_string();
    assert!(message.contains("tiny-00002-of-00003.gguf"), "{message}");
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let (bytes, _) = random_model(LLAMA, 1);
    let parts = || parts_of(&bytes, 3, |_| ());
    let [one, two, three]: [Vec<u8>; 3] = parts().try_into().unwrap();
    let other_count = parts_of(&bytes, 3, |split| split[1] = 4);
    let other_tensors = parts_of(&bytes, 3, |split| split[2] += 1);
    let mut cut = three.clone();
    cut.truncate(three.len() - 100);
    let cases = [
        (vec![], "there is no file"),
        (vec![one.clone()], "parts is 3, but 1 are given"),
        (
            vec![one.clone(), two.clone()],
            "parts is 3, but 2 are given",
        ),
        (vec![two.clone()], "the file is part 2 of 3, at part 1 of 1"),
        (
            vec![one.clone(), three.clone(), two.clone()],
            "the file is part 3 of 3, at part 2 of 3",
        ),
        (
            vec![one.clone(), two.clone(), other_count[2].clone()],
            "parts is 4, but 3",
        ),
        (other_tensors, "tensors, but the model has"),
        (vec![one, two, cut], "part 3 of 3, tensor"),
        (
            vec![bytes.clone(), bytes.clone()],
            "parts is 1, but 2 are given",
        ),
    ];
    for (parts, expected) in cases {
        let error = Gguf::from_parts(parts).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.code(), "INVALID_MODEL", "{message}");
        assert!(message.contains(expected), "{message}, but not {expected}");
    }
}
