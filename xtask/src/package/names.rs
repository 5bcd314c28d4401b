//! Shortens the names by which glue and module know each other.
//!
//! wasm-bindgen writes each import and closure with a mangled name of forty letters or more, in
//! the glue and in every module: 5 KB of the compressed download. The short ones follow the
//! order of the long, so builds with the same names stay interchangeable.

use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use walrus::{Import, Module};

type Names = BTreeMap<String, String>;

/// The glue and the module with short names.
pub(super) fn shorten(glue: &str, module: &mut Module) -> Result<String> {
    let names = short_names(module);
    for import in module.imports.iter_mut() {
        rename(&mut import.name, &names);
    }
    for export in module.exports.iter_mut() {
        rename(&mut export.name, &names);
        // How closures are called differs between versions of wasm-bindgen.
        ensure!(export.name.len() < 40, "{} keeps its name", export.name);
    }
    Ok(rename_in_text(glue, &names))
}

/// Returns short names for imports and closures. Names that the package exports, or imports from
/// its own scripts, stay.
fn short_names(module: &Module) -> Names {
    let glue = |import: &&Import| import.module.ends_with("_bg.js");
    let imports = module
        .imports
        .iter()
        .filter(glue)
        .map(|import| &import.name);
    let exports = module.exports.iter().map(|export| &export.name);
    let closures = exports.filter(|name| name.contains("__convert__closures_"));
    let mut long: Vec<&String> = imports.chain(closures).collect();
    long.sort();
    long.dedup();
    let short = |(number, name): (usize, &String)| (name.clone(), format!("$${number}"));
    long.into_iter().enumerate().map(short).collect()
}

fn rename(name: &mut String, names: &Names) {
    if let Some(short) = names.get(name) {
        name.clone_from(short);
    }
}

fn rename_in_text(text: &str, names: &Names) -> String {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(part_of_name) {
        let (before, tail) = rest.split_at(start);
        let end = tail.find(|c| !part_of_name(c)).unwrap_or(tail.len());
        let (name, after) = tail.split_at(end);
        renamed += before;
        renamed += names.get(name).map_or(name, String::as_str);
        rest = after;
    }
    renamed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_replaced_in_text() {
        let names = Names::from([("__wbg_get_1".into(), "$$0".into())]);
        let glue = "{ __wbg_get_1: f, __wbg_get_12: g } // __wbg_get_1";
        let expected = "{ $$0: f, __wbg_get_12: g } // $$0";
        assert_eq!(rename_in_text(glue, &names), expected);
    }
}
