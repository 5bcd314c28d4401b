//! The operators beside the methods of the same names.

use super::{backends, tensors};
use relampago::{Error, Result, Tensor};

type Operator = fn(&Tensor, &Tensor) -> Result<Tensor>;

const OPERATORS: [(Operator, Operator); 4] = [
    (|a, b| a + b, |a, b| a.add(b)),
    (|a, b| a - b, |a, b| a.sub(b)),
    (|a, b| a * b, |a, b| a.mul(b)),
    (|a, b| a / b, |a, b| a.div(b)),
];

#[test]
fn operators_are_the_methods_of_their_names() {
    for backend in backends() {
        let tensors = tensors(backend);
        let a = tensors.tensor(&[1.0, -2.0, 0.0, 4.5], &[2, 2]).unwrap();
        let b = tensors.tensor(&[0.5, -0.0], &[2, 1]).unwrap();
        let values = |result: Result<Tensor>| {
            let values = result.unwrap().read().unwrap();
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        for (operator, method) in OPERATORS {
            assert_eq!(values(operator(&a, &b)), values(method(&a, &b)));
        }
        assert_eq!(values(-&a), values(a.neg()));
        assert_eq!(values(-a.clone()), values(a.neg()));
        assert_eq!(values(&a + 2.0), values(a.add(2.0)));
        assert_eq!(values(a.clone() / 2.0), values(a.div(2.0)));
        assert_eq!(values(&a - &b), values(a.clone() - &b));
        let two = tensors.full(&[2, 2], 2.0).unwrap();
        assert_eq!(values(2.0 + &a), values(two.add(&a)));
        assert_eq!(values(2.0 - &a), values(two.sub(&a)));
        assert_eq!(values(2.0 * &a), values(two.mul(&a)));
        assert_eq!(values(2.0 / &a), values(two.div(&a)));
    }
}

#[test]
fn operators_return_the_errors_of_their_methods() {
    let device = relampago::GpuDevice::builder();
    let device = device.backend(relampago::Backend::Simd).build().unwrap();
    let [first, second] = [0, 1].map(|_| relampago::Tensors::new(&device));
    let a = first.tensor(&[1.0; 3], &[3]).unwrap();
    let b = second.tensor(&[1.0; 3], &[3]).unwrap();
    assert!(matches!(&a + &b, Err(Error::Foreign { what: "b", .. })));
    let c = a.tensors().tensor(&[1.0; 2], &[2]).unwrap();
    assert_eq!((&a - &c).unwrap_err(), a.sub(&c).unwrap_err());
}
