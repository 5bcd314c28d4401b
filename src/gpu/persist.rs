//! The format of data that is kept between processes, or between visits of a page: bytes with a
//! magic number and a checksum.

/// The magic number; its last byte is the version of the format.
const MAGIC: &[u8; 8] = b"relamp\x00\x01";

/// Returns the data with the magic number and a checksum.
pub(super) fn wrapped(data: &[u8]) -> Vec<u8> {
    [MAGIC, &sum(data).to_le_bytes()[..], data].concat()
}

/// Returns the data that `wrapped` was given; `None` if it is damaged or of another version.
pub(super) fn unwrapped(bytes: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (kept, data) = rest.split_first_chunk::<8>()?;
    let whole = magic == MAGIC && sum(data) == u64::from_le_bytes(*kept);
    whole.then_some(data)
}

/// Returns the hash of the data and of this version of the crate.
fn sum(data: &[u8]) -> u64 {
    hash(env!("CARGO_PKG_VERSION").as_bytes()) ^ hash(data)
}

/// FNV-1a of 64 bits, which is stable across builds.
pub(super) fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_data_is_rejected() {
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
