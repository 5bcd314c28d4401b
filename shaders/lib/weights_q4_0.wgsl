// Eight numbers of four bits a word, less 8, times their block's scale.
const PER_WORD = 8u;
const SCALES = 1u;

fn number(word: u32, index: u32) -> f32 {
    return f32(i32(extractBits(word, 4u * index, 4u)) - 8);
}
