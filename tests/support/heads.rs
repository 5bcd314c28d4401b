//! Cases of operations on heads: rotations and attention.

use relampago::{Attention, Op, Rope};

use super::{Case, Random};

fn ropes() -> Vec<Rope> {
    let factors: Vec<f32> = (0..32).map(|i| 1.0 + i as f32 / 4.0).collect();
    vec![
        Rope::new(0, 3, 8),
        Rope::new(3, 0, 8),
        Rope::new(3, 2, 0),
        Rope::new(1, 1, 1).with_rotated(0),
        Rope::new(1, 1, 2),
        Rope::new(5, 3, 8),
        Rope::new(5, 3, 8).interleaved().with_first(7),
        Rope::new(9, 2, 20).with_rotated(12).with_base(500_000.0),
        Rope::new(9, 2, 21).with_rotated(14).interleaved(),
        Rope::new(33, 9, 64).with_first(131_000),
        Rope::new(4, 2, 80).with_rotated(64).with_factors(&factors),
        Rope::new(2, 2, 64)
            .interleaved()
            .with_factors(&factors)
            .with_first(16_000_000),
        Rope::new(700, 8, 64),
    ]
}

fn attentions() -> Vec<Attention> {
    let shared =
        |tokens, heads, len, kv_heads| Attention::new(tokens, heads, len).with_kv_heads(kv_heads);
    vec![
        Attention::new(0, 2, 8),
        Attention::new(3, 2, 0),
        Attention::new(1, 1, 1),
        Attention::new(5, 3, 8),
        Attention::new(70, 2, 16),
        Attention::new(3, 2, 8).with_positions(130),
        Attention::new(40, 2, 9).with_positions(7),
        shared(7, 4, 20, 2).causal(0),
        shared(1, 6, 64, 2).with_positions(301).causal(300),
        shared(3, 8, 80, 1).with_positions(200).causal(150),
        shared(33, 4, 64, 2).causal(0).with_window(9),
        shared(70, 2, 31, 1)
            .with_positions(400)
            .causal(300)
            .with_window(100),
        shared(9, 4, 128, 4).causal(0).with_soft_cap(5.0),
        shared(2, 4, 256, 2).with_positions(50).with_soft_cap(30.0),
        shared(9, 2, 16, 2).causal(0).with_scale(-0.5),
        Attention::new(20, 1, 65).causal(0).with_window(1),
        // Weights of one size.
        Attention::new(70, 2, 16).with_scale(0.02),
        shared(33, 4, 64, 2).causal(0).with_scale(0.01),
        shared(1, 4, 64, 2)
            .with_positions(200)
            .causal(199)
            .with_scale(0.01),
    ]
}

/// Rotations of ordinary elements, and of some that are not finite.
pub fn head_cases() -> Vec<Case> {
    let mut random = Random(8);
    let mut cases = Vec::new();
    for options in ropes() {
        let x = random.values(options.tokens * options.heads * options.head_len);
        if x.len() > 4 {
            let mut x = x.clone();
            (x[1], x[4]) = (f32::INFINITY, f32::NAN);
            let options = options.clone();
            cases.push(Case::new(Op::Rope { options }, vec![x]));
        }
        cases.push(Case::new(Op::Rope { options }, vec![x]));
    }
    for options in attentions() {
        let row = options.positions * options.kv_heads * options.head_len;
        let inputs = vec![
            random.values(options.tokens * options.heads * options.head_len),
            random.values(row),
            random.values(row),
        ];
        if options.causal.is_some() && options.tokens > 2 {
            // The last position is seen by the last token only, at most.
            let mut inputs = inputs.clone();
            for (input, value) in [(1, f32::NAN), (2, f32::INFINITY)] {
                let last = inputs[input].len() - 1;
                inputs[input][last] = value;
            }
            cases.push(Case::new(Op::Attention { options }, inputs));
        }
        if options.window.is_some() {
            // The first position that the first token sees; later tokens do not see it.
            let mut inputs = inputs.clone();
            let first = options.visible(0).start * options.kv_heads * options.head_len;
            for input in [1, 2] {
                inputs[input][first] = f32::NAN;
            }
            cases.push(Case::new(Op::Attention { options }, inputs));
        }
        cases.push(Case::new(Op::Attention { options }, inputs));
    }
    cases
}
