// Four signed bytes a word, times their block's scale.
const PER_WORD = 4u;
const SCALES = 1u;

fn number(word: u32, index: u32) -> f32 {
    return f32(extractBits(i32(word), 8u * index, 8u));
}
