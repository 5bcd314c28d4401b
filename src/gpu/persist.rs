//! What is kept from one process, or one visit of a page, to the next: bytes with a mark and a sum.

/// What all of it begins with; its number changes with what follows.
const MAGIC: &[u8; 8] = b"relamp\x00\x01";

/// Data with their mark and their sum.
pub(super) fn wrapped(data: &[u8]) -> Vec<u8> {
    [MAGIC, &sum(data).to_le_bytes()[..], data].concat()
}

/// What `wrapped` was given by this version, unless something happened to it.
pub(super) fn unwrapped(bytes: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (kept, data) = rest.split_first_chunk::<8>()?;
    let whole = magic == MAGIC && sum(data) == u64::from_le_bytes(*kept);
    whole.then_some(data)
}

/// The hash of data, and of the version that they are of.
fn sum(data: &[u8]) -> u64 {
    hash(env!("CARGO_PKG_VERSION").as_bytes()) ^ hash(data)
}

/// FNV-1a of 64 bits, which does not differ from one build to the next.
pub(super) fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_whole_or_not_at_all() {
        let data: Vec<u8> = (0..1000).map(|i| (i * 7 % 251) as u8).collect();
        let kept = wrapped(&data);
        assert_eq!(unwrapped(&kept), Some(&data[..]));
        for cut in [0, 7, 8, 15, 16, kept.len() - 1] {
            assert_eq!(unwrapped(&kept[..cut]), None, "cut at {cut}");
        }
        for place in [0, 7, 8, 16, kept.len() - 1] {
            let mut changed = kept.clone();
            changed[place] ^= 1;
            assert_eq!(unwrapped(&changed), None, "changed at {place}");
        }
    }
}
