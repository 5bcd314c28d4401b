//! Imports that read or write one property become two lists of names in the glue. wasm-bindgen writes
//! each of those seventy as a function of its own.

use anyhow::{Context, Result};

/// Where the object of imports begins.
const START: &str = "        __proto__: null,\n";

/// Properties that are read for each call, which are faster each by a function of its own.
const HOT: [&str; 1] = ["length"];

/// The glue with these lists, and the imports that they stand for, in their order: the first is known
/// to the module as `0`.
pub(super) fn listed(glue: &str) -> Result<(String, Vec<String>)> {
    let lines: Vec<&str> = glue.lines().collect();
    let (mut rest, mut getters, mut setters) = (String::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < lines.len() {
        if let Some(found) = getter(&lines[at..]) {
            getters.push(found);
            at += 4;
        } else if let Some(found) = setter(&lines[at..]) {
            setters.push(found);
            at += 3;
        } else {
            rest += lines[at];
            rest.push('\n');
            at += 1;
        }
    }
    let names = |found: &[(String, String)]| {
        let names: Vec<&str> = found.iter().map(|(_, property)| &property[..]).collect();
        names.join(" ")
    };
    let lists = format!(
        "        ...[
            ...'{}'.split(' ').map((name) => (object) => object[name]),
            ...'{}'.split(' ').map((name) => (object, value) => {{ object[name] = value; }}),
        ],\n",
        names(&getters),
        names(&setters)
    );
    let start = rest.find(START).context("the glue has imports")? + START.len();
    rest.insert_str(start, &lists);
    let imports = getters.into_iter().chain(setters);
    Ok((rest, imports.map(|(import, _)| import).collect()))
}

/// The import and the property of a function like `function(arg0) { const ret = arg0.size; return ret; }`.
fn getter(lines: &[&str]) -> Option<(String, String)> {
    let [head, body, "            return ret;", "        },", ..] = lines else {
        return None;
    };
    let import = head.trim_start().strip_suffix(": function(arg0) {")?;
    let property = body.strip_prefix("            const ret = arg0.")?;
    found(import, property.strip_suffix(';')?)
}

/// Those of a function like `function(arg0, arg1) { arg0.size = arg1; }`.
fn setter(lines: &[&str]) -> Option<(String, String)> {
    let [head, body, "        },", ..] = lines else {
        return None;
    };
    let import = head.trim_start().strip_suffix(": function(arg0, arg1) {")?;
    let property = body.strip_prefix("            arg0.")?;
    found(import, property.strip_suffix(" = arg1;")?)
}

fn found(import: &str, property: &str) -> Option<(String, String)> {
    let plain = property.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !HOT.contains(&property)).then(|| (import.into(), property.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getters_and_setters_become_lists() {
        let glue = "        __proto__: null,
        a: function(arg0, arg1) {
            arg0.size = arg1;
        },
        b: function(arg0) {
            const ret = arg0.limits;
            return ret;
        },
        c: function(arg0) {
            const ret = arg0.length;
            return ret;
        },
";
        let (text, imports) = listed(glue).unwrap();
        assert_eq!(imports, ["b", "a"]);
        assert!(text.contains("'limits'.split") && text.contains("'size'.split"));
        assert!(!text.contains("a: function") && text.contains("c: function"));
    }
}
