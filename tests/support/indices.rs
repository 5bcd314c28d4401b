//! Cases of operations with indices.

use relampago::Op;

use super::{Case, Random, SPECIAL};

const TABLES: [(usize, usize, usize); 9] = [
    (0, 0, 0),
    (0, 3, 0),
    (3, 0, 4),
    (3, 4, 0),
    (1, 1, 1),
    (7, 5, 23),
    (300, 1, 1_025),
    (2, 4_097, 5),
    (1_000, 64, 999),
];

/// Indices of `len` elements below `count`; the last one and the first one are among them.
fn indices(random: &mut Random, len: usize, count: usize) -> Vec<f32> {
    let mut indices: Vec<f32> = (0..len).map(|_| random.below(count) as f32).collect();
    if let Some(first) = indices.first_mut() {
        *first = (count - 1) as f32;
    }
    if let Some(last) = indices.last_mut() {
        // Zero has two signs.
        *last = -0.0;
    }
    indices
}

/// Tables of ordinary and of special elements.
pub fn index_cases() -> Vec<Case> {
    let mut random = Random(7);
    let mut cases = Vec::new();
    for (rows, cols, len) in TABLES {
        let table = random.values(rows * cols);
        let inputs = vec![table, indices(&mut random, len, rows)];
        cases.push(Case::new(Op::GatherRows { rows, cols }, inputs));
    }
    let (rows, cols) = (SPECIAL.len(), 1);
    let inputs = vec![SPECIAL.to_vec(), (0..rows).map(|i| i as f32).collect()];
    cases.push(Case::new(Op::GatherRows { rows, cols }, inputs));
    cases
}
