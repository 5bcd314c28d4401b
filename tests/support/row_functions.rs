//! Cases of cumulative sums and products, orders and Fourier transforms of rows.

use relampago::Op;

use super::{Case, Random, SPECIAL};

/// Rows and their length.
const SHAPES: [(usize, usize); 11] = [
    (0, 0),
    (0, 5),
    (4, 0),
    (1, 1),
    (5, 1),
    (3, 2),
    (9, 4),
    (33, 65),
    (2, 1_024),
    (700, 8),
    (2, 4_099),
];

/// Rows and the numbers of their complex numbers.
const TRANSFORMS: [(usize, usize); 14] = [
    (0, 4),
    (5, 1),
    (3, 2),
    (1, 4),
    (17, 8),
    (2, 16),
    (5, 32),
    (33, 64),
    (18, 128),
    (3, 256),
    (2, 512),
    (3, 1_024),
    (1, 2_048),
    (1, 4_096),
];

/// Rows of ordinary, of equal and of special elements.
pub fn row_function_cases() -> Vec<Case> {
    let mut random = Random(11);
    let mut cases = Vec::new();
    for (rows, cols) in SHAPES {
        let x = random.values(rows * cols);
        // Near 1, so that long products stay within the range of numbers.
        let factors = x.iter().map(|x| 1.0 + x / 1024.0).collect();
        let whole: Vec<f32> = x.iter().map(|x| x.round()).collect();
        cases.push(Case::new(Op::CumsumRows { rows, cols }, vec![x.clone()]));
        cases.push(Case::new(Op::CumprodRows { rows, cols }, vec![factors]));
        cases.push(Case::new(Op::SortRows { rows, cols }, vec![x.clone()]));
        cases.push(Case::new(Op::ArgsortRows { rows, cols }, vec![x]));
        cases.push(Case::new(Op::ArgsortRows { rows, cols }, vec![whole]));
    }
    let special = SPECIAL.repeat(20);
    let (rows, cols) = (4, special.len() / 4);
    let special = special[..rows * cols].to_vec();
    cases.push(Case::new(
        Op::SortRows { rows, cols },
        vec![special.clone()],
    ));
    cases.push(Case::new(Op::ArgsortRows { rows, cols }, vec![special]));
    for (rows, len) in TRANSFORMS {
        let x = random.values(rows * len * 2);
        cases.push(Case::new(Op::FftRows { rows, len }, vec![x]));
    }
    cases
}
