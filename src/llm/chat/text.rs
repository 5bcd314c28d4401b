//! Text that knows for each character whether it comes from the template or from a message.

use std::ops::Range;
use std::sync::Arc;

/// A text with the origin of each character. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(Arc<Marked>);

#[derive(Clone, Debug, Default)]
struct Marked {
    text: String,
    /// Whether the first character comes from the template.
    trusted: bool,
    /// The byte positions where the origin changes, ascending, without the start and the end.
    borders: Vec<usize>,
}

impl Text {
    /// The parts that `from_alternating` takes.
    #[cfg(all(target_arch = "wasm32", feature = "js-chat"))]
    pub(crate) fn alternating(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for (part, trusted) in self.parts() {
            if trusted != (parts.len() % 2 == 0) {
                parts.push(String::new());
            }
            parts.push(part.to_owned());
        }
        parts
    }

    /// The text of parts. The first, third and fifth part come from the template, the others from messages.
    #[cfg(not(feature = "llm"))]
    pub(crate) fn from_alternating<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut text = Self::default();
        for (index, part) in parts.enumerate() {
            text.push(part, index % 2 == 0);
        }
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    pub(crate) fn len(&self) -> usize {
        self.0.text.len()
    }

    /// Appends a part of a text, by byte positions.
    pub(crate) fn push_part(&mut self, text: &Self, part: Range<usize>) {
        for (run, trusted) in text.runs(part) {
            self.push(run, trusted);
        }
    }

    /// A part, by byte positions.
    pub(crate) fn part(&self, part: Range<usize>) -> Self {
        if part == (0..self.len()) {
            return self.clone();
        }
        let mut text = Self::default();
        text.push_part(self, part);
        text
    }

    /// Appends a text of one origin.
    pub(crate) fn push(&mut self, text: &str, trusted: bool) {
        if text.is_empty() {
            return;
        }
        let marked = Arc::make_mut(&mut self.0);
        if marked.text.is_empty() {
            marked.trusted = trusted;
        } else if (marked.trusted ^ (marked.borders.len() % 2 == 1)) != trusted {
            marked.borders.push(marked.text.len());
        }
        marked.text.push_str(text);
    }

    /// The runs of characters of the same origin, with whether they come from the template.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, bool)> {
        self.runs(0..self.as_str().len())
    }

    fn runs(&self, part: Range<usize>) -> impl Iterator<Item = (&str, bool)> {
        let marked = &*self.0;
        let first = marked
            .borders
            .partition_point(|&border| border <= part.start);
        let last = marked.borders.partition_point(|&border| border < part.end);
        let borders = marked.borders.get(first..last).unwrap_or_default();
        let starts = std::iter::once(part.start).chain(borders.iter().copied());
        let ends = borders.iter().copied().chain([part.end]);
        let trusted = marked.trusted ^ (first % 2 == 1);
        let runs = starts.zip(ends).enumerate();
        runs.map(move |(index, (start, end))| {
            (&marked.text[start..end], trusted ^ (index % 2 == 1))
        })
    }
}

/// The operations of templates on texts.
#[cfg(feature = "llm")]
impl Text {
    /// A text of the template, in which control tokens are control tokens.
    pub(crate) fn trusted(text: &str) -> Self {
        Self::of(text.to_owned(), true)
    }

    /// A text of a message, or of unknown origin.
    pub(crate) fn untrusted(text: impl Into<String>) -> Self {
        Self::of(text.into(), false)
    }

    fn of(text: String, trusted: bool) -> Self {
        let borders = Vec::new();
        Self(Arc::new(Marked {
            text,
            trusted,
            borders,
        }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.text.is_empty()
    }

    /// Whether the next `push` copies the whole text first.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The bytes of memory that it takes.
    pub(crate) fn size(&self) -> usize {
        self.len() + size_of_val(&*self.0.borders)
    }

    /// Appends a text with its origins.
    pub(crate) fn push_text(&mut self, text: &Self) {
        self.push_part(text, 0..text.len());
    }

    /// Replaces each character by a text, which takes its origin.
    pub(crate) fn map(&self, mut change: impl FnMut(usize, char, &mut String)) -> Self {
        let (mut text, mut changed, mut at) = (Self::default(), String::new(), 0);
        for (run, trusted) in self.parts() {
            changed.clear();
            for character in run.chars() {
                change(at, character, &mut changed);
                at += character.len_utf8();
            }
            text.push(&changed, trusted);
        }
        text
    }

    /// The characters, each as a text.
    pub(crate) fn characters(&self) -> impl Iterator<Item = Self> {
        let places = self.as_str().char_indices();
        places.map(|(at, character)| self.part(at..at + character.len_utf8()))
    }
}

#[cfg(feature = "llm")]
impl PartialEq for Text {
    /// Compares the characters only, as templates do.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(all(test, feature = "llm"))]
mod tests {
    use super::Text;

    #[test]
    fn parts_of_texts_keep_the_origin_of_each_character() {
        let mut text = Text::trusted("ab");
        text.push("cd", false);
        text.push("ef", false);
        text.push_text(&Text::trusted("gh"));
        let parts = |text: &Text| -> Vec<(String, bool)> {
            let parts = text.parts().filter(|(part, _)| !part.is_empty());
            parts
                .map(|(part, trusted)| (part.to_owned(), trusted))
                .collect()
        };
        let expected = [("ab", true), ("cdef", false), ("gh", true)];
        assert_eq!(parts(&text), expected.map(|(p, t)| (p.to_owned(), t)));
        for start in 0..=8 {
            for end in start..=8 {
                let part = text.part(start..end);
                assert_eq!(part.as_str(), &"abcdefgh"[start..end]);
                let trusted = parts(&part).into_iter();
                let trusted = trusted.flat_map(|(run, trusted)| vec![trusted; run.len()]);
                let expected = [true, true, false, false, false, false, true, true];
                assert!(trusted.eq(expected[start..end].iter().copied()));
            }
        }
        let upper = text.map(|_, character, to| to.extend([character, '!']));
        assert_eq!(parts(&upper)[1], ("c!d!e!f!".to_owned(), false));
    }
}
