//! Gradients of elementwise operations: the last column of the op table.

use std::f32::consts::FRAC_2_SQRT_PI;

use crate::error::{Error, Result};
use crate::lazy::gradients::value::Value;
use crate::ops::custom::{CustomCall, CustomOp};
use crate::ops::{Op, for_each_op};

/// An entry of the table: a gradient, or `()` for none.
trait Entry<'t> {
    fn gradient(self) -> Option<Value<'t>>;
}

impl<'t> Entry<'t> for Value<'t> {
    fn gradient(self) -> Option<Value<'t>> {
        Some(self)
    }
}

impl<'t> Entry<'t> for () {
    fn gradient(self) -> Option<Value<'t>> {
        None
    }
}

/// Evaluates the gradients of a row. A row of an elementwise class that has none matches no rule, and does not compile.
macro_rules! gradients_of_row {
    (BiasAdd $($row:tt)*) => { Vec::new() };
    ($op:ident Elementwise $($row:tt)*) => { gradients_of_row!(@ $op $($row)*) };
    ($op:ident Transcendental $($row:tt)*) => { gradients_of_row!(@ $op $($row)*) };
    ($op:ident Softmax $($row:tt)*) => { Vec::new() };
    ($op:ident Convolution $($row:tt)*) => { Vec::new() };
    ($op:ident Matmul $($row:tt)*) => { Vec::new() };
    ($op:ident Movement $($row:tt)*) => { Vec::new() };
    ($op:ident Reduction $($row:tt)*) => { Vec::new() };
    (@ $name:ident $op:ident $inputs:ident $result:ident $gradient:ident
        ($($input:ident),+) $y:ident ($($parameter:ident),*) { |$g:ident| $($entry:expr),+ }) => {{
        let (Op::$name { $($parameter),* }, &[$($input),+]) = ($op, $inputs) else {
            return Vec::new();
        };
        let ($y, $g) = ($result, $gradient);
        $(let $parameter = *$parameter;)*
        // Not every row needs all of them.
        let _ = ($y, $g, $($input,)+ $($parameter),*);
        let entries: [_; [$(stringify!($input)),+].len()] = [$(Entry::gradient($entry)),+];
        entries.into()
    }};
}

macro_rules! define_gradients {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// Returns the gradients of an operation's inputs; none of an operation that no elementwise node has.
        fn of_table<'t>(op: &Op, inputs: &[Value<'t>], y: Value<'t>, g: Value<'t>) -> Vec<Option<Value<'t>>> {
            match op {
                $( Op::$vop { .. } => gradients_of_row! {
                    $vop $vclass op inputs y g ($($vin),+) $vout ($($($vp),+)?) $($vgradients)?
                }, )*
                $( Op::$sop )|* => Vec::new(),
                Op::Custom(_) | Op::CustomReduce(_) | Op::MatmulCached(_) => Vec::new(),
            }
        }
    };
}
for_each_op!(define_gradients);

/// Returns the gradients of an elementwise operation's inputs; `None` for an input without one.
///
/// # Errors
/// `NoGradient` for a custom operation that states no derivatives.
pub(super) fn gradients<'t>(
    op: &Op,
    inputs: &[Value<'t>],
    y: Value<'t>,
    g: Value<'t>,
) -> Result<Vec<Option<Value<'t>>>> {
    match op {
        Op::Custom(call) => custom(call, inputs, g),
        op => Ok(of_table(op, inputs, y, g)),
    }
}

/// Multiplies the derivatives that a custom operation states by the gradient of its result.
fn custom<'t>(
    call: &CustomCall,
    inputs: &[Value<'t>],
    g: Value<'t>,
) -> Result<Vec<Option<Value<'t>>>> {
    let derivatives = call.op().derivatives();
    if derivatives.is_empty() {
        let op = call.op().name();
        return Err(Error::NoGradient { op });
    }
    let (&first, others) = inputs
        .split_first()
        .ok_or(Error::Empty { op: "gradients" })?;
    let gradient = |derivative: &CustomOp| {
        let slope = first.apply_all(derivative.with(call.parameters())?, others);
        Ok(Some(g * slope))
    };
    derivatives.iter().map(gradient).collect()
}
