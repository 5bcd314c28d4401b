//! Metadata: typed values. Strings and arrays stay in the file.

use super::cursor::Cursor;
use super::invalid;
use crate::error::Result;
use std::ops::Range;

/// The least bytes of an entry: the key's length, its type and a value of one byte.
pub(super) const LEAST_BYTES: usize = 8 + 4 + 1;

/// The longest key in bytes, as the format says.
const MOST_KEY: usize = 65_535;

pub(super) const BOOL: u32 = 7;
pub(super) const STRING: u32 = 8;
pub(super) const ARRAY: u32 = 9;

/// A value of the metadata.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An unsigned integer of 8 to 64 bits.
    Unsigned(u64),
    /// A signed integer of 8 to 64 bits.
    Signed(i64),
    /// A number of 32 or 64 bits.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// The bytes of a string, which may not be UTF-8.
    String(&'a [u8]),
    /// An array.
    Array(Array<'a>),
}

impl<'a> Value<'a> {
    /// A non-negative integer of any type.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// A number of any type.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::Unsigned(value) => Some(value as f64),
            Value::Signed(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A string of UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Value::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(self) -> Option<Array<'a>> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }
}

/// An array of the metadata, which is read element by element from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array<'a> {
    kind: u32,
    len: usize,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// The number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The elements in order.
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = Cursor::new(self.bytes);
        // The array was read once when the file was opened, so no element fails.
        (0..self.len)
            .map_while(move |_| Some(element(&mut cursor, self.kind).ok()?.value(self.bytes)))
    }
}

/// A value as it is kept: strings and arrays by their place.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    String(Range<usize>),
    Array(u32, usize, Range<usize>),
}

impl Stored {
    /// The value, of the bytes that it was read from.
    pub(super) fn value<'a>(&self, bytes: &'a [u8]) -> Value<'a> {
        let part = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        match self {
            Stored::Unsigned(value) => Value::Unsigned(*value),
            Stored::Signed(value) => Value::Signed(*value),
            Stored::Float(value) => Value::Float(*value),
            Stored::Bool(value) => Value::Bool(*value),
            Stored::String(range) => Value::String(part(range)),
            Stored::Array(kind, len, range) => Value::Array(Array {
                kind: *kind,
                len: *len,
                bytes: part(range),
            }),
        }
    }

    pub(super) fn unsigned(&self) -> Option<u64> {
        self.value(&[]).as_u64()
    }
}

/// A value of an entry: an array whose elements follow, or any other one.
pub(super) enum Read {
    Value(Stored),
    Array(OpenArray),
}

/// Reads an entry: its key and its value. Of an array it reads only the beginning.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(String, Read)> {
    let key = cursor.name(MOST_KEY)?;
    let kind = cursor.u32()?;
    let value = if kind == ARRAY {
        Read::Array(OpenArray::read(cursor)?)
    } else {
        Read::Value(element(cursor, kind)?)
    };
    Ok((key.to_owned(), value))
}

/// An array whose elements are being read.
#[derive(Debug)]
pub(super) struct OpenArray {
    kind: u32,
    len: usize,
    /// The position of the first element.
    start: usize,
    /// The number of elements that were not read.
    left: usize,
}

impl OpenArray {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let place = cursor.at();
        let kind = cursor.u32()?;
        let fault = || {
            invalid(
                format!("an array of type {kind}, which is not supported"),
                format!("byte {place}"),
            )
        };
        let size = size(kind).ok_or_else(fault)?;
        let len = cursor.count("the length of an array", size)?;
        Ok(Self {
            kind,
            len,
            start: cursor.at(),
            left: len,
        })
    }

    /// Reads the next element, or all elements at once if no bytes of their type are invalid. Returns whether there was
    /// one.
    pub(super) fn read_element(&mut self, cursor: &mut Cursor<'_>) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        if matches!(self.kind, STRING | BOOL) {
            element(cursor, self.kind)?;
            self.left -= 1;
        } else {
            let size = size(self.kind).unwrap_or_default();
            cursor.take(self.left.saturating_mul(size))?;
            self.left = 0;
        }
        Ok(true)
    }

    /// Returns the array, after whose elements the cursor is.
    pub(super) fn stored(&self, cursor: &Cursor<'_>) -> Stored {
        Stored::Array(self.kind, self.len, self.start..cursor.at())
    }
}

/// The size of an element in bytes; for a string that of its length.
fn size(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | BOOL => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        STRING | 10..=12 => Some(8),
        _ => None,
    }
}

/// A value that is not an array.
fn element(cursor: &mut Cursor<'_>, kind: u32) -> Result<Stored> {
    let place = cursor.at();
    let fault = |what: String| invalid(what, format!("byte {place}"));
    if kind == STRING {
        let len = cursor.string()?.len();
        return Ok(Stored::String(cursor.at() - len..cursor.at()));
    }
    let size = size(kind).ok_or_else(|| fault(format!("a value of the unknown type {kind}")))?;
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(cursor.take(size)?);
    let bits = u64::from_le_bytes(wide);
    Ok(match kind {
        1 => Stored::Signed(i64::from(bits as i8)),
        3 => Stored::Signed(i64::from(bits as i16)),
        5 => Stored::Signed(i64::from(bits as i32)),
        11 => Stored::Signed(bits as i64),
        6 => Stored::Float(f64::from(f32::from_bits(bits as u32))),
        12 => Stored::Float(f64::from_bits(bits)),
        BOOL if bits > 1 => return Err(fault(format!("a truth value of {bits}"))),
        BOOL => Stored::Bool(bits == 1),
        _ => Stored::Unsigned(bits),
    })
}
