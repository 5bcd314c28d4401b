//! The emitter: a kernel's structure becomes text, the same text every time.

use super::inst::{Inst, Kind, Op, Operand, Reg};
use super::kernel::{Node, ParamType, PtxKernel, SharedArray};
use super::types::{Class, Target, Version};
use super::verify;
use std::fmt::Write;

/// A text that any PTX compiler reads: kernels for one target.
#[derive(Clone, Debug)]
pub struct PtxModule {
    target: Target,
    kernels: Vec<PtxKernel>,
}

impl PtxModule {
    /// A module without kernels.
    pub fn new(target: Target) -> Self {
        PtxModule {
            target,
            kernels: Vec::new(),
        }
    }

    /// Adds a kernel.
    ///
    /// # Errors
    /// [`super::Error::Target`] if it was written for a later target, and
    /// [`super::Error::Invalid`] if there is one of its name already.
    pub fn with(mut self, kernel: PtxKernel) -> super::Result<Self> {
        let other_architecture = kernel.target == Target::Sm90a && self.target != kernel.target;
        if kernel.target > self.target || other_architecture {
            return Err(super::Error::Target {
                what: kernel.name,
                needed: kernel.target,
                target: self.target,
            });
        }
        if self.kernels.iter().any(|other| other.name == kernel.name) {
            return Err(super::Error::Invalid {
                what: "name",
                value: kernel.name,
                requirement: "a name of its own in the module",
            });
        }
        self.kernels.push(kernel);
        Ok(self)
    }

    /// What the text is written for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[PtxKernel] {
        &self.kernels
    }

    /// The oldest version of PTX that has everything used: drivers refuse newer ones than theirs.
    pub fn version(&self) -> Version {
        let mut version = self.target.since();
        for kernel in &self.kernels {
            verify::each(&kernel.body, &mut |inst| {
                version = version.max(inst.op.row().since);
            });
        }
        version
    }

    /// The text.
    pub fn emit(&self) -> String {
        let mut text = format!(
            ".version {}\n.target {}\n.address_size 64\n",
            self.version(),
            self.target
        );
        for kernel in &self.kernels {
            Emitter::new(kernel, &mut text).kernel();
        }
        text
    }
}

/// Writing to a `String` cannot fail.
macro_rules! put {
    ($to:expr, $($format:tt)*) => {
        let _ = writeln!($to, $($format)*);
    };
}

struct Emitter<'a> {
    kernel: &'a PtxKernel,
    text: &'a mut String,
    names: Names,
    labels: usize,
}

/// Registers are numbered within their class in the order of their first appearance.
#[derive(Default)]
struct Names {
    /// A register's number plus one; 0 where it has not appeared.
    of: Vec<u32>,
    /// How many there are of each class.
    count: [u32; Class::ALL.len()],
}

impl Names {
    fn collect(&mut self, nodes: &[Node]) {
        verify::each(nodes, &mut |inst| {
            for reg in inst.to.iter().chain(&inst.from).flat_map(Operand::regs) {
                self.meet(reg);
            }
        });
    }

    fn meet(&mut self, reg: Reg) {
        let id = reg.id as usize;
        if self.of.len() <= id {
            self.of.resize(id + 1, 0);
        }
        if self.of[id] == 0 {
            let count = &mut self.count[reg.ty.class() as usize];
            *count += 1;
            self.of[id] = *count;
        }
    }

    fn write(&self, reg: Reg, text: &mut String) {
        let number = self.of.get(reg.id as usize).copied().unwrap_or(1);
        text.push_str(reg.ty.class().names().1);
        number_into(text, number.saturating_sub(1));
    }
}

/// Decimal digits, without the cost of the formatter: a text is mostly these.
fn number_into(text: &mut String, number: u32) {
    if number >= 10 {
        number_into(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

impl<'a> Emitter<'a> {
    fn new(kernel: &'a PtxKernel, text: &'a mut String) -> Self {
        let mut names = Names::default();
        names.collect(&kernel.body);
        Emitter {
            kernel,
            text,
            names,
            labels: 0,
        }
    }

    fn kernel(&mut self) {
        self.shared(true);
        self.signature();
        self.text.push_str("{\n");
        self.registers();
        self.shared(false);
        self.text.push('\n');
        let kernel = self.kernel;
        self.nodes(&kernel.body, 1);
        self.text.push_str("}\n");
    }

    fn signature(&mut self) {
        let kernel = self.kernel;
        put!(self.text, "\n.visible .entry {}(", kernel.name);
        for (i, param) in kernel.params.iter().enumerate() {
            let comma = if i + 1 < kernel.params.len() { "," } else { "" };
            let name = param.name;
            match param.ty {
                ParamType::Pointer(ty) => {
                    put!(self.text, "    .param .u64 {name}{comma} // of {ty}");
                }
                ParamType::Scalar(ty) => {
                    put!(self.text, "    .param .{ty} {name}{comma}");
                }
                ParamType::TensorMap(_) => {
                    put!(self.text, "    .param .align 64 .b8 {name}[128]{comma}");
                }
            }
        }
        let [x, y, z] = kernel.launch.block;
        put!(self.text, ")\n.reqntid {x}, {y}, {z}");
        put!(self.text, ".minnctapersm {}", kernel.launch.min_blocks);
    }

    fn registers(&mut self) {
        for class in Class::ALL {
            let count = self.names.count[class as usize];
            if count > 0 {
                let (ty, prefix) = class.names();
                put!(self.text, "    .reg .{ty} {prefix}<{count}>;");
            }
        }
    }

    /// Arrays whose size the launch states are declared outside the kernel, the others inside.
    fn shared(&mut self, dynamic: bool) {
        let arrays = self.kernel.shared.iter();
        for SharedArray {
            name, bytes, align, ..
        } in arrays.filter(|array| array.dynamic == dynamic)
        {
            if dynamic {
                let kernel = &self.kernel.name;
                put!(
                    self.text,
                    "\n.extern .shared .align {align} .b8 {kernel}_{name}[]; // {bytes} bytes"
                );
            } else {
                put!(self.text, "    .shared .align {align} .b8 {name}[{bytes}];");
            }
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text.push_str("    ");
        }
    }

    fn nodes(&mut self, nodes: &[Node], depth: usize) {
        for node in nodes {
            match node {
                Node::Inst(inst) => self.instruction(inst, depth),
                Node::Comment(comment) => {
                    self.indent(depth);
                    put!(self.text, "// {comment}");
                }
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => self.branch(*cond, then, otherwise, depth),
                Node::Loop { body, again } => {
                    let label = self.label();
                    put!(self.text, "LOOP_{label}:");
                    self.nodes(body, depth + 1);
                    self.jump(Some((*again, true)), "LOOP", label, depth);
                }
            }
        }
    }

    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels - 1
    }

    fn branch(&mut self, cond: Reg, then: &[Node], otherwise: &[Node], depth: usize) {
        let label = self.label();
        if otherwise.is_empty() {
            self.jump(Some((cond, false)), "END", label, depth);
            self.nodes(then, depth + 1);
        } else {
            self.jump(Some((cond, false)), "ELSE", label, depth);
            self.nodes(then, depth + 1);
            self.jump(None, "END", label, depth);
            put!(self.text, "ELSE_{label}:");
            self.nodes(otherwise, depth + 1);
        }
        put!(self.text, "END_{label}:");
    }

    fn jump(&mut self, cond: Option<(Reg, bool)>, name: &str, label: usize, depth: usize) {
        self.indent(depth);
        self.guard(cond);
        put!(self.text, "bra {name}_{label};");
    }

    fn guard(&mut self, guard: Option<(Reg, bool)>) {
        if let Some((reg, wanted)) = guard {
            self.text.push_str(if wanted { "@" } else { "@!" });
            self.names.write(reg, self.text);
            self.text.push(' ');
        }
    }

    fn instruction(&mut self, inst: &Inst, depth: usize) {
        self.indent(depth);
        self.guard(inst.guard);
        mnemonic(inst, self.text);
        for (i, operand) in inst.to.iter().chain(&inst.from).enumerate() {
            // Texts that end in a comma have their first operand in them: a discarded result.
            let first = i == 0 && !inst.op.row().text.ends_with(',');
            self.text.push_str(match (first, i) {
                (true, _) | (false, 0) => " ",
                _ => ", ",
            });
            self.operand(inst, i, operand);
        }
        self.text.push_str(";\n");
    }

    fn operand(&mut self, inst: &Inst, position: usize, operand: &Operand) {
        match operand {
            Operand::Reg(reg) => self.names.write(*reg, self.text),
            Operand::Int(value) => self.integer(inst, position, *value),
            Operand::Float(value) => {
                let _ = write!(self.text, "0f{:08X}", value.to_bits());
            }
            Operand::Special(special) => self.text.push_str(special.name()),
            Operand::Shared(array) => self.shared_name(*array),
            Operand::Param(index) => {
                let name = self.kernel.params[*index].name;
                // Loads take it as an address, moves as a name.
                if inst.op == Op::MovParam {
                    self.text.push_str(name);
                } else {
                    let _ = write!(self.text, "[{name}]");
                }
            }
            Operand::At(base, offset) => self.address(*base, *offset),
            Operand::Box(map, at) => {
                self.text.push('[');
                self.names.write(*map, self.text);
                self.text.push_str(", ");
                self.group(at);
                self.text.push(']');
            }
            Operand::Group(regs) => self.group(regs),
        }
    }

    /// Masks of lanes are easier to read in hexadecimal.
    fn integer(&mut self, inst: &Inst, position: usize, value: i64) {
        let last = position + 1 == inst.to.len() + inst.from.len();
        let text = inst.op.row().text;
        let is_mask = ["shfl", "vote", "bar.warp"]
            .iter()
            .any(|op| text.starts_with(op));
        let _ = if is_mask && last {
            write!(self.text, "{value:#x}")
        } else if let Ok(value) = u32::try_from(value) {
            number_into(self.text, value);
            Ok(())
        } else {
            write!(self.text, "{value}")
        };
    }

    fn shared_name(&mut self, index: usize) {
        let array = &self.kernel.shared[index];
        if array.dynamic {
            self.text.push_str(&self.kernel.name);
            self.text.push('_');
        }
        self.text.push_str(&array.name);
    }

    fn address(&mut self, base: Reg, offset: i32) {
        self.text.push('[');
        self.names.write(base, self.text);
        let _ = match offset {
            0 => Ok(()),
            _ => write!(self.text, "{offset:+}"),
        };
        self.text.push(']');
    }

    fn group(&mut self, regs: &[Reg]) {
        self.text.push('{');
        for (i, reg) in regs.iter().enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            self.names.write(*reg, self.text);
        }
        self.text.push('}');
    }
}

/// The instruction's name with its type, its vector's length, or its number of columns.
fn mnemonic(inst: &Inst, text: &mut String) {
    let row = inst.op.row();
    let group = inst
        .to
        .iter()
        .chain(&inst.from)
        .find_map(|operand| match operand {
            Operand::Group(regs) => Some(regs.len()),
            _ => None,
        });
    let is_vector = row
        .to
        .iter()
        .chain(row.from)
        .any(|kind| *kind == Kind::Vector);
    let mut rest = row.text;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (hole, after) = after.split_once('}').unwrap_or((after, ""));
        let _ = match (hole, group) {
            ("n", Some(regs)) => write!(text, "{}", regs * 2),
            ("v", Some(regs)) if is_vector => write!(text, ".v{regs}"),
            ("v" | "n", _) => Ok(()),
            _ => {
                text.push_str(inst.ty.name());
                Ok(())
            }
        };
        rest = after;
    }
    text.push_str(rest);
}

/// An instruction's name, for messages.
pub(super) fn instruction_text(inst: &Inst) -> String {
    let mut text = String::new();
    mnemonic(inst, &mut text);
    text
}
