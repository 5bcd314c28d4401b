//! Checks that names are valid identifiers of PTX and unique in the text.

use super::super::emit::LABELS;
use super::super::error::{Error, Result};
use super::super::kernel::PtxKernel;

pub(super) fn check(kernel: &PtxKernel) -> Result<()> {
    let params = kernel.params.iter().map(|param| param.name);
    let arrays = kernel.shared.iter().map(|array| array.name.as_str());
    for name in params.chain(arrays).chain([kernel.name.as_str()]) {
        check_name(kernel, name)?;
    }
    check_distinct(kernel)
}

fn check_name(kernel: &PtxKernel, name: &str) -> Result<()> {
    let requirement = if !is_identifier(name) {
        "a letter, or `_` or `$` and something else, and then letters, digits, `_` and `$`"
    } else if is_taken(name) {
        "neither a label (`LOOP_0`, `ELSE_0`, `END_0`) nor PTX's own `WARP_SZ`"
    } else {
        return Ok(());
    };
    Err(invalid(kernel, name, requirement))
}

/// Whether a name is a PTX identifier. Names that begin with `%` are reserved for registers.
fn is_identifier(name: &str) -> bool {
    let follows = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    match name.as_bytes() {
        [b'_' | b'$', rest @ ..] => !rest.is_empty() && rest.iter().all(follows),
        [first, rest @ ..] => first.is_ascii_alphabetic() && rest.iter().all(follows),
        [] => false,
    }
}

fn is_taken(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let mut numbers = LABELS.iter().filter_map(|label| name.strip_prefix(label));
    name == "WARP_SZ" || numbers.any(is_number)
}

/// Checks that names are distinct. Parameters and static arrays have the scope of the kernel, a
/// dynamic array that of the module.
fn check_distinct(kernel: &PtxKernel) -> Result<()> {
    let params = kernel.params.iter().map(|param| param.name);
    let arrays = kernel.shared.iter().filter(|array| !array.dynamic);
    let arrays = arrays.map(|array| array.name.as_str());
    let names: Vec<&str> = params.chain(arrays).collect();
    let mut places = 0..names.len();
    let twice = places.find(|&i| names[..i].contains(&names[i]) || kernel.has_dynamic(names[i]));
    twice.map_or(Ok(()), |i| {
        let requirement = "unique among parameters and shared arrays";
        Err(invalid(kernel, names[i], requirement))
    })
}

fn invalid(kernel: &PtxKernel, name: &str, requirement: &'static str) -> Error {
    Error::invalid("name", format!("{name:?}"), requirement).of(&kernel.name)
}
