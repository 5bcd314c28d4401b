//! Runs wasm-bindgen, and adapts its output: the script that loads a module, and the module.

use super::{GLUE, MODULE};
use anyhow::{Result, ensure};
use regex::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use walrus::{Import, ImportKind, Module};
use wasm_bindgen_cli_support::Bindgen;

/// Writes a compiled module with its script and types into a folder. wasm-bindgen is linked as a library: compiling
/// its program and wasm-pack takes five minutes on a fresh machine.
pub(super) fn bind(compiled: &Path, folder: &Path) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(compiled).out_name("relampago");
    // `index.js` chooses the module; bundlers would look for the default one.
    bindgen.web(true)?.omit_default_module_path(true);
    let mut output = bindgen.typescript(true).generate_output()?;
    output.emit(folder)?;
    let (script, module) = (folder.join(GLUE[0]), output.wasm_mut());
    // While functions have their names, which wasm-opt strips.
    let adapted = adapt(&fs::read_to_string(&script)?, module)?;
    fs::write(script, adapted)?;
    Ok(fs::write(folder.join(MODULE), module.emit_wasm())?)
}

/// Adapts the module, and returns the script that goes with it.
fn adapt(script: &str, module: &mut Module) -> Result<String> {
    let script = shorten_names(script, module)?;
    remove_unused_exports(&script, module);
    with_errors(&script)
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns are constants")
}

/// Shortens the mangled names of imports and closures, of forty letters or more, in script and module: 5 KB of the
/// compressed download. Short names follow the order of the long, so builds with the same names stay interchangeable.
fn shorten_names(script: &str, module: &mut Module) -> Result<String> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| regex(r"[\w$]+"));
    let imports = module.imports.iter();
    let is_function = |import: &&Import| matches!(import.kind, ImportKind::Function(_));
    // The script has an option with the name of the memory.
    let imports = imports.filter(is_function);
    let imports = imports.filter(|import| import.module.ends_with("_bg.js"));
    let imports = imports.map(|import| &import.name);
    let exports = module.exports.iter().map(|export| &export.name);
    let closures = exports.filter(|name| name.contains("__convert__closures_"));
    let long: BTreeSet<String> = imports.chain(closures).cloned().collect();
    let long = long.into_iter().enumerate();
    let short: BTreeMap<_, _> = long.map(|(i, name)| (name, format!("$${i}"))).collect();
    let renamed = |name: &str| short.get(name).map_or(name, String::as_str).to_owned();
    for import in module.imports.iter_mut() {
        import.name = renamed(&import.name);
    }
    for export in module.exports.iter_mut() {
        export.name = renamed(&export.name);
        // How closures are called differs between versions of wasm-bindgen.
        ensure!(export.name.len() < 40, "{} keeps its name", export.name);
    }
    let script = NAME.replace_all(script, |name: &Captures| renamed(&name[0]));
    Ok(script.into_owned())
}

/// Removes exports that the script does not name as `wasm.NAME`, so that wasm-opt removes their functions. The crate
/// `llguidance` exports 51 functions for C: 25 KB of the compressed module of chat templates and JSON schemas.
fn remove_unused_exports(script: &str, module: &mut Module) {
    static MEMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"\bwasm\.([\w$]+)"));
    let members = MEMBER.captures_iter(script);
    let used: BTreeSet<&str> = members.map(|member| member.extract::<1>().1[0]).collect();
    let unused = module.exports.iter();
    let unused = unused.filter(|export| !used.contains(export.name.as_str()));
    for id in unused.map(walrus::Export::id).collect::<Vec<_>>() {
        module.exports.delete(id);
    }
}

/// Stands for the module's exports until there are any.
const NOT_LOADED: &str = "const notLoaded = new Proxy({}, {
    get() {
        throw new RelampagoError('NOT_LOADED', 'await init() first: the WebAssembly module is not there yet');
    },
});
let wasmModule, wasmInstance, wasm = notLoaded;
// Takes a new instance in place of one that a trap ended. Nobody may use or free objects of the old one.
export function renew() {
    wasm = notLoaded;
    initSync({ module: wasmModule });
}";

/// Makes a call before the module is loaded an error of this package. The classes of `js/` refuse `new` and objects of other
/// classes themselves.
fn with_errors(script: &str) -> Result<String> {
    // It numbers a function of the module, and the two modules may number them differently.
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^ *// Cast intrinsic for.*\n"));
    // wgpu puts a browser's errors into its own. For them `String` is as good as 70 lines that describe any value.
    static DESCRIBE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?s)\nfunction debugString\(val\) \{.*?\n\}\n"));
    let script = replace(script, "let wasmModule, wasmInstance, wasm;", 1, NOT_LOADED)?;
    let loaded = "if (wasm !== notLoaded) return wasm;";
    let script = replace(&script, "if (wasm !== undefined) return wasm;", 2, loaded)?;
    let script = NUMBER.replace_all(&script, "");
    let script = DESCRIBE.replace(&script, "\nconst debugString = String;\n");
    Ok(script.into_owned())
}

/// Replaces a text that another version of wasm-bindgen may write otherwise.
fn replace(script: &str, place: &str, count: usize, replacement: &str) -> Result<String> {
    let found = script.matches(place).count();
    ensure!(
        found == count,
        "wasm-bindgen's script has {found} of {place:?}, not {count}"
    );
    Ok(script.replace(place, replacement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::FunctionBuilder;

    /// A module that exports functions of these names.
    fn module_with(exports: &[&str]) -> Module {
        let mut module = Module::default();
        for name in exports {
            let mut builder = FunctionBuilder::new(&mut module.types, &[], &[]);
            builder.func_body().unreachable();
            let function = builder.finish(Vec::new(), &mut module.funcs);
            module.exports.add(name, function);
        }
        module
    }

    #[test]
    fn closures_get_short_names_in_script_and_module() {
        let long = "wasm_bindgen__convert__closures_____invoke__h1";
        let mut module = module_with(&[long]);
        let script = format!("wasm.{long}(a); // {long}2");
        let renamed = shorten_names(&script, &mut module).unwrap();
        assert_eq!(renamed, format!("wasm.$$0(a); // {long}2"));
        assert_eq!(module.exports.iter().next().unwrap().name, "$$0");
    }

    #[test]
    fn exports_that_the_script_names_stay() {
        let mut module = module_with(&["$$1", "$$12", "llg_free"]);
        remove_unused_exports("wasm.$$12(ptr); // llg_free\nwasm.memory", &mut module);
        let names: Vec<_> = module.exports.iter().map(|export| &export.name).collect();
        assert_eq!(names, ["$$12"]);
    }

    #[test]
    fn a_call_before_the_module_is_loaded_is_an_error_of_the_package() {
        let script = "let wasmModule, wasmInstance, wasm;
if (wasm !== undefined) return wasm; if (wasm !== undefined) return wasm;
        // Cast intrinsic for `F64 -> Externref`. 12

function debugString(val) {
    switch (typeof val) {
    }
}
";
        let script = with_errors(script).unwrap();
        assert!(script.contains("new RelampagoError('NOT_LOADED'"));
        assert_eq!(
            script
                .matches("if (wasm !== notLoaded) return wasm;")
                .count(),
            2
        );
        assert!(!script.contains("Cast"));
        assert!(script.contains("\nconst debugString = String;\n"));
        assert!(with_errors("another version's script").is_err());
    }
}
