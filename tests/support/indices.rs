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

/// Rows, columns and ranks.
const RANKINGS: [(usize, usize, usize); 11] = [
    (0, 0, 3),
    (0, 5, 2),
    (4, 0, 0),
    (4, 5, 0),
    (1, 1, 1),
    (9, 4, 4),
    (33, 65, 7),
    (2, 4_099, 50),
    (3, 70_001, 5),
    (700, 8, 2),
    (2, 1_000, 1_000),
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
    for (rows, cols, len) in TABLES {
        let inputs = vec![random.values(len * cols), indices(&mut random, len, rows)];
        cases.push(Case::new(Op::ScatterRows { rows, cols }, inputs));
    }
    for words in [0, 1, 3, 70_001] {
        let x = random.values(words);
        cases.push(Case::new(Op::UnpackBytes { stride: words }, vec![x]));
        // The last word may lack up to three numbers.
        let x = random.values(4 * words - words % 4);
        cases.push(Case::new(Op::PackBytes { stride: words }, vec![x]));
    }
    for (rows, cols, k) in RANKINGS {
        // Whole numbers, of which many are equal.
        let whole: Vec<f32> = random
            .values(rows * cols)
            .iter()
            .map(|x| x.round())
            .collect();
        for x in [random.values(rows * cols), whole] {
            let taken = indices(&mut random, rows * k, cols);
            let op = Op::TakeAlongRows { rows, cols, k };
            cases.push(Case::new(op, vec![x.clone(), taken]));
            cases.push(Case::new(Op::TopKRows { rows, cols, k }, vec![x.clone()]));
            if cols > 0 || rows == 0 {
                cases.push(Case::new(Op::ArgmaxRows { rows, cols }, vec![x]));
            }
        }
    }
    // Rows that rise or fall, of one value, and of special ones.
    let n = 600;
    let rising: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let falling: Vec<f32> = (0..n).map(|i| -(i as f32)).collect();
    let special = SPECIAL.repeat(n / SPECIAL.len() + 1)[..n].to_vec();
    let lowest = vec![f32::NEG_INFINITY; n];
    let x = [
        rising,
        falling,
        vec![3.0; n],
        special,
        vec![f32::NAN; n],
        lowest,
    ]
    .concat();
    let (rows, cols) = (x.len() / n, n);
    cases.push(Case::new(Op::ArgmaxRows { rows, cols }, vec![x.clone()]));
    for k in [1, 7, 100] {
        let op = Op::TopKRows { rows, cols, k };
        cases.push(Case::new(op, vec![x.clone()]));
    }
    let (rows, cols) = (SPECIAL.len(), 1);
    let inputs = vec![SPECIAL.to_vec(), (0..rows).map(|i| i as f32).collect()];
    cases.push(Case::new(Op::GatherRows { rows, cols }, inputs));
    cases
}
