//! Writes numbers and register names into the text of a module.

use super::inst::Reg;
use super::types::Class;
use std::ops::Range;

/// Appends an unsigned number in decimal digits.
pub(super) fn push_number(text: &mut String, value: u32) {
    if value >= 10 {
        push_number(text, value / 10);
    }
    text.push(char::from(b'0' + (value % 10) as u8));
}

/// Appends a signed number in decimal digits.
pub(super) fn push_signed(text: &mut String, value: i64) {
    match u32::try_from(value) {
        Ok(value) => push_number(text, value),
        Err(_) => text.push_str(&value.to_string()),
    }
}

/// Appends the bits of an `f32` in the notation of PTX: `0f` and eight hexadecimal digits.
pub(super) fn push_float(text: &mut String, value: f32) {
    text.push_str("0f");
    for digit in (0..8).rev() {
        let digit = (value.to_bits() >> (4 * digit) & 15) as usize;
        text.push(char::from(b"0123456789ABCDEF"[digit]));
    }
}

/// The names of a kernel's registers: a prefix for the class, and a number within the class in
/// the order of first appearance.
pub(super) struct Names {
    /// All names, one after the other: a register is named several times, but formatted once.
    text: String,
    /// The range of each register's name in `text`, by the register's id.
    ranges: Vec<Range<u32>>,
    /// The number of registers of each class.
    count: [u32; Class::ALL.len()],
}

impl Names {
    /// Names `regs`, which are in the order of the text and have ids below `ids`.
    pub(super) fn new(regs: &[Reg], ids: usize) -> Self {
        let mut text = String::with_capacity(6 * ids);
        let mut ranges = vec![0..0; ids];
        let mut count = [0; Class::ALL.len()];
        for reg in regs {
            let range = &mut ranges[reg.id as usize];
            if range.end == 0 {
                let (class, begin) = (reg.ty.class(), text.len() as u32);
                text.push_str(class.prefix());
                push_number(&mut text, count[class as usize]);
                count[class as usize] += 1;
                *range = begin..text.len() as u32;
            }
        }
        Names {
            text,
            ranges,
            count,
        }
    }

    /// The number of registers of a class.
    pub(super) fn count(&self, class: Class) -> u32 {
        self.count[class as usize]
    }

    /// The name of a register.
    pub(super) fn of(&self, reg: Reg) -> &str {
        let Range { start, end } = self.ranges[reg.id as usize];
        &self.text[start as usize..end as usize]
    }
}
