//! The characters that stand for bytes in byte-level vocabularies.
//!
//! Printable characters of Latin-1 stand for themselves; the other 68 bytes are U+0100 to U+0143
//! in order.

use super::vocabulary::Vocabulary;

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The character of a byte.
pub(super) fn character(byte: u8) -> char {
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_printable(other)).count();
    char::from_u32(0x100 + before as u32).unwrap_or_default()
}

/// The byte of a character, if it stands for one.
fn byte(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ 0..=0xff => Some(code as u8).filter(|&byte| is_printable(byte)),
        code @ 0x100..0x144 => (0..=255)
            .filter(|&byte| !is_printable(byte))
            .nth(code as usize - 0x100),
        _ => None,
    }
}

/// The tokens of all bytes that have one.
pub(super) fn tokens(vocabulary: &Vocabulary) -> Vec<Option<u32>> {
    let token = |byte: u8| {
        let mut text = [0; 4];
        vocabulary.id(character(byte).encode_utf8(&mut text).as_bytes())
    };
    (0..=255).map(token).collect()
}

/// Appends the bytes that a token's characters stand for.
pub(super) fn decode(text: &[u8], to: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(text).chars() {
        if let Some(byte) = byte(character) {
            to.push(byte);
        } else {
            to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
