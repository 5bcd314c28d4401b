//! Bytes as numbers from 0 to 1.

/// Returns the position of the first number of a word. The other numbers follow at distances of `stride`.
fn first(word: usize, stride: usize) -> usize {
    if stride == 1 { 4 * word } else { word }
}

/// Writes the four bytes of each word, divided by 255.
pub(super) fn unpack(stride: usize, x: &[f32], out: &mut [f32]) {
    for (i, word) in x.iter().enumerate() {
        let mut at = first(i, stride);
        for byte in word.to_bits().to_le_bytes() {
            if let Some(number) = out.get_mut(at) {
                // In `f64`, which rounds as a division in `f32` does, but takes a fraction of its time.
                *number = (f64::from(byte) * (1.0 / 255.0)) as f32;
            }
            at += stride;
        }
    }
}

/// Writes words of four bytes each, the nearest ones to `255 · x`. Missing numbers are 0.
pub(super) fn pack(stride: usize, x: &[f32], out: &mut [f32]) {
    for (i, word) in out.iter_mut().enumerate() {
        let mut at = first(i, stride);
        let mut bytes = [0; 4];
        for byte in &mut bytes {
            if let Some(number) = x.get(at) {
                // The conversion cuts off the fraction; it makes bytes of what is too small or large, and 0 of NaN.
                *byte = (255.0 * number + 0.5) as u8;
            }
            at += stride;
        }
        *word = f32::from_bits(u32::from_le_bytes(bytes));
    }
}
