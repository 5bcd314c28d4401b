//! Operations of the user's own within kernels.

use std::fmt::Write as _;

use super::FusedCode;
use crate::ops::custom::{CustomCall, library};

impl FusedCode {
    /// A call of a user's function on operands, which end in commas.
    pub(super) fn custom(&mut self, call: &CustomCall, mut operands: String) -> String {
        let number = self.params.len().to_string();
        for (prefix, value) in ["a", "b"].into_iter().zip(call.parameters()) {
            self.parameter(prefix, &number, "f32", value.to_bits());
            let _ = write!(operands, "params.{prefix}{number},");
        }
        let place = self.customs.iter().position(|text| text == call.wgsl());
        let place = place.unwrap_or_else(|| self.declare_custom(call));
        let name = if self.vectors { "customs" } else { "custom" };
        format!("{name}{place}({operands})")
    }

    /// Declares the function, once for all calls. Returns its index among the functions of this
    /// kernel. If elements are vectors, another function calls it for each component.
    fn declare_custom(&mut self, call: &CustomCall) -> usize {
        if self.customs.is_empty() {
            self.functions.push_str(library());
        }
        let place = self.customs.len();
        self.customs.push(call.wgsl().to_owned());
        let _ = write!(self.functions, "fn custom{place}{}", call.wgsl());
        if self.vectors {
            let (mut parameters, mut calls) = (String::new(), String::new());
            for input in 0..call.inputs().len() {
                let _ = write!(parameters, "v{input}: vec4f,");
            }
            for parameter in 0..call.parameters().len() {
                let _ = write!(parameters, "p{parameter}: f32,");
            }
            for lane in ["x", "y", "z", "w"] {
                let _ = write!(calls, "custom{place}(");
                for input in 0..call.inputs().len() {
                    let _ = write!(calls, "v{input}.{lane},");
                }
                for parameter in 0..call.parameters().len() {
                    let _ = write!(calls, "p{parameter},");
                }
                calls.push_str("),");
            }
            let _ = writeln!(
                self.functions,
                "fn customs{place}({parameters}) -> vec4f {{ return vec4f({calls}); }}"
            );
        }
        place
    }
}
