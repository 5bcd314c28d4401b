//! The words of a shader's text. The composer of shaders includes this file, and so does `build.rs`.

/// Splits a text at the boundaries of words.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let in_word = is_of_word(rest.chars().next()?);
        let end = rest.find(|character| is_of_word(character) != in_word);
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

pub(crate) fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
