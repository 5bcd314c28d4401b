//! Removes exports that the script does not use, so that wasm-opt removes their functions.
//!
//! The crate `llguidance` exports 51 functions for C, and the linker leaves everything that they call in the module:
//! 25 KB of the compressed download of `relampago/llm`.

use std::collections::BTreeSet;
use walrus::{Export, Module};

/// The script's name of the exports, with the dot before a member.
const EXPORTS: &str = "wasm.";

/// Leaves the exports that the script names.
pub(super) fn remove_unused(script: &str, module: &mut Module) {
    let used = members(script);
    let unused = module.exports.iter();
    let unused = unused.filter(|export| !used.contains(export.name.as_str()));
    for id in unused.map(Export::id).collect::<Vec<_>>() {
        module.exports.delete(id);
    }
}

/// Returns the exports that a script names as `wasm.NAME`.
fn members(script: &str) -> BTreeSet<&str> {
    let name_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$');
    let members = script.split(EXPORTS).skip(1);
    members
        .filter_map(|member| member.split(name_end).next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::{FunctionBuilder, ValType};

    #[test]
    fn exports_that_the_script_names_stay() {
        let mut module = Module::default();
        for name in ["$$1", "$$12", "llg_free"] {
            let function = FunctionBuilder::new(&mut module.types, &[ValType::I32], &[]);
            let function = function.finish(vec![], &mut module.funcs);
            module.exports.add(name, function);
        }
        remove_unused("wasm.$$12(ptr); // llg_free\nwasm.memory", &mut module);
        let names: Vec<_> = module.exports.iter().map(|export| &export.name).collect();
        assert_eq!(names, ["$$12"]);
    }
}
