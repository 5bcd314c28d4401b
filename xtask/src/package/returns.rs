//! Gives exports that return one reference a second result.
//!
//! The compiler of V8 puts a call of an export into the code of its caller when the export has at most one result.
//! Node 20 (V8 11.3) ends the process where such a caller loses its compiled code during the call and the result is
//! a reference. A call of an export with two results stays a call.

use anyhow::{Result, ensure};
use walrus::{ExportId, ExportItem, FunctionBuilder, FunctionId, Module, RefType, ValType};

const REFERENCE: [ValType; 1] = [ValType::Ref(RefType::EXTERNREF)];

/// Returns the script, which takes the first result of each export that was changed.
pub(super) fn add_results(script: &str, module: &mut Module) -> Result<String> {
    let mut script = script.to_owned();
    for (export, function) in alone(module) {
        let name = module.exports.get(export).name.clone();
        let (call, first) = (
            format!("const ret = wasm.{name}("),
            format!("const [ret] = wasm.{name}("),
        );
        let found = script.matches(&call).count();
        ensure!(
            found == 1,
            "wasm-bindgen's script has {found} of {call:?}, not 1"
        );
        script = script.replace(&call, &first);
        module.exports.get_mut(export).item = with_second_result(function, module).into();
    }
    Ok(script)
}

/// The exported functions whose result is one reference.
fn alone(module: &Module) -> Vec<(ExportId, FunctionId)> {
    let functions = module
        .exports
        .iter()
        .filter_map(|export| match export.item {
            ExportItem::Function(function) => Some((export.id(), function)),
            _ => None,
        });
    let returns_reference = |function: FunctionId| {
        let ty = module.funcs.get(function).ty();
        module.types.get(ty).results() == REFERENCE
    };
    functions
        .filter(|&(_, function)| returns_reference(function))
        .collect()
}

/// Adds a function that calls another one and returns its result and a zero.
fn with_second_result(function: FunctionId, module: &mut Module) -> FunctionId {
    let ty = module.funcs.get(function).ty();
    let parameters = module.types.get(ty).params().to_vec();
    let results = [REFERENCE[0], ValType::I32];
    let mut builder = FunctionBuilder::new(&mut module.types, &parameters, &results);
    let locals = parameters.iter().map(|&ty| module.locals.add(ty));
    let locals: Vec<_> = locals.collect();
    let mut body = builder.func_body();
    for &local in &locals {
        body.local_get(local);
    }
    body.call(function).i32_const(0);
    builder.finish(locals, &mut module.funcs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module_with(name: &str, results: &[ValType]) -> Module {
        let mut module = Module::default();
        let mut builder = FunctionBuilder::new(&mut module.types, &[ValType::I32], results);
        builder.func_body().unreachable();
        let parameter = module.locals.add(ValType::I32);
        let function = builder.finish(vec![parameter], &mut module.funcs);
        module.exports.add(name, function);
        module
    }

    #[test]
    fn a_reference_gets_a_second_result() {
        let mut module = module_with("buffer_read", &REFERENCE);
        let script = "const ret = wasm.buffer_read(this.__wbg_ptr);";
        let script = add_results(script, &mut module).unwrap();
        assert_eq!(script, "const [ret] = wasm.buffer_read(this.__wbg_ptr);");
        assert_eq!(alone(&module), []);
        assert!(add_results("another script", &mut module_with("a", &REFERENCE)).is_err());
    }

    #[test]
    fn other_results_stay() {
        let mut module = module_with("buffer_length", &[ValType::I32]);
        let script = "const ret = wasm.buffer_length(this.__wbg_ptr);";
        assert_eq!(add_results(script, &mut module).unwrap(), script);
    }
}
