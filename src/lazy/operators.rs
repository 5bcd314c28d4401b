//! The operators `+`, `-`, `*` and `/` of tensors.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::error::Result;
use crate::lazy::node::Node;
use crate::lazy::operand::Operand;
use crate::lazy::tensor::Tensor;

/// Defines an operator by the method of the same name, for a tensor or a number on either side.
macro_rules! operator {
    ($trait:ident $name:ident $method:literal) => {
        #[doc = concat!("The operator of [`Tensor::", $method, "`], with its errors.")]
        impl<'a, B: Into<Operand<'a>>> $trait<B> for &Tensor {
            type Output = Result<Tensor>;

            fn $name(self, b: B) -> Result<Tensor> {
                Tensor::$name(self, b)
            }
        }

        #[doc = concat!("The operator of [`Tensor::", $method, "`], with its errors.")]
        impl<'a, B: Into<Operand<'a>>> $trait<B> for Tensor {
            type Output = Result<Tensor>;

            fn $name(self, b: B) -> Result<Tensor> {
                Tensor::$name(&self, b)
            }
        }

        #[doc = concat!("The operator of [`Tensor::", $method, "`], with its errors.")]
        impl $trait<&Tensor> for f32 {
            type Output = Result<Tensor>;

            fn $name(self, b: &Tensor) -> Result<Tensor> {
                Tensor::$name(&b.with(Node::number(self)), b)
            }
        }
    };
}

operator!(Add add "add");
operator!(Sub sub "sub");
operator!(Mul mul "mul");
operator!(Div div "div");

/// The operator of [`Tensor::neg`], with its errors.
impl Neg for &Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

/// The operator of [`Tensor::neg`], with its errors.
impl Neg for Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}
