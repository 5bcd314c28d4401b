//! Bytes of tokens to text that never ends inside a character.

/// Holds the bytes of a character back until it is whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Appends a token's bytes and returns the text that is whole. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = whole_len(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..whole]).into_owned();
        self.pending.drain(..whole);
        text
    }

    /// Returns the text of the remaining bytes at the end.
    pub(crate) fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }
}

/// The length without the beginning of a character at the end.
fn whole_len(bytes: &[u8]) -> usize {
    let mut start = 0;
    loop {
        match std::str::from_utf8(&bytes[start..]) {
            Ok(_) => return bytes.len(),
            Err(error) => match error.error_len() {
                Some(len) => start += error.valid_up_to() + len,
                None => return start + error.valid_up_to(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Utf8Stream;

    #[test]
    fn characters_come_whole() {
        let mut stream = Utf8Stream::default();
        let parts: Vec<String> = "a東b".bytes().map(|byte| stream.push(&[byte])).collect();
        assert_eq!(parts, ["a", "", "", "東", "b"]);
        assert_eq!(stream.push(&[0xff, 0xe6]), "\u{fffd}");
        assert_eq!(stream.finish(), "\u{fffd}");
    }
}
