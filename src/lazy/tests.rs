//! Tests of properties that callers cannot see: released memory, and the positions of results.

use std::sync::Arc;

use crate::device::{Backend, GpuDevice};
use crate::error::Result;
use crate::lazy::Tensors;
use crate::lazy::graph::Graph;
use crate::lazy::node::Source;

fn tensors() -> Tensors {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    Tensors::new(&builder.build().expect("SIMD is always there"))
}

#[test]
fn computed_tensors_forget_their_inputs() -> Result<()> {
    let x = tensors().tensor(&[1.0, 2.0], &[2])?;
    let y = x.mul(2.0)?.relu()?;
    let input = Arc::downgrade(&x.node);
    drop(x);
    assert!(input.upgrade().is_some());
    y.run()?;
    assert!(input.upgrade().is_none());
    assert_eq!(y.read()?, [2.0, 4.0]);
    Ok(())
}

#[test]
fn values_are_released_with_the_last_tensor_that_needs_them() -> Result<()> {
    let x = tensors().tensor(&[1.0, 2.0], &[2])?;
    let Some(Source::Values(values)) = x.node.source() else {
        panic!("a leaf has values");
    };
    let values = {
        let weak = Arc::downgrade(&values);
        drop(values);
        weak
    };
    let y = x.neg()?;
    assert_eq!(y.read()?, [-1.0, -2.0]);
    drop(x);
    assert!(values.upgrade().is_some(), "`y` is computed from it again");
    assert_eq!(y.read()?, [-1.0, -2.0]);
    drop(y);
    assert!(values.upgrade().is_none());
    Ok(())
}

#[test]
fn graphs_have_each_node_once() -> Result<()> {
    let x = tensors().tensor(&[1.0], &[1])?;
    let mut y = x.clone();
    // The number of paths from `y` to `x` is 2⁶⁴.
    for _ in 0..64 {
        y = y.maximum(&y)?;
    }
    assert_eq!(Graph::of(&[y.node]).entries.len(), 65);
    Ok(())
}

#[test]
fn structures_differ_by_parameters_and_not_by_values() -> Result<()> {
    let tensors = tensors();
    let structure = |value: f32, bound: f32, factor: f32| -> Result<Vec<u8>> {
        let x = tensors.tensor(&[value], &[1])?;
        let y = x.clip(bound, 9.0)?.mul(factor)?;
        Ok(Graph::of(&[y.node]).structure().key())
    };
    let first = structure(1.0, 0.0, 2.0)?;
    assert_eq!(structure(5.0, 0.0, 3.0)?, first);
    assert_ne!(structure(1.0, -0.0, 2.0)?, first);
    Ok(())
}
