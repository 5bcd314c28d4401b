//! Gradients of elementwise operations: the last column of the op table.

use std::f32::consts::FRAC_2_SQRT_PI;

use crate::error::{Error, Result};
use crate::lazy::gradients::rules::Known;
use crate::lazy::value::Value;
use crate::ops::custom::CustomCall;
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
    (BiasAdd $($row:tt)*) => { [None; 2] };
    ($op:ident Elementwise $($row:tt)*) => { gradients_of_row!(@ $op $($row)*) };
    ($op:ident Transcendental $($row:tt)*) => { gradients_of_row!(@ $op $($row)*) };
    ($op:ident Softmax $($row:tt)*) => { [None; 2] };
    ($op:ident Convolution $($row:tt)*) => { [None; 2] };
    ($op:ident Matmul $($row:tt)*) => { [None; 2] };
    ($op:ident Movement $($row:tt)*) => { [None; 2] };
    ($op:ident Reduction $($row:tt)*) => { [None; 2] };
    (@ $name:ident $op:ident $inputs:ident $result:ident $gradient:ident
        ($($input:ident),+) $y:ident ($($parameter:ident),*) { |$g:ident| $($entry:expr),+ }) => {{
        let (Op::$name { $($parameter),* }, &[$($input),+]) = ($op, $inputs) else {
            return [None; 2];
        };
        let ($y, $g) = ($result, $gradient);
        $(let $parameter = *$parameter;)*
        // Not every row needs all of them.
        let _ = ($y, $g, $($input,)+ $($parameter),*);
        let entries: [_; [$(stringify!($input)),+].len()] = [$(Entry::gradient($entry)),+];
        [entries[0], entries.get(1).copied().flatten()]
    }};
}

macro_rules! define_gradients {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// Returns the gradients of an operation's inputs, which are at most two; none of an operation that no elementwise
        /// node has.
        #[inline(never)]
        fn of_table<'t>(
            op: &Op,
            inputs: &[Value<'t>],
            y: Value<'t>,
            g: Value<'t>,
        ) -> [Option<Value<'t>>; 2] {
            match op {
                $( Op::$vop { .. } => gradients_of_row! {
                    $vop $vclass op inputs y g ($($vin),+) $vout ($($($vp),+)?) $($vgradients)?
                }, )*
                $( Op::$sop )|* => [None; 2],
                Op::Custom(_) | Op::CustomReduce(_) | Op::MatmulCached(_) => [None; 2],
            }
        }
    };
}
for_each_op!(define_gradients);

/// Returns the gradient of an input of an elementwise operation, in the shape of the result; `None` for an input without
/// one.
///
/// # Errors
/// `NoGradient` for a custom operation that states no derivatives.
pub(super) fn gradient<'t>(op: &Op, known: &Known<'_, 't>, at: usize) -> Result<Option<Value<'t>>> {
    let Known { inputs, y, g } = *known;
    match op {
        Op::Custom(call) => custom(call, inputs, g, at).map(Some),
        op => Ok(of_table(op, inputs, y, g).get(at).copied().flatten()),
    }
}

/// Multiplies the derivative that a custom operation states by the gradient of its result.
fn custom<'t>(
    call: &CustomCall,
    inputs: &[Value<'t>],
    g: Value<'t>,
    at: usize,
) -> Result<Value<'t>> {
    let op = call.op().name();
    let derivative = call.op().derivatives().get(at);
    let derivative = derivative.ok_or(Error::NoGradient { op })?;
    let (first, others) = (inputs[0], &inputs[1..]);
    Ok(g * first.apply_all(derivative.with(call.parameters())?, others))
}
