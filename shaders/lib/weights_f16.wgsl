// Two binary16 a word, all of them finite. By integers, since unpacking functions may take
// subnormal numbers for zero.
const PER_WORD = 2u;
const SCALES = 0u;

fn number(word: u32, index: u32) -> f32 {
    let half = extractBits(word, 16u * index, 16u);
    let magnitude = (half & 0x7fffu) << 13u;
    // 112 in the exponent's field is the difference of the biases; 113 is that of 2⁻¹⁴, the
    // fraction of which is a subnormal number.
    let subnormal = bitcast<f32>(magnitude + (113u << 23u)) - bitcast<f32>(113u << 23u);
    let normal = bitcast<f32>(magnitude + (112u << 23u));
    let value = select(normal, subnormal, magnitude < (1u << 23u));
    return select(value, -value, (half & 0x8000u) != 0u);
}
