//! Every file of `shaders/`, read by other tools than the composer of the library: the compiler of WESL and naga.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};
use relampago_coefficients::SHADER_CONSTANTS;
use table::{APART, Instance, TEMPLATES};
use wesl::syntax::TranslationUnit;
use wesl::{CompileOptions, Feature, ModulePath, VirtualResolver, Wesl};

#[path = "../../src/gpu/kernels/table.rs"]
#[allow(dead_code)] // Facts that only Rust has to know.
mod table;

/// The files by their paths in `shaders/` without the extension, and their texts.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shaders");
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of shaders") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text");
            let name = path.with_extension("");
            let name = name.strip_prefix(&root).expect("a path in the folder");
            files.push((name.to_string_lossy().replace('\\', "/"), text));
        }
    }
    files.sort();
    files
}

fn module_path(path: &str) -> ModulePath {
    let path = format!("package::{}", path.replace('/', "::"));
    path.parse().expect("a path of a module")
}

/// The constants that the host gives, as a module.
fn constants(instance: Option<&Instance>) -> String {
    let coefficients = SHADER_CONSTANTS.iter();
    let coefficients = coefficients.map(|(name, values)| match values {
        [one] => format!("const {name} = {one:?};\n"),
        many => format!("const {name} = array({});\n", list(many)),
    });
    let sizes = instance
        .map_or(&[][..], |instance| instance.constants)
        .iter();
    let sizes = sizes.map(|(name, value)| format!("const {name} = {value}u;\n"));
    coefficients.chain(sizes).collect()
}

fn list(values: &[f32]) -> String {
    let values: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
    values.join(", ")
}

/// What the compiler of WESL makes of a file. `kernel` is the file that `package::kernel` is.
fn compiled(
    files: &[(String, String)],
    [root, kernel]: [&str; 2],
    features: &[&str],
    instance: Option<&Instance>,
) -> Result<String, String> {
    let mut resolver = VirtualResolver::new();
    for (path, text) in files {
        resolver.add_module(module_path(path), text.as_str().into());
        if path == kernel {
            resolver.add_module(module_path("kernel"), text.as_str().into());
        }
    }
    let constants = constants(instance);
    resolver.add_module("constants".parse().expect("a package"), constants.into());
    let mut compiler = Wesl::new("").set_custom_resolver(resolver);
    compiler.set_options(CompileOptions {
        keep_root: true,
        ..CompileOptions::default()
    });
    compiler.set_missing_feature_behavior(Feature::Disable);
    for feature in features {
        compiler.set_feature(feature, true);
    }
    let compiled = compiler.compile(&module_path(root));
    compiled
        .map(|result| result.to_string())
        .map_err(|error| error.to_string())
}

/// Why naga would refuse a text.
fn refused(source: &str) -> Option<String> {
    let module = match naga::front::wgsl::parse_str(source) {
        Ok(module) => module,
        Err(error) => return Some(error.emit_to_string(source)),
    };
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    validator
        .subgroup_stages(ShaderStages::COMPUTE)
        .subgroup_operations(SubgroupOperationSet::all());
    let result = validator.validate(&module);
    result.err().map(|error| error.emit_to_string(source))
}

#[test]
fn every_file_is_valid_wesl() {
    for (path, text) in files() {
        if let Err(error) = text.parse::<TranslationUnit>() {
            panic!("shaders/{path}.wgsl: {error}");
        }
    }
}

/// The features with which a library is valid by itself. Some are for kernels on vectors, or on single values, only.
fn variants(path: &str) -> &'static [&'static [&'static str]] {
    match path {
        "lib/reduce" => &[&["vec4"]],
        "lib/hooks" | "lib/math" | "lib/nan" | "lib/real" | "ops/binary" | "ops/unary" => {
            &[&[], &["vec4"]]
        }
        "lib/convolve2d" => &[&[], &["vec4", "vectors"]],
        "lib/fold" => &[&[], &["subgroups"], &["shuffles"]],
        "lib/matmul" => &[
            &[],
            &["im2col"],
            &["vec4", "vectors"],
            &["vec4", "vectors", "pointwise"],
        ],
        _ => &[&[]],
    }
}

/// Libraries and elementwise operations by themselves: what they import from a kernel `shaders/kernel.wgsl` declares.
#[test]
fn libraries_are_valid_by_themselves() {
    let files = files();
    let sizes = Instance {
        name: "",
        features: &[],
        constants: &[("GROUP", 64), ("ROWS", 4)],
    };
    let is_kernel = |path: &str| path.starts_with("kernels/") || path.starts_with("steps/");
    for (path, _) in files.iter().filter(|(path, _)| !is_kernel(path)) {
        for &features in variants(path) {
            let text = compiled(&files, [path, "kernel"], features, Some(&sizes));
            let text = text.unwrap_or_else(|error| panic!("shaders/{path}.wgsl: {error}"));
            if let Some(error) = refused(&text) {
                panic!("shaders/{path}.wgsl with {features:?}: {error}");
            }
        }
    }
}

/// Kernels in all variants, as they would be composed by WESL's compiler.
#[test]
fn kernels_are_valid_in_every_variant() {
    let files = files();
    let templates = TEMPLATES.iter().flat_map(|template| {
        let path = format!("kernels/{}", template.file);
        template
            .instances
            .iter()
            .map(move |instance| (path.clone(), instance))
    });
    let apart = APART
        .iter()
        .map(|apart| (apart.file.to_owned(), &apart.instance));
    // WESL's compiler knows neither naga's nor Chromium's matrices of subgroups, though it parses them.
    let known = |(path, _): &(String, &Instance)| path != "kernels/matmul_halves";
    let mut checked = 0;
    for (path, instance) in templates.chain(apart).filter(known) {
        let name = instance.name;
        let text = compiled(&files, ["kernel", &path], instance.features, Some(instance));
        let text = text.unwrap_or_else(|error| panic!("shaders/{path}.wgsl as {name}: {error}"));
        if let Some(error) = refused(&text) {
            panic!("shaders/{path}.wgsl as {name}: {error}");
        }
        checked += 1;
    }
    assert!(checked > 60, "{checked} kernels");
}
