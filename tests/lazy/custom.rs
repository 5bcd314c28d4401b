//! Operations of the user's own on tensors, beside what they compute.

use relampago::{Axes, Tensor};
use relampago::{Backend, CustomOp, ElementMap, Error, ReduceOp, Result, SumOp, Tensors};

/// The largest magnitude.
struct Largest;

impl ReduceOp for Largest {
    const MAP: Option<ElementMap> = Some(ElementMap::new(f32::abs).with_wgsl("abs(x)"));

    fn identity() -> f32 {
        0.0
    }

    fn combine(a: f32, b: f32) -> f32 {
        if a > b || a.is_nan() { a } else { b }
    }

    fn wgsl() -> Option<&'static str> {
        Some("maximum(a, b)")
    }
}

fn mix() -> CustomOp {
    let mix = CustomOp::new(
        "mix",
        &["a", "b"],
        &["t"],
        "a + t * (b - a)",
        |[a, b], [t]| a + t * (b - a),
    );
    mix.expect("valid WGSL")
}

fn numbers(tensors: &Tensors, shape: &[usize]) -> Result<Tensor> {
    let len = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..len).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
    tensors.tensor(&values, shape)
}

#[test]
fn custom_elementwise_operations_broadcast() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
        let column = tensors.tensor(&[10.0, 20.0], &[2, 1])?;
        let y = x.custom_elementwise(&mix(), &[(&column).into()], &[0.5])?;
        assert_eq!(y.read()?, [5.5, 6.0, 6.5, 12.0, 12.5, 13.0], "{backend}");
        let y = x
            .transpose()?
            .custom_elementwise(&mix(), &[0.0.into()], &[1.0])?;
        assert_eq!((y.shape(), y.read()?), (&[3, 2][..], vec![0.0; 6]));
        let y = x
            .mul(2.0)?
            .custom_elementwise(&mix(), &[(&x).into()], &[2.0])?
            .add(1.0)?;
        assert_eq!(y.read()?, [1.0; 6]);
        let none = tensors
            .zeros(&[0, 3])?
            .custom_elementwise(&mix(), &[1.0.into()], &[0.0])?;
        assert_eq!((none.shape(), none.read()?), (&[0, 3][..], vec![]));
        let code = |result: Result<Tensor>| result.expect_err("a mistake").code();
        assert_eq!(
            code(x.custom_elementwise(&mix(), &[], &[0.5])),
            "LENGTH_MISMATCH"
        );
        assert_eq!(
            code(x.custom_elementwise(&mix(), &[1.0.into()], &[])),
            "LENGTH_MISMATCH"
        );
        let wrong = x.custom_elementwise(&mix(), &[(&x.transpose()?).into()], &[0.5]);
        let message = "mix: `b` has shape [3, 2], which does not broadcast with [2, 3] of `a`";
        assert_eq!(wrong.expect_err("other lengths").to_string(), message);
    }
    Ok(())
}

/// The cache of programs tells operations apart that differ in their function alone.
#[test]
fn programs_of_custom_operations_are_cached_by_operation() -> Result<()> {
    let tensors = crate::tensors(Backend::Simd);
    let x = tensors.tensor(&[3.0, -4.0], &[2])?;
    let of = |factor: f32| CustomOp::new("f", &["x"], &[], "x", move |[x], []| factor * x);
    for factor in [2.0, 5.0] {
        let op = of(factor)?;
        for _ in 0..2 {
            let y = x.custom_elementwise(&op, &[], &[])?;
            assert_eq!(y.read()?, [3.0 * factor, -4.0 * factor]);
        }
    }
    assert_eq!(tensors.planned(), 2);
    for _ in 0..2 {
        assert_eq!(x.custom_reduce::<SumOp>(0)?.item()?, -1.0);
        assert_eq!(x.custom_reduce::<Largest>(0)?.item()?, 4.0);
    }
    assert_eq!(tensors.planned(), 4);
    Ok(())
}

#[test]
fn custom_reductions_go_along_any_axes() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        for shape in [
            &[1][..],
            &[7],
            &[256],
            &[3, 1],
            &[4, 300],
            &[2, 3, 5],
            &[70_000],
        ] {
            let x = numbers(&tensors, shape)?;
            let mut choices = vec![Axes::all(), Axes::all().keep_dims()];
            for axis in 0..shape.len() as isize {
                choices.push(Axes::from(axis));
                choices.push(Axes::from(axis - shape.len() as isize).keep_dims());
            }
            if shape.len() > 2 {
                choices.extend([Axes::from([0, 2]), Axes::from([0, 1]).keep_dims()]);
            }
            for axes in choices {
                let largest = x.custom_reduce::<Largest>(axes.clone())?;
                let expected = x.abs()?.max(axes.clone())?;
                assert_eq!(largest.shape(), expected.shape());
                assert_eq!(largest.read()?, expected.read()?, "{axes:?} of {shape:?}");
                let sum = x.custom_reduce::<SumOp>(axes.clone())?;
                assert_eq!(sum.read()?, x.sum(axes)?.read()?, "{backend}");
            }
        }
        let turned = numbers(&tensors, &[4, 6])?.transpose()?.slice(0, 1..4)?;
        let largest = turned.custom_reduce::<Largest>(1)?;
        assert_eq!(largest.read()?, turned.abs()?.max(1)?.read()?);
        // Before and after other operations.
        let x = numbers(&tensors, &[3, 5])?;
        let scaled = x.mul(2.0)?.custom_reduce::<Largest>(0)?.add(1.0)?;
        assert_eq!(scaled.read()?, x.mul(2.0)?.abs()?.max(0)?.add(1.0)?.read()?);
    }
    Ok(())
}

#[test]
fn custom_reductions_of_nothing_and_of_nan() -> Result<()> {
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let none = tensors.zeros(&[2, 0])?;
        assert_eq!(none.custom_reduce::<Largest>(1)?.read()?, [0.0, 0.0]);
        assert_eq!(none.custom_reduce::<Largest>(..)?.item()?, 0.0);
        assert!(none.custom_reduce::<Largest>(0)?.read()?.is_empty());
        let nan = tensors.tensor(&[f32::NAN, -1.0, -2.0, -3.0], &[2, 2])?;
        let largest = nan.custom_reduce::<Largest>(1)?.read()?;
        assert!(largest[0].is_nan() && largest[1] == 3.0, "{largest:?}");
        assert_eq!(
            tensors
                .full(&[], -7.0)?
                .custom_reduce::<Largest>(..)?
                .item()?,
            7.0
        );
    }
    Ok(())
}

#[test]
fn custom_reductions_that_cannot_run_return_errors() -> Result<()> {
    struct NoFold;
    impl ReduceOp for NoFold {
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            a.abs().max(b.abs())
        }
    }
    struct OnSimdAlone;
    impl ReduceOp for OnSimdAlone {
        fn identity() -> f32 {
            0.0
        }
        fn combine(a: f32, b: f32) -> f32 {
            a + b
        }
    }
    for backend in crate::backends() {
        let tensors = crate::tensors(backend);
        let x = tensors.tensor(&[-7.0, 1.0], &[2])?;
        let error = x.custom_reduce::<NoFold>(0).expect_err("no fold");
        assert!(
            error.to_string().starts_with("`combine` is 7 for 0 and -7"),
            "{error}"
        );
        let sum = x.custom_reduce::<OnSimdAlone>(0)?.item();
        if backend == Backend::Gpu {
            let error = sum.expect_err("no WGSL");
            assert!(
                matches!(error, Error::InvalidArgument { what: "wgsl", .. }),
                "{error}"
            );
        } else {
            assert_eq!(sum?, -6.0);
        }
        assert_eq!(
            x.custom_reduce::<SumOp>(1).expect_err("no axis").code(),
            "INVALID_ARGUMENT"
        );
    }
    Ok(())
}
