//! Sorting by comparisons that may fail. The sorting of Rust's standard library panics if comparisons contradict each
//! other, as they do with NaN and after errors.

use super::budget::Budget;
use super::fault::Result;
use super::value::Value;
use std::cmp::Ordering;

/// Sorts elements by their keys. Elements with equal keys stay in their order.
pub(super) fn sort<T>(
    elements: Vec<(Value, T)>,
    reverse: bool,
    budget: &Budget,
) -> Result<Vec<(Value, T)>> {
    let mut runs: Vec<Vec<_>> = elements.into_iter().map(|element| vec![element]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::new();
        let mut pairs = runs.into_iter();
        while let Some(left) = pairs.next() {
            merged.push(match pairs.next() {
                Some(right) => merge(left, right, reverse, budget)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge<T>(
    left: Vec<(Value, T)>,
    right: Vec<(Value, T)>,
    reverse: bool,
    budget: &Budget,
) -> Result<Vec<(Value, T)>> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let wanted = if reverse {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let takes_right = order(b, a, budget)? == Some(wanted);
        merged.extend(if takes_right {
            right.next()
        } else {
            left.next()
        });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

/// Returns the order of two keys; `None` if they are equal, because equal keys need not be comparable.
fn order(a: &Value, b: &Value, budget: &Budget) -> Result<Option<Ordering>> {
    budget.step(1)?;
    if a.equals(b, budget)? {
        Ok(None)
    } else {
        a.order(b, budget)
    }
}
