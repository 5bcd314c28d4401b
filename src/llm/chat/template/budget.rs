//! Limits of a template's work and memory.

use super::fault::{Fault, Result};
use std::cell::Cell;

/// The number of steps for an empty conversation. A node of the template and an element of a list take one step, and so
/// do 64 bytes of text that is read or written.
const STEPS: u64 = 100_000;

/// Further steps for each message.
const MESSAGE_STEPS: u64 = 20_000;

/// The number of bytes of all texts that a template makes of an empty conversation, which bounds its memory.
const TEXT_BYTES: u64 = 4 << 20;

/// Further bytes for each message.
const MESSAGE_TEXT_BYTES: u64 = 128 << 10;

/// How often each byte of the conversation may be copied.
const COPIES: u64 = 16;

/// The number of bytes of text that take a step.
const STEP_BYTES: usize = 64;

/// The deepest nesting of the template's nodes and macros in evaluation, which bounds the stack.
const MAX_DEPTH: usize = 160;

/// The work that a template may still do.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    depth: Cell<usize>,
    all: (u64, u64),
}

impl Budget {
    /// Returns the budget of a conversation by its number of messages and their bytes.
    pub(super) fn new(messages: usize, bytes: usize) -> Self {
        let (messages, bytes) = (messages as u64, bytes as u64);
        let steps = STEPS + MESSAGE_STEPS * messages + bytes / 4;
        let bytes = TEXT_BYTES + MESSAGE_TEXT_BYTES * messages + COPIES * bytes;
        Self {
            steps: Cell::new(steps),
            bytes: Cell::new(bytes),
            depth: Cell::new(0),
            all: (steps, bytes),
        }
    }

    /// Takes steps.
    pub(super) fn step(&self, steps: usize) -> Result<()> {
        let left = self.steps.get().checked_sub(steps as u64);
        let all = self.all.0;
        self.steps.set(left.ok_or_else(|| {
            let limit = format!("the template takes more than {all} steps");
            Fault::Limit(format!("{limit}, one for 64 bytes of text"))
        })?);
        Ok(())
    }

    /// Takes the steps of reading a text.
    pub(super) fn read(&self, bytes: usize) -> Result<()> {
        self.step(bytes / STEP_BYTES)
    }

    /// Takes the memory of a text before it is made.
    pub(super) fn write(&self, bytes: usize) -> Result<()> {
        let left = self.bytes.get().checked_sub(bytes as u64);
        let all = self.all.1;
        let limit = || Fault::Limit(format!("the template makes texts of more than {all} bytes"));
        self.bytes.set(left.ok_or_else(limit)?);
        self.read(bytes)
    }

    /// Takes the memory of repeated texts.
    pub(super) fn write_times(&self, bytes: usize, times: usize) -> Result<()> {
        self.write(bytes.saturating_mul(times))
    }

    /// Enters a node of the template, until `leave`.
    pub(super) fn enter(&self) -> Result<()> {
        self.step(1)?;
        if self.depth.get() == MAX_DEPTH {
            let limit = format!("the template nests deeper than {MAX_DEPTH} levels");
            return Err(Fault::Limit(limit));
        }
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    /// Leaves a node of the template.
    pub(super) fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}
