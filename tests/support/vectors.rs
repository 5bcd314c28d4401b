//! Cases of vectors: of every length that matters, and of the values that matter.

use relampago::{Matmul, Op};

use super::matrices::norm_cases;
use super::ops::{has_identity, sample_ops};
use super::{Case, Random, binary_ops, unary_ops};

pub const SIZES: [usize; 9] = [0, 1, 3, 63, 64, 65, 1_000, 65_537, 1_000_003];

/// Values at which implementations differ.
pub const SPECIAL: [f32; 29] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    3e-39,
    -3e-39,
    f32::MAX,
    f32::MIN,
    1e30,
    -1e30,
    1e-30,
    -1e-30,
    f32::EPSILON,
    88.5,
    89.0,
    -87.5,
    -88.0,
    -103.5,
    -105.0,
    0.5,
    -13.0,
    16_777_216.0,
];

/// Every operation on vectors of one length.
pub fn vector_cases(len: usize) -> Vec<Case> {
    let mut random = Random(len as u64);
    let mut cases = Vec::new();
    for op in sample_ops() {
        if len > 0 || !op.is_scalar() || has_identity(&op) {
            let inputs = op.inputs().iter().map(|_| random.values(len)).collect();
            cases.push(Case::new(op, inputs));
        }
    }
    cases
}

/// Every operation on the special values: unary ones on all of them, binary ones on all pairs.
pub fn special_cases() -> Vec<Case> {
    let n = SPECIAL.len();
    let first: Vec<f32> = (0..n * n).map(|i| SPECIAL[i / n]).collect();
    let second: Vec<f32> = (0..n * n).map(|i| SPECIAL[i % n]).collect();
    let mut cases = super::index_cases();
    cases.extend(super::row_function_cases());
    cases.extend(super::head_cases());
    cases.extend(super::axis_cases());
    for op in unary_ops() {
        cases.push(Case::new(op, vec![SPECIAL.to_vec()]));
    }
    for op in binary_ops() {
        cases.push(Case::new(op, vec![first.clone(), second.clone()]));
    }
    let by_row = |op: &Op| !op.is_elementwise() && op.inputs().len() == 1;
    let row_ops = sample_ops().filter(by_row);
    for op in row_ops {
        cases.extend(
            special_rows()
                .into_iter()
                .map(|row| Case::new(op.clone(), vec![row])),
        );
    }
    for row in special_rows() {
        let (gain, bias) = (vec![1.5; row.len()], vec![-0.5; row.len()]);
        cases.extend(norm_cases((1, row.len()), row.clone(), [&gain, &bias]));
        cases.extend(special_matrices(&row));
    }
    cases
}

/// Returns operations on matrices of three rows, with these elements between ordinary ones, unless
/// they are long.
fn special_matrices(row: &[f32]) -> Vec<Case> {
    let (rows, cols) = (3, row.len());
    if cols > 1_000 {
        return Vec::new();
    }
    let mut random = Random(cols as u64);
    let mut ordinary = || random.values(cols);
    let x = [ordinary(), row.to_vec(), ordinary()].concat();
    let with = |other: Vec<f32>| vec![row.to_vec(), other];
    let options = Matmul::new(1, cols, 1).transpose_b();
    let mut cases = vec![
        Case::new(Op::BiasAdd { rows, cols }, vec![x.clone(), row.to_vec()]),
        Case::new(Op::Dot, with(row.to_vec())),
        Case::new(Op::Dot, with(ordinary())),
        Case::new(Op::MatmulWith { options }, with(ordinary())),
    ];
    for op in [
        Op::SoftmaxRows { rows, cols },
        Op::LogSoftmaxRows { rows, cols },
        Op::Transpose { rows, cols },
    ] {
        cases.push(Case::new(op, vec![x.clone()]));
    }
    cases
}

/// Rows with one special value among ordinary ones, at places that different lanes, blocks and
/// workgroups see, and rows of nothing else.
fn special_rows() -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (len, place) in [(1, 0), (5, 4), (1_000, 513), (70_001, 70_000), (70_001, 0)] {
            let mut row = Random(place as u64).values(len);
            row[place] = special;
            rows.push(row);
        }
        rows.push(vec![special; 100]);
        rows.push(vec![special; 70_001]);
    }
    rows.push([SPECIAL[1], SPECIAL[2]].repeat(40));
    // The first of two NaN, and the first of many equal values.
    rows.push(vec![1.0, f32::NAN, 2.0, f32::NAN, 3.0]);
    rows.push(vec![7.0; 70_001]);
    rows
}
