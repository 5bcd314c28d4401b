//! Gated activations: a function of one vector times another vector.

use super::elementwise::{Binary, binary, map2};
use super::isa::Isa;
use super::math;
use super::threads::{Cpu, share_out};
use crate::ops::OpClass;

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// `x / (1 + e⁻ˣ)`, also called swish.
    Silu,
    /// GELU by the tanh formula.
    GeluTanh,
}

binary! {
    SiluTimes |isa, gate, up| isa.mul(math::swish(isa, gate), up);
    GeluTanhTimes |isa, gate, up| isa.mul(math::gelu_tanh(isa, gate), up);
}

/// `outᵢ = f(gateᵢ) · upᵢ` for slices of one length, with a rounding more than the function alone has.
/// Where the lengths differ, nothing is done.
pub(crate) fn gated(cpu: Cpu, f: Gate, gate: &[f32], up: &[f32], out: &mut [f32]) {
    let fits = gate.len() == out.len() && up.len() == out.len();
    debug_assert!(fits);
    if !fits {
        return;
    }
    let pieces = cpu.split(out.len() as u64, OpClass::Transcendental);
    let done = share_out(pieces, 1, out, |at, out| {
        let [gate, up] = [gate, up].map(|input| &input[at..][..out.len()]);
        match f {
            Gate::Silu => map2(cpu.isa, SiluTimes, gate, up, out),
            Gate::GeluTanh => map2(cpu.isa, GeluTanhTimes, gate, up, out),
        }
        Ok(())
    });
    debug_assert!(done.is_ok());
}
