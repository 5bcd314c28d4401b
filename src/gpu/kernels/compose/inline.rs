//! Inlining of functions. Inside a function that is called, Chromium cannot see that an index of an array is within
//! bounds, and adds a check: products by the arrays of matrices took 1.7 times as long.

use std::collections::BTreeMap;

use super::module::{Declaration, Module};
use super::{Result, words};

/// Returns a text with the bodies of functions in place of their calls. `functions` are declarations of `module`; other
/// declarations do not change. An argument may have no call of its own.
pub(super) fn inlined(text: &str, functions: &[&Declaration], module: &Module) -> Result<String> {
    let mut text = text.to_owned();
    for declaration in functions {
        let Some((parameters, body)) = parts(&declaration.text) else {
            continue;
        };
        while let Some((start, arguments)) = call(&text, &declaration.name) {
            let end = text[arguments..].find(')').map(|end| arguments + end);
            let given = end
                .map(|end| &text[arguments..end])
                .filter(|given| !given.contains('('));
            let (Some(end), Some(given)) = (end, given) else {
                let message = format!(
                    "a call of `{}` has a call among its arguments",
                    declaration.name
                );
                return Err(module.error(declaration.line, message));
            };
            let arguments = parameters.iter().copied().zip(given.split(", ")).collect();
            let written = with_arguments(body, &arguments);
            text.replace_range(start..=end, &written);
        }
    }
    Ok(text)
}

/// Returns where a call begins and where its arguments do.
fn call(text: &str, name: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut earlier = "";
    for word in words(text) {
        if earlier == name && word.starts_with('(') {
            return Some((at - name.len(), at + 1));
        }
        at += word.len();
        earlier = word;
    }
    None
}

/// Returns the names of a function's parameters, and the text that replaces a call: its value, or its statements
/// without the last semicolon. Returns `None` for other declarations.
fn parts(text: &str) -> Option<(Vec<&str>, &str)> {
    let (head, body) = text.strip_prefix("fn ")?.split_once(" {\n")?;
    let parameters = head.split(['(', ')']).nth(1)?.split(", ");
    let names = parameters.filter_map(|typed| typed.split(':').next());
    let body = body.strip_suffix(";\n}\n")?;
    Some((names.collect(), body.trim_start_matches("return ")))
}

/// Returns a function's body with arguments in place of its parameters.
fn with_arguments(body: &str, arguments: &BTreeMap<&str, &str>) -> String {
    let mut is_member = false;
    let replace = |word: &str| {
        let argument = arguments.get(word).filter(|_| !is_member);
        is_member = word.ends_with('.');
        argument.map_or(word.to_owned(), |argument| format!("({argument})"))
    };
    words(body).map(replace).collect()
}
