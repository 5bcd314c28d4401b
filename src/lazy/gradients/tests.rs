//! Every rule beside differences in `f64`, on every back-end beside the same graph in `f64`, and what has no gradient.

mod cases;
mod checks;
mod interpreter;

use cases::{Cases, RULES};
use checks::{check, check_on_device};

use crate::device::{Backend, GpuDevice};
use crate::error::Result;
use crate::lazy::{Tensor, Tensors};
use crate::ops::{OPS, Op};

fn tensors() -> Result<Tensors> {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    Ok(Tensors::new(&builder.build()?))
}

/// Records an elementwise operation of a row of the table.
fn elementwise(op: &Op, inputs: &[&Tensor]) -> Tensor {
    let nodes: Vec<_> = inputs.iter().map(|input| &input.node).collect();
    let shape = inputs[0].shape();
    inputs[0].with(crate::lazy::elementwise::elementwise(
        op.clone(),
        &nodes,
        shape,
    ))
}

/// The operations that are elementwise, with the parameters of the table.
fn rows() -> impl Iterator<Item = &'static Op> {
    let samples = OPS.iter().flat_map(|info| info.samples);
    samples.filter(|op| op.is_elementwise())
}

/// Returns the inputs of an operation where it has a derivative: away from whole numbers, where steps, kinks and bounds
/// are, and positive where a logarithm, a root or a power needs it.
fn inputs_of(op: &Op, cases: &mut Cases) -> Result<Vec<Tensor>> {
    let is_positive = matches!(
        op,
        Op::Log | Op::Sqrt | Op::Rsqrt | Op::Reciprocal | Op::Pow | Op::Div
    );
    let leaf = |cases: &mut Cases| {
        if is_positive {
            cases.positive(&[6])
        } else {
            cases.leaf(&[6])
        }
    };
    let (first, second) = (leaf(cases)?, leaf(cases)?);
    // No element is that of the first input.
    let apart = cases.tensors.tensor(
        &second.read()?.iter().map(|x| x + 0.002).collect::<Vec<_>>(),
        &[6],
    )?;
    let count = op.inputs().len();
    Ok([first, apart].into_iter().take(count).collect())
}

/// Calls `f` with random inputs of each elementwise operation: the operation, a loss of it, and its inputs.
fn every_row(
    cases: &mut Cases,
    count: usize,
    mut f: impl FnMut(&mut Cases, &Op, &Tensor, &[&Tensor]) -> Result<()>,
) -> Result<()> {
    for op in rows() {
        for _ in 0..count {
            let inputs = inputs_of(op, cases)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let loss = cases.loss(&elementwise(op, &inputs))?;
            f(cases, op, &loss, &inputs)?;
        }
    }
    Ok(())
}

#[test]
fn elementwise_gradients_are_differences() -> Result<()> {
    let mut compared = 0;
    every_row(
        &mut Cases::new(&tensors()?, 1),
        40,
        |_, op, loss, inputs| {
            compared += check(op.name(), loss, inputs)?;
            Ok(())
        },
    )?;
    println!("{compared} elements of elementwise gradients");
    assert!(compared > 10_000);
    Ok(())
}

#[test]
fn second_gradients_of_elementwise_operations_are_differences() -> Result<()> {
    every_row(
        &mut Cases::new(&tensors()?, 2),
        5,
        |cases, op, loss, inputs| {
            let first = loss.gradients(inputs)?;
            check(
                &format!("{} twice", op.name()),
                &cases.loss(&first[0])?,
                inputs,
            )?;
            Ok(())
        },
    )
}

/// Calls `f` with random cases of each rule: its name, a result, and the leaves that this comes from.
fn every_rule(
    cases: &mut Cases,
    count: usize,
    mut f: impl FnMut(&mut Cases, &str, &Tensor, &[&Tensor]) -> Result<()>,
) -> Result<()> {
    for (name, rule) in RULES {
        for _ in 0..count {
            let (y, inputs) = rule(cases)?;
            f(cases, name, &y, &inputs.iter().collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

#[test]
fn gradients_of_every_rule_are_differences() -> Result<()> {
    let mut compared = 0;
    every_rule(
        &mut Cases::new(&tensors()?, 3),
        120,
        |cases, name, y, inputs| {
            compared += check(name, &cases.loss(y)?, inputs)?;
            Ok(())
        },
    )?;
    println!("{compared} elements of gradients");
    assert!(compared > 20_000);
    Ok(())
}

#[test]
fn second_gradients_of_every_rule_are_differences() -> Result<()> {
    every_rule(
        &mut Cases::new(&tensors()?, 4),
        10,
        |cases, name, y, inputs| {
            // The square has a second derivative even where the rule is linear.
            let loss = cases.loss(&y.square()?)?;
            let first = loss.gradients(inputs)?;
            let mut again = cases.loss(&first[0])?;
            for gradient in &first[1..] {
                again = again.add(&cases.loss(gradient)?)?;
            }
            check(&format!("{name} twice"), &again, inputs)?;
            Ok(())
        },
    )
}

fn check_device(tensors: &Tensors, count: usize) -> Result<()> {
    every_rule(
        &mut Cases::new(tensors, 5),
        count,
        |cases, name, y, inputs| check_on_device(name, &cases.loss(y)?, inputs),
    )
}

#[test]
fn devices_compute_the_gradients_of_every_rule() -> Result<()> {
    check_device(&tensors()?, 20)
}

#[cfg(feature = "gpu")]
#[test]
fn gpus_compute_the_gradients_of_every_rule() -> Result<()> {
    let device = GpuDevice::builder().backend(Backend::Gpu).build()?;
    check_device(&Tensors::new(&device), 3)
}
