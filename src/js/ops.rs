//! Operations by their index in the op table.
//!
//! `operations.js` gives `GpuDevice` and `GpuCommandBatch` a method for each row, and all of them end
//! in the entry points that call [`build`]. An exported function for each instead would
//! cost 13 KB of the download, compressed.

use js_sys::Array;

use super::convert::Parameter;
use crate::error::{Error, Result};
use crate::ops::ConvLayer;
use crate::ops::shape::output_len;
use crate::ops::{Attention, Conv2d, Matmul, Op, Rearrange, ReduceAxis, Rope, for_each_op};

/// Parameters from JavaScript, read one after the other.
struct Parameters<'a> {
    values: &'a Array,
    next: u32,
}

impl<'a> Parameters<'a> {
    /// Returns the parameters that follow the inputs.
    fn after(inputs: &[&str], values: &'a Array) -> Self {
        let next = inputs.len() as u32;
        Self { values, next }
    }

    fn take<T: Parameter>(&mut self, what: &'static str) -> Result<T> {
        let value = self.values.get(self.next);
        self.next += 1;
        T::from_js(&value, what)
    }
}

type Builder = fn(&Array) -> Result<Op>;

macro_rules! define_builders {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        // Without `OPS`, which would bring its documentation along.
        const BUILDERS: &[Builder] = &[
            $( |arguments| {
                let mut _parameters = Parameters::after(&[$(stringify!($vin)),+], arguments);
                Ok(Op::$vop $({ $($vp: _parameters.take::<$vt>(stringify!($vp))?),+ })?)
            }, )*
            $( |_| Ok(Op::$sop), )*
        ];
    };
}
for_each_op!(define_builders);

/// Creates the operation at an index in the table; its parameters, which follow the inputs in
/// `arguments`, are checked.
pub(super) fn build(index: usize, arguments: &Array) -> Result<Op> {
    let builder = BUILDERS.get(index).ok_or(Error::LimitExceeded {
        what: "the place in the op table",
        value: index as u64,
        limit: BUILDERS.len() as u64 - 1,
    })?;
    builder(arguments)
}

/// Returns the length of an operation's result; each input of `arguments` is a length.
pub(super) fn length(index: usize, arguments: &Array) -> Result<usize> {
    let op = build(index, arguments)?;
    let inputs = op.inputs().iter().zip(0..);
    let lens = inputs.map(|(what, i)| usize::from_js(&arguments.get(i), what));
    output_len(&op, &lens.collect::<Result<Vec<_>>>()?)
}
