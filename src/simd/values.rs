//! User-defined functions, applied element by element. The compiler vectorises a loop over slices
//! of one length for each instruction set.

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};

/// `yᵢ = f(x₀ᵢ, x₁ᵢ, …)`, up to the end of the shortest slice.
pub(crate) fn map_values<const N: usize>(
    isa: InstructionSet,
    f: impl Fn([f32; N]) -> f32,
    inputs: &[&[f32]],
    out: &mut [f32],
) {
    let inputs = std::array::from_fn(|place| inputs.get(place).copied().unwrap_or_default());
    dispatch(isa, MapValues { f, inputs, out });
}

struct MapValues<'a, F, const N: usize> {
    f: F,
    inputs: [&'a [f32]; N],
    out: &'a mut [f32],
}

impl<F: Fn([f32; N]) -> f32, const N: usize> Kernel for MapValues<'_, F, N> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let lens = self.inputs.iter().map(|input| input.len());
        let len = lens.fold(self.out.len(), usize::min);
        // Of one length, so that no access is checked.
        let inputs = self.inputs.map(|input| &input[..len]);
        for (i, y) in self.out[..len].iter_mut().enumerate() {
            *y = (self.f)(inputs.map(|input| input[i]));
        }
    }
}
