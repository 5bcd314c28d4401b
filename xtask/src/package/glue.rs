//! Rewrites the errors of wasm-bindgen's script as errors of this package: a call before the module
//! is loaded, and an object of another class.

use anyhow::{Result, ensure};

/// Stands for the module's exports until there are any.
const NOT_LOADED: &str = "new Proxy({}, {
    get() {
        throw new RelampagoError('NOT_LOADED', 'await init() first: the WebAssembly module is not there yet');
    },
})";

const WRONG_CLASS: &str = "
        throw new RelampagoError('INVALID_ARGUMENT', `\\`${what}\\` must be a ${name}`);";

/// The name of wasm-bindgen's function that checks an object's class.
const CLASS_CHECK: &str = "_assertClass(";

/// Returns the texts to replace in the script, the number of times that each occurs, and the
/// replacements.
fn places() -> [(&'static str, usize, String); 4] {
    [
        (
            "let wasmModule, wasmInstance, wasm;",
            1,
            format!(
                "const notLoaded = {NOT_LOADED};\nlet wasmModule, wasmInstance, wasm = notLoaded;"
            ),
        ),
        (
            "if (wasm !== undefined) return wasm;",
            2,
            "if (wasm !== notLoaded) return wasm;".into(),
        ),
        (
            "function _assertClass(instance, klass) {",
            1,
            "function _assertClass(instance, klass, what, name) {".into(),
        ),
        (
            "\n        throw new Error(`expected instance of ${klass.name}`);",
            1,
            WRONG_CLASS.into(),
        ),
    ]
}

/// The script with our errors.
pub(super) fn with_errors(script: &str) -> Result<String> {
    let mut script = script.to_owned();
    let has_checks = script.contains(CLASS_CHECK);
    for (place, count, replacement) in places() {
        let found = script.matches(place).count();
        // A module whose functions take no objects of its classes has no function that checks them.
        if found == 0 && !has_checks && place.contains("klass") {
            continue;
        }
        ensure!(
            found == count,
            "wasm-bindgen's script has {found} of {place:?}, not {count}"
        );
        script = script.replace(place, &replacement);
    }
    let lines = script.lines().filter(|line| !is_number_of_a_cast(line));
    Ok(lines.map(named).collect())
}

/// Whether a line is a comment that numbers a function of the module; the two modules may number them
/// differently.
fn is_number_of_a_cast(line: &str) -> bool {
    line.trim_start().starts_with("// Cast intrinsic for")
}

/// Returns the line of a check with the name of what it checks: `_assertClass(buffer,
/// DeviceBuffer);`.
fn named(line: &str) -> String {
    let call = line.trim_start().strip_prefix("_assertClass(");
    let arguments = call.and_then(|call| call.strip_suffix(");")?.split_once(", "));
    match arguments {
        Some((what, class)) => format!("_assertClass({what}, {class}, '{what}', '{class}');\n"),
        None => format!("{line}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_checks_name_their_argument() {
        let call = "        _assertClass(buffer, DeviceBuffer);";
        let named_call = "_assertClass(buffer, DeviceBuffer, 'buffer', 'DeviceBuffer');\n";
        assert_eq!(named(call), named_call);
        assert_eq!(
            named("function _assertClass(a, b) {"),
            "function _assertClass(a, b) {\n"
        );
        assert!(with_errors("another version's script").is_err());
    }
}
