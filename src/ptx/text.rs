//! Text as bytes. A module is some thousand lines of short words and numbers, which the standard
//! formatter, and even appending each at its own length, would take most of the time for.

use super::inst::Reg;
use super::types::Class;
use std::fmt::{Arguments, Write};

/// A text under construction.
pub(super) struct Text(Vec<u8>);

/// A short word, appended at one fixed length and cut.
#[derive(Clone, Copy, Default)]
struct Word {
    bytes: [u8; 16],
    length: u8,
}

impl Word {
    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    /// The next decimal number in place of the one that the word ends in.
    fn count_on(&mut self) {
        let mut at = usize::from(self.length) - 1;
        while self.bytes[at] == b'9' {
            self.bytes[at] = b'0';
            at -= 1;
        }
        if self.bytes[at].is_ascii_digit() {
            self.bytes[at] += 1;
            return;
        }
        // One digit more: 99 becomes 100.
        self.bytes[at + 1] = b'1';
        self.push(b'0');
    }
}

impl Text {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Text(Vec::with_capacity(bytes))
    }

    pub(super) fn finish(self) -> String {
        // It was made of strings; were it not, what is no text would be replaced.
        String::from_utf8(self.0)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    #[inline]
    pub(super) fn push(&mut self, part: &str) {
        self.0.extend_from_slice(part.as_bytes());
    }

    #[inline]
    fn word(&mut self, word: Word) {
        let length = self.0.len() + usize::from(word.length);
        self.0.extend_from_slice(&word.bytes);
        self.0.truncate(length);
    }

    /// Two levels at a time: deeper ones are rare.
    pub(super) fn indent(&mut self, depth: usize) {
        let length = self.0.len() + depth * 4;
        for _ in 0..depth.div_ceil(2) {
            self.0.extend_from_slice(b"        ");
        }
        self.0.truncate(length);
    }

    pub(super) fn number(&mut self, value: i64) {
        match u32::try_from(value) {
            Ok(value @ ..10) => self.0.push(b'0' + value as u8),
            Ok(value) => {
                let mut word = Word::default();
                digits(value, &mut word);
                self.word(word);
            }
            Err(_) => self.add(format_args!("{value}")),
        }
    }

    /// A number bit by bit, as PTX reads it.
    pub(super) fn float(&mut self, value: f32) {
        let bits = value.to_bits();
        let mut word = Word::default();
        word.push(b'0');
        word.push(b'f');
        for place in (0..8).rev() {
            let digit = (bits >> (4 * place) & 15) as u8;
            word.push(digit + if digit < 10 { b'0' } else { b'A' - 10 });
        }
        self.word(word);
    }

    pub(super) fn add(&mut self, part: Arguments) {
        // Writing to memory cannot fail.
        let _ = self.write_fmt(part);
    }

    pub(super) fn line(&mut self, part: Arguments) {
        self.add(part);
        self.push("\n");
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        self.push(part);
        Ok(())
    }
}

fn digits(value: u32, word: &mut Word) {
    if value >= 10 {
        digits(value / 10, word);
    }
    word.push(b'0' + (value % 10) as u8);
}

/// Registers' names: numbered within their class in the order of their first appearance.
pub(super) struct Names {
    of: Vec<Word>,
    /// How many there are of each class.
    count: [u32; Class::ALL.len()],
}

impl Names {
    /// For registers in the order of the text, with numbers below `highest`.
    pub(super) fn new(regs: &[Reg], highest: usize) -> Self {
        let mut names = Names {
            of: vec![Word::default(); highest],
            count: [0; Class::ALL.len()],
        };
        let mut next = Class::ALL.map(|class| {
            let mut word = Word::default();
            class.names().1.bytes().for_each(|byte| word.push(byte));
            word.push(b'0');
            word
        });
        for reg in regs {
            let word = &mut names.of[reg.id as usize];
            if word.length == 0 {
                let class = reg.ty.class() as usize;
                *word = next[class];
                next[class].count_on();
                names.count[class] += 1;
            }
        }
        names
    }

    pub(super) fn count(&self, class: Class) -> u32 {
        self.count[class as usize]
    }

    pub(super) fn write(&self, reg: Reg, text: &mut Text) {
        text.word(self.of[reg.id as usize]);
    }
}
