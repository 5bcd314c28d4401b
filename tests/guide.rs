//! The guide lists the operations of the table.

#![cfg(not(target_arch = "wasm32"))]

use relampago::ops::OPS;

#[test]
fn the_guide_lists_every_operation_with_its_accuracy() {
    let guide = include_str!("../docs/guide/operations.md");
    let missing = OPS.iter().filter(|op| {
        let start = format!("| `{}({})` |", op.name, op.inputs.join(", "));
        let end = format!("| {} |", op.ulp);
        let mut lines = guide.lines();
        !lines.any(|line| line.starts_with(&start) && line.ends_with(&end))
    });
    let missing: Vec<&str> = missing.map(|op| op.name).collect();
    assert!(
        missing.is_empty(),
        "docs/guide/operations.md lacks {missing:?}"
    );
}
