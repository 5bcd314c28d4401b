//! The emitter: a kernel's structure becomes text, the same text every time.

#![allow(clippy::inline_always)] // Lines are handed on in registers.

use super::code::{Code, Inst, Node};
use super::inst::{Hole, Op, Operand, Reg};
use super::kernel::{Param, ParamType, PtxKernel, SharedArray};
use super::text::{Line, NUMBER, Names, SEPARATOR, Text, WORD};
use super::types::Class;

/// Appends a kernel's text.
pub(super) fn kernel(kernel: &PtxKernel, text: &mut Text) {
    Emitter::new(kernel, text).kernel();
}

/// How labels begin; their numbers follow.
pub(super) const LABELS: [&str; 3] = [LOOP, ELSE, END];
const LOOP: &str = "LOOP_";
const ELSE: &str = "ELSE_";
const END: &str = "END_";

struct Emitter<'a> {
    kernel: &'a PtxKernel,
    text: &'a mut Text,
    names: Names,
    /// Bytes of the longest name of a parameter or of an array.
    longest: usize,
    labels: u32,
}

impl<'a> Emitter<'a> {
    fn new(kernel: &'a PtxKernel, text: &'a mut Text) -> Self {
        let params = kernel.params.iter().map(|param| param.name.len());
        let arrays = kernel.shared.iter().map(|array| array.name.len());
        Emitter {
            kernel,
            text,
            names: Names::new(kernel.code.regs(), kernel.registers),
            longest: kernel.name.len() + params.chain(arrays).max().unwrap_or(0),
            labels: 0,
        }
    }

    fn kernel(&mut self) {
        self.shared(true);
        self.signature();
        self.text.push("{\n");
        self.registers();
        self.shared(false);
        self.text.push("\n");
        let kernel = self.kernel;
        self.nodes(&kernel.code.nodes, 1);
        self.text.push("}\n");
    }

    fn signature(&mut self) {
        let (kernel, text) = (self.kernel, &mut *self.text);
        text.parts(&["\n.visible .entry ", &kernel.name, "(\n"]);
        for (i, Param { name, ty }) in kernel.params.iter().enumerate() {
            let comma = if i + 1 < kernel.params.len() { "," } else { "" };
            match ty {
                ParamType::Pointer(ty) => {
                    let of = ty.name();
                    text.parts(&["    .param .u64 ", name, comma, " // of ", of, "\n"]);
                }
                ParamType::Scalar(ty) => {
                    text.parts(&["    .param .", ty.name(), " ", name, comma, "\n"]);
                }
                ParamType::TensorMap(_) => {
                    text.parts(&["    .param .align 64 .b8 ", name, "[128]", comma, "\n"]);
                }
            }
        }
        text.push(")\n");
        self.sides(".reqntid ", kernel.launch.block);
        self.text.push(".minnctapersm ");
        self.text.number(kernel.launch.min_blocks);
        self.text.push("\n");
        if kernel.launch.cluster_blocks() > 1 {
            self.text.push(".explicitcluster\n");
            self.sides(".reqnctapercluster ", kernel.launch.cluster);
        }
    }

    fn sides(&mut self, what: &str, sides: [u32; 3]) {
        for (before, side) in [what, ", ", ", "].into_iter().zip(sides) {
            self.text.push(before);
            self.text.number(side);
        }
        self.text.push("\n");
    }

    fn registers(&mut self) {
        for class in Class::ALL {
            let count = self.names.count(class);
            if count > 0 {
                let (ty, prefix) = class.names();
                self.text.parts(&["    .reg .", ty, " ", prefix, "<"]);
                self.text.number(count);
                self.text.push(">;\n");
            }
        }
    }

    /// Arrays whose size the launch states are declared outside the kernel, the others inside.
    fn shared(&mut self, dynamic: bool) {
        let (kernel, text) = (self.kernel, &mut *self.text);
        let arrays = kernel.shared.iter();
        for array in arrays.filter(|array| array.dynamic == dynamic) {
            let SharedArray { name, bytes, .. } = array;
            if dynamic {
                text.push("\n.extern .shared .align ");
                text.number(array.align);
                text.parts(&[" .b8 ", &kernel.name, "_", name, "[]; // "]);
                text.number(*bytes);
                text.push(" bytes\n");
            } else {
                text.push("    .shared .align ");
                text.number(array.align);
                text.parts(&[" .b8 ", name, "["]);
                text.number(*bytes);
                text.push("];\n");
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

    /// Line by line, in the characters that PTX has.
    fn comment(&mut self, comment: &str, depth: usize) {
        for line in comment.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let begin = self.text.line(room(depth)).indent(depth).fixed(b"//").end();
            self.text.end_at(begin);
            for word in line.split(' ') {
                self.text.push(" ");
                if word.bytes().all(|byte| byte.is_ascii_graphic()) {
                    self.text.push(word);
                } else {
                    word.escape_default()
                        .for_each(|c| self.text.push(c.encode_utf8(&mut [0; 4])));
                }
            }
            self.text.push("\n");
        }
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    fn place(&mut self, name: &str, label: u32) {
        self.text.push(name);
        self.text.number(label);
        self.text.push(":\n");
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

    fn jump(&mut self, cond: Option<(Reg, bool)>, name: &str, label: u32, depth: usize) {
        let mut line = self.text.line(room(depth)).indent(depth);
        if let Some(cond) = cond {
            line = guard(&self.names, cond, line);
        }
        let line = line.fixed(b"bra ").text(name).number(label.into());
        let end = line.fixed(b";\n").end();
        self.text.end_at(end);
    }

    #[inline]
    fn instruction(&mut self, inst: &Inst, depth: usize) {
        let (code, row) = (&self.kernel.code, inst.op.row());
        let parts = inst.count() * (self.longest + 2 * NUMBER) + inst.regs() * WORD;
        let mut line = self.text.line(room(depth) + parts).indent(depth);
        if let Some(cond) = inst.guard {
            line = guard(&self.names, cond, line);
        }
        line = mnemonic(code, inst, line);
        if inst.count() > 0 {
            line = line.fixed(b" ");
            // Masks of lanes are easier to read in hexadecimal.
            let mask = inst.count() - usize::from(row.ends_in_mask);
            let operands = Operands {
                kernel: self.kernel,
                names: &self.names,
            };
            for (i, operand) in code.operands(inst).enumerate() {
                line = match operand {
                    Operand::Reg(reg) => line.word(self.names.of(reg.id)),
                    Operand::At(base, offset) => operands.address(base, offset, line),
                    Operand::Int(value) if i == mask => {
                        line.text(&format!("{value:#x}")).fixed(SEPARATOR)
                    }
                    Operand::Int(value) => line.number(value).fixed(SEPARATOR),
                    operand => operands.rare(inst, operand, line),
                };
            }
            line = line.without(SEPARATOR.len());
        }
        let end = line.fixed(b";\n").end();
        self.text.end_at(end);
    }
}

/// Bytes of a line without its operands at most: an indentation, a guard, and a name or a jump.
#[inline]
fn room(depth: usize) -> usize {
    depth * 4 + 192
}

#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn guard<'a>(names: &Names, (reg, wanted): (Reg, bool), line: Line<'a>) -> Line<'a> {
    let line = if wanted {
        line.fixed(b"@")
    } else {
        line.fixed(b"@!")
    };
    line.word(names.of(reg.id))
        .without(SEPARATOR.len())
        .fixed(b" ")
}

/// Writes operands, with a separator after each.
struct Operands<'a> {
    kernel: &'a PtxKernel,
    names: &'a Names,
}

impl Operands<'_> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn address<'a>(&self, base: Reg, offset: i32, line: Line<'a>) -> Line<'a> {
        let name = self.names.of(base.id);
        let line = line.fixed(b"[").word(name).without(SEPARATOR.len());
        if offset == 0 {
            return line.fixed(b"], ");
        }
        // Before a sign of its own, too: the assembler knows no difference.
        line.fixed(b"+").number(offset.into()).fixed(b"], ")
    }

    /// All kinds but those that most instructions have.
    fn rare<'a>(&self, inst: &Inst, operand: Operand, line: Line<'a>) -> Line<'a> {
        let line = match operand {
            Operand::Group(regs) => return self.group(regs, line),
            Operand::Box(map, at) => {
                let line = line.fixed(b"[").word(self.names.of(map.id));
                return self.group(at, line).without(SEPARATOR.len()).fixed(b"], ");
            }
            Operand::Float(value) => line.float(value),
            Operand::Special(special) => line.text(special.name()),
            Operand::Shared(array) => self.shared_name(array, line),
            // Loads take it as an address, moves as a name.
            Operand::Param(index) if inst.op == Op::MovParam => {
                line.text(self.kernel.params[index].name)
            }
            Operand::Param(index) => {
                let name = self.kernel.params[index].name;
                line.fixed(b"[").text(name).fixed(b"]")
            }
            // Written where most instructions are.
            Operand::Reg(_) | Operand::Int(_) | Operand::At(..) => return line,
        };
        line.fixed(SEPARATOR)
    }

    fn shared_name<'a>(&self, index: usize, line: Line<'a>) -> Line<'a> {
        let array = &self.kernel.shared[index];
        if array.dynamic {
            return line.text(&self.kernel.name).fixed(b"_").text(&array.name);
        }
        line.text(&array.name)
    }

    fn group<'a>(&self, regs: &[Reg], line: Line<'a>) -> Line<'a> {
        let names = regs.iter().map(|reg| self.names.of(reg.id));
        let line = names.fold(line.fixed(b"{"), Line::word);
        line.without(SEPARATOR.len()).fixed(b"}, ")
    }
}

/// The instruction's name with its type, its vector's length, or its number of columns.
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn mnemonic<'a>(code: &Code, inst: &Inst, line: Line<'a>) -> Line<'a> {
    let row = inst.op.row();
    let mut line = line.word(&row.head);
    if row.holes[0] != Hole::Nothing {
        line = fill(row.holes[0], code, inst, line).word(&row.between);
        line = fill(row.holes[1], code, inst, line);
    }
    line
}

#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn fill<'a>(hole: Hole, code: &Code, inst: &Inst, line: Line<'a>) -> Line<'a> {
    match hole {
        Hole::Nothing => line,
        Hole::Type => line.word(inst.ty.word()),
        Hole::Vector => match code.group(inst) {
            Some(4) => line.fixed(b".v4"),
            Some(_) => line.fixed(b".v2"),
            None => line,
        },
        Hole::Columns => line.number(code.group(inst).unwrap_or(0) as i64 * 2),
    }
}

/// An instruction's name, for messages.
pub(super) fn instruction_text(code: &Code, inst: &Inst) -> String {
    let mut text = Text::with_capacity(96);
    let end = mnemonic(code, inst, text.line(room(0))).end();
    text.end_at(end);
    text.finish()
}
