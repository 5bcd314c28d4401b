//! Checked reading from front to back.

use super::invalid;
use crate::error::{Error, Result};

/// A position in a file's bytes.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The size of the file, which may go on after the bytes.
    file: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::of_file(bytes, bytes.len() as u64, 0)
    }

    /// The first bytes of a file of `file` bytes, read from a position on.
    pub(super) fn of_file(bytes: &'a [u8], file: u64, at: usize) -> Self {
        Self { bytes, at, file }
    }

    /// The offset of the next byte to read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The size of the whole file.
    pub(super) fn file_len(&self) -> u64 {
        self.file
    }

    fn left(&self) -> u64 {
        self.file - self.at as u64
    }

    /// The next bytes.
    ///
    /// # Errors
    /// `InvalidModel` if the file ends before, `LimitExceeded` if only the bytes at hand do.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        if len as u64 > self.left() {
            let what = format!(
                "{len} bytes are needed, but the file has {} more",
                self.left()
            );
            return Err(invalid(what, format!("byte {}", self.at)));
        }
        let end = self.at.saturating_add(len);
        let Some(taken) = self.bytes.get(self.at..end) else {
            return Err(short(end as u64, self.bytes.len()));
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a count of elements. The remaining bytes must be at least `least` for each element.
    pub(super) fn count(&mut self, what: &str, least: usize) -> Result<usize> {
        let place = self.at;
        let count = self.u64()?;
        let most = self.left() / least as u64;
        if count > most {
            let what = format!(
                "{what} is {count}, but the file has room for {most} at most: it is incomplete or damaged"
            );
            return Err(invalid(what, format!("byte {place}")));
        }
        usize::try_from(count).map_err(|_| {
            let what = format!("{what} is {count}, for which there is no memory");
            invalid(what, format!("byte {place}"))
        })
    }

    /// The bytes of a string.
    pub(super) fn string(&mut self) -> Result<&'a [u8]> {
        let len = self.count("the length of a string", 1)?;
        self.take(len)
    }

    /// A string of UTF-8 of at most `most` bytes.
    pub(super) fn name(&mut self, most: usize) -> Result<&'a str> {
        let place = self.at;
        let fault = |what: String| invalid(what, format!("byte {place}"));
        let bytes = self.string()?;
        if bytes.len() > most {
            return Err(fault(format!(
                "a name of {} bytes, above {most}",
                bytes.len()
            )));
        }
        std::str::from_utf8(bytes)
            .map_err(|error| fault(format!("a name that is no UTF-8: {error}")))
    }
}

/// The error of a value that ends beyond the `given` bytes at hand.
pub(super) fn short(needed: u64, given: usize) -> Error {
    Error::LimitExceeded {
        what: "the number of bytes at the file's beginning that are needed so far",
        value: needed,
        limit: given as u64,
    }
}
