//! A bound of the registers that are alive at once, from one walk forwards: it spares most kernels
//! the exact count.
//!
//! Every read follows a write in the text, as was checked before. So a value is alive between the
//! first write and the last use of its register at most, or, where a loop uses what was written
//! before it, to the end of that loop (*live intervals*; Poletto, Sarkar, *Linear scan register
//! allocation*, 1999). Predicates, which branches and guards read, need no room.

use super::super::code::{Code, Node};
use super::pressure::{is_kept, words};

/// The instructions between which a register is alive, and its size in words.
#[derive(Clone, Copy)]
struct Life {
    first: u32,
    end: u32,
    words: u32,
}

/// No less than the most words that are alive at once.
pub(super) fn bound(code: &Code, registers: usize) -> u32 {
    let unwritten = Life {
        first: u32::MAX,
        end: 0,
        words: 0,
    };
    let mut lives = vec![unwritten; registers];
    walk(code, &code.nodes, 0, &mut lives);
    // By how much more is alive at each instruction than at the one before it.
    let mut changes = vec![0u32; code.insts().len() + 1];
    for life in lives.iter().filter(|life| life.words > 0) {
        let (begin, end) = (life.first as usize, life.end as usize);
        changes[begin] = changes[begin].wrapping_add(life.words);
        changes[end] = changes[end].wrapping_sub(life.words);
    }
    let alive = changes.iter().scan(0u32, |alive, &change| {
        *alive = alive.wrapping_add(change);
        Some(*alive)
    });
    alive.max().unwrap_or(0)
}

/// From instruction `at` on; returns the one after the last.
fn walk(code: &Code, nodes: &[Node], mut at: u32, lives: &mut [Life]) -> u32 {
    for node in nodes {
        match node {
            Node::Run(run) => {
                for at in run.clone() {
                    step(code, at, lives);
                }
                at = run.end as u32;
            }
            Node::Comment(_) => {}
            Node::If {
                then, otherwise, ..
            } => {
                at = walk(code, then, at, lives);
                at = walk(code, otherwise, at, lives);
            }
            Node::Loop { body, .. } => {
                let begin = at;
                at = walk(code, body, at, lives);
                for life in &mut *lives {
                    if life.first < begin && life.end > begin {
                        life.end = life.end.max(at);
                    }
                }
            }
        }
    }
    at
}

#[inline]
fn step(code: &Code, at: usize, lives: &mut [Life]) {
    let inst = &code.insts()[at];
    let (to, from) = code.regs_of(inst);
    let end = at as u32 + 1;
    for reg in from {
        lives[reg.id as usize].end = end;
    }
    // Under a guard a register keeps what it had, wherever that came from.
    let first = if inst.guard.is_some() { 0 } else { at as u32 };
    for (i, reg) in to.iter().enumerate() {
        let life = &mut lives[reg.id as usize];
        life.first = life.first.min(first);
        life.end = end;
        if is_kept(inst.op, i) {
            life.words = words(*reg);
        }
    }
}
