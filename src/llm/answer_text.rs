//! The text of an answer: whole characters, up to a stop string.

use super::tokenizer::Utf8Stream;

/// The text of an answer's tokens that was not returned yet. It holds back the bytes of an incomplete character, and
/// text that may be the beginning of a stop string.
#[derive(Debug, Default)]
pub(super) struct AnswerText {
    /// None of them is empty.
    stops: Vec<String>,
    stream: Utf8Stream,
    /// Text that may be the beginning of a stop string.
    held: String,
    /// The bytes at the beginning of `held` that belong to tokens before the answer.
    foreign: usize,
    is_stopped: bool,
}

impl AnswerText {
    pub(super) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty());
        Self {
            stops: stops.cloned().collect(),
            ..Self::default()
        }
    }

    /// Marks the whole characters so far as text before the answer. They may begin a stop string that the answer completes,
    /// but are no part of the answer. Returns those that were held back.
    pub(super) fn begin(&mut self) -> &str {
        self.foreign = self.held.len();
        &self.held
    }

    /// Adds a token's bytes, and returns the text that is certain by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.push_str(&self.stream.push(bytes));
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop));
        if let Some(at) = found.min() {
            self.is_stopped = true;
            let text = self.release(at);
            self.held.clear();
            return text;
        }
        let begins = |at: &usize| {
            let rest = &self.held[*at..];
            self.stops.iter().any(|stop| stop.starts_with(rest))
        };
        let mut places = self.held.char_indices().map(|(at, _)| at);
        let keep = places.find(begins).unwrap_or(self.held.len());
        self.release(keep)
    }

    /// Whether a stop string occurred.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the complete characters that are held back, for an answer that is interrupted.
    pub(super) fn flush(&mut self) -> String {
        self.release(self.held.len())
    }

    /// Returns the rest of an answer that ends without a stop string.
    pub(super) fn finish(&mut self) -> String {
        self.flush() + &self.stream.finish()
    }

    /// Takes the first `len` bytes out of the held text, and returns those of the answer.
    fn release(&mut self, len: usize) -> String {
        let foreign = self.foreign.min(len);
        self.foreign -= foreign;
        let rest = self.held.split_off(len);
        let mut text = std::mem::replace(&mut self.held, rest);
        text.drain(..foreign);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::AnswerText;

    /// The pieces of an answer after `before`, with its end, and whether a stop string occurred.
    fn answer(stops: &[&str], before: &[&[u8]], tokens: &[&[u8]]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
        let mut text = AnswerText::new(&stops);
        for token in before {
            text.push(token);
        }
        text.begin();
        let mut answer = String::new();
        for token in tokens {
            answer += &text.push(token);
            if text.is_stopped() {
                return (answer, true);
            }
        }
        (answer + &text.finish(), false)
    }

    #[test]
    fn text_before_an_answer_is_no_part_of_it() {
        for (stops, before, tokens, expected) in [
            (&["\n\n"][..], &["Answer:\n"][..], &["Yes"][..], "Yes"),
            (&["\n\n"], &["Answer:", "\n"], &["Y", "es"], "Yes"),
            (&["\n\n"], &["Answer:\n"], &[], ""),
            (&["\n\n"], &["Answer:\n"], &["Yes\n"], "Yes\n"),
            (&["END"], &["The E"], &["N", "Ts"], "NTs"),
            (&["ENDING"], &["The EN"], &["DI", "E"], "DIE"),
            (&["aab"], &["aa"], &["a", "c"], "ac"),
            (&["aab", "ax"], &["a"], &["ay"], "ay"),
            (&["", "\n\n"], &["\n"], &["a\n"], "a\n"),
            (&[], &["Answer:\n"], &["Yes"], "Yes"),
        ] {
            let before: Vec<&[u8]> = before.iter().map(|text| text.as_bytes()).collect();
            let tokens: Vec<&[u8]> = tokens.iter().map(|text| text.as_bytes()).collect();
            let found = answer(stops, &before, &tokens);
            assert_eq!(found, (expected.to_owned(), false), "{stops:?} {before:?}");
        }
    }

    #[test]
    fn stop_strings_may_begin_before_an_answer() {
        for (stop, before, tokens, expected) in [
            ("\n\n", "Answer:\n", &["\nYes"][..], ""),
            ("END", "The E", &["N", "Ds"], ""),
            ("aab", "a", &["a", "ab"], ""),
            ("aab", "a", &["aa", "ab"], "a"),
            ("aab", "aa", &["ab"], ""),
            ("\n\n", "a\n", &["b", "\n\nc"], "b"),
        ] {
            let tokens: Vec<&[u8]> = tokens.iter().map(|text| text.as_bytes()).collect();
            let found = answer(&[stop], &[before.as_bytes()], &tokens);
            assert_eq!(found, (expected.to_owned(), true), "{stop:?} {before:?}");
        }
    }

    #[test]
    fn a_character_is_of_the_answer_that_ends_it() {
        for (before, tokens, expected) in [
            // 東 is e6 9d b1.
            (&b"a\xe6\x9d"[..], &[&b"\xb1"[..]][..], "東"),
            (b"a\xe6", &[b"\x9d", b"\xb1b"], "東b"),
            (b"a\xe6\x9d", &[b"b"], "\u{fffd}b"),
            (b"a\xe6\x9d", &[], "\u{fffd}"),
            (b"a\n\xe6", &[b"\x9d", b"\xb1b"], "東b"),
        ] {
            let found = answer(&["\nx"], &[before], tokens);
            assert_eq!(found.0, expected, "{before:?} {tokens:?}");
        }
        let stopped = answer(&["東x"], &[b"\xe6\x9d"], &[b"\xb1", b"xy"]);
        assert_eq!(stopped, (String::new(), true));
    }

    #[test]
    fn an_answer_that_breaks_off_loses_nothing() {
        let mut text = AnswerText::new(&["\n\n".to_owned()]);
        assert_eq!(text.push(b"a\n"), "a");
        assert_eq!(text.push(b"\xe6"), "");
        assert_eq!(text.push(b"\x9d\xb1\n\xe6"), "\n東");
        assert_eq!(text.flush(), "\n");
    }
}
