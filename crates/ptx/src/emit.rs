//! The emitter turns a kernel's structure into text. The same kernel always gives the same text.

use super::code::{Code, Inst, Node};
use super::inst::{Hole, Op, Operand, Reg};
use super::kernel::{Param, ParamType, PtxKernel, SharedArray};
use super::text::{Names, push_float, push_number, push_signed};
use super::types::Class;

/// Appends a kernel's text.
pub(super) fn kernel(kernel: &PtxKernel, text: &mut String) {
    let names = Names::new(kernel.code.regs(), kernel.registers);
    let labels = 0;
    Emitter {
        kernel,
        text,
        names,
        labels,
    }
    .kernel();
}

/// The prefixes of labels; a number follows each.
pub(super) const LABELS: [&str; 3] = [LOOP, ELSE, END];
const LOOP: &str = "LOOP_";
const ELSE: &str = "ELSE_";
const END: &str = "END_";

struct Emitter<'a> {
    kernel: &'a PtxKernel,
    text: &'a mut String,
    names: Names,
    /// The number of labels so far.
    labels: u32,
}

impl Emitter<'_> {
    /// Appends several strings.
    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.text.push_str(part);
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
        self.nodes(&kernel.code.nodes, 1);
        self.text.push_str("}\n");
    }

    fn signature(&mut self) {
        let kernel = self.kernel;
        self.push(&["\n.visible .entry ", &kernel.name, "(\n"]);
        for (i, Param { name, ty }) in kernel.params.iter().enumerate() {
            let comma = if i + 1 < kernel.params.len() { "," } else { "" };
            match ty {
                ParamType::Pointer(ty) => {
                    let of = ty.name();
                    self.push(&["    .param .u64 ", name, comma, " // of ", of, "\n"]);
                }
                ParamType::Scalar(ty) => {
                    self.push(&["    .param .", ty.name(), " ", name, comma, "\n"]);
                }
                ParamType::TensorMap(_) => {
                    self.push(&["    .param .align 64 .b8 ", name, "[128]", comma, "\n"]);
                }
            }
        }
        self.text.push_str(")\n");
        self.axes(".reqntid ", kernel.launch.block);
        self.text.push_str(".minnctapersm ");
        push_number(self.text, kernel.launch.min_blocks);
        self.text.push('\n');
        if kernel.launch.cluster_blocks() > 1 {
            self.text.push_str(".explicitcluster\n");
            self.axes(".reqnctapercluster ", kernel.launch.cluster);
        }
    }

    /// Appends a directive and its three numbers.
    fn axes(&mut self, directive: &str, axes: [u32; 3]) {
        for (before, axis) in [directive, ", ", ", "].into_iter().zip(axes) {
            self.text.push_str(before);
            push_number(self.text, axis);
        }
        self.text.push('\n');
    }

    fn registers(&mut self) {
        for class in Class::ALL {
            let count = self.names.count(class);
            if count > 0 {
                self.push(&["    .reg .", class.name(), " ", class.prefix(), "<"]);
                push_number(self.text, count);
                self.text.push_str(">;\n");
            }
        }
    }

    /// Declares shared arrays. Arrays whose size the launch states are declared outside the
    /// kernel, the others inside.
    fn shared(&mut self, dynamic: bool) {
        let kernel = self.kernel;
        let arrays = kernel.shared.iter();
        for array in arrays.filter(|array| array.dynamic == dynamic) {
            let SharedArray { name, bytes, .. } = array;
            if dynamic {
                self.text.push_str("\n.extern .shared .align ");
                push_number(self.text, array.align);
                self.push(&[" .b8 ", &kernel.name, "_", name, "[]; // "]);
                push_number(self.text, *bytes);
                self.text.push_str(" bytes\n");
            } else {
                self.text.push_str("    .shared .align ");
                push_number(self.text, array.align);
                self.push(&[" .b8 ", name, "["]);
                push_number(self.text, *bytes);
                self.text.push_str("];\n");
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node], depth: usize) {
        for node in nodes {
            match node {
                Node::Run(run) => {
                    for inst in &self.kernel.code.insts()[run.clone()] {
                        self.instruction(inst, depth);
                    }
                }
                Node::Comment(comment) => self.comment(comment, depth),
                Node::If {
                    cond,
                    then,
                    otherwise,
                } => self.branch(*cond, then, otherwise, depth),
                Node::Loop { body, again } => {
                    let label = self.label();
                    self.place(LOOP, label);
                    self.nodes(body, depth + 1);
                    self.jump(Some((*again, true)), LOOP, label, depth);
                }
            }
        }
    }

    /// Appends a comment line by line. Only ASCII is allowed in PTX: other characters are escaped.
    fn comment(&mut self, comment: &str, depth: usize) {
        for line in comment.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            self.indent(depth);
            self.text.push_str("//");
            for word in line.split(' ') {
                self.text.push(' ');
                if word.bytes().all(|byte| byte.is_ascii_graphic()) {
                    self.text.push_str(word);
                } else {
                    self.text.extend(word.escape_default());
                }
            }
            self.text.push('\n');
        }
    }

    /// Returns the number of a new label.
    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    /// Appends a label's definition.
    fn place(&mut self, name: &str, label: u32) {
        self.text.push_str(name);
        push_number(self.text, label);
        self.text.push_str(":\n");
    }

    fn branch(&mut self, cond: Reg, then: &[Node], otherwise: &[Node], depth: usize) {
        let label = self.label();
        if otherwise.is_empty() {
            self.jump(Some((cond, false)), END, label, depth);
            self.nodes(then, depth + 1);
        } else {
            self.jump(Some((cond, false)), ELSE, label, depth);
            self.nodes(then, depth + 1);
            self.jump(None, END, label, depth);
            self.place(ELSE, label);
            self.nodes(otherwise, depth + 1);
        }
        self.place(END, label);
    }

    fn jump(&mut self, guard: Option<(Reg, bool)>, name: &str, label: u32, depth: usize) {
        self.begin(guard, depth);
        self.push(&["bra ", name]);
        push_number(self.text, label);
        self.text.push_str(";\n");
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text.push_str("    ");
        }
    }

    /// Appends the indentation and the guard of an instruction.
    fn begin(&mut self, guard: Option<(Reg, bool)>, depth: usize) {
        self.indent(depth);
        if let Some((reg, wanted)) = guard {
            self.text.push_str(if wanted { "@" } else { "@!" });
            self.text.push_str(self.names.of(reg));
            self.text.push(' ');
        }
    }

    fn instruction(&mut self, inst: &Inst, depth: usize) {
        let code = &self.kernel.code;
        self.begin(inst.guard, depth);
        push_mnemonic(self.text, code, inst);
        // Masks of lanes are easier to read in hexadecimal.
        let mask = inst.count() - usize::from(inst.op.row().ends_in_mask);
        for (i, operand) in code.operands(inst).enumerate() {
            match i {
                0 => self.text.push(' '),
                _ => self.text.push_str(", "),
            }
            match operand {
                Operand::Int(value) if i == mask => {
                    let mask = format!("{value:#x}");
                    self.text.push_str(&mask);
                }
                operand => self.operand(inst.op, operand),
            }
        }
        self.text.push_str(";\n");
    }

    fn operand(&mut self, op: Op, operand: Operand) {
        match operand {
            Operand::Reg(reg) => self.text.push_str(self.names.of(reg)),
            Operand::Int(value) => push_signed(self.text, value),
            Operand::Float(value) => push_float(self.text, value),
            Operand::Special(special) => self.text.push_str(special.name()),
            Operand::At(base, offset) => self.address(base, offset),
            Operand::Shared(array) => self.shared_name(array),
            // Moves take a parameter's name, loads its address.
            Operand::Param(index) if op == Op::MovParam => {
                self.text.push_str(self.kernel.params[index].name);
            }
            Operand::Param(index) => self.push(&["[", self.kernel.params[index].name, "]"]),
            Operand::Box(map, at) => {
                self.text.push('[');
                self.text.push_str(self.names.of(map));
                self.text.push_str(", ");
                self.group(at);
                self.text.push(']');
            }
            Operand::Group(regs) => self.group(regs),
        }
    }

    fn address(&mut self, base: Reg, offset: i32) {
        self.text.push('[');
        self.text.push_str(self.names.of(base));
        if offset != 0 {
            // A negative offset is written `+-4`, which the assembler accepts.
            self.text.push('+');
            push_signed(self.text, offset.into());
        }
        self.text.push(']');
    }

    fn shared_name(&mut self, index: usize) {
        let array = &self.kernel.shared[index];
        if array.dynamic {
            self.push(&[&self.kernel.name, "_"]);
        }
        self.text.push_str(&array.name);
    }

    fn group(&mut self, regs: &[Reg]) {
        self.text.push('{');
        for (i, reg) in regs.iter().enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            self.text.push_str(self.names.of(*reg));
        }
        self.text.push('}');
    }
}

/// Appends an instruction's name with its type, its vector's length or its number of columns.
fn push_mnemonic(text: &mut String, code: &Code, inst: &Inst) {
    let row = inst.op.row();
    for (part, hole) in row.parts.iter().zip(row.holes) {
        text.push_str(part);
        match hole {
            Hole::Nothing => break,
            Hole::Type => text.push_str(inst.ty.name()),
            Hole::Vector => match code.group(inst) {
                Some(4) => text.push_str(".v4"),
                Some(_) => text.push_str(".v2"),
                None => {}
            },
            Hole::Columns => push_number(text, code.group(inst).unwrap_or(0) as u32 * 2),
        }
    }
}

/// Returns an instruction's name, for messages.
pub(super) fn instruction_text(code: &Code, inst: &Inst) -> String {
    let mut text = String::new();
    push_mnemonic(&mut text, code, inst);
    text
}
