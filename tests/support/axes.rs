//! Cases of operations on axes: strided views, joined rows and reductions along one axis.

use relampago::{AxisFold, Op, Rearrange, ReduceAxis};

use super::{Case, Random, SPECIAL};

fn views() -> Vec<(usize, Rearrange)> {
    vec![
        (0, Rearrange::new(&[0, 3], &[3, 1])),
        // Sizes beside a zero, and strides that nobody takes, may be anything.
        (0, Rearrange::new(&[usize::MAX, 0, usize::MAX], &[1, 1, 1])),
        (3, Rearrange::new(&[1, 3], &[isize::MIN, 1])),
        (1, Rearrange::new(&[], &[])),
        (7, Rearrange::new(&[], &[]).with_offset(6)),
        // Repeated rows, columns and elements.
        (5, Rearrange::new(&[33, 5], &[0, 1])),
        (33, Rearrange::new(&[33, 5], &[1, 0])),
        (1, Rearrange::new(&[1_001], &[0])),
        (6, Rearrange::new(&[3, 6, 700], &[0, 1, 0])),
        (12, Rearrange::new(&[3, 5, 4, 2], &[4, 0, 1, 0])),
        // Permuted axes.
        (6_000, Rearrange::new(&[20, 300], &[1, 20])),
        (24, Rearrange::new(&[2, 4, 3], &[12, 1, 4])),
        (
            5_040,
            Rearrange::new(&[7, 2, 5, 3, 4, 6], &[720, 360, 1, 120, 30, 5]),
        ),
        // Slices, reversed and with steps.
        (100, Rearrange::new(&[4, 9], &[20, -2]).with_offset(38)),
        (10, Rearrange::new(&[10], &[-1]).with_offset(9)),
        (4_096, Rearrange::new(&[63, 63], &[64, 1]).with_offset(65)),
        (70_000, Rearrange::new(&[35_000], &[2]).with_offset(1)),
        // Windows that overlap.
        (1_000, Rearrange::new(&[991, 10], &[1, 1])),
    ]
}

/// Sizes before, along and after the reduced axis.
const AXES: [[usize; 3]; 16] = [
    [0, 4, 3],
    [4, 3, 0],
    [1, 1, 1],
    [5, 1, 7],
    [7, 5, 1],
    [1_000, 10, 1],
    [3, 4_099, 1],
    [1, 300, 300],
    [9, 17, 33],
    [2, 100, 1_025],
    [1, 20_000, 3],
    [65, 64, 2],
    [1, 5_000, 257],
    [300, 2, 1],
    [2, 1, 3_000],
    [1, 70_001, 1],
];

/// Ordinary elements, and equal and special ones.
pub fn axis_cases() -> Vec<Case> {
    let mut random = Random(9);
    let mut cases = Vec::new();
    for (len, options) in views() {
        cases.push(Case::new(
            Op::Rearrange { options },
            vec![random.values(len)],
        ));
    }
    for [rows, a_cols, b_cols] in [[0, 2, 3], [3, 0, 0], [3, 0, 5], [70, 1, 33], [2, 5_000, 7]] {
        let inputs = vec![random.values(rows * a_cols), random.values(rows * b_cols)];
        let op = Op::ConcatRows {
            rows,
            a_cols,
            b_cols,
        };
        cases.push(Case::new(op, inputs));
    }
    for [outer, len, inner] in AXES {
        for fold in AxisFold::ALL {
            let options = ReduceAxis::new(fold, outer, len, inner);
            let op = Op::ReduceAxis { options };
            let x = random.values(outer * len * inner);
            if (4..5_000).contains(&x.len()) {
                let special = (0..x.len()).map(|i| SPECIAL[(i * i + i / 7) % SPECIAL.len()]);
                cases.push(Case::new(op.clone(), vec![special.collect()]));
                let whole = x.iter().map(|value| value.round()).collect();
                cases.push(Case::new(op.clone(), vec![whole]));
            }
            cases.push(Case::new(op, vec![x]));
        }
    }
    // The sum of nothing.
    let options = ReduceAxis::new(AxisFold::Sum, 3, 0, 5);
    cases.push(Case::new(Op::ReduceAxis { options }, vec![Vec::new()]));
    cases
}
