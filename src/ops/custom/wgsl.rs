//! Functions in WGSL that users give: their text put together, and checked on its own before it
//! comes near a kernel.

#[cfg(any(feature = "gpu", test))]
use std::sync::LazyLock;

/// Functions of the library for numbers, by their names in a user's text and in kernels, where
/// those for vectors may have the first.
const FUNCTIONS: &[(&str, &str)] = &[
    ("is_nan", "is_nan_f32"),
    ("maximum", "maximum_f32"),
    ("minimum", "minimum_f32"),
    ("nan_where", "nan_where_f32"),
];
/// What the library's functions are of, here.
#[cfg(any(feature = "gpu", test))]
const TYPES: &[(&str, &str)] = &[("real", "f32"), ("word", "u32"), ("truth", "bool")];

/// Whether a text is a name, if it is not a reserved one.
pub(super) fn is_identifier(name: &str) -> bool {
    let digit = |first: char| first.is_ascii_digit();
    !name.is_empty() && !name.starts_with(digit) && name.chars().all(is_of_word)
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// A function of numbers, but for its name: `text` is its body or the expression that it returns.
pub(super) fn function(names: impl Iterator<Item = &'static str>, text: &str) -> String {
    let mut parameters = String::new();
    for name in names {
        parameters.extend([name, ": f32, "]);
    }
    let text = renamed(text, &[FUNCTIONS]);
    let is_body = words(&text).any(|word| word == "return");
    let [before, after] = if is_body {
        ["", ""]
    } else {
        ["return (", ");"]
    };
    // A line's comment at the end of the text must not go on.
    format!("({parameters}) -> f32 {{ {before}{text}\n{after}}}\n")
}

/// The library's functions for numbers, which users' functions may call.
#[cfg(any(feature = "gpu", test))]
pub(crate) fn library() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| {
        let text = include_str!("../../../shaders/lib/nan.wgsl");
        renamed(text, &[FUNCTIONS, TYPES])
    });
    &LIBRARY
}

/// The text with other words for some.
fn renamed(text: &str, names: &[&[(&str, &str)]]) -> String {
    let mut renamed = String::new();
    for word in words(text) {
        let mut names = names.iter().copied().flatten();
        let other = names.find(|(name, _)| *name == word);
        renamed.push_str(other.map_or(word, |(_, other)| other));
    }
    renamed
}

/// A text cut where words begin and end.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let in_word = is_of_word(rest.chars().next()?);
        let end = rest.find(|character| is_of_word(character) != in_word);
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

/// Nothing but a WebGPU implementation reads WGSL in WebAssembly, and nothing at all without one.
#[cfg(any(target_arch = "wasm32", not(feature = "gpu")))]
#[allow(clippy::unnecessary_wraps)] // The other one finds mistakes.
pub(super) fn check(_: &'static str, _: &str, _: usize) -> crate::error::Result<()> {
    Ok(())
}

#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub(super) use naga::check;

#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
mod naga {
    use wgpu::naga::Module;
    use wgpu::naga::front::wgsl::parse_str;
    use wgpu::naga::valid::{Capabilities, ValidationError, ValidationFlags, Validator};

    use crate::error::{Error, Result};
    use crate::ops::custom::library;

    /// `Wgsl` unless a text is one function of `arity` numbers, which gives a number and does
    /// nothing else.
    pub(in crate::ops) fn check(name: &'static str, function: &str, arity: usize) -> Result<()> {
        let refused = |message: String| Error::Wgsl { name, message };
        let source = module(function, arity);
        let parsed = parse_str(&source);
        let parsed =
            parsed.map_err(|error| refused(error.emit_to_string_with_path(&source, name)))?;
        if !is_alone(&parsed) {
            return Err(refused("it declares more than one function".to_owned()));
        }
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
        validator.validate(&parsed).map_err(|error| {
            refused(match error.as_inner() {
                ValidationError::EntryPoint { .. } => SIDE_EFFECT.to_owned(),
                _ => error.emit_to_string_with_path(&source, name),
            })
        })?;
        Ok(())
    }

    const SIDE_EFFECT: &str = "it does more than compute a value: barriers, derivatives and \
        `discard` have no place in it";

    /// The function in the first line, called by shaders of two kinds: one may not wait for
    /// others, and the other may not ask what they compute.
    fn module(function: &str, arity: usize) -> String {
        let call = format!("{{ _ = custom({}); }}", "1.0, ".repeat(arity));
        format!(
            "fn custom{function}{}@compute @workgroup_size(1) fn compute() {call}\n\
             @fragment fn fragment() {call}\n",
            library()
        )
    }

    /// Whether a function's text ends where it seems to, and nothing is declared after it.
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
    fn a_text_is_an_expression_or_a_body() {
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
    fn functions_of_the_library_have_names_of_their_own_for_numbers() {
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
