//! Steps of optimizers beside their formulas in `f64`, and clipped gradients.

use relampago::{Backend, Optimizer, Result, Tensor, clip_by_global_norm};

/// A parameter with its moments.
#[derive(Clone, Copy)]
struct Scalar {
    p: f64,
    m: f64,
    v: f64,
}

const RATE: f64 = 0.05;

/// Runs ten steps on a quadratic bowl, and compares each with the formula.
fn follow(optimizer: Optimizer, formula: impl Fn(Scalar, f64, i32) -> Scalar) -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let start = [1.5, -0.75, 0.25];
        let mut parameters = vec![tensors.tensor(&start, &[3])?, tensors.tensor(&[2.0], &[])?];
        let mut expected: Vec<Scalar> = start
            .iter()
            .chain(&[2.0])
            .map(|&p| Scalar {
                p: f64::from(p),
                m: 0.0,
                v: 0.0,
            })
            .collect();
        let mut state = optimizer.init(&parameters.iter().collect::<Vec<_>>())?;
        for step in 1..=10 {
            let borrowed: Vec<&Tensor> = parameters.iter().collect();
            let loss = borrowed[0].square()?.sum(..)?.add(&borrowed[1].square()?)?;
            let gradients = loss.gradients(&borrowed)?;
            let (moved, next) = optimizer.step(&borrowed, &gradients, &state, RATE as f32)?;
            (parameters, state) = (moved, next);
            let mut all = state.tensors();
            all.extend(&parameters);
            tensors.run(&all)?;
            let values = [parameters[0].read()?, parameters[1].read()?].concat();
            for (own, value) in expected.iter_mut().zip(values) {
                *own = formula(*own, 2.0 * own.p, step);
                let error = (own.p - f64::from(value)).abs();
                assert!(
                    error < 2e-5,
                    "step {step}: {value}, not {}, on {backend}",
                    own.p
                );
            }
        }
        assert_eq!(tensors.planned(), 1, "a step plans nothing after the first");
    }
    Ok(())
}

#[test]
fn sgd_follows_its_formula() -> Result<()> {
    let plain = |own: Scalar, g: f64, _| Scalar {
        p: own.p - RATE * g,
        ..own
    };
    follow(Optimizer::sgd(), plain)?;
    let momentum = |nesterov: bool| {
        move |own: Scalar, g: f64, _| {
            let g = g + 0.01 * own.p;
            let m = 0.9 * own.m + g;
            let direction = if nesterov { g + 0.9 * m } else { m };
            Scalar {
                p: own.p - RATE * direction,
                m,
                ..own
            }
        }
    };
    for nesterov in [false, true] {
        let sgd = if nesterov {
            Optimizer::nesterov(0.9)
        } else {
            Optimizer::momentum(0.9)
        };
        follow(sgd.with_weight_decay(0.01), momentum(nesterov))?;
    }
    Ok(())
}

#[test]
fn adam_follows_its_formula() -> Result<()> {
    let adam = |decay: f64| {
        move |own: Scalar, g: f64, step: i32| {
            let (m, v) = (0.9 * own.m + 0.1 * g, 0.999 * own.v + 0.001 * g * g);
            let first = m / (1.0 - 0.9_f64.powi(step));
            let second = v / (1.0 - 0.999_f64.powi(step));
            let direction = first / (second.sqrt() + 1e-8) + decay * own.p;
            Scalar {
                p: own.p - RATE * direction,
                m,
                v,
            }
        }
    };
    follow(Optimizer::adam(), adam(0.0))?;
    follow(Optimizer::adamw(), adam(1e-4))
}

#[test]
fn lion_follows_its_formula() -> Result<()> {
    let lion = |own: Scalar, g: f64, _| {
        let direction = (0.9 * own.m + 0.1 * g).signum() + 1e-3 * own.p;
        Scalar {
            p: own.p - RATE * direction,
            m: 0.99 * own.m + 0.01 * g,
            ..own
        }
    };
    follow(Optimizer::lion(), lion)
}

#[test]
fn gradients_are_clipped_by_their_common_norm() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let gradients = vec![
        tensors.tensor(&[3.0, 0.0], &[2])?,
        tensors.tensor(&[4.0], &[])?,
    ];
    let clipped = clip_by_global_norm(&gradients, 2.5)?;
    assert_eq!(
        (clipped[0].read()?, clipped[1].item()?),
        (vec![1.5, 0.0], 2.0)
    );
    let same = clip_by_global_norm(&gradients, 6.0)?;
    assert_eq!((same[0].read()?, same[1].item()?), (vec![3.0, 0.0], 4.0));
    assert!(clip_by_global_norm(&[], 1.0)?.is_empty());
    Ok(())
}

#[test]
fn wrong_gradients_and_states_return_errors() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = tensors.ones(&[2])?;
    let adam = Optimizer::adam();
    let state = adam.init(&[&x])?;
    let code = |result: Result<_>| result.map(|(_, _)| ()).expect_err("a mistake").code();
    assert_eq!(code(adam.step(&[&x], &[], &state, 0.1)), "LENGTH_MISMATCH");
    let other = [tensors.ones(&[3])?];
    assert_eq!(
        code(adam.step(&[&x], &other, &state, 0.1)),
        "SHAPE_MISMATCH"
    );
    let own = [x.clone()];
    let lion = Optimizer::lion().init(&[&x])?;
    assert_eq!(code(adam.step(&[&x], &own, &lion, 0.1)), "LENGTH_MISMATCH");
    assert_eq!(adam.init(&[]).expect_err("nothing to move").code(), "EMPTY");
    Ok(())
}
