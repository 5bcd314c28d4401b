//! A hash that is the same in every process, release and architecture.

/// Returns the 64-bit FNV-1a hash of parts, one after the other.
pub(super) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
