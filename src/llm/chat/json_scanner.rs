//! The end of JSON values in a text that arrives in pieces.

/// Finds the end of a JSON value.
#[derive(Debug, Default)]
pub(super) struct JsonScanner {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl JsonScanner {
    /// Takes the value's text; returns whether it is complete: after the bracket that closes it, or before a character
    /// that ends it.
    pub(super) fn take(
        &mut self,
        text: &mut String,
        ends: impl Fn(char) -> bool,
    ) -> (String, bool) {
        let mut end = None;
        for (at, character) in text.char_indices() {
            if self.depth == 0 && !self.in_string && ends(character) {
                end = Some(at);
                break;
            }
            if self.is_last(character) {
                end = Some(at + character.len_utf8());
                break;
            }
        }
        let rest = text.split_off(end.unwrap_or(text.len()));
        (std::mem::replace(text, rest), end.is_some())
    }

    /// Reads a character; returns whether it closes the value.
    fn is_last(&mut self, character: char) -> bool {
        if self.is_escaped {
            self.is_escaped = false;
        } else if self.in_string {
            self.is_escaped = character == '\\';
            self.in_string = character != '"';
        } else {
            match character {
                '"' => self.in_string = true,
                '{' | '[' => self.depth += 1,
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    return self.depth == 0;
                }
                _ => {}
            }
        }
        false
    }
}
