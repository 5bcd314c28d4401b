//! Comments, guards, branches and loops.

use super::Builder;
use crate::code::Node;
use crate::error::{Error, Place};
use crate::inst::{Operand, Reg};
use crate::types::PtxType;
use crate::verify;
use std::panic::Location;

impl Builder {
    /// Adds a comment of one or several lines to the text. Characters that are not ASCII are
    /// escaped.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Node::Comment(text.into()));
    }

    /// Adds instructions that run only if `cond` is `wanted`. Each is predicated, so there is no
    /// branch; use it for a few instructions. A guard may not contain guards, branches or loops:
    /// [`Builder::finish`] returns an error for them. To combine two conditions use
    /// [`Builder::and`].
    #[track_caller]
    pub fn guarded(&mut self, cond: Reg, wanted: bool, body: impl FnOnce(&mut Self)) {
        self.check_condition("guarded", cond);
        let outer = self.guard.replace((cond, wanted));
        body(self);
        self.guard = outer;
    }

    /// Records an error if the condition of a guard, a branch or a loop is invalid, or if it is
    /// inside a guard.
    #[track_caller]
    fn check_condition(&mut self, what: &'static str, cond: Reg) {
        let at = Place(Location::caller());
        let checked = match self.guard {
            None => verify::condition(what, cond, at)
                .and_then(|()| verify::own(self.number, &[cond], || what.to_owned(), at)),
            Some(_) => Err(Error::UnderGuard { at, what }),
        };
        if let Err(error) = checked {
            self.error.get_or_insert(error);
        }
    }

    fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Node> {
        self.end_run();
        self.open.push(Vec::new());
        body(self);
        self.end_run();
        self.open.pop().unwrap_or_default()
    }

    /// Runs `body` if `cond` is true.
    #[track_caller]
    pub fn when(&mut self, cond: Reg, body: impl FnOnce(&mut Self)) {
        self.when_else(cond, body, |_| ());
    }

    /// Runs `then` if `cond` is true, and `otherwise` if not.
    #[track_caller]
    pub fn when_else(
        &mut self,
        cond: Reg,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        self.check_condition("when", cond);
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.push(Node::If {
            cond,
            then,
            otherwise,
        });
    }

    /// Runs `body` once, and again as long as the predicate that it returns is true.
    #[track_caller]
    pub fn repeat_while(&mut self, body: impl FnOnce(&mut Self) -> Reg) {
        let mut again = None;
        let body = self.block(|k| again = Some(body(k)));
        if let Some(again) = again {
            self.check_condition("repeat_while", again);
            self.push(Node::Loop { body, again });
        }
    }

    /// Runs `body(i)` for `i` from `start` in steps of `step` while `i` is below `end`. The largest
    /// `i` plus `step` must fit into its type.
    #[track_caller]
    pub fn for_range<'a>(
        &mut self,
        start: impl Into<Operand<'a>>,
        end: impl Into<Operand<'a>>,
        step: impl Into<Operand<'a>>,
        body: impl FnOnce(&mut Self, Reg),
    ) {
        let i = self.value(PtxType::U32, start);
        self.count_up(i, end, step, |k| body(k, i));
    }

    /// Runs `body` and adds `step` to `i` while `i` is below `end`.
    #[track_caller]
    pub(crate) fn count_up<'a>(
        &mut self,
        i: Reg,
        end: impl Into<Operand<'a>>,
        step: impl Into<Operand<'a>>,
        body: impl FnOnce(&mut Self),
    ) {
        let (end, step) = (end.into(), step.into());
        let some = self.lt(i, end);
        self.when(some, |k| {
            k.repeat_while(|k| {
                body(k);
                k.add_assign(i, step);
                k.lt(i, end)
            });
        });
    }
}
