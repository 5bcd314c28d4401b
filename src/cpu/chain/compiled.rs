//! Chains that are compiled at run time, each to its own loop, in WebAssembly. A chain on many elements is compiled
//! when it runs for the second time.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use crate::cpu::chain::{Operand, Runner};
use crate::graph::fuse::Repeated;
use crate::simd::jit::{Code, Input, Loop, Trace, Value};

/// The number of elements from which a chain may be worth compiling.
const MANY: usize = 1 << 14;
/// The largest number of cached loops. When there are more, the cache is cleared.
const KEPT: usize = 64;

/// A chain's loop.
pub(super) struct Compiled(Loop);

thread_local! {
    /// Cached loops by their code; `None` for code that was seen once or that the engine refuses.
    static LOOPS: RefCell<Vec<(Code, Option<Loop>)>> = const { RefCell::new(Vec::new()) };
}

impl Compiled {
    /// The loop of a chain that is to run on `len` values.
    pub(super) fn of(runner: &Runner<'_>, len: usize) -> Option<Self> {
        if len < MANY {
            return None;
        }
        let expression = |trace: &Trace, inputs: &[Value]| traced(runner, trace, inputs);
        let code = Code::of(reads(runner), expression)?;
        LOOPS.with_borrow_mut(|loops| {
            if let Some((_, known)) = loops.iter_mut().find(|(other, _)| *other == code) {
                if known.is_none() {
                    *known = Loop::compile(&code, expression);
                }
                return known.clone().map(Self);
            }
            if loops.len() >= KEPT {
                loops.clear();
            }
            loops.push((code, None));
            None
        })
    }

    /// Computes elements from index `at` on. Returns their number.
    pub(super) fn run(&self, inputs: &[&[f32]], at: usize, out: &mut [MaybeUninit<f32>]) -> usize {
        self.0.run(inputs, at, out)
    }
}

/// Whether a chain repeats an input's only element.
fn is_single(runner: &Runner<'_>, repeat: &Repeated) -> bool {
    repeat.cycle.len == 1 && runner.inputs[repeat.input].len() == 1
}

/// Returns the elements of each input that a chain's loop reads.
fn reads(runner: &Runner<'_>) -> Vec<Input> {
    let mut reads = vec![Input::Whole; runner.inputs.len()];
    let repeats = runner.chain.repeats.iter();
    for repeat in repeats.filter(|repeat| is_single(runner, repeat)) {
        reads[repeat.input] = Input::Single;
    }
    reads
}

/// Returns the last value of a chain that reads nothing but inputs, element by element or one
/// element again and again.
fn traced(runner: &Runner<'_>, trace: &Trace, inputs: &[Value]) -> Option<Value> {
    let mut results = Vec::new();
    for step in &runner.chain.steps {
        let mut operands = Vec::new();
        for operand in &step.operands {
            operands.push(match *operand {
                Operand::Step(earlier) => results[earlier],
                Operand::Input(input) => inputs[input],
                Operand::Repeated(place) => {
                    let repeat = &runner.chain.repeats[place];
                    is_single(runner, repeat).then_some(inputs[repeat.input])?
                }
                Operand::Head => return None,
            });
        }
        results.push(trace.operation(&step.op, &operands)?);
    }
    results.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::fuse::{Chain, Step};
    use crate::ops::{Cycle, OPS, Op};
    use crate::simd::InstructionSet;
    use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

    wasm_bindgen_test_configure!(run_in_browser);

    /// The length of the test: not a whole number of turns, and more than one call.
    const LEN: usize = (1 << 16) + MANY + 37;

    /// Numbers of every kind, NaN and infinities among them; every fourth is of everyday size.
    fn values(seed: u32) -> Vec<f32> {
        let number = |i: u32| match f32::from_bits(i.wrapping_add(seed).wrapping_mul(2_654_435_761))
        {
            wild if i % 4 == 0 => wild.sin() * 8.0,
            wild => wild,
        };
        (0..LEN as u32).map(number).collect()
    }

    fn step(op: &Op, operands: &[Operand], block: usize) -> Step {
        Step {
            op: op.clone(),
            operands: operands.to_vec(),
            block,
        }
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    /// Runs a chain of two inputs and of numbers as blocks, then compiled, for the same bits. The
    /// chain's repeated operands are the numbers.
    fn compare(name: &str, steps: Vec<Step>, numbers: &[f32]) {
        let whole = [values(1), values(2)];
        let mut inputs = vec![&whole[0][..], &whole[1]];
        inputs.extend(numbers.chunks(1));
        let cycle = Cycle { inner: LEN, len: 1 };
        let repeats = (2..inputs.len()).map(|input| Repeated { input, cycle });
        let (result, blocks) = (Operand::Step(steps.len() - 1), steps.len());
        let chain = Chain {
            steps,
            result,
            repeats: repeats.collect(),
            blocks,
        };
        let (isa, inputs, chain) = (InstructionSet::best(), &inputs[..], &chain);
        let runner = Runner { isa, chain, inputs };
        let [mut expected, mut found] = [vec![0.0; LEN], vec![0.0; LEN]];
        let mut first = runner.scratch(LEN).unwrap();
        assert!(first.compiled.is_none(), "what runs once is not compiled");
        runner.run(&mut first, 0, &[], &mut expected);
        let mut second = runner.scratch(LEN).unwrap();
        assert!(second.compiled.is_some(), "{name} is compiled");
        runner.run(&mut second, 0, &[], &mut found);
        let differ = (0..LEN).find(|&i| !same(expected[i], found[i]));
        let at = differ.map(|i| (inputs[0][i], inputs[1][i], expected[i], found[i]));
        assert_eq!(at, None, "{name}");
    }

    #[wasm_bindgen_test]
    fn compiled_loops_match_blocks_bit_for_bit() {
        let operations = OPS.iter().flat_map(|row| row.samples);
        for op in operations.filter(|op| op.is_elementwise()) {
            let operands = [Operand::Input(0), Operand::Input(1)];
            let steps = vec![
                step(op, &operands[..op.inputs().len()], 0),
                step(&Op::Scale { factor: 0.7 }, &[Operand::Step(0)], 1),
                step(&Op::VecAdd, &[Operand::Step(1), Operand::Input(1)], 2),
            ];
            compare(op.name(), steps, &[]);
        }
    }

    /// Compares chains with more operations than several vectors at a time are worth.
    #[wasm_bindgen_test]
    fn long_compiled_loops_match_blocks_bit_for_bit() {
        let mut steps = vec![step(
            &Op::VecAdd,
            &[Operand::Input(0), Operand::Input(1)],
            0,
        )];
        for i in 0..20 {
            steps.push(step(&Op::Tanh, &[Operand::Step(i)], i + 1));
        }
        compare("twenty times tanh", steps, &[]);
    }

    #[wasm_bindgen_test]
    fn compiled_loops_repeat_single_elements() {
        // Each chain is another one: numbers are no part of the code.
        let cases = [
            (Op::VecAdd, [0.1, -3.0]),
            (Op::Sub, [f32::INFINITY, 0.0]),
            (Op::Mul, [-0.0, f32::NAN]),
        ];
        for (last, numbers) in cases {
            let steps = vec![
                step(&Op::Relu, &[Operand::Input(0)], 0),
                step(&Op::Mul, &[Operand::Step(0), Operand::Repeated(1)], 1),
                step(&Op::Sub, &[Operand::Repeated(0), Operand::Step(1)], 2),
                step(&last, &[Operand::Step(2), Operand::Input(1)], 3),
            ];
            compare(last.name(), steps, &numbers);
        }
    }

    #[wasm_bindgen_test]
    fn chains_that_repeat_several_elements_are_not_compiled() {
        let whole = values(1);
        let inputs = [&whole[..], &[1.0, 2.0]];
        let cycle = Cycle { inner: 1, len: 2 };
        let operands = [Operand::Input(0), Operand::Repeated(0)];
        let chain = Chain {
            steps: vec![step(&Op::VecAdd, &operands, 0)],
            result: Operand::Step(0),
            repeats: vec![Repeated { input: 1, cycle }],
            blocks: 1,
        };
        let isa = InstructionSet::best();
        let runner = Runner {
            isa,
            chain: &chain,
            inputs: &inputs,
        };
        let mut found = vec![0.0; LEN];
        for _ in 0..2 {
            let mut scratch = runner.scratch(LEN).unwrap();
            assert!(scratch.compiled.is_none());
            runner.run(&mut scratch, 0, &[], &mut found);
        }
        let odd = |i: usize| whole[i] + inputs[1][i % 2];
        assert!((0..LEN).all(|i| same(odd(i), found[i])));
    }
}
