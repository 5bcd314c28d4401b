//! Validation of operations on indices, ranks, heads and Fourier transforms.

use super::shape::{
    MAX_EXACT_INDEX, check_len_for, check_limit, check_not_empty, invalid, product, volume,
    without_rule,
};
use crate::error::Result;
use crate::ops::Op;

/// Checks the lengths of the inputs; their number must be that of the operation. Returns the length of the result.
pub(super) fn output_len(op: &Op, inputs: &[usize]) -> Result<usize> {
    let len = |index: usize| inputs.get(index).copied().unwrap_or(0);
    let name = |index: usize| op.inputs().get(index).copied().unwrap_or("input");
    let expect = |index, expected, reason| check_len_for(name(index), expected, len(index), reason);
    match *op {
        Op::GatherRows { rows, cols } => {
            check_limit("the number of rows of `table`", rows, MAX_EXACT_INDEX)?;
            expect(0, product("table", rows, cols)?, " (rows × cols)")?;
            product("y", len(1), cols)
        }
        Op::ScatterRows { rows, cols } => {
            check_limit("the number of rows of `y`", rows, MAX_EXACT_INDEX)?;
            check_limit("the number of indices", len(1), MAX_EXACT_INDEX)?;
            expect(0, product("x", len(1), cols)?, " (indices × cols)")?;
            product("y", rows, cols)
        }
        Op::Attention { ref options } => {
            options.check()?;
            let rows = |what, rows, heads| volume(what, [rows, heads, options.head_len]);
            let len = rows("queries", options.tokens, options.heads)?;
            expect(0, len, " (tokens × heads × the head's length)")?;
            let cached = " (positions × heads of keys × the head's length)";
            let cached_len = |what| rows(what, options.positions, options.kv_heads);
            expect(1, cached_len("keys")?, cached)?;
            expect(2, cached_len("values")?, cached)?;
            Ok(len)
        }
        Op::Rope { ref options } => {
            options.check()?;
            let values = volume("x", [options.tokens, options.heads, options.head_len])?;
            expect(0, values, " (tokens × heads × the head's length)")?;
            Ok(len(0))
        }
        Op::TakeAlongRows { rows, cols, k } => {
            check_limit("the length of a row of `x`", cols, MAX_EXACT_INDEX)?;
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            let len = product("indices", rows, k)?;
            expect(1, len, " (rows × k)")?;
            Ok(len)
        }
        Op::ArgmaxRows { rows, cols } => {
            check_ranking(op, [rows, cols, 1])?;
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            Ok(rows)
        }
        Op::TopKRows { rows, cols, k } => {
            check_ranking(op, [rows, cols, k])?;
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            product("indices", rows, k)
        }
        Op::SortRows { rows, cols } | Op::ArgsortRows { rows, cols } => {
            check_limit("the length of a row of `x`", cols, MAX_EXACT_INDEX)?;
            expect(0, product("x", rows, cols)?, " (rows × cols)")?;
            Ok(len(0))
        }
        Op::FftRows { rows, len: own } => {
            check_limit("the length of a row of `x`", own, MAX_EXACT_INDEX)?;
            if !own.is_power_of_two() {
                return Err(invalid("len", own, "a power of two"));
            }
            expect(0, volume("x", [rows, own, 2])?, " (rows × len × 2)")?;
            Ok(len(0))
        }
        _ => Err(without_rule(op)),
    }
}

/// Checks that the `k` largest of `cols` elements have indices that `f32` holds.
fn check_ranking(op: &Op, [rows, cols, k]: [usize; 3]) -> Result<()> {
    check_limit("the length of a row of `x`", cols, MAX_EXACT_INDEX)?;
    if rows > 0 && k > 0 {
        check_not_empty(op, cols)?;
    }
    if k <= cols || rows == 0 {
        return Ok(());
    }
    let requirement = format!("at most `cols` ({cols})");
    Err(invalid("k", k, requirement))
}
