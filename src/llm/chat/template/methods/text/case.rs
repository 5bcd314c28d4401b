//! Upper and lower case, as Python has them.

use super::super::super::text::Text;

pub(in super::super::super) fn upper(text: &Text) -> Text {
    text.map(|_, character, to| to.extend(character.to_uppercase()))
}

/// Returns the text in lower case. Whether `Σ` becomes `σ` or `ς` depends on its position in the whole text; both have
/// the same length in bytes.
pub(in super::super::super) fn lower(text: &Text) -> Text {
    let whole = text.as_str().to_lowercase();
    let mut rest = whole.as_str();
    text.map(|_, character, to| {
        let len: usize = character.to_lowercase().map(char::len_utf8).sum();
        let (lower, after) = rest.split_at(len);
        to.push_str(lower);
        rest = after;
    })
}

/// Returns the text in lower case, except its first character.
pub(in super::super::super) fn capitalized(text: &Text) -> Text {
    let Some(first) = text.as_str().chars().next() else {
        return text.clone();
    };
    let mut capitalized = text
        .part(0..first.len_utf8())
        .map(|_, first, to| title_case(first, to));
    let lower = lower(text);
    let len: usize = first.to_lowercase().map(char::len_utf8).sum();
    capitalized.push_part(&lower, len..lower.len());
    capitalized
}

/// The text with each word's first letter in title case, as the method `title` makes it.
pub(super) fn titled(text: &Text) -> Text {
    let (lower, mut at, mut within_word) = (lower(text), 0, false);
    text.map(|_, character, to| {
        let len: usize = character.to_lowercase().map(char::len_utf8).sum();
        if within_word {
            to.push_str(&lower.as_str()[at..at + len]);
        } else {
            title_case(character, to);
        }
        at += len;
        within_word = character.is_lowercase() || character.is_uppercase();
    })
}

/// Appends a character in title case, which is not its upper case for ligatures and digraphs.
fn title_case(character: char, to: &mut String) {
    let code = u32::from(character);
    let title = match code {
        0x01c4..=0x01cc => Some((code - 0x01c4) / 3 * 3 + 0x01c5),
        0x01f1..=0x01f3 => Some(0x01f2),
        0x10d0..=0x10ff => Some(code),
        0x1f80..=0x1faf => Some(code | 8),
        0x1fb3 | 0x1fc3 | 0x1ff3 => Some(code + 9),
        _ => None,
    };
    if let Some(title) = title.and_then(char::from_u32) {
        to.push(title);
        return;
    }
    let mut upper = character.to_uppercase();
    to.extend(upper.next());
    if character == '\u{149}' {
        to.extend(upper);
    } else {
        upper.for_each(|upper| to.extend(upper.to_lowercase()));
    }
}

pub(super) fn swapped(text: &Text) -> Text {
    text.map(|_, character, to| {
        to.push(if character.is_ascii_lowercase() {
            character.to_ascii_uppercase()
        } else {
            character.to_ascii_lowercase()
        });
    })
}
