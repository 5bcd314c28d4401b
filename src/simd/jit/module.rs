//! WebAssembly's binary format, as far as one function needs it.

use js_sys::{Function, Object, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::JsCast;

pub(super) const I32: u8 = 0x7f;
pub(super) const V128: u8 = 0x7b;
/// The type of a block without a result.
pub(super) const BLOCK_EMPTY: u8 = 0x40;

pub(super) mod opcode {
    pub(in super::super) const LOOP: u8 = 0x03;
    pub(in super::super) const END: u8 = 0x0b;
    pub(in super::super) const BR_IF: u8 = 0x0d;
    pub(in super::super) const LOCAL_GET: u8 = 0x20;
    pub(in super::super) const LOCAL_SET: u8 = 0x21;
    pub(in super::super) const I32_LOAD: u8 = 0x28;
    pub(in super::super) const I32_CONST: u8 = 0x41;
    pub(in super::super) const I32_NE: u8 = 0x47;
    pub(in super::super) const I32_ADD: u8 = 0x6a;
}

pub(super) mod simd {
    use super::leb;

    /// The prefix byte of every vector instruction.
    const PREFIX: u8 = 0xfd;
    const CONST: u32 = 0x0c;

    /// Codes of instructions, by the names that are used here.
    macro_rules! codes {
        ($($name:ident = $code:literal;)*) => {$(
            pub(in super::super) const $name: u32 = $code;
        )*};
    }

    codes! {
        LOAD = 0x00;
        LOAD_SPLAT = 0x09;
        STORE = 0x0b;
        EQ = 0x41;
        LT = 0x43;
        GE = 0x46;
        AND = 0x4e;
        XOR = 0x51;
        BITSELECT = 0x52;
        SHL = 0xab;
        SHR_S = 0xac;
        SHR_U = 0xad;
        ADD_I32 = 0xae;
        SUB_I32 = 0xb1;
        SQRT = 0xe3;
        ADD = 0xe4;
        SUB = 0xe5;
        MUL = 0xe6;
        DIV = 0xe7;
        MIN = 0xe8;
        MAX = 0xe9;
        PMIN = 0xea;
        PMAX = 0xeb;
        RELAXED_MADD = 0x105;
        RELAXED_NMADD = 0x106;
        RELAXED_LANESELECT = 0x10b;
        RELAXED_MIN = 0x10d;
        RELAXED_MAX = 0x10e;
    }

    pub(in super::super) fn opcode(code: &mut Vec<u8>, operation: u32) {
        code.push(PREFIX);
        leb(code, operation as usize);
    }

    /// Appends a load or store at an offset in bytes from the address, at any alignment.
    pub(in super::super) fn memory(code: &mut Vec<u8>, operation: u32, offset: usize) {
        opcode(code, operation);
        code.push(0);
        leb(code, offset);
    }

    /// A vector of equal lanes.
    pub(in super::super) fn constant(code: &mut Vec<u8>, bits: u32) {
        opcode(code, CONST);
        code.extend([bits.to_le_bytes(); 4].as_flattened());
    }
}

/// Appends a whole number, in LEB128: seven bits a byte.
pub(super) fn leb(code: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        code.push(value as u8 | 0x80);
        value >>= 7;
    }
    code.push(value as u8);
}

/// Appends a signed number, in LEB128.
pub(super) fn leb_signed(code: &mut Vec<u8>, mut value: i32) {
    while !(-0x40..0x40).contains(&value) {
        code.push(value as u8 | 0x80);
        value >>= 7;
    }
    code.push(value as u8 & 0x7f);
}

/// A function of an address and without a result, on this module's own memory.
pub(super) fn instantiate(body: &[u8]) -> Option<Function> {
    let bytes = Uint8Array::from(&module(body)[..]);
    let module = WebAssembly::Module::new(&bytes).ok()?;
    let [imports, names] = [Object::new(), Object::new()];
    Reflect::set(&names, &"m".into(), &wasm_bindgen::memory()).ok()?;
    Reflect::set(&imports, &"m".into(), &names).ok()?;
    let instance = WebAssembly::Instance::new(&module, &imports).ok()?;
    let function = Reflect::get(&instance.exports(), &"f".into()).ok()?;
    function.dyn_into().ok()
}

/// A memory's kind and sizes in pages: at least none, and if it is shared at most 2^16.
const MEMORY: &[u8] = if cfg!(target_feature = "atomics") {
    &[3, 0, 0x80, 0x80, 4]
} else {
    &[0, 0]
};

fn module(body: &[u8]) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    // A type: of an i32, without a result.
    section(&mut module, 1, &[1, 0x60, 1, I32, 0]);
    // An import: m.m, a memory of any size.
    section(
        &mut module,
        2,
        &[&[1, 1, b'm', 1, b'm', 2], MEMORY].concat(),
    );
    // A function, of the first type; an export: f, the first function.
    section(&mut module, 3, &[1, 0]);
    section(&mut module, 7, &[1, 1, b'f', 0, 0]);
    let mut code = vec![1];
    leb(&mut code, body.len());
    code.extend(body);
    section(&mut module, 10, &code);
    module
}

fn section(module: &mut Vec<u8>, number: u8, content: &[u8]) {
    module.push(number);
    leb(module, content.len());
    module.extend(content);
}
