//! The emitter: a kernel's structure becomes text, the same text every time.

use super::code::{Code, Inst, Node};
use super::inst::{Hole, Op, Operand, Reg};
use super::kernel::{ParamType, PtxKernel, SharedArray};
use super::text::{Names, Text};
use super::types::{Class, Target, Version};

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

    /// The same with one more kernel.
    ///
    /// # Errors
    /// As [`PtxModule::add`].
    pub fn with(mut self, kernel: PtxKernel) -> super::Result<Self> {
        self.add(kernel)?;
        Ok(self)
    }

    /// Adds a kernel.
    ///
    /// # Errors
    /// [`super::Error::Target`] if it was written for a later target, and
    /// [`super::Error::Invalid`] if its name, or its dynamic array's in the text, is there already.
    pub fn add(&mut self, kernel: PtxKernel) -> super::Result<()> {
        let other_architecture = kernel.target == Target::Sm90a && self.target != kernel.target;
        if kernel.target > self.target || other_architecture {
            return Err(super::Error::Target {
                what: kernel.name,
                needed: kernel.target,
                target: self.target,
            });
        }
        if let Some(name) = self.taken(&kernel) {
            return Err(super::Error::Invalid {
                what: "name",
                value: name,
                requirement: "a name of its own in the module",
            });
        }
        self.kernels.push(kernel);
        Ok(())
    }

    /// A name of the kernel that another one has in the text.
    fn taken(&self, kernel: &PtxKernel) -> Option<String> {
        let dynamic = kernel.shared.iter().filter(|array| array.dynamic);
        let arrays = dynamic.map(|array| format!("{}_{}", kernel.name, array.name));
        let mut names = arrays.chain([kernel.name.clone()]);
        names.find(|name| self.kernels.iter().any(|other| other.declares(name)))
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
        let kernels = self.kernels.iter().map(|kernel| kernel.since);
        kernels.fold(self.target.since(), Version::max)
    }

    /// The text.
    pub fn emit(&self) -> String {
        let insts = self.kernels.iter().map(|kernel| kernel.code.insts().len());
        let mut text = Text::with_capacity(1024 + 48 * insts.sum::<usize>());
        let (version, target) = (self.version(), self.target);
        text.line(format_args!(".version {version}"));
        text.line(format_args!(".target {target}"));
        text.push(".address_size 64\n");
        for kernel in &self.kernels {
            Emitter::new(kernel, &mut text).kernel();
        }
        text.finish()
    }
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
    labels: u32,
}

impl<'a> Emitter<'a> {
    fn new(kernel: &'a PtxKernel, text: &'a mut Text) -> Self {
        Emitter {
            kernel,
            text,
            names: Names::new(kernel.code.regs(), kernel.registers),
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
        text.line(format_args!("\n.visible .entry {}(", kernel.name));
        for (i, param) in kernel.params.iter().enumerate() {
            let comma = if i + 1 < kernel.params.len() { "," } else { "" };
            let name = param.name;
            match param.ty {
                ParamType::Pointer(ty) => {
                    text.line(format_args!("    .param .u64 {name}{comma} // of {ty}"));
                }
                ParamType::Scalar(ty) => {
                    text.line(format_args!("    .param .{ty} {name}{comma}"));
                }
                ParamType::TensorMap(_) => {
                    text.line(format_args!("    .param .align 64 .b8 {name}[128]{comma}"));
                }
            }
        }
        let [x, y, z] = kernel.launch.block;
        text.line(format_args!(")\n.reqntid {x}, {y}, {z}"));
        text.line(format_args!(".minnctapersm {}", kernel.launch.min_blocks));
        if kernel.launch.cluster_blocks() > 1 {
            let [x, y, z] = kernel.launch.cluster;
            text.push(".explicitcluster\n");
            text.line(format_args!(".reqnctapercluster {x}, {y}, {z}"));
        }
    }

    fn registers(&mut self) {
        for class in Class::ALL {
            let count = self.names.count(class);
            if count > 0 {
                let (ty, prefix) = class.names();
                self.text
                    .line(format_args!("    .reg .{ty} {prefix}<{count}>;"));
            }
        }
    }

    /// Arrays whose size the launch states are declared outside the kernel, the others inside.
    fn shared(&mut self, dynamic: bool) {
        let kernel = &self.kernel.name;
        let arrays = self.kernel.shared.iter();
        for SharedArray {
            name, bytes, align, ..
        } in arrays.filter(|array| array.dynamic == dynamic)
        {
            if dynamic {
                self.text.line(format_args!(
                    "\n.extern .shared .align {align} .b8 {kernel}_{name}[]; // {bytes} bytes"
                ));
            } else {
                self.text.line(format_args!(
                    "    .shared .align {align} .b8 {name}[{bytes}];"
                ));
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
            self.text.indent(depth);
            self.text.push("//");
            for word in line.split(' ') {
                self.text.push(" ");
                if word.bytes().all(|byte| byte.is_ascii_graphic()) {
                    self.text.push(word);
                } else {
                    self.text.add(format_args!("{}", word.escape_default()));
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
        self.text.number(label.into());
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
        self.text.indent(depth);
        self.guard(cond);
        self.text.push("bra ");
        self.text.push(name);
        self.text.number(label.into());
        self.text.push(";\n");
    }

    fn guard(&mut self, guard: Option<(Reg, bool)>) {
        if let Some((reg, wanted)) = guard {
            self.text.push(if wanted { "@" } else { "@!" });
            self.reg(reg);
            self.text.push(" ");
        }
    }

    fn reg(&mut self, reg: Reg) {
        self.names.write(reg, self.text);
    }

    fn instruction(&mut self, inst: &Inst, depth: usize) {
        let (code, row) = (&self.kernel.code, inst.op.row());
        self.text.indent(depth);
        self.guard(inst.guard);
        mnemonic(code, inst, self.text);
        // Texts that end in a comma have their first operand in them: a discarded result.
        let mask = inst.count() - usize::from(row.ends_in_mask);
        for (i, operand) in code.operands(inst).enumerate() {
            if i == 0 {
                self.text.push(" ");
            } else {
                self.text.push(", ");
            }
            match operand {
                Operand::Reg(reg) => self.reg(reg),
                // Masks of lanes are easier to read in hexadecimal.
                Operand::Int(value) if i == mask => self.text.add(format_args!("{value:#x}")),
                Operand::Int(value) => self.text.number(value),
                operand => self.operand(inst, operand),
            }
        }
        self.text.push(";\n");
    }

    fn operand(&mut self, inst: &Inst, operand: Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Int(value) => self.text.number(value),
            Operand::Float(value) => self.text.float(value),
            Operand::Special(special) => self.text.push(special.name()),
            Operand::Shared(array) => self.shared_name(array),
            // Loads take it as an address, moves as a name.
            Operand::Param(index) if inst.op == Op::MovParam => {
                self.text.push(self.kernel.params[index].name);
            }
            Operand::Param(index) => {
                self.text.push("[");
                self.text.push(self.kernel.params[index].name);
                self.text.push("]");
            }
            Operand::At(base, offset) => self.address(base, offset),
            Operand::Box(map, at) => {
                self.text.push("[");
                self.reg(map);
                self.text.push(", ");
                self.group(at);
                self.text.push("]");
            }
            Operand::Group(regs) => self.group(regs),
        }
    }

    fn shared_name(&mut self, index: usize) {
        let array = &self.kernel.shared[index];
        if array.dynamic {
            self.text.push(&self.kernel.name);
            self.text.push("_");
        }
        self.text.push(&array.name);
    }

    fn address(&mut self, base: Reg, offset: i32) {
        self.text.push("[");
        self.reg(base);
        if offset != 0 {
            // Before a sign of its own, too: the assembler knows no difference.
            self.text.push("+");
            self.text.number(offset.into());
        }
        self.text.push("]");
    }

    fn group(&mut self, regs: &[Reg]) {
        self.text.push("{");
        for (i, reg) in regs.iter().enumerate() {
            if i > 0 {
                self.text.push(", ");
            }
            self.reg(*reg);
        }
        self.text.push("}");
    }
}

/// The instruction's name with its type, its vector's length, or its number of columns.
fn mnemonic(code: &Code, inst: &Inst, text: &mut Text) {
    let row = inst.op.row();
    text.push(row.pieces[0]);
    for (hole, piece) in row.holes.iter().zip(&row.pieces[1..]) {
        match hole {
            Hole::Nothing => return,
            Hole::Type => text.push(inst.ty.name()),
            Hole::Vector => match code.group(inst) {
                Some(4) => text.push(".v4"),
                Some(_) => text.push(".v2"),
                None => {}
            },
            Hole::Columns => text.number(code.group(inst).unwrap_or(0) as i64 * 2),
        }
        text.push(piece);
    }
}

/// An instruction's name, for messages.
pub(super) fn instruction_text(code: &Code, inst: &Inst) -> String {
    let mut text = Text::with_capacity(64);
    mnemonic(code, inst, &mut text);
    text.finish()
}
