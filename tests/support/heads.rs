//! Cases of operations on heads: rotations and attention.

use relampago::{Op, Rope};

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
    cases
}
