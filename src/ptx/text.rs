//! Text as bytes. A module is some thousand lines of short words and numbers, which the standard
//! formatter, and even appending each at its own length, would take most of the time for: they are
//! copied at a few fixed lengths and cut.

#![allow(clippy::inline_always)] // Lines are handed on in registers.

use super::inst::Reg;
use super::types::Class;

/// A short text, copied at one fixed length and cut: its last byte is how long it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Padded<const N: usize>([u8; N]);

/// Long enough for a register's name and what stands after it.
pub(super) type Word = Padded<16>;

impl<const N: usize> Padded<N> {
    pub(super) const EMPTY: Self = Padded([0; N]);

    pub(super) const fn new(text: &str) -> Self {
        let (mut padded, mut i) = (Self::EMPTY, 0);
        while i < text.len() {
            padded.push(text.as_bytes()[i]);
            i += 1;
        }
        padded
    }

    const fn length(&self) -> usize {
        self.0[N - 1] as usize
    }

    const fn push(&mut self, byte: u8) {
        self.0[self.length()] = byte;
        self.0[N - 1] += 1;
    }
}

/// A text under construction.
pub(super) struct Text {
    /// The text, and zeros to write more of it to.
    bytes: Vec<u8>,
    end: usize,
}

impl Text {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Text {
            bytes: vec![0; bytes],
            end: 0,
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.bytes.truncate(self.end);
        // It was made of strings; were it not, what is no text would be replaced.
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    pub(super) fn push(&mut self, part: &str) {
        self.end = self.line(part.len()).text(part).end;
    }

    /// Several parts after each other.
    pub(super) fn parts(&mut self, parts: &[&str]) {
        for part in parts {
            self.push(part);
        }
    }

    pub(super) fn number(&mut self, value: u32) {
        self.end = self.line(NUMBER).number(value.into()).end;
    }

    /// What follows the text so far, in room for so many bytes; it is part of the text from
    /// [`Text::end_at`] on.
    #[inline]
    pub(super) fn line(&mut self, room: usize) -> Line<'_> {
        let needed = self.end + room + MARGIN;
        if self.bytes.len() < needed {
            self.bytes.resize(2 * needed, 0);
        }
        Line {
            bytes: &mut self.bytes,
            end: self.end,
        }
    }

    /// Takes in a line, by where it ends.
    #[inline]
    pub(super) fn end_at(&mut self, end: usize) {
        self.end = end;
    }
}

/// Bytes of a number and of a word at most.
pub(super) const NUMBER: usize = 20;
pub(super) const WORD: usize = 16;
/// What is copied beyond the last word's end, and cut.
const MARGIN: usize = 80;

/// A line at the end of a text. It is handed on by value, so that where it ends stays in a register.
pub(super) struct Line<'a> {
    bytes: &'a mut [u8],
    end: usize,
}

impl Line<'_> {
    /// Where it ends in the text.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn end(self) -> usize {
        self.end
    }

    /// So many of these bytes, all of which there has to be room for.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn cut<const N: usize>(self, bytes: &[u8; N], length: usize) -> Self {
        self.bytes[self.end..self.end + N].copy_from_slice(bytes);
        Line {
            end: self.end + length,
            ..self
        }
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn word<const N: usize>(self, word: &Padded<N>) -> Self {
        self.cut(&word.0, word.length())
    }

    /// A text of a length that is known when this is compiled.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn fixed<const N: usize>(self, text: &[u8; N]) -> Self {
        self.cut(text, N)
    }

    pub(super) fn text(self, text: &str) -> Self {
        let end = self.end + text.len();
        self.bytes[self.end..end].copy_from_slice(text.as_bytes());
        Line { end, ..self }
    }

    /// The same line without what it ended in.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn without(self, bytes: usize) -> Self {
        Line {
            end: self.end - bytes,
            ..self
        }
    }

    /// Four levels at once: deeper ones are rare.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn indent(mut self, depth: usize) -> Self {
        for _ in 0..depth / 4 {
            self = self.fixed(&[b' '; 16]);
        }
        self.cut(&[b' '; 16], depth % 4 * 4)
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn number(self, value: i64) -> Self {
        match u32::try_from(value) {
            Ok(value @ ..10) => self.fixed(&[b'0' + value as u8]),
            Ok(value) => self.digits(value),
            Err(_) => self.text(&value.to_string()),
        }
    }

    /// In place: a word made byte by byte would be waited for before it could be copied as one.
    fn digits(self, mut value: u32) -> Self {
        let length = value.ilog10() as usize + 1;
        let line = self.cut(&[0; 10], length);
        for to in line.bytes[line.end - length..line.end].iter_mut().rev() {
            *to = b'0' + (value % 10) as u8;
            value /= 10;
        }
        line
    }

    /// A number bit by bit, as PTX reads it.
    pub(super) fn float(self, value: f32) -> Self {
        let bits = value.to_bits();
        let line = self.fixed(b"0f00000000");
        for (place, to) in line.bytes[line.end - 8..line.end]
            .iter_mut()
            .rev()
            .enumerate()
        {
            let digit = (bits >> (4 * place) & 15) as u8;
            *to = digit + if digit < 10 { b'0' } else { b'A' - 10 };
        }
        line
    }
}

/// What stands between operands; the last one's is written over.
pub(super) const SEPARATOR: &[u8; 2] = b", ";

/// Registers' names, each with a separator after it: numbered within their class in the order of
/// their first appearance.
pub(super) struct Names {
    of: Vec<Word>,
    /// How many there are of each class.
    count: [u32; Class::ALL.len()],
}

impl Names {
    /// For registers in the order of the text, with numbers below `highest`.
    pub(super) fn new(regs: &[Reg], highest: usize) -> Self {
        let mut of = vec![Word::EMPTY; highest];
        let mut next = Class::ALL.map(|class| Name::new(class.names().1, 0));
        for reg in regs {
            let word = &mut of[reg.id as usize];
            if word.length() == 0 {
                *word = next[reg.ty.class() as usize].take();
            }
        }
        let count = next.map(|name| name.number);
        Names { of, count }
    }

    pub(super) fn count(&self, class: Class) -> u32 {
        self.count[class as usize]
    }

    /// The name of the register with this number, and a separator.
    #[inline]
    pub(super) fn of(&self, id: u32) -> &Word {
        &self.of[id as usize]
    }
}

/// The name of a class's next register.
struct Name {
    prefix: &'static str,
    number: u32,
    /// The bytes as one number, so that the next name is a sum.
    word: u128,
    /// Where the last digit is in it.
    last: u32,
}

impl Name {
    fn new(prefix: &'static str, number: u32) -> Self {
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut word = Word::new(prefix);
        for place in (0..digits as u32).rev() {
            word.push(b'0' + (number / 10u32.pow(place) % 10) as u8);
        }
        for byte in SEPARATOR {
            word.push(*byte);
        }
        Name {
            prefix,
            number,
            word: u128::from_le_bytes(word.0),
            last: 8 * (prefix.len() + digits - 1) as u32,
        }
    }

    /// This name; the next one takes its place.
    #[inline]
    fn take(&mut self) -> Word {
        let word = Padded(self.word.to_le_bytes());
        if (self.word >> self.last) as u8 == b'9' {
            *self = Name::new(self.prefix, self.number + 1);
        } else {
            self.number += 1;
            self.word += 1 << self.last;
        }
        word
    }
}
