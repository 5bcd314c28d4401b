//! The layers of the library: a folder of `src/` imports only folders above it in this list.

use crate::files;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

/// The layers, from the lowest to the highest. A module is a file, a folder, or both.
const LAYERS: &[&str] = &[
    "error",
    "alloc",
    "runtime",
    "instruction_set",
    "random",
    "files",
    "ops",
    "reference",
    "tensor",
    "graph",
    "simd",
    "cpu",
    "gpu",
    "cuda",
    "device",
    "batch",
    "lazy",
    "pool",
    "llm",
    "js_shared",
    "js_graph",
    "js_train",
    "js_numeric",
    "js",
    "js_chat",
    "js_llm",
    "js_ptx",
];

/// Checks every import of the library; prints those that run upward.
///
/// # Errors
/// If there is any.
pub(super) fn check(root: &Path) -> Result<()> {
    let src = root.join("src");
    let (mut imports, mut wrong) = (0, Vec::new());
    let mut sources = files::list(&src)?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.sort();
    for file in sources {
        let module = file.strip_prefix(&src)?.with_extension("");
        let module: Vec<&str> = module.iter().filter_map(|part| part.to_str()).collect();
        if module == ["lib"] || module.contains(&"tests") {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        for (line, imported) in imported(&text) {
            imports += 1;
            if let Some(fault) = fault(module[0], imported) {
                let place = file.strip_prefix(root)?.display();
                wrong.push(format!("{place}:{line}: {fault}"));
            }
        }
    }
    for fault in &wrong {
        println!("{fault}");
    }
    println!("{imports} imports between {} layers", LAYERS.len());
    ensure!(wrong.is_empty(), "{} imports run upward", wrong.len());
    Ok(())
}

/// Returns the fault of an import of `imported` by the layer `from`, if there is one.
fn fault(from: &str, imported: &str) -> Option<String> {
    let rank = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    match (rank(from), rank(imported)) {
        (None, _) => Some(format!(
            "`{from}` is no layer; xtask/src/test/layers.rs lists them"
        )),
        (_, None) => Some(format!(
            "`crate::{imported}` does not name the layer that it is from"
        )),
        (Some(own), Some(other)) if other > own => Some(format!(
            "`{from}` imports `crate::{imported}`, which stands below it"
        )),
        _ => None,
    }
}

/// The modules, or names, that follow `crate::` outside comments and tests, each with its line.
fn imported(text: &str) -> Vec<(usize, &str)> {
    let code = text.find("\nmod tests {").map_or(text, |end| &text[..end]);
    let mut found = Vec::new();
    for (place, _) in code.match_indices("crate::") {
        let before = &code[..place];
        let line = before.rsplit('\n').next().unwrap_or_default();
        // `$crate` is for macros, and `in crate::` says who sees something.
        if line.contains("//") || line.ends_with('$') || line.ends_with("(in ") {
            continue;
        }
        let number = before.matches('\n').count() + 1;
        let rest = &code[place + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => rest,
        };
        let several = names.len() != rest.len();
        let names = names.split(',').take(if several { usize::MAX } else { 1 });
        found.extend(names.map(|name| (number, identifier(name))));
    }
    found.retain(|(_, name)| !name.is_empty());
    found
}

/// The identifier that a text starts with.
fn identifier(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::{fault, imported};

    #[test]
    fn imports_are_found_outside_comments_and_tests() {
        let text = "use crate::ops::{Op, shape};\n// crate::js\nfn f() -> crate::error::Result { \
                    $crate::gpu }\nuse crate::{alloc, graph::Plan};\npub(in crate::cpu) fn g() {}\n\
                    #[cfg(test)]\nmod tests {\n    use crate::pool;\n}";
        let expected = [(1, "ops"), (3, "error"), (4, "alloc"), (4, "graph")];
        assert_eq!(imported(text), expected);
    }

    #[test]
    fn upward_imports_are_faults() {
        assert_eq!(fault("gpu", "graph"), None);
        assert_eq!(fault("gpu", "gpu"), None);
        assert!(fault("graph", "gpu").is_some_and(|fault| fault.contains("below")));
        assert!(fault("cuda", "Error").is_some());
        assert!(fault("new", "error").is_some());
    }
}
