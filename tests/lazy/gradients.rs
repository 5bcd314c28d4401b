//! Gradients as callers see them: ties, constants, mistakes, and nets that learn.

use relampago::{Axes, Backend, ConvOptions, CustomOp, Error, Result, SumOp, Tensor, Tensors};

fn leaf(tensors: &Tensors, values: &[f32]) -> Result<Tensor> {
    tensors.tensor(values, &[values.len()])
}

fn gradient(loss: &Tensor, x: &Tensor) -> Result<Vec<f32>> {
    loss.gradients(&[x])?[0].read()
}

#[test]
fn equal_extremes_share_the_gradient_evenly() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = leaf(&tensors, &[3.0, 1.0, 3.0, 0.0])?;
        assert_eq!(gradient(&x.max(..)?, &x)?, [0.5, 0.0, 0.5, 0.0]);
        assert_eq!(gradient(&x.min(..)?, &x)?, [0.0, 0.0, 0.0, 1.0]);
        let y = leaf(&tensors, &[3.0, 2.0, 1.0, 0.0])?;
        let both = x.maximum(&y)?.sum(..)?.gradients(&[&x, &y])?;
        let both = tensors.read(&both.iter().collect::<Vec<_>>())?;
        assert_eq!(both, [[0.5, 0.0, 1.0, 0.5], [0.5, 1.0, 0.0, 0.5]]);
    }
    Ok(())
}

#[test]
fn gradients_are_stated_where_there_is_no_derivative() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = leaf(&tensors, &[-2.0, 0.0, 2.0])?;
    assert_eq!(gradient(&x.relu()?.sum(..)?, &x)?, [0.0, 0.0, 1.0]);
    assert_eq!(gradient(&x.abs()?.sum(..)?, &x)?, [-1.0, 0.0, 1.0]);
    assert_eq!(gradient(&x.clip(-1.0, 2.0)?.sum(..)?, &x)?, [0.0, 1.0, 1.0]);
    assert_eq!(gradient(&x.pow(2.0)?.sum(..)?, &x)?, [-4.0, 0.0, 4.0]);
    assert_eq!(gradient(&x.pow(0.0)?.sum(..)?, &x)?, [0.0; 3]);
    assert_eq!(gradient(&x.floor()?.sum(..)?, &x)?, [0.0; 3]);
    assert_eq!(gradient(&x.argmax(..)?.sum(..)?, &x)?, [0.0; 3]);
    assert_eq!(gradient(&x.greater(0.0)?.sum(..)?, &x)?, [0.0; 3]);
    // The branch that is not taken adds no NaN.
    let y = x.greater(0.0)?.select(&x.mul(3.0)?, f32::NAN)?;
    assert_eq!(gradient(&y.sum(..)?, &x)?, [0.0, 0.0, 3.0]);
    Ok(())
}

#[test]
fn stopped_and_absent_tensors_have_zeros() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = leaf(&tensors, &[1.0, 2.0])?;
        let none = tensors.ones(&[0, 3])?;
        let other = tensors.ones(&[2, 2])?;
        let loss = x.mul(&x.stop_gradient()?)?.sum(..)?;
        let gradients = loss.gradients(&[&x, &other, &none, &loss])?;
        let values = tensors.read(&gradients.iter().collect::<Vec<_>>())?;
        assert_eq!(values, [vec![1.0, 2.0], vec![0.0; 4], vec![], vec![1.0]]);
        assert_eq!(gradients[2].shape(), [0, 3]);
    }
    Ok(())
}

#[test]
fn gradients_reach_tensors_between_leaves_and_loss() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = leaf(&tensors, &[1.0, 2.0])?;
    let y = x.square()?;
    let loss = y.square()?.sum(..)?;
    let gradients = loss.gradients(&[&y, &x])?;
    assert_eq!(gradients[0].read()?, [2.0, 8.0]);
    assert_eq!(gradients[1].read()?, [4.0, 32.0]);
    // A computed tensor is a leaf, and a gradient goes to it, not through it.
    y.run()?;
    assert_eq!(gradient(&loss, &y)?, [2.0, 8.0]);
    assert_eq!(gradient(&y.sum(..)?, &x)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn losses_and_operations_without_gradients_return_errors() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = leaf(&tensors, &[1.0, 2.0])?;
    let error = x.square()?.gradients(&[&x]).expect_err("two elements");
    let message = "gradients: the loss has shape [2], but must be one number: take its sum or mean";
    assert_eq!(error.to_string(), message);
    let loss = x.sum(..)?.run()?;
    let error = loss.gradients(&[&x]).expect_err("it was run");
    assert_eq!(error.code(), "INVALID_ARGUMENT");
    let stranger = crate::tensors(Backend::Simd).ones(&[2])?;
    let error = x.sum(..)?.gradients(&[&stranger]).expect_err("foreign");
    assert_eq!(error.code(), "FOREIGN");

    let twice = CustomOp::new("twice", &["x"], &[], "2.0 * x", |[x], []| 2.0 * x)?;
    let loss = x.custom_elementwise(&twice, &[], &[])?.sum(..)?;
    let expected = Error::NoGradient { op: "twice" };
    assert_eq!(loss.gradients(&[&x]).expect_err("no derivative"), expected);
    let loss = x.custom_reduce::<SumOp>(Axes::all())?;
    let error = loss.gradients(&[&x]).expect_err("no derivative");
    assert_eq!(error.code(), "NO_GRADIENT");
    // No gradient flows through it.
    let loss = x.mul(&x.custom_elementwise(&twice, &[], &[])?.greater(3.0)?)?;
    assert_eq!(gradient(&loss.sum(..)?, &x)?, [0.0, 1.0]);
    Ok(())
}

#[test]
fn custom_operations_state_their_derivatives() -> Result<()> {
    let mix = |name, wgsl, f: fn([f32; 2], [f32; 1]) -> f32| {
        CustomOp::new(name, &["a", "b"], &["t"], wgsl, f)
    };
    let by_a = mix("by_a", "1.0 - t", |_, [t]| 1.0 - t)?;
    let by_b = mix("by_b", "t", |_, [t]| t)?;
    let lerp = mix("lerp", "a + t * (b - a)", |[a, b], [t]| a + t * (b - a))?;
    let error = lerp.clone().with_derivatives(std::slice::from_ref(&by_a));
    assert_eq!(error.expect_err("two inputs").code(), "LENGTH_MISMATCH");
    let lerp = lerp.with_derivatives(&[by_a, by_b])?;
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let (a, b) = (leaf(&tensors, &[1.0, 2.0])?, tensors.ones(&[3, 2])?);
        let y = a.custom_elementwise(&lerp, &[(&b).into()], &[0.25])?;
        let gradients = y.sum(..)?.gradients(&[&a, &b])?;
        assert_eq!(gradients[0].read()?, [2.25, 2.25]);
        assert_eq!(gradients[1].read()?, [0.25; 6]);
    }
    Ok(())
}

/// Runs steps of gradient descent; returns the first and the last loss. All steps must run the first one's program.
fn descend(
    tensors: &Tensors,
    mut parameters: Vec<Tensor>,
    steps: usize,
    rate: f32,
    loss: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<[f32; 2]> {
    let mut losses = Vec::new();
    for _ in 0..steps {
        let value = loss(&parameters)?;
        let gradients = value.gradients(&parameters.iter().collect::<Vec<_>>())?;
        for (parameter, gradient) in parameters.iter_mut().zip(&gradients) {
            *parameter = parameter.sub(&gradient.mul(rate)?)?;
        }
        let mut all: Vec<&Tensor> = parameters.iter().collect();
        all.push(&value);
        tensors.run(&all)?;
        losses.push(value.item()?);
    }
    assert_eq!(tensors.planned(), 1, "a step plans nothing after the first");
    Ok([losses[0], losses[steps - 1]])
}

#[test]
fn a_perceptron_learns() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], &[4, 2])?;
        let labels = leaf(&tensors, &[0.0, 1.0, 1.0, 0.0])?;
        let parameters = vec![
            tensors.random_normal(&[2, 8], 1)?,
            leaf(&tensors, &[0.0; 8])?,
            tensors.random_normal(&[8, 2], 2)?,
            leaf(&tensors, &[0.0; 2])?,
        ];
        let [first, last] = descend(&tensors, parameters, 150, 0.5, |p| {
            let hidden = x.matmul(&p[0])?.add(&p[1])?.tanh()?;
            hidden.matmul(&p[2])?.add(&p[3])?.cross_entropy(&labels)
        })?;
        assert!(first > 0.5 && last < 0.05, "{first} to {last} on {backend}");
    }
    Ok(())
}

#[test]
fn a_convolutional_net_learns() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        // Images of 6 × 6 elements with two bars, which stand or lie.
        let is_bar = |image: usize, row: usize, col: usize| {
            let along = if image.is_multiple_of(2) { row } else { col };
            (along + image / 2).is_multiple_of(3)
        };
        let places = (0..12).flat_map(|image| (0..36).map(move |at| (image, at / 6, at % 6)));
        let images = places.map(|(image, row, col)| f32::from(u8::from(is_bar(image, row, col))));
        let images = tensors.tensor(&images.collect::<Vec<_>>(), &[12, 1, 6, 6])?;
        let labels = (0..12).map(|image| (image % 2) as f32);
        let labels = leaf(&tensors, &labels.collect::<Vec<_>>())?;
        let weights = |shape: &[usize], seed| {
            let values = crate::tensors(Backend::Simd)
                .random_normal(shape, seed)?
                .mul(0.5)?;
            tensors.tensor(&values.read()?, shape)
        };
        let parameters = vec![weights(&[4, 1, 3, 3], 1)?, weights(&[4, 2], 2)?];
        let [first, last] = descend(&tensors, parameters, 60, 0.5, |p| {
            let features = images.conv2d(&p[0], ConvOptions::new().same())?.relu()?;
            features.mean([2, 3])?.matmul(&p[1])?.cross_entropy(&labels)
        })?;
        assert!(first > 0.5 && last < 0.1, "{first} to {last} on {backend}");
    }
    Ok(())
}
