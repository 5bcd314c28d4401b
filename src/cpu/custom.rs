//! Operations of the user's own, whose function SIMD runs.

use crate::error::Result;
use crate::ops::custom::CustomOp;
use crate::simd;

impl CustomOp {
    /// An operation named `name`, whose inputs and parameters have the names that `wgsl` calls
    /// them by; all of them are `f32`.
    ///
    /// `wgsl` is an expression, or the body of a function if it has a `return`. It may call
    /// WGSL's functions and these: `maximum(a, b)` and `minimum(a, b)`, which keep NaN, and
    /// `is_nan(x)`. How exact WGSL's functions are is for the GPU to say. `function` should give
    /// the same; without branches it becomes vector instructions, for each instruction set its
    /// own.
    ///
    /// # Errors
    /// `Wgsl` where the text is no such function: it has mistakes, declares more than itself,
    /// calls itself, or waits for other invocations. In WebAssembly it is the browser that finds
    /// these, when the operation runs, and the error is `Gpu`. `LimitExceeded` for too many
    /// inputs or parameters; `InvalidArgument` for none of the former or a name that is none.
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
