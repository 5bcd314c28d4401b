//! Models that are split into several files, as llama.cpp's `gguf-split` writes them.

use super::head::Head;
use super::invalid;
use crate::error::{Error, Result};
#[cfg(not(target_arch = "wasm32"))]
use std::path::{Path, PathBuf};

/// The index of a part, the number of parts, and the number of tensors of all parts.
const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Checks whether these are all parts of one model, in order.
///
/// # Errors
/// `InvalidModel` with the first part that is missing or out of place.
pub(super) fn check(heads: &[Head]) -> Result<()> {
    let given = heads.len() as u64;
    for (index, head) in heads.iter().enumerate() {
        let number = head.unsigned(NUMBER).unwrap_or(0);
        let count = head.unsigned(COUNT).unwrap_or(1).max(1);
        let place = format!("part {} of {given}", index + 1);
        if number != index as u64 {
            let what = format!("the file is part {} of {count}", number.saturating_add(1));
            return Err(invalid(what, place));
        }
        if count != given {
            let what = format!("the number of the model's parts is {count}, but {given} are given");
            return Err(invalid(what, place));
        }
    }
    let tensors: u64 = heads.iter().map(|head| head.tensors.len() as u64).sum();
    let expected = heads.first().and_then(|head| head.unsigned(TENSORS));
    match expected.filter(|&expected| expected != tensors) {
        Some(expected) => {
            let what = format!("the parts have {tensors} tensors, but the model has {expected}");
            Err(invalid(what, format!("metadata `{TENSORS}`")))
        }
        None => Ok(()),
    }
}

/// Adds the part to the place of an error if there are several.
pub(super) fn in_part(error: Error, index: usize, count: usize) -> Error {
    match error {
        Error::InvalidModel { what, place } if count > 1 => {
            invalid(what, format!("part {} of {count}, {place}", index + 1))
        }
        other => other,
    }
}

/// The largest number of parts that are looked for.
#[cfg(not(target_arch = "wasm32"))]
const MOST_PARTS: usize = 1000;

/// The paths of all parts if this is the first one, as its name says, else the path itself.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn paths(first: &Path) -> Vec<PathBuf> {
    let name = first.file_name().and_then(|name| name.to_str());
    let Some((stem, count)) = name.and_then(stem_and_count) else {
        return vec![first.to_owned()];
    };
    let names = (1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}.gguf"));
    names.map(|name| first.with_file_name(name)).collect()
}

/// Splits `stem-00001-of-00003.gguf` into `stem` and 3.
#[cfg(not(target_arch = "wasm32"))]
fn stem_and_count(name: &str) -> Option<(&str, usize)> {
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let is_count = count.len() == 5 && count.bytes().all(|byte| byte.is_ascii_digit());
    let count = count
        .parse()
        .ok()
        .filter(|count| (1..=MOST_PARTS).contains(count));
    Some((rest.strip_suffix("-00001")?, count.filter(|_| is_count)?))
}
