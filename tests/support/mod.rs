//! Cases of every operation and their judgement, for all back-ends and both environments.

// Each test program includes this file and uses some of it.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod axes;
mod case;
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
mod device;
pub mod graphs;
mod heads;
mod indices;
mod matrices;
mod ops;
mod random;
mod row_functions;
mod vectors;

pub use axes::axis_cases;
pub use case::{Case, Summary};
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
pub use device::{adapter, opened, opened_as};
pub use heads::head_cases;
pub use indices::index_cases;
pub use matrices::{matrix_cases, not_finite};
pub use ops::{binary_ops, custom_ops, reductions, sample_ops, unary_ops};
pub use random::Random;
pub use row_functions::row_function_cases;
pub use vectors::{SIZES, SPECIAL, special_cases, vector_cases};

/// All cases with vectors of at most `longest` values.
pub fn all_cases(longest: usize) -> Vec<Case> {
    let sizes = SIZES.into_iter().filter(|&len| len <= longest);
    let mut cases: Vec<Case> = sizes.flat_map(vector_cases).collect();
    cases.extend(special_cases());
    cases.extend(matrix_cases());
    cases
}
