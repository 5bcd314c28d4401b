//! Operations of the user's own, whose function SIMD runs.

use crate::error::Result;
use crate::ops::custom::CustomOp;
use crate::simd;

impl CustomOp {
    /// Creates an operation with a name. The names of inputs and parameters are those used in
    /// `wgsl`, where all of them are `f32`.
    ///
    /// `wgsl` is an expression, or the body of a function if it has a `return`. It may call WGSL's
    /// functions, `maximum(a, b)` and `minimum(a, b)`, which propagate NaN, and `is_nan(x)`. The
    /// accuracy of WGSL's functions depends on the GPU. `function` should compute the same; without
    /// branches the compiler vectorises it for each instruction set.
    ///
    /// # Errors
    /// `Wgsl` if the text is invalid, declares more than one function, calls itself or waits for
    /// other invocations. In WebAssembly the browser finds these when the operation runs, and the
    /// error is `Gpu`. `LimitExceeded` for too many inputs or parameters; `InvalidArgument` for no
    /// inputs or an invalid name of an input or parameter.
    pub fn new<const N: usize, const P: usize>(
        name: &'static str,
        inputs: &'static [&'static str; N],
        parameters: &'static [&'static str; P],
        wgsl: &str,
        function: impl Fn([f32; N], [f32; P]) -> f32 + Send + Sync + 'static,
    ) -> Result<Self> {
        let function = move |isa, parameters: &[f32], inputs: &[&[f32]], out: &mut [f32]| {
            let parameters = std::array::from_fn(|place| parameters[place]);
            simd::map_values(isa, |values| function(values, parameters), inputs, out);
            Ok(())
        };
        Self::define(name, inputs, parameters, wgsl, Box::new(function))
    }
}
