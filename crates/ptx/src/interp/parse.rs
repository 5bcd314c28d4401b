//! Parses text to kernels with their declarations, and instructions whose operands are resolved to
//! register indices and addresses.

use crate::error::{Error, Result};
use std::collections::HashMap;

/// A parsed kernel.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) params: Vec<ParamSlot>,
    pub(super) block: [u32; 3],
    /// The number of blocks of a cluster along each axis.
    pub(super) cluster: [u32; 3],
    /// The shared arrays.
    pub(super) shared: Vec<SharedRange>,
    pub(super) registers: usize,
    pub(super) lines: Vec<Line>,
}

/// The position of a parameter in the parameter buffer.
#[derive(Clone, Debug)]
pub(super) struct ParamSlot {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

#[derive(Clone, Debug)]
pub(super) struct SharedRange {
    pub(super) name: String,
    pub(super) from: u32,
    /// The size in bytes; `None` for dynamic shared memory, which is the last.
    pub(super) bytes: Option<u32>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) guard: Option<(usize, bool)>,
    pub(super) opcode: String,
    pub(super) args: Vec<Arg>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arg {
    Reg(usize),
    /// An integer, or the bits of an `f32`.
    Imm(u64),
    Special(&'static str),
    /// The offset of a parameter, in brackets.
    Param(usize),
    /// The offset of a parameter, without brackets: its address.
    ParamAddress(usize),
    Mem(usize, i64),
    Box(usize, Vec<usize>),
    Group(Vec<usize>),
    /// The index of the instruction after a label.
    Label(usize),
    Sink,
}

const SPECIALS: [&str; 16] = [
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
    "%warpid",
    "%cluster_ctarank",
    "%clock",
];

/// The gap between shared arrays in bytes, so that an access past the end of one is detected.
const GAP: u32 = 64;

/// Limits above those of any GPU: threads of a block, blocks of a cluster, registers of a kernel,
/// bytes of shared memory and bytes of a parameter.
const MAX_THREADS: u32 = 1024;
const MAX_CLUSTER: u32 = 16;
const MAX_REGISTERS: usize = 1 << 16;
const MAX_SHARED: u32 = 1 << 20;
const MAX_PARAM: usize = 4096;

/// Parses all kernels of a text.
pub(super) fn module(text: &str) -> Result<Vec<Entry>> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split("//").next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let mut externs = Vec::new();
    let mut entries = Vec::new();
    let mut rest = lines.as_slice();
    while let Some(&(number, line)) = rest.first() {
        if let Some(name) = line.strip_prefix(".visible .entry ") {
            let end = rest.iter().position(|(_, line)| *line == "}");
            let end = end.ok_or_else(|| bad(number, "the kernel has no end"))?;
            let name = name.trim_end_matches('(').trim();
            let lines = &rest[1..end];
            entries.push(Parser::new(name).entry(lines, &externs)?);
            rest = &rest[end + 1..];
            continue;
        }
        if let Some(array) = line.strip_prefix(".extern .shared ") {
            externs.push(declaration(number, array)?.0);
        } else if ![".version", ".target", ".address_size"]
            .iter()
            .any(|directive| line.starts_with(directive))
        {
            return Err(bad(number, format!("`{line}` is not known here")));
        }
        rest = &rest[1..];
    }
    Ok(entries)
}

fn bad(line: usize, message: impl Into<String>) -> Error {
    Error::Parse {
        line,
        message: message.into(),
    }
}

/// Returns the name, size and alignment of `.align 16 .b8 name[bytes];`.
fn declaration(number: usize, text: &str) -> Result<(String, Option<u32>, u32)> {
    let wrong = || bad(number, "not a declaration of shared memory");
    let words: Vec<&str> = text.trim_end_matches(';').split_whitespace().collect();
    let [".align", align, ".b8", array] = words[..] else {
        return Err(wrong());
    };
    let (name, bytes) = array.split_once('[').ok_or_else(wrong)?;
    let bytes = bytes.trim_end_matches(']');
    let bytes = match bytes {
        "" => None,
        bytes => Some(bytes.parse().map_err(|_| wrong())?),
    };
    Ok((name.to_owned(), bytes, align.parse().map_err(|_| wrong())?))
}

struct Parser {
    entry: Entry,
    registers: HashMap<String, usize>,
    labels: HashMap<String, usize>,
}

impl Parser {
    fn new(name: &str) -> Self {
        Parser {
            entry: Entry {
                name: name.to_owned(),
                params: Vec::new(),
                block: [1; 3],
                cluster: [1; 3],
                shared: Vec::new(),
                registers: 0,
                lines: Vec::new(),
            },
            registers: HashMap::new(),
            labels: HashMap::new(),
        }
    }

    fn entry(mut self, lines: &[(usize, &str)], externs: &[String]) -> Result<Entry> {
        let mut instructions = Vec::new();
        for &(number, line) in lines {
            if line.starts_with(".param") {
                self.param(number, line)?;
            } else if let Some(list) = line.strip_prefix(".reqntid ") {
                self.entry.block = extents(number, list, MAX_THREADS)?;
            } else if let Some(list) = line.strip_prefix(".reqnctapercluster ") {
                self.entry.cluster = extents(number, list, MAX_CLUSTER)?;
            } else if let Some(list) = line.strip_prefix(".reg ") {
                self.registers(number, list)?;
            } else if let Some(array) = line.strip_prefix(".shared ") {
                let (name, bytes, align) = declaration(number, array)?;
                self.shared(number, (name, bytes, align))?;
            } else if let Some(label) = line.strip_suffix(':') {
                self.labels.insert(label.to_owned(), instructions.len());
            } else if !matches!(line, "{" | ")" | ".explicitcluster")
                && !line.starts_with(".minnctapersm")
            {
                instructions.push((number, line));
            }
        }
        // Dynamic shared memory follows all arrays. Other kernels of the text may declare some,
        // too.
        let names = |name: &str| instructions.iter().any(|(_, line)| mentions(line, name));
        if let Some(name) = externs.iter().find(|name| names(name)) {
            self.shared(0, (name.clone(), None, 1024))?;
        }
        for (number, line) in instructions {
            let line = self.instruction(number, line)?;
            self.entry.lines.push(line);
        }
        Ok(self.entry)
    }

    fn param(&mut self, number: usize, line: &str) -> Result<()> {
        let line = line.trim_end_matches(',');
        let last = line.rsplit(' ').next().unwrap_or_default();
        let size = |text: &str| {
            let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            let size = digits.trim_end_matches(']').parse::<usize>();
            size.map_err(|_| bad(number, "not a parameter"))
        };
        let (name, bytes, align) = if let Some((name, bytes)) = last.split_once('[') {
            (name, size(bytes)?, 64)
        } else {
            let bytes = size(line.split_whitespace().nth(1).unwrap_or_default())? / 8;
            (last, bytes, bytes)
        };
        if !(1..=MAX_PARAM).contains(&bytes) {
            return Err(bad(number, "a parameter of no size, or of too many bytes"));
        }
        let end = self.entry.params.last().map_or(0, |p| p.offset + p.bytes);
        self.entry.params.push(ParamSlot {
            name: name.to_owned(),
            offset: end.next_multiple_of(align),
            bytes,
        });
        Ok(())
    }

    /// Parses a declaration: `.f32 %f<12>;` declares `%f0` to `%f11`.
    fn registers(&mut self, number: usize, list: &str) -> Result<()> {
        let wrong = || bad(number, "not a declaration of registers");
        let (_, names) = list
            .trim_end_matches(';')
            .split_once(' ')
            .ok_or_else(wrong)?;
        let (prefix, count) = names
            .trim_end_matches('>')
            .split_once('<')
            .ok_or_else(wrong)?;
        let count: usize = count.parse().map_err(|_| wrong())?;
        if count > MAX_REGISTERS - self.entry.registers {
            return Err(bad(number, "more registers than are interpreted"));
        }
        for i in 0..count {
            self.registers
                .insert(format!("{prefix}{i}"), self.entry.registers);
            self.entry.registers += 1;
        }
        Ok(())
    }

    fn shared(&mut self, number: usize, array: (String, Option<u32>, u32)) -> Result<()> {
        let (name, bytes, align) = array;
        let size = bytes.unwrap_or(0);
        let end = |range: &SharedRange| range.from + range.bytes.unwrap_or(0) + GAP;
        let from = self.entry.shared.last().map_or(0, end);
        if !(1..=MAX_SHARED).contains(&align) || from.saturating_add(size) > MAX_SHARED {
            return Err(bad(number, "more shared memory than any GPU has"));
        }
        let from = from.next_multiple_of(align);
        self.entry.shared.push(SharedRange { name, from, bytes });
        Ok(())
    }

    fn instruction(&self, number: usize, line: &str) -> Result<Line> {
        let line = line
            .strip_suffix(';')
            .ok_or_else(|| bad(number, "no semicolon at the end"))?;
        let (guard, line) = match line.strip_prefix('@') {
            None => (None, line),
            Some(line) => {
                let (reg, line) = line
                    .split_once(' ')
                    .ok_or_else(|| bad(number, "nothing after the guard"))?;
                let name = reg.trim_start_matches('!');
                (
                    Some((self.reg(number, name)?, name.len() == reg.len())),
                    line,
                )
            }
        };
        let (opcode, args) = line.split_once(' ').unwrap_or((line, ""));
        let args = split(args).into_iter().map(|arg| self.arg(number, arg));
        Ok(Line {
            number,
            guard,
            opcode: opcode.to_owned(),
            args: args.collect::<Result<_>>()?,
        })
    }

    fn reg(&self, number: usize, name: &str) -> Result<usize> {
        let found = self.registers.get(name.trim()).copied();
        found.ok_or_else(|| bad(number, format!("`{name}` is not declared")))
    }

    fn regs(&self, number: usize, list: &str) -> Result<Vec<usize>> {
        let names = list.trim().trim_matches(['{', '}']).split(',');
        names.map(|name| self.reg(number, name)).collect()
    }

    fn arg(&self, number: usize, arg: &str) -> Result<Arg> {
        if let Some(special) = SPECIALS.iter().find(|name| **name == arg) {
            return Ok(Arg::Special(special));
        }
        if arg.starts_with('%') {
            return Ok(Arg::Reg(self.reg(number, arg)?));
        }
        if arg.starts_with('{') {
            return Ok(Arg::Group(self.regs(number, arg)?));
        }
        if let Some(inner) = arg.strip_prefix('[').and_then(|arg| arg.strip_suffix(']')) {
            return self.memory(number, inner);
        }
        if arg == "_" {
            return Ok(Arg::Sink);
        }
        if let Some(value) = constant(arg) {
            return Ok(Arg::Imm(value));
        }
        if let Some(range) = self.entry.shared.iter().find(|range| range.name == arg) {
            return Ok(Arg::Imm(range.from.into()));
        }
        if let Some(param) = self.entry.params.iter().find(|param| param.name == arg) {
            return Ok(Arg::ParamAddress(param.offset));
        }
        let label = self.labels.get(arg).copied();
        let label = label.ok_or_else(|| bad(number, format!("`{arg}` is not known")))?;
        Ok(Arg::Label(label))
    }

    fn memory(&self, number: usize, inner: &str) -> Result<Arg> {
        if let Some((map, at)) = inner.split_once(',') {
            return Ok(Arg::Box(self.reg(number, map)?, self.regs(number, at)?));
        }
        if let Some(param) = self.entry.params.iter().find(|param| param.name == inner) {
            return Ok(Arg::Param(param.offset));
        }
        let sign = inner.find(['+', '-']).unwrap_or(inner.len());
        let (base, offset) = inner.split_at(sign);
        let offset = match offset {
            "" => 0,
            // A negative offset is written `+-4`.
            offset => offset
                .strip_prefix('+')
                .unwrap_or(offset)
                .parse()
                .map_err(|_| bad(number, format!("`{offset}` is not an offset")))?,
        };
        Ok(Arg::Mem(self.reg(number, base)?, offset))
    }
}

/// Whether a line contains a name as a whole word.
fn mentions(line: &str, name: &str) -> bool {
    let within = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    line.split(|c| !within(c)).any(|word| word == name)
}

/// Parses up to three numbers, with 1 for missing ones, whose product is from 1 to `most`.
fn extents(number: usize, list: &str, most: u32) -> Result<[u32; 3]> {
    let mut extents: [u32; 3] = [1; 3];
    for (axis, count) in list.split(',').enumerate() {
        match (extents.get_mut(axis), count.trim().parse()) {
            (Some(place), Ok(count)) => *place = count,
            _ => return Err(bad(number, "not the size of a block or a cluster")),
        }
    }
    let all = extents.iter().fold(1, |all: u32, n| all.saturating_mul(*n));
    if !(1..=most).contains(&all) {
        return Err(bad(
            number,
            format!("{all} of at least 1 and at most {most}"),
        ));
    }
    Ok(extents)
}

/// Splits operands at the commas outside of braces and brackets.
fn split(args: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in args.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(args[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(args[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn constant(text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix("0f") {
        return u64::from_str_radix(bits, 16).ok();
    }
    if let Some(bits) = text.strip_prefix("0x") {
        return u64::from_str_radix(bits, 16).ok();
    }
    text.parse::<i64>().map(|value| value as u64).ok()
}
