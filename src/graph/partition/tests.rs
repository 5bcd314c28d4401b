//! Tests of the division of graphs and the inputs of each part.

use crate::graph::partition::*;

fn graph(leaves: &[usize], ops: &[(Op, &[usize], usize)]) -> Vec<Node> {
    let leaf = |(place, &len): (usize, &usize)| Node {
        source: Source::Placeholder(place),
        len,
    };
    let leaves = leaves.iter().enumerate().map(leaf);
    let ops = ops
        .iter()
        .map(|(op, inputs, len)| node(op.clone(), inputs, *len));
    leaves.chain(ops).collect()
}

#[test]
fn layer_is_divided_by_matmul_rows() {
    let product = Op::Matmul { m: 12, k: 2, n: 3 };
    let biased = Op::BiasAdd { rows: 12, cols: 3 };
    let nodes = graph(
        &[24, 6, 3],
        &[
            (product, &[0, 1], 36),
            (biased, &[3, 2], 36),
            (Op::Relu, &[4], 36),
        ],
    );
    let division = Division::new(&nodes, &[5]);
    assert_eq!((division.rows, division.width), (12, 3));
    let rows = Window { each: 2, more: 0 };
    let given = [Given::Rows(0, rows), Given::Whole(1), Given::Whole(2)];
    assert_eq!(division.given, given);
    let (part, outputs, placeholders) = division.part(&nodes, 5, &|_| unreachable!());
    assert_eq!(placeholders, [10, 6, 3]);
    assert_eq!(part[outputs[0]].len, 15);
    let ops: Vec<&Op> = part
        .iter()
        .filter_map(|node| Some(node.operation()?.0))
        .collect();
    let wanted = [
        Op::Matmul { m: 5, k: 2, n: 3 },
        Op::BiasAdd { rows: 5, cols: 3 },
    ];
    assert_eq!(ops, [&wanted[0], &wanted[1], &Op::Relu]);
}

#[test]
fn rows_of_different_lengths_divide_at_common_ends() {
    let softmax = Op::SoftmaxRows { rows: 8, cols: 5 };
    let product = Op::Matmul { m: 4, k: 10, n: 1 };
    let nodes = graph(&[40, 10], &[(softmax, &[0], 40), (product, &[2, 1], 4)]);
    assert_eq!(Division::new(&nodes, &[3]).rows, 4);
    assert_eq!(Division::new(&nodes, &[2]).rows, 8);
}

#[test]
fn gathers_and_rankings_divide_by_rows_of_their_results() {
    let [rows, cols, k] = [6, 5, 2];
    let gather = Op::GatherRows { rows: 9, cols };
    let nodes = graph(
        &[45, 6],
        &[
            (gather.clone(), &[0, 1], 30),
            (Op::TopKRows { rows, cols, k }, &[2], 12),
            (Op::TakeAlongRows { rows, cols, k }, &[2, 3], 12),
        ],
    );
    let division = Division::new(&nodes, &[4]);
    assert_eq!(division.rows, 6);
    let window = Window { each: 1, more: 0 };
    assert_eq!(
        division.given,
        [Given::Whole(0), Given::Rows(1, window)],
        "all of the table, and some indices"
    );
    let (part, outputs, placeholders) = division.part(&nodes, 2, &|_| unreachable!());
    assert_eq!(placeholders, [45, 2]);
    assert_eq!(part[outputs[0]].len, 4);
    let ops = part.iter().filter_map(|node| Some(node.operation()?.0));
    let ops: Vec<&Op> = ops.collect();
    let rows = 2;
    let wanted = [
        &gather,
        &Op::TopKRows { rows, cols, k },
        &Op::TakeAlongRows { rows, cols, k },
    ];
    assert_eq!(ops, wanted);
}

#[test]
fn convolution_part_reads_a_band_of_rows() {
    let options = Conv2d::valid(11, 4, 3, 2).with_stride(2, 1);
    let nodes = graph(&[44, 6], &[(Op::Convolve2d { options }, &[0, 1], 15)]);
    let division = Division::new(&nodes, &[2]);
    assert_eq!(division.rows, 5);
    let Given::Rows(0, window) = division.given[1] else {
        panic!("{:?}", division.given);
    };
    // Rows 2 and 3 of the result are computed from rows 4 to 8.
    assert_eq!(window.range(2..4), 16..36);
}

#[test]
fn operations_across_rows_are_not_divided() {
    let sum = graph(&[6], &[(Op::Relu, &[0], 6), (Op::Sum, &[1], 1)]);
    assert_eq!(Division::new(&sum, &[2]).rows, 1);
    assert_eq!(Division::new(&sum, &[1]).rows, 6);
    // Each row needs every row of the other operand.
    let gram = Op::Matmul { m: 3, k: 2, n: 3 };
    let transpose = Op::Transpose { rows: 3, cols: 2 };
    let nodes = graph(&[6], &[(transpose, &[0], 6), (gram, &[0, 1], 9)]);
    let division = Division::new(&nodes, &[2]);
    assert_eq!(division.rows, 3);
    let rows = Window { each: 2, more: 0 };
    assert_eq!(division.given, [Given::Whole(0), Given::Rows(0, rows)]);
}
