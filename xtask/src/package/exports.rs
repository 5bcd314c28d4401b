//! Renames exports of a WebAssembly module.
//!
//! wasm-bindgen names the closures it exports after their places in the function table, which
//! differ from build to build. Numbered instead in the order in which the glue mentions them,
//! they are the same in all variants, and one glue serves every module.

use anyhow::{Context, Result, ensure};
use std::collections::HashMap;

const CLOSURE: &str = "__wasm_bindgen_func_elem_";
const EXPORT_SECTION: u8 = 7;
/// Magic number and version.
const HEADER: usize = 8;

/// From the names that `glue` uses to the ones that it should.
pub(super) fn stable_names(glue: &str) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for (start, _) in glue.match_indices(CLOSURE) {
        let number = names.len();
        names
            .entry(name_at(glue, start).to_owned())
            .or_insert_with(|| format!("closure_{number}"));
    }
    names
}

/// `text` with every name replaced.
pub(super) fn rename_in_text(text: &str, names: &HashMap<String, String>) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, _) in text.match_indices(CLOSURE) {
        let name = name_at(text, start);
        renamed += &text[copied..start];
        renamed += names.get(name).map_or(name, String::as_str);
        copied = start + name.len();
    }
    renamed + &text[copied..]
}

/// `module` with every name replaced in its export section.
pub(super) fn rename_in_module(module: &[u8], names: &HashMap<String, String>) -> Result<Vec<u8>> {
    let (header, mut sections) = module.split_at_checked(HEADER).context("no module")?;
    let mut renamed = header.to_vec();
    while let Some((&id, rest)) = sections.split_first() {
        let (content, rest) = sized(rest)?;
        sections = rest;
        renamed.push(id);
        if id == EXPORT_SECTION {
            write_sized(&mut renamed, &rename_section(content, names)?);
        } else {
            write_sized(&mut renamed, content);
        }
    }
    Ok(renamed)
}

/// A count, then for each export its name, its kind in one byte, and an index.
fn rename_section(section: &[u8], names: &HashMap<String, String>) -> Result<Vec<u8>> {
    let (count, mut rest) = number(section)?;
    let mut renamed = Vec::with_capacity(section.len());
    write_number(&mut renamed, count);
    for _ in 0..count {
        let (name, after_name) = sized(rest)?;
        let (&kind, after_kind) = after_name.split_first().context("an export has a kind")?;
        let (index, after_index) = number(after_kind)?;
        let name = std::str::from_utf8(name)?;
        write_sized(
            &mut renamed,
            names.get(name).map_or(name, String::as_str).as_bytes(),
        );
        renamed.push(kind);
        write_number(&mut renamed, index);
        rest = after_index;
    }
    ensure!(
        rest.is_empty(),
        "the export section is longer than its exports"
    );
    Ok(renamed)
}

fn name_at(text: &str, start: usize) -> &str {
    let tail = &text[start + CLOSURE.len()..];
    let digits = tail
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(tail.len());
    &text[start..start + CLOSURE.len() + digits]
}

/// Splits off bytes that are preceded by their number.
fn sized(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(length as usize)
        .context("the module ends early")
}

/// Splits off a number in LEB128: seven bits a byte, the lowest first.
fn number(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let length = 1 + bytes
        .iter()
        .position(|byte| byte & 0x80 == 0)
        .context("no number ends")?;
    ensure!(length <= 5, "a number of more than 32 bits");
    let (digits, rest) = bytes.split_at(length);
    let value = digits
        .iter()
        .rev()
        .fold(0, |value, byte| value << 7 | u32::from(byte & 0x7f));
    Ok((value, rest))
}

fn write_sized(to: &mut Vec<u8>, bytes: &[u8]) {
    write_number(to, bytes.len() as u32);
    to.extend_from_slice(bytes);
}

fn write_number(to: &mut Vec<u8>, mut value: u32) {
    while value > 0x7f {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLUE: &str = "wasm.__wasm_bindgen_func_elem_70_2(a); f(__wasm_bindgen_func_elem_7); \
                        wasm.__wasm_bindgen_func_elem_70_2(b);";

    /// A module of a custom section and the two exports of `GLUE`.
    fn module(first: &str, second: &str) -> Vec<u8> {
        let mut exports = vec![2];
        for (name, index) in [(first, 300), (second, 1)] {
            write_sized(&mut exports, name.as_bytes());
            exports.push(0);
            write_number(&mut exports, index);
        }
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        module.push(0);
        write_sized(&mut module, b"\x01xyz");
        module.push(EXPORT_SECTION);
        write_sized(&mut module, &exports);
        module
    }

    #[test]
    fn closures_are_numbered_in_the_order_of_the_glue() {
        let names = stable_names(GLUE);
        let renamed = rename_in_text(GLUE, &names);
        assert_eq!(
            renamed,
            "wasm.closure_0(a); f(closure_1); wasm.closure_0(b);"
        );
    }

    #[test]
    fn a_module_keeps_everything_but_the_names() {
        let before = module(
            "__wasm_bindgen_func_elem_7",
            "__wasm_bindgen_func_elem_70_2",
        );
        let after = rename_in_module(&before, &stable_names(GLUE)).unwrap();
        assert_eq!(after, module("closure_1", "closure_0"));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let whole = module("a", "b");
        let cut = &whole[..whole.len() - 1];
        assert!(rename_in_module(cut, &HashMap::new()).is_err());
    }
}
