//! WGSL functions given by users, composed and validated on their own before they become part of a
//! kernel.

#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
mod explain;

#[cfg(any(feature = "gpu", test))]
use std::sync::LazyLock;

use super::words::{is_of_word, words};

/// Library functions on scalars: the name in a user's text, and the name in kernels, where the vector version may have
/// the user's name.
const FUNCTIONS: &[(&str, &str)] = &[
    ("is_nan", "is_nan_f32"),
    ("maximum", "maximum_f32"),
    ("minimum", "minimum_f32"),
    ("nan_where", "nan_where_f32"),
];
/// The types of the library's functions in this context.
#[cfg(any(feature = "gpu", test))]
const TYPES: &[(&str, &str)] = &[("real", "f32"), ("word", "u32"), ("truth", "bool")];

/// Returns whether a text has the form of an identifier. Reserved words are not checked.
pub(super) fn is_identifier(name: &str) -> bool {
    let digit = |first: char| first.is_ascii_digit();
    !name.is_empty() && !name.starts_with(digit) && name.chars().all(is_of_word)
}

/// Returns a function on scalars without its name; `text` is its body or the expression that it
/// returns.
pub(super) fn function(names: impl Iterator<Item = &'static str>, text: &str) -> String {
    let mut parameters = String::new();
    for name in names {
        parameters.extend([name, ": f32, "]);
    }
    let [before, after] = around(text);
    let text = renamed(text, &[FUNCTIONS]);
    // A line's comment at the end of the text must not go on.
    format!("({parameters}) -> f32 {{ {before}{text}\n{after}}}\n")
}

/// Returns the text before and after a user's text in the function's body.
fn around(text: &str) -> [&'static str; 2] {
    let is_body = words(text).any(|word| word == "return");
    if is_body {
        ["", ""]
    } else {
        ["return (", ");"]
    }
}

/// Returns the library's functions on scalars, which users' functions may call.
#[cfg(any(feature = "gpu", test))]
pub(crate) fn library() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| {
        let text = include_str!(concat!(env!("OUT_DIR"), "/nan.wgsl"));
        renamed(text, &[FUNCTIONS, TYPES])
    });
    &LIBRARY
}

/// Returns the text with identifiers replaced.
fn renamed(text: &str, names: &[&[(&str, &str)]]) -> String {
    let mut renamed = String::new();
    for word in words(text) {
        let mut names = names.iter().copied().flatten();
        let other = names.find(|(name, _)| *name == word);
        renamed.push_str(other.map_or(word, |(_, other)| other));
    }
    renamed
}

/// Accepts every text. In WebAssembly the browser validates WGSL, and without the feature `gpu`
/// nothing uses it.
#[cfg(any(target_arch = "wasm32", not(feature = "gpu")))]
#[allow(clippy::unnecessary_wraps)] // The other one finds mistakes.
pub(super) fn check(_: &'static str, _: &str, _: &str, _: usize) -> crate::error::Result<()> {
    Ok(())
}

#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub(super) use naga::check;

#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
mod naga {
    use wgpu::naga::front::wgsl::parse_str;
    use wgpu::naga::valid::{Capabilities, ValidationError, ValidationFlags, Validator};
    use wgpu::naga::{Module, Span};

    use crate::error::{Error, Result};
    use crate::ops::custom::wgsl::{FUNCTIONS, around, explain, library, renamed};
    use crate::ops::custom::words::words;

    /// Returns `Wgsl` unless `function`, which was made of `text`, takes `arity` scalars, returns a
    /// scalar and has no side effects.
    pub(in crate::ops) fn check(
        name: &'static str,
        function: &str,
        text: &str,
        arity: usize,
    ) -> Result<()> {
        let refused = |message: String| Error::Wgsl { name, message };
        let source = module(function, arity);
        let at = |span: Option<Span>| TextPosition::of(span, function, text);
        let parsed = parse_str(&source).map_err(|error| {
            let label = error.labels().next();
            let message = explain::parsing(error.message());
            refused(at(label.map(|(span, _)| span)).with(&message))
        })?;
        if !is_alone(&parsed) {
            return Err(refused("it declares more than one function".to_owned()));
        }
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
        validator.validate(&parsed).map_err(|error| {
            if let ValidationError::EntryPoint { .. } = error.as_inner() {
                return refused(SIDE_EFFECT.to_owned());
            }
            let (span, message) = explain::validation(&error, &parsed, &source);
            refused(at(span).with(&message))
        })?;
        Ok(())
    }

    /// A position in the user's text; `None` if the error is in the names of the inputs.
    struct TextPosition<'a> {
        text: &'a str,
        offset: Option<usize>,
    }

    impl<'a> TextPosition<'a> {
        /// Converts a span of [`module`]'s text, which the user has not seen, to a position in the
        /// user's text.
        fn of(span: Option<Span>, function: &str, text: &'a str) -> Self {
            let start = span.and_then(Span::to_range).map(|range| range.start);
            let body = function.find('{').unwrap_or(0) + "{ ".len() + around(text)[0].len();
            let offset = start.and_then(|start| start.checked_sub(NAMED.len() + body));
            let offset = offset.map(|offset| before_renaming(text, offset));
            Self { text, offset }
        }

        /// Returns the message with the line number, the column and the line's text.
        fn with(&self, message: &str) -> String {
            let Some(offset) = self.offset else {
                return message.to_owned();
            };
            let (before, after) = self.text.split_at(offset);
            let (number, start) = (before.split('\n').count(), before.rfind('\n'));
            let start = start.map_or(0, |newline| newline + 1);
            let column = before[start..].chars().count() + 1;
            let end = after.find('\n').map_or(self.text.len(), |end| offset + end);
            let line = self.text[start..end].trim_end();
            let mark = " ".repeat(column - 1);
            format!("line {number}, column {column}: {message}\n    {line}\n    {mark}^")
        }
    }

    /// Converts an offset in the renamed text to one in the user's text; offsets beyond it give its
    /// end.
    fn before_renaming(text: &str, offset: usize) -> usize {
        let (mut place, mut after) = (0, 0);
        for word in words(text) {
            let len = renamed(word, &[FUNCTIONS]).len();
            if offset < after + len {
                let within = if len == word.len() { offset - after } else { 0 };
                return text.floor_char_boundary(place + within);
            }
            (place, after) = (place + word.len(), after + len);
        }
        text.trim_end().len()
    }

    /// The text before the function in [`module`]'s text.
    const NAMED: &str = "fn custom";
    const SIDE_EFFECT: &str = "it does more than compute a value: barriers, derivatives and \
        `discard` have no place in it";

    /// Returns a module with the function in the first line, called from a compute shader and a
    /// fragment shader: one kind forbids derivatives, the other barriers.
    fn module(function: &str, arity: usize) -> String {
        let call = format!("{{ _ = custom({}); }}", "1.0, ".repeat(arity));
        format!(
            "{NAMED}{function}{}@compute @workgroup_size(1) fn compute() {call}\n\
             @fragment fn fragment() {call}\n",
            library()
        )
    }

    /// Returns whether the text declares this one function and nothing else.
    fn is_alone(module: &Module) -> bool {
        let count = |text: &str| parse_str(text).map_or(0, |module| module.functions.len());
        module.functions.len() == count(library()) + 1
            && module.entry_points.len() == 2
            && module.global_variables.is_empty()
            && module.overrides.is_empty()
            && module.constants.is_empty()
            && module
                .types
                .iter()
                .all(|(_, of_type)| of_type.name.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_and_body_are_recognised() {
        let expression = function(["x"].into_iter(), "x + 1.0 // one");
        assert_eq!(
            expression,
            "(x: f32, ) -> f32 { return (x + 1.0 // one\n);}\n"
        );
        let body = function(["a", "b"].into_iter(), "return a;");
        assert_eq!(body, "(a: f32, b: f32, ) -> f32 { return a;\n}\n");
        let other = function(["returned"].into_iter(), "returned");
        assert!(other.contains("return (returned"), "{other}");
    }

    #[test]
    fn library_functions_get_scalar_names() {
        assert_eq!(
            renamed("maximum(is_nan, my_maximum)", &[FUNCTIONS]),
            "maximum_f32(is_nan_f32, my_maximum)"
        );
        assert!(library().contains("fn maximum_f32(a: f32, b: f32) -> f32"));
        for word in words(library()) {
            assert!(!["real", "word", "truth"].contains(&word));
        }
    }
}
