//! Every kernel and every elementwise function, read and validated as a driver would.

#[path = "compose/mod.rs"]
mod compose;
#[path = "table.rs"]
mod table;

use std::collections::BTreeMap;

use wgpu::naga::front::wgsl::parse_str;
use wgpu::naga::valid::{
    Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};
use wgpu::naga::{AddressSpace, Module, StorageAccess, TypeInner};

use super::{ALL, FUNCTIONS, Function, Kernel, Text};
use crate::gpu::fused::FusedCode;
use crate::gpu::shaders;
use crate::ops::custom::words;

/// The module of a text, unless a driver would refuse it.
fn validated(name: &str, source: &str) -> Module {
    let refused = |message: String| -> ! { panic!("{name}: {message}") };
    let module = parse_str(source).unwrap_or_else(|error| refused(error.emit_to_string(source)));
    // What is beyond WGSL's core is for native kernels, whose devices are asked for it.
    let beyond = Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::COOPERATIVE_MATRIX
        | Capabilities::SUBGROUP;
    let mut validator = Validator::new(ValidationFlags::all(), beyond);
    validator
        .subgroup_stages(ShaderStages::COMPUTE)
        .subgroup_operations(SubgroupOperationSet::all());
    if let Err(error) = validator.validate(&module) {
        refused(error.emit_to_string(source));
    }
    module
}

/// Uniform parameters, inputs, and one output, bound in this order.
fn binds_as_agreed(kernel: &Kernel, module: &Module) {
    let spaces = module.global_variables.iter().filter_map(|(_, variable)| {
        let index = variable.binding.as_ref()?.binding;
        Some((index as usize, variable.space))
    });
    let spaces: BTreeMap<usize, AddressSpace> = spaces.collect();
    let (name, last) = (kernel.name, kernel.inputs + 1);
    assert!(spaces.keys().copied().eq(0..=last), "{name}: {spaces:?}");
    for (index, space) in spaces {
        let expected = match index {
            0 => AddressSpace::Uniform,
            _ if index == kernel.inputs && kernel.uniforms == 1 => AddressSpace::Uniform,
            _ => AddressSpace::Storage {
                access: if index == last {
                    StorageAccess::LOAD | StorageAccess::STORE
                } else {
                    StorageAccess::LOAD
                },
            },
        };
        assert_eq!(space, expected, "{name}: binding {index}");
    }
}

#[test]
fn kernels_are_valid_and_bind_as_agreed() {
    for kernel in ALL {
        let source = FusedCode::new(kernel).source(kernel);
        binds_as_agreed(kernel, &validated(kernel.name, &source));
    }
}

/// The layouts of pipelines promise 16 bytes of each array.
fn elements_are_vectors_at_most(name: &str, module: &Module) {
    let variables = module.global_variables.iter();
    for (_, variable) in variables.filter(|(_, variable)| variable.binding.is_some()) {
        if let TypeInner::Array { stride, .. } = module.types[variable.ty].inner {
            assert!(
                stride <= 16,
                "{name}: {:?} of {stride} bytes",
                variable.name
            );
        }
    }
}

#[test]
fn every_name_has_a_valid_text() {
    let mut names: Vec<&str> = shaders::names().collect();
    for name in &names {
        let source = shaders::source(name).expect("a listed name has a text");
        let module = validated(name, &source);
        assert_eq!(module.entry_points.len(), 1, "{name}");
        elements_are_vectors_at_most(name, &module);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(shaders::source("nothing"), None);
}

/// A function, called on single values or on vectors.
fn called(function: &Function, types: &str) -> String {
    let text = function.text.get().replace('#', "");
    let name = text[3..].split('(').next().unwrap_or_default();
    let arguments = if text.contains("b: real") {
        "y[0], y[1]"
    } else {
        "y[0]"
    };
    let library: String = function.items.iter().copied().map(Text::get).collect();
    format!(
        "{types}{library}{text}
struct Params {{ a: f32, b: f32 }}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> y: array<real>;
@compute @workgroup_size(1) fn main() {{ y[0] = {name}({arguments}); }}
"
    )
}

#[test]
fn functions_are_valid_of_numbers_and_of_vectors() {
    for function in FUNCTIONS {
        for (real, word, integer, truth) in [
            ("f32", "u32", "i32", "bool"),
            ("vec4f", "vec4u", "vec4i", "vec4<bool>"),
        ] {
            let types = format!(
                "alias real = {real}; alias word = {word}; alias integer = {integer}; \
                 alias truth = {truth};\n"
            );
            validated(function.name, &called(function, &types));
        }
    }
}
