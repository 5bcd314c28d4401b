//! Elementwise operations within other kernels: WGSL put together from functions that are
//! valid each by itself, as the tests of `kernels.rs` show.
//!
//! A kernel reads its operands by `before0` and `before1` and passes each result through `after` before it stores it.
//! Where a graph computes an operand on the way, or goes on with the result, a function that does so takes the place of
//! the kernel's own. Buffers that it reads are bound after the kernel's, and its parameters stand after the kernel's.

mod custom;

use std::fmt::Write as _;

use super::kernels::{self, Function, Kernel, Text};
use super::pipelines::Proof;
use super::recorder::GpuBuffer;
use crate::error::{Error, Result};
use crate::graph::{Chain, Operand, Repeated, Step};
use crate::ops::{Cycle, Op};

/// The largest number of words of a kernel's own parameters; those of elementwise operations follow.
pub(super) const KERNEL_PARAMS: usize = 16;

/// The chains that run with the kernels of an operation.
pub(super) struct Fusion<'a> {
    /// For each operand the chain that computes it, and then the one that follows the kernel.
    pub(super) chains: Vec<&'a Chain>,
    /// The buffers that the chains read.
    pub(super) inputs: Vec<GpuBuffer>,
}

/// Code that is fused into a kernel.
#[derive(Default)]
pub(crate) struct FusedCode {
    /// The functions that replace the kernel's own, and those that they call.
    functions: String,
    /// The names of the kernel's own functions that they replace.
    replaced: Vec<String>,
    items: Vec<Text>,
    /// Operations whose functions are in `functions`.
    defined: Vec<&'static str>,
    /// Functions of the user's own.
    customs: Vec<String>,
    /// The declarations of the parameters.
    fields: String,
    /// The bits of the parameters.
    pub(super) params: Vec<u32>,
    /// Whether one of the parameters is 0 for [`FusedCode::make_opaque`].
    has_zero: bool,
    /// The inputs that are bound after the kernel's own buffers, with their declarations.
    pub(super) bound: Vec<(usize, &'static str)>,
    /// Inputs that are read in a pattern, with the numbers of their parameters.
    repeats: Vec<(Repeated, String)>,
    vectors: bool,
    /// WGSL's overrides, by which the kernel is specialised.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) constants: Vec<(&'static str, u32)>,
}

impl FusedCode {
    pub(super) fn new(kernel: &Kernel) -> Self {
        Self {
            vectors: kernel.vectors,
            ..Self::default()
        }
    }

    /// Makes an elementwise kernel of one operation, whose parameters are zeros.
    pub(super) fn alone(function: &Function) -> Self {
        let mut fused_code = Self::new(&kernels::ELEMENTWISE);
        let name = fused_code.define(function, [0.0; 2]);
        let mut operands = "value".to_owned();
        if function.text.get().contains("b: real") {
            let _ = write!(operands, ", e{}[i]", fused_code.bind(1, false));
        }
        let _ = write!(
            fused_code.functions,
            "fn after(i: u32, value: real) -> real {{\nreturn {name}({operands});\n}}\n"
        );
        fused_code.replaced.push("after".to_owned());
        fused_code
    }

    /// Tells additions to the same kernel apart; empty where nothing is added.
    pub(super) fn key(&self) -> String {
        #[cfg_attr(target_arch = "wasm32", allow(unused_mut))]
        let mut key = self.functions.clone();
        #[cfg(not(target_arch = "wasm32"))]
        for (name, value) in &self.constants {
            let _ = write!(key, "{name}={value};");
        }
        key
    }

    /// The constants, as wgpu takes them.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn constants(&self) -> Vec<(&'static str, f64)> {
        let constants = self.constants.iter();
        constants
            .map(|&(name, value)| (name, value.into()))
            .collect()
    }

    /// Returns the bounds that a kernel's text with this code proves. Code of users may read outside of arrays.
    pub(super) fn proof(&self, kernel: &Kernel) -> Proof {
        if !self.customs.is_empty() {
            Proof::Nothing
        } else if kernel.unchecked && self.is_empty() {
            Proof::StaysWithin
        } else {
            Proof::Ends
        }
    }

    /// Whether the kernel's text does not change.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Lets a chain compute the elements of the kernel's input at `place`.
    pub(super) fn before(&mut self, place: usize, chain: &Chain) -> Result<()> {
        let name = format!("before{place}");
        self.function(&name, "i: u32", None, chain)
    }

    /// Lets a chain continue from the value that the kernel stores, which stands for `given`.
    pub(super) fn after(&mut self, given: Operand, chain: &Chain) -> Result<()> {
        self.function("after", "i: u32, value: real", Some(given), chain)
    }

    fn function(
        &mut self,
        name: &str,
        parameters: &str,
        given: Option<Operand>,
        chain: &Chain,
    ) -> Result<()> {
        let mut body = String::new();
        let steps = chain.steps.iter().enumerate();
        for (place, step) in steps {
            let mut call = self.call(step, given, &chain.repeats)?;
            if is_sum(&step.op) && place + 1 < chain.steps.len() {
                self.make_opaque(&mut call);
            }
            let _ = writeln!(body, "let s{place} = {call};");
        }
        let result = self.operand(chain.result, given, &chain.repeats);
        let _ = write!(
            self.functions,
            "fn {name}({parameters}) -> real {{\n{body}return {result};\n}}\n"
        );
        self.replaced.push(name.to_owned());
        Ok(())
    }

    /// Keeps from compilers how a value came about: they may take (x − y) + y for x, which has other
    /// digits and no NaN. A value combined with a zero that only the host knows keeps its bits.
    fn make_opaque(&mut self, value: &mut String) {
        if !self.has_zero {
            self.parameter("zero", "", "u32", 0);
            self.has_zero = true;
        }
        value.insert_str(0, "bitcast<real>(bitcast<word>(");
        value.push_str(") ^ word(params.zero))");
    }

    fn call(
        &mut self,
        step: &Step,
        given: Option<Operand>,
        repeats: &[Repeated],
    ) -> Result<String> {
        let operands = self.operands(step, given, repeats);
        if let Op::Custom(call) = &step.op {
            return Ok(self.custom(call, operands));
        }
        let name = step.op.name();
        let function = Function::named(name).ok_or_else(|| Error::Gpu {
            message: format!("there is no function for {name}"),
        })?;
        let name = self.define(function, step.op.scalars());
        Ok(format!("{name}({operands})"))
    }

    /// The operands that a step reads at `i`, each followed by a comma.
    fn operands(&mut self, step: &Step, given: Option<Operand>, repeats: &[Repeated]) -> String {
        let mut operands = String::new();
        for &operand in &step.operands {
            operands += &self.operand(operand, given, repeats);
            operands.push(',');
        }
        operands
    }

    /// Adds an operation's function, a second one where it has parameters; its name.
    fn define(&mut self, function: &Function, scalars: [f32; 2]) -> String {
        for item in function.items {
            if !self.items.contains(item) {
                self.items.push(*item);
            }
        }
        let number = self.params.len().to_string();
        let text = fill(function.text.get(), &number);
        let numbered = function.text.get().bytes().any(|byte| byte == b'#');
        let declared = &text[3..];
        let name =
            declared[..declared.bytes().position(|byte| byte == b'(').unwrap_or(0)].to_owned();
        if numbered {
            for (prefix, value) in ["a", "b"].into_iter().zip(scalars) {
                self.parameter(prefix, &number, "f32", value.to_bits());
            }
        } else if self.defined.contains(&function.name) {
            return name;
        }
        self.defined.push(function.name);
        self.functions.push_str(&text);
        name
    }

    fn parameter(&mut self, prefix: &str, number: &str, of_type: &str, bits: u32) {
        // The first one starts where the kernel's parameters end on the host's side.
        let align = if self.params.is_empty() {
            "@align(64) "
        } else {
            ""
        };
        for part in [align, prefix, number, ": ", of_type, ",\n"] {
            self.fields.push_str(part);
        }
        self.params.push(bits);
    }

    /// An expression for the operand that a step reads at `i`.
    fn operand(
        &mut self,
        operand: Operand,
        given: Option<Operand>,
        repeats: &[Repeated],
    ) -> String {
        match operand {
            _ if given == Some(operand) => "value".to_owned(),
            Operand::Step(step) => format!("s{step}"),
            Operand::Input(input) => format!("e{}[i]", self.bind(input, false)),
            Operand::Repeated(repeat) => self.repeated(repeats[repeat]),
            Operand::Head => "value".to_owned(),
        }
    }

    /// The value of an input that is read in a pattern.
    fn repeated(&mut self, repeated: Repeated) -> String {
        let Repeated { input, cycle } = repeated;
        let extra = self.bind(input, true);
        let known = self.repeats.iter().find(|(other, _)| *other == repeated);
        let known = known.map(|(_, number)| number.clone());
        let number = known.unwrap_or_else(|| {
            let number = self.params.len().to_string();
            self.parameter("len", &number, "u32", cycle.len as u32);
            self.parameter("inner", &number, "u32", cycle.inner as u32);
            self.repeats.push((repeated, number.clone()));
            number
        });
        let at = |index: &str| {
            let index = match cycle {
                Cycle { len: 1, .. } => return format!("e{extra}[0]"),
                Cycle { inner: 1, .. } => format!("({index})"),
                _ => format!("({index}) / params.inner{number}"),
            };
            format!("e{extra}[{index} % params.len{number}]")
        };
        if !self.vectors {
            return at("i");
        }
        let mut values = String::new();
        for place in ["", " + 1u", " + 2u", " + 3u"] {
            values += &at(&format!("4u * i{place}"));
            values.push(',');
        }
        format!("vec4f({values})")
    }

    /// The place of an input among the buffers bound beside the kernel's own.
    fn bind(&mut self, input: usize, single: bool) -> usize {
        let of_type = if self.vectors && !single {
            "vec4f"
        } else {
            "f32"
        };
        let bound = self
            .bound
            .iter()
            .position(|&other| other == (input, of_type));
        bound.unwrap_or_else(|| {
            self.bound.push((input, of_type));
            self.bound.len() - 1
        })
    }

    /// Returns the kernel's text with the fused code in it.
    pub(super) fn source(&self, kernel: &Kernel) -> String {
        let added = self
            .items
            .iter()
            .filter(|item| !kernel.items.contains(item));
        let items = kernel.items.iter().chain(added);
        // Directives come before all else, and before the items that are added.
        let mut source: String = items.map(|item| item.get()).collect();
        let [start, end] = [kernel.start, kernel.end].map(Text::get);
        for text in [start, &self.fields, end, &self.functions] {
            source.push_str(text);
        }
        for (name, text) in kernel.hooks {
            if !self.replaced.iter().any(|replaced| replaced == name) {
                source.push_str(text.get());
            }
        }
        for (place, (_, of_type)) in self.bound.iter().enumerate() {
            let binding = kernel.inputs + 2 + place;
            let _ = writeln!(
                source,
                "@group(0) @binding({binding}) var<storage, read> e{place}: array<{of_type}>;"
            );
        }
        source
    }
}

/// Whether an operation adds, or may compute a term of a sum.
fn is_sum(op: &Op) -> bool {
    if matches!(op, Op::Custom(_)) {
        return true;
    }
    matches!(op, Op::VecAdd | Op::Sub | Op::BiasAdd { .. } | Op::Neg)
}

/// A text with `mark` where `#` stands.
fn fill(text: &str, mark: &str) -> String {
    let mut filled = String::new();
    for character in text.chars() {
        match character {
            '#' => filled += mark,
            other => filled.push(other),
        }
    }
    filled
}
