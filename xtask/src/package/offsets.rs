//! Folds constant parts of addresses into loads of repeated values, where they cost neither a byte nor an instruction:
//! LLVM leaves them to wasm-opt, which does so for all loads but these. A product's tile has five of them.

use walrus::ir::{
    BinaryOp, Binop, Const, Instr, InstrLocId, InstrSeq, LoadSimdKind, Value, VisitorMut,
};
use walrus::{Module, ir};

/// The lowest address in use, as given to wasm-opt: an address from here on cannot be a sum that
/// wrapped around, if the added offset is smaller.
const LOWEST: u64 = 1024;

pub(super) fn fold(module: &mut Module) {
    for (_, function) in module.funcs.iter_local_mut() {
        let start = function.entry_block();
        ir::dfs_pre_order_mut(&mut Folding, function, start);
    }
}

struct Folding;

impl VisitorMut for Folding {
    fn start_instr_seq_mut(&mut self, sequence: &mut InstrSeq) {
        let mut folded: Vec<(Instr, InstrLocId)> = Vec::with_capacity(sequence.instrs.len());
        for (mut instruction, location) in sequence.instrs.drain(..) {
            if let Some(offset) = repeated(&mut instruction)
                && let [.., (constant, _), (sum, _)] = &folded[..]
                && let Some(more) = added([constant, sum])
                && *offset + more < LOWEST
            {
                *offset += more;
                folded.truncate(folded.len() - 2);
            }
            folded.push((instruction, location));
        }
        sequence.instrs = folded;
    }
}

/// Returns the offset of an instruction that loads and repeats a value.
fn repeated(instruction: &mut Instr) -> Option<&mut u64> {
    use LoadSimdKind::{Splat8, Splat16, Splat32, Splat64};
    match instruction {
        Instr::LoadSimd(load) => {
            let repeats = matches!(load.kind, Splat8 | Splat16 | Splat32 | Splat64);
            repeats.then_some(&mut load.arg.offset)
        }
        _ => None,
    }
}

/// Returns the constant that two instructions add to a number.
fn added(instructions: [&Instr; 2]) -> Option<u64> {
    match instructions {
        [
            Instr::Const(Const {
                value: Value::I32(value),
            }),
            Instr::Binop(Binop {
                op: BinaryOp::I32Add,
            }),
        ] => u64::try_from(*value).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walrus::ir::MemArg;
    use walrus::{FunctionBuilder, ValType};

    /// Returns the new offset of a load, and the number of instructions that remain, if the load
    /// repeats a value at this distance from an address.
    fn folded(sum: BinaryOp, distance: i32, offset: u64) -> (u64, usize) {
        let mut module = Module::default();
        let memory = module.memories.add_local(false, false, 1, None, None);
        let mut function = FunctionBuilder::new(&mut module.types, &[ValType::I32], &[]);
        let address = module.locals.add(ValType::I32);
        let from = MemArg { align: 4, offset };
        let body = &mut function.func_body();
        body.local_get(address).i32_const(distance).binop(sum);
        body.load_simd(memory, LoadSimdKind::Splat32, from).drop();
        let function = function.finish(vec![address], &mut module.funcs);
        fold(&mut module);
        let function = module.funcs.get_mut(function).kind.unwrap_local_mut();
        let entry = function.entry_block();
        let instructions = &mut function.block_mut(entry).instrs;
        let left = instructions.len();
        let mut offsets = instructions
            .iter_mut()
            .filter_map(|(i, _)| repeated(i).copied());
        (offsets.next().unwrap(), left)
    }

    #[test]
    fn small_distances_become_offsets() {
        use BinaryOp::{I32Add, I32Sub};
        assert_eq!(folded(I32Add, 16, 4), (20, 3));
        assert_eq!(folded(I32Add, 1000, 100), (100, 5));
        assert_eq!(folded(I32Add, -4, 8), (8, 5));
        assert_eq!(folded(I32Sub, 4, 0), (0, 5));
    }
}
