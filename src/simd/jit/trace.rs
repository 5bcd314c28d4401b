//! An instruction set whose instructions write code instead of computing: a function that is written
//! for any instruction set, called with this one, gives its own code.

use std::cell::RefCell;

use super::super::isa::Isa;
use super::module::{BLOCK_EMPTY, I32, V128, leb, leb_signed, opcode as plain, simd};
use super::{Input, VECTOR};

/// Vectors in the code, as many as a turn takes: the number of the first one's local variable, which
/// the others' follow, or with [`SAME`] that of all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value(u32);

const SAME: u32 = 1 << 31;

impl Value {
    fn of(self, vector: usize) -> u32 {
        if self.0 & SAME == 0 {
            self.0 + vector as u32
        } else {
            self.0 ^ SAME
        }
    }
}

/// Code as it is written.
pub(crate) struct Trace {
    state: RefCell<State>,
}

struct State {
    /// The code before the loop: constants and inputs of one element.
    prologue: Vec<u8>,
    /// The code of the loop.
    code: Vec<u8>,
    constants: Vec<(u32, Value)>,
    /// The number of vectors in a turn. Each operation is applied to all of them before the next
    /// operation: a chain on one vector after the other has too little instruction-level
    /// parallelism.
    vectors: usize,
    /// The first local variable that is not in use yet.
    next: u32,
    operations: usize,
}

/// A function's body, with its local variables.
pub(super) struct Traced {
    pub(super) code: Vec<u8>,
    /// The number of operations in the loop.
    pub(super) operations: usize,
}

/// Longer code takes longer to compile than it spares.
const MAX_CODE: usize = 1 << 15;
/// The function's parameter: the address of its arguments.
const ARGUMENTS: u32 = 0;
/// The local variables with the address of the next results, and of their end.
const OUT: u32 = 1;
const END: u32 = 2;
/// The local variables with the addresses of the inputs' next elements, from here on.
const INPUTS: u32 = 3;

/// Returns the body of a function that computes an expression of these inputs, `vectors` vectors a
/// turn.
pub(super) fn body(
    inputs: &[Input],
    vectors: usize,
    expression: impl Fn(&Trace, &[Value]) -> Option<Value>,
) -> Option<Traced> {
    let first = INPUTS + inputs.len() as u32;
    let state = State {
        prologue: Vec::new(),
        code: Vec::new(),
        constants: Vec::new(),
        vectors,
        next: first,
        operations: 0,
    };
    let state = RefCell::new(state);
    let trace = Trace { state };
    let mut values = Vec::new();
    for (address, input) in (INPUTS..).zip(inputs) {
        values.push(match input {
            Input::Whole => trace.load(address),
            Input::Single => trace.load_single(address),
        });
    }
    let result = expression(&trace, &values)?;
    trace.store(OUT, result);
    let State {
        prologue,
        code,
        next,
        operations,
        ..
    } = trace.state.into_inner();
    if code.len() > MAX_CODE {
        return None;
    }
    let mut body = vec![2];
    locals(&mut body, (first - 1) as usize, I32);
    locals(&mut body, (next - first) as usize, V128);
    for place in OUT..first {
        local(&mut body, plain::LOCAL_GET, ARGUMENTS);
        body.push(plain::I32_LOAD);
        // Of addresses, which lie one after the other.
        body.push(2);
        leb(&mut body, 4 * (place - OUT) as usize);
        local(&mut body, plain::LOCAL_SET, place);
    }
    body.extend(prologue);
    body.extend([plain::LOOP, BLOCK_EMPTY]);
    body.extend(code);
    let whole = (INPUTS..)
        .zip(inputs)
        .filter(|(_, input)| **input == Input::Whole);
    for place in std::iter::once(OUT).chain(whole.map(|(place, _)| place)) {
        local(&mut body, plain::LOCAL_GET, place);
        body.push(plain::I32_CONST);
        leb_signed(&mut body, (vectors * VECTOR) as i32);
        body.push(plain::I32_ADD);
        local(&mut body, plain::LOCAL_SET, place);
    }
    local(&mut body, plain::LOCAL_GET, OUT);
    local(&mut body, plain::LOCAL_GET, END);
    body.extend([plain::I32_NE, plain::BR_IF, 0, plain::END, plain::END]);
    Some(Traced {
        code: body,
        operations,
    })
}

fn locals(code: &mut Vec<u8>, count: usize, of: u8) {
    leb(code, count);
    code.push(of);
}

fn local(code: &mut Vec<u8>, operation: u8, place: u32) {
    code.push(operation);
    leb(code, place as usize);
}

impl State {
    /// Returns variables for the values that `write` computes, vector by vector.
    fn each(&mut self, write: impl Fn(&mut Vec<u8>, usize)) -> Value {
        let first = self.next;
        for vector in 0..self.vectors {
            write(&mut self.code, vector);
            local(&mut self.code, plain::LOCAL_SET, self.next);
            self.next += 1;
        }
        self.operations += 1;
        Value(first)
    }

    /// Returns a variable with the value that `write` computes before the loop; it is the same for all vectors.
    fn once(&mut self, write: impl Fn(&mut Vec<u8>)) -> Value {
        let variable = self.next;
        self.next += 1;
        write(&mut self.prologue);
        local(&mut self.prologue, plain::LOCAL_SET, variable);
        Value(variable | SAME)
    }
}

impl Trace {
    fn load(&self, address: u32) -> Value {
        self.state.borrow_mut().each(|code, vector| {
            local(code, plain::LOCAL_GET, address);
            simd::memory(code, simd::LOAD, vector * VECTOR);
        })
    }

    /// Loads one element into all lanes, before the loop.
    fn load_single(&self, address: u32) -> Value {
        self.state.borrow_mut().once(|prologue| {
            local(prologue, plain::LOCAL_GET, address);
            simd::memory(prologue, simd::LOAD_SPLAT, 0);
        })
    }

    fn store(&self, address: u32, value: Value) {
        let state = &mut *self.state.borrow_mut();
        for vector in 0..state.vectors {
            local(&mut state.code, plain::LOCAL_GET, address);
            local(&mut state.code, plain::LOCAL_GET, value.of(vector));
            simd::memory(&mut state.code, simd::STORE, vector * VECTOR);
        }
    }

    /// Vectors of equal lanes; each is made once.
    fn constant(&self, bits: u32) -> Value {
        let mut state = self.state.borrow_mut();
        if let Some(known) = state.constants.iter().find(|known| known.0 == bits) {
            return known.1;
        }
        let value = state.once(|prologue| simd::constant(prologue, bits));
        state.constants.push((bits, value));
        value
    }

    fn instruction(&self, operation: u32, operands: &[Value]) -> Value {
        self.state.borrow_mut().each(|code, vector| {
            for operand in operands {
                local(code, plain::LOCAL_GET, operand.of(vector));
            }
            simd::opcode(code, operation);
        })
    }

    fn shift(&self, operation: u32, x: Value, count: u32) -> Value {
        self.state.borrow_mut().each(|code, vector| {
            local(code, plain::LOCAL_GET, x.of(vector));
            code.push(plain::I32_CONST);
            leb_signed(code, count as i32);
            simd::opcode(code, operation);
        })
    }
}

/// The instruction set of a [`Trace`].
#[derive(Clone, Copy)]
pub(super) struct Tracer<'a>(pub(super) &'a Trace);

/// Methods that are one instruction each.
macro_rules! instructions {
    ($(fn $name:ident($($arg:ident),*) = $code:ident($($operand:ident),*);)*) => {$(
        fn $name(self, $($arg: Value),*) -> Value {
            self.0.instruction(simd::$code, &[$($operand),*])
        }
    )*};
}

/// Gives the results of [`super::super::isa::wasm::Simd128`], bit by bit: its instructions.
impl Isa for Tracer<'_> {
    type F32 = Value;
    type Bits = Value;
    type Mask = Value;
    const TILE_ROWS: usize = 1;
    const BROADCASTS_ROWS: bool = false;
    const FUSED: bool = cfg!(relampago_relaxed);
    const LANES: usize = 4;

    instructions! {
        fn add(a, b) = ADD(a, b);
        fn sub(a, b) = SUB(a, b);
        fn mul(a, b) = MUL(a, b);
        fn div(a, b) = DIV(a, b);
        fn sqrt(x) = SQRT(x);
        fn max(a, b) = MAX(a, b);
        fn min(a, b) = MIN(a, b);
        fn lt(a, b) = LT(a, b);
        fn ge(a, b) = GE(a, b);
        fn eq(a, b) = EQ(a, b);
        fn add_bits(a, b) = ADD_I32(a, b);
        fn sub_bits(a, b) = SUB_I32(a, b);
        fn and_bits(a, b) = AND(a, b);
        fn xor_bits(a, b) = XOR(a, b);
    }

    fn mul_add(self, a: Value, b: Value, c: Value) -> Value {
        if Self::FUSED {
            self.0.instruction(simd::RELAXED_MADD, &[a, b, c])
        } else {
            self.add(self.mul(a, b), c)
        }
    }

    fn neg_mul_add(self, a: Value, b: Value, c: Value) -> Value {
        if Self::FUSED {
            self.0.instruction(simd::RELAXED_NMADD, &[a, b, c])
        } else {
            self.sub(c, self.mul(a, b))
        }
    }

    fn at_least(self, x: Value, bound: Value) -> Value {
        if Self::FUSED {
            self.0.instruction(simd::RELAXED_MAX, &[bound, x])
        } else {
            self.0.instruction(simd::PMAX, &[x, bound])
        }
    }

    fn at_most(self, x: Value, bound: Value) -> Value {
        if Self::FUSED {
            self.0.instruction(simd::RELAXED_MIN, &[bound, x])
        } else {
            self.0.instruction(simd::PMIN, &[x, bound])
        }
    }

    fn select(self, mask: Value, a: Value, b: Value) -> Value {
        let instruction = if Self::FUSED {
            simd::RELAXED_LANESELECT
        } else {
            simd::BITSELECT
        };
        self.0.instruction(instruction, &[a, b, mask])
    }

    fn splat(self, value: f32) -> Value {
        self.0.constant(value.to_bits())
    }

    fn splat_bits(self, value: i32) -> Value {
        self.0.constant(value as u32)
    }

    fn to_bits(self, x: Value) -> Value {
        x
    }

    fn reinterpret(self, x: Value) -> Value {
        x
    }

    fn shl_bits(self, x: Value, count: u32) -> Value {
        self.0.shift(simd::SHL, x, count)
    }

    fn shr_bits(self, x: Value, count: u32) -> Value {
        self.0.shift(simd::SHR_U, x, count)
    }

    fn shl_exponent(self, x: Value) -> Value {
        self.0.shift(simd::SHL, x, 23)
    }

    fn shr_exponent(self, x: Value) -> Value {
        self.0.shift(simd::SHR_S, x, 23)
    }

    fn half_bits(self, x: Value) -> Value {
        self.0.shift(simd::SHR_S, x, 1)
    }

    /// The values as they are now: functions of numbers load nothing but constants.
    unsafe fn load_ptr(self, from: *const f32) -> Value {
        // SAFETY: the caller says that it is readable.
        self.splat(unsafe { from.read_unaligned() })
    }

    /// Functions of numbers store nothing.
    unsafe fn store_ptr(self, _: Value, _: *mut f32) {}
}
