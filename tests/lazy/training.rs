//! Nets that are trained as by JAX, whose losses `tests/data/training/generate.py` writes.

use relampago::{ConvOptions, Optimizer, Result, Tensor, Tensors, clip_by_global_norm};

const LOSSES: &str = include_str!("../data/training/losses.txt");
const BATCH: usize = 16;

/// Returns the numbers that the losses were computed with.
fn numbers(tensors: &Tensors, seed: usize, shape: &[usize], scale: f64) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f64 / 1009.0 - 0.5;
    let values: Vec<f32> = (0..count).map(|at| (value(at) * scale) as f32).collect();
    tensors.tensor(&values, shape)
}

struct Net {
    loss: fn(&[Tensor], &Tensor, &Tensor) -> Result<Tensor>,
    optimizer: Optimizer,
    rate: f32,
    /// The bound of the gradients' norm.
    bound: Option<f32>,
    input: &'static [usize],
    parameters: &'static [(&'static [usize], f64)],
}

fn perceptron(p: &[Tensor], x: &Tensor, labels: &Tensor) -> Result<Tensor> {
    let x = x.matmul(&p[0])?.add(&p[1])?.relu()?;
    let x = x.matmul(&p[2])?.add(&p[3])?.relu()?;
    x.matmul(&p[4])?.add(&p[5])?.cross_entropy(labels)
}

fn convolutional(p: &[Tensor], x: &Tensor, labels: &Tensor) -> Result<Tensor> {
    let bias = p[1].reshape(&[6, 1, 1])?;
    let x = x
        .conv2d(&p[0], ConvOptions::new().same())?
        .add(&bias)?
        .gelu()?;
    let x = x.reshape(&[BATCH as isize, 6, 6, 2, 6, 2])?.max([3, 5])?;
    let x = x.conv2d(&p[2], ConvOptions::new().stride(2, 2))?.swish()?;
    x.reshape(&[BATCH as isize, -1])?
        .matmul(&p[3])?
        .cross_entropy(labels)
}

fn nets() -> [Net; 2] {
    [
        Net {
            loss: perceptron,
            optimizer: Optimizer::adam(),
            rate: 1e-3,
            bound: None,
            input: &[BATCH, 784],
            parameters: &[
                (&[784, 256], 0.1),
                (&[256], 0.0),
                (&[256, 128], 0.2),
                (&[128], 0.0),
                (&[128, 10], 0.3),
                (&[10], 0.0),
            ],
        },
        Net {
            loss: convolutional,
            optimizer: Optimizer::momentum(0.9),
            rate: 0.05,
            bound: Some(1.0),
            input: &[BATCH, 1, 12, 12],
            parameters: &[
                (&[6, 1, 3, 3], 1.0),
                (&[6], 0.0),
                (&[8, 6, 2, 2], 1.0),
                (&[72, 10], 0.5),
            ],
        },
    ]
}

fn follow(tensors: &Tensors, net: &Net, losses: &[f32]) -> Result<()> {
    let x = numbers(tensors, 99, net.input, 2.0)?;
    let labels: Vec<f32> = (0..BATCH).map(|at| (at * 3 % 10) as f32).collect();
    let labels = tensors.tensor(&labels, &[BATCH])?;
    let mut parameters = Vec::new();
    for (seed, &(shape, scale)) in net.parameters.iter().enumerate() {
        parameters.push(numbers(tensors, seed, shape, scale)?);
    }
    let mut state = net.optimizer.init(&parameters.iter().collect::<Vec<_>>())?;
    for (step, wanted) in losses.iter().enumerate() {
        let borrowed: Vec<&Tensor> = parameters.iter().collect();
        let loss = (net.loss)(&parameters, &x, &labels)?;
        let mut gradients = loss.gradients(&borrowed)?;
        if let Some(bound) = net.bound {
            gradients = clip_by_global_norm(&gradients, bound)?;
        }
        let (moved, next) = net
            .optimizer
            .step(&borrowed, &gradients, &state, net.rate)?;
        (parameters, state) = (moved, next);
        let mut all = state.tensors();
        all.extend(&parameters);
        all.push(&loss);
        tensors.run(&all)?;
        let value = loss.item()?;
        assert!(
            (value - wanted).abs() < 1e-3,
            "step {step}: {value}, not {wanted}"
        );
    }
    assert_eq!(tensors.planned(), 1, "a step plans nothing after the first");
    Ok(())
}

#[test]
fn nets_follow_the_losses_of_jax() -> Result<()> {
    for backend in crate::backends() {
        for (net, losses) in nets().iter().zip(LOSSES.lines()) {
            let losses = losses
                .split(' ')
                .map(|loss| loss.parse().expect("a number"));
            let losses: Vec<f32> = losses.collect();
            assert_eq!(losses.len(), 200);
            follow(&crate::tensors(backend), net, &losses)?;
        }
    }
    Ok(())
}
