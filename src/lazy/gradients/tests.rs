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

#[test]
fn elementwise_gradients_are_differences() -> Result<()> {
    let mut cases = Cases::new(&tensors()?, 1);
    let mut compared = 0;
    for op in rows() {
        for _ in 0..40 {
            let inputs = inputs_of(op, &mut cases)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let loss = cases.loss(&elementwise(op, &inputs))?;
            compared += check(op.name(), &loss, &inputs)?;
        }
    }
    println!("{compared} elements of elementwise gradients");
    assert!(compared > 10_000);
    Ok(())
}

#[test]
fn second_gradients_of_elementwise_operations_are_differences() -> Result<()> {
    let mut cases = Cases::new(&tensors()?, 2);
    for op in rows() {
        for _ in 0..5 {
            let inputs = inputs_of(op, &mut cases)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let loss = cases.loss(&elementwise(op, &inputs))?;
            let first = loss.gradients(&inputs)?;
            let again = cases.loss(&first[0])?;
            check(&format!("{} twice", op.name()), &again, &inputs)?;
        }
    }
    Ok(())
}

#[test]
fn gradients_of_every_rule_are_differences() -> Result<()> {
    let mut cases = Cases::new(&tensors()?, 3);
    let (mut compared, mut losses) = (0, 0);
    for (name, rule) in RULES {
        for _ in 0..120 {
            let (y, inputs) = rule(&mut cases)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let loss = cases.loss(&y)?;
            compared += check(name, &loss, &inputs)?;
            losses += 1;
        }
    }
    println!("{compared} elements of gradients of {losses} losses");
    assert!(compared > 20_000);
    Ok(())
}

#[test]
fn second_gradients_of_every_rule_are_differences() -> Result<()> {
    let mut cases = Cases::new(&tensors()?, 4);
    for (name, rule) in RULES {
        for _ in 0..10 {
            let (y, inputs) = rule(&mut cases)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            // The square has a second derivative even where the rule is linear.
            let loss = cases.loss(&y.square()?)?;
            let first = loss.gradients(&inputs)?;
            let mut again = cases.loss(&first[0])?;
            for gradient in &first[1..] {
                again = again.add(&cases.loss(gradient)?)?;
            }
            check(&format!("{name} twice"), &again, &inputs)?;
        }
    }
    Ok(())
}

#[test]
fn devices_compute_the_gradients_of_every_rule() -> Result<()> {
    let mut cases = Cases::new(&tensors()?, 5);
    for (name, rule) in RULES {
        for _ in 0..20 {
            let (y, inputs) = rule(&mut cases)?;
            let loss = cases.loss(&y)?;
            check_on_device(name, &loss, &inputs.iter().collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

#[cfg(feature = "gpu")]
#[test]
fn gpus_compute_the_gradients_of_every_rule() -> Result<()> {
    let Ok(device) = GpuDevice::builder().backend(Backend::Gpu).build() else {
        return Ok(());
    };
    let mut cases = Cases::new(&Tensors::new(&device), 6);
    for (name, rule) in RULES {
        for _ in 0..3 {
            let (y, inputs) = rule(&mut cases)?;
            let loss = cases.loss(&y)?;
            check_on_device(name, &loss, &inputs.iter().collect::<Vec<_>>())?;
        }
    }
    Ok(())
}
