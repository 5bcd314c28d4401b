//! The op table, and everything that is generated from it.
//!
//! `table` has the rows, and `for_each_op!` hands every row to a macro of the caller's. This file turns the rows into
//! [`Op`], its metadata and `OPS` for documentation and types; other files turn them into the methods of device, batch
//! and tensors, the entry points of JavaScript, and the cases of the conformance suite and the benchmarks.
//!
//! The files:
//!
//! - `table` has the rows: an operation's names, inputs, parameters, class and stated accuracy.
//! - `axes` has the axes of strided views.
//! - `shape` checks lengths and parameters before any back-end sees them.
//! - `policy` has the least work for which an operation runs on a GPU.
//! - `kernel_group` names the groups of GPU kernels that a device can do without.
//! - `indices` checks inputs that are indices.
//! - `custom` has custom elementwise operations (`wgsl` composes and validates their text), `cached_matmul` has matmuls
//!   with weights of a cache, `reduce_op` and `custom_reduction` custom reductions.

mod attention;
pub(crate) mod axes;
mod backend;
mod bytes;
mod cached_matmul;
mod conv2d;
pub(crate) mod custom;
mod custom_reduction;
mod half_precision;
pub(crate) mod indices;
mod kernel_group;
mod layer;
mod llm_ops;
mod matmul;
pub(crate) mod policy;
mod rearrange;
mod reduce_axis;
pub(crate) mod reduce_op;
pub(crate) mod rope;
pub(crate) mod shape;
mod table;

use crate::ops::custom::CustomCall;
pub use attention::Attention;
pub(crate) use axes::MAX_AXES;
pub use backend::Backend;
pub use cached_matmul::CachedMatmul;
pub(crate) use cached_matmul::Weights;
pub use conv2d::{Conv2d, Padding};
pub use custom_reduction::CustomReduction;
pub(crate) use custom_reduction::Reduction;
pub use half_precision::HalfPrecision;
pub(crate) use kernel_group::KernelGroup;
pub use layer::ConvLayer;
pub use matmul::Matmul;
pub(crate) use rearrange::Cycle;
pub use rearrange::Rearrange;
pub use reduce_axis::{AxisFold, ReduceAxis};
pub use rope::Rope;
pub(crate) use table::for_each_op;

/// The stated accuracy of matmuls with cached weights: that of `matmul`.
const MATMUL_ULP: f64 = 64.0;

/// What an operation's cost is dominated by; the automatic choice of back-end goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpClass {
    /// A few arithmetic instructions a value; bound by memory.
    Elementwise,
    /// Elementwise with an exponential, logarithm or error function.
    Transcendental,
    /// Many values to one.
    Reduction,
    /// Rows brought to a common scale: softmaxes and norms.
    Softmax,
    /// Matrix products, and attention.
    Matmul,
    /// Two-dimensional convolutions.
    Convolution,
    /// Values moved or rotated; bound by memory.
    Movement,
}

impl OpClass {
    /// All classes, in the order of the fields of [`crate::Policy`].
    pub const ALL: [Self; 7] = [
        Self::Elementwise,
        Self::Transcendental,
        Self::Reduction,
        Self::Softmax,
        Self::Matmul,
        Self::Convolution,
        Self::Movement,
    ];

    /// Returns the class's name: that of its field of [`crate::Policy`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Elementwise => "elementwise",
            Self::Transcendental => "transcendental",
            Self::Reduction => "reduction",
            Self::Softmax => "softmax",
            Self::Matmul => "matmul",
            Self::Convolution => "convolution",
            Self::Movement => "movement",
        }
    }
}

/// A row of the op table, for code that lists operations: documentation, bindings, tests.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OpInfo {
    /// The name of the synchronous Rust method.
    pub name: &'static str,
    /// The name of the JavaScript method.
    pub js_name: &'static str,
    /// The lines of its description.
    pub docs: &'static [&'static str],
    /// Names of the inputs.
    pub inputs: &'static [&'static str],
    /// Names and Rust types of the parameters.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Name of the result; `None` where it is a single value.
    pub output: Option<&'static str>,
    /// What the cost is dominated by.
    pub class: OpClass,
    /// The stated accuracy, as [`Op::ulp`].
    pub ulp: f64,
    /// The operation with the parameters that it is tested with. Empty if its parameters depend on the
    /// lengths of its inputs.
    pub samples: &'static [Op],
}

/// Makes [`OpInfo::samples`] of a row's parameters and sample values.
macro_rules! samples {
    ($op:ident) => {
        &[Op::$op]
    };
    ($op:ident { $($parameter:ident)+ }) => {
        &[]
    };
    ($op:ident { $($parameter:ident)+ } [$({ $($sample:tt)+ }),+]) => {
        &[$(Op::$op { $($sample)+ }),+]
    };
}

/// The floating-point parameters met so far.
#[derive(Default)]
struct ScalarList {
    values: [f32; 2],
    len: usize,
}

/// Parameters of operations. Only floating-point ones are listed.
trait Parameter {
    fn push_to(&self, _list: &mut ScalarList) {}
}

impl Parameter for usize {}
impl Parameter for Conv2d {}
impl Parameter for ConvLayer {}
impl Parameter for Matmul {}
impl Parameter for Rope {}
impl Parameter for Attention {}
impl Parameter for Rearrange {}
impl Parameter for ReduceAxis {}
impl Parameter for f32 {
    fn push_to(&self, list: &mut ScalarList) {
        list.values[list.len] = *self;
        list.len += 1;
    }
}

/// Emits [`Op`] and its metadata from the table.
macro_rules! define_ops {
    (
        vectors { $( $(#[doc = $vdoc:literal])* $(#[doc(alias = $valias:literal)])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[doc = $sdoc:literal])* $(#[doc(alias = $salias:literal)])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// One operation with its parameters; its inputs are given beside it.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Fields are named and documented by the methods of the same name.
        #[non_exhaustive]
        pub enum Op {
            $( $(#[doc = $vdoc])* $(#[doc(alias = $valias)])* $vop $({ $($vp: $vt),+ })?, )*
            $( $(#[doc = $sdoc])* $(#[doc(alias = $salias)])* $sop, )*
            /// An elementwise operation of the user's own: [`CustomOp::with`](crate::CustomOp::with).
            Custom(CustomCall),
            /// A reduction of the user's own:
            /// [`GpuCommandBatch::tiled_reduce_partial`](crate::GpuCommandBatch::tiled_reduce_partial).
            CustomReduce(CustomReduction),
            /// A matmul with weights of a cache:
            /// [`GpuCommandBatch::matmul_cached`](crate::GpuCommandBatch::matmul_cached).
            MatmulCached(CachedMatmul),
        }

        impl Op {
            /// The operation's name: that of its synchronous Rust method.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Op::$vop { .. } => stringify!($vname), )*
                    $( Op::$sop => stringify!($sname), )*
                    Op::Custom(call) => call.op().name(),
                    Op::CustomReduce(call) => call.name(),
                    Op::MatmulCached(_) => "matmul_cached",
                }
            }

            /// Names of the inputs, in order.
            pub fn inputs(&self) -> &'static [&'static str] {
                match self {
                    $( Op::$vop { .. } => &[$(stringify!($vin)),+], )*
                    $( Op::$sop => &[$(stringify!($sin)),+], )*
                    Op::Custom(call) => call.inputs(),
                    Op::CustomReduce(_) => &["data"],
                    Op::MatmulCached(_) => &["input"],
                }
            }

            /// Whether the result is a single value.
            pub fn is_scalar(&self) -> bool {
                matches!(self, $( Op::$sop )|*)
            }

            /// Name of the result; `value` where it is a single one.
            pub fn output(&self) -> &'static str {
                match self {
                    $( Op::$vop { .. } => stringify!($vout), )*
                    $( Op::$sop => "value", )*
                    Op::Custom(_) => "y",
                    Op::CustomReduce(_) => "values",
                    Op::MatmulCached(_) => "out",
                }
            }

            /// The operation's floating-point parameters in order, zeros after them.
            pub fn scalars(&self) -> [f32; 2] {
                let mut list = ScalarList::default();
                match self {
                    $( Op::$vop $({ $($vp),+ })? => { $($( $vp.push_to(&mut list); )+)? } )*
                    $( Op::$sop => {} )*
                    Op::Custom(call) => list.values = call.scalars(),
                    Op::CustomReduce(_) | Op::MatmulCached(_) => {}
                }
                list.values
            }

            /// Whether both are one operation, to the sign of a zero among the parameters.
            pub(crate) fn is_same(&self, other: &Self) -> bool {
                let bits = |op: &Self| op.scalars().map(f32::to_bits);
                self == other && bits(self) == bits(other)
            }

            /// Whether each value of the result depends on the inputs' values at its own place
            /// alone, so that the operation may go piece by piece.
            pub fn is_elementwise(&self) -> bool {
                let by_value = matches!(self.class(), OpClass::Elementwise | OpClass::Transcendental);
                by_value && !matches!(self, Op::BiasAdd { .. })
            }

            /// Returns the rows and columns of an operation that computes each row of its first input in the same way.
            pub(crate) fn by_rows(&self) -> Option<[usize; 2]> {
                match *self {
                    Op::BiasAdd { rows, cols }
                    | Op::SoftmaxRows { rows, cols }
                    | Op::LogSoftmaxRows { rows, cols }
                    | Op::CumsumRows { rows, cols }
                    | Op::CumprodRows { rows, cols }
                    | Op::SortRows { rows, cols }
                    | Op::ArgsortRows { rows, cols } => Some([rows, cols]),
                    Op::FftRows { rows, len } => Some([rows, 2 * len]),
                    Op::LayerNorm { rows, cols, .. } | Op::RmsNorm { rows, cols, .. } => {
                        Some([rows, cols])
                    }
                    _ => None,
                }
            }

            /// What the operation's cost is dominated by.
            pub fn class(&self) -> OpClass {
                match self {
                    $( Op::$vop { .. } => OpClass::$vclass, )*
                    $( Op::$sop => OpClass::$sclass, )*
                    // What it costs is not known.
                    Op::Custom(_) => OpClass::Transcendental,
                    Op::CustomReduce(_) => OpClass::Reduction,
                    Op::MatmulCached(_) => OpClass::Matmul,
                }
            }

            /// The stated accuracy, in units of `f32::EPSILON` times the result's condition-scaled
            /// magnitude (see [`crate::reference`]); infinite for operations of the user's own.
            pub fn ulp(&self) -> f64 {
                match self {
                    $( Op::$vop { .. } => $vulp, )*
                    $( Op::$sop => $sulp, )*
                    Op::Custom(_) | Op::CustomReduce(_) => f64::INFINITY,
                    Op::MatmulCached(_) => MATMUL_ULP,
                }
            }
        }

        /// What the table says of each operation, in its order.
        pub const OPS: &[OpInfo] = &[
            $( OpInfo {
                name: stringify!($vname),
                js_name: stringify!($vjs),
                docs: &[$($vdoc),*],
                inputs: &[$(stringify!($vin)),+],
                parameters: &[$($((stringify!($vp), stringify!($vt))),+)?],
                output: Some(stringify!($vout)),
                class: OpClass::$vclass,
                ulp: $vulp,
                samples: samples!($vop $({ $($vp)+ })? $($vsamples)?),
            }, )*
            $( OpInfo {
                name: stringify!($sname),
                js_name: stringify!($sjs),
                docs: &[$($sdoc),*],
                inputs: &[$(stringify!($sin)),+],
                parameters: &[],
                output: None,
                class: OpClass::$sclass,
                ulp: $sulp,
                samples: samples!($sop),
            }, )*
        ];
    };
}
for_each_op!(define_ops);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementwise_operations_have_samples() {
        for row in OPS {
            let by_value = matches!(row.class, OpClass::Elementwise | OpClass::Transcendental);
            let elementwise = by_value && row.name != "bias_add";
            assert!(!elementwise || !row.samples.is_empty(), "{}", row.name);
            for op in row.samples {
                assert_eq!(op.name(), row.name);
                assert_eq!(op.is_elementwise(), elementwise, "{op:?}");
            }
        }
    }
}
