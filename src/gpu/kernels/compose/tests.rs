//! Each rule of the composer, on small files.

use super::library::Variant;
use super::{Library, Result, Target, inline, own_text, tables};
use relampago_coefficients::SHADER_CONSTANTS;

const NONE: Variant<'_> = Variant {
    features: &[],
    constants: &[],
};

/// A library of files by path and text.
fn library(files: &[(&str, &str)]) -> Result<Library> {
    let owned = files
        .iter()
        .map(|&(file, text)| (file.to_owned(), text.to_owned()));
    Library::new(
        &owned.collect::<Vec<_>>(),
        &[("HALF", &[0.5]), ("PAIR", &[1.0, 2.0])],
    )
}

/// The names in other files that a file's declarations need.
fn needed(files: &[(&str, &str)], path: &str, variant: Variant<'_>) -> Result<Vec<String>> {
    let library = library(files)?;
    let module = library.module(path)?;
    let own = module.with(variant.features);
    let needed = library.needed(module, &own, variant)?;
    Ok(needed.keys().map(|name| (*name).to_owned()).collect())
}

/// The error of files, as it is shown.
fn error(files: &[(&str, &str)]) -> String {
    let needed = needed(files, "kernels/k", NONE);
    needed.expect_err("a mistake").to_string()
}

/// The text of a file's declarations with features.
fn text(source: &str, features: &[&str]) -> String {
    let library = library(&[("f.wgsl", source)]).expect("a valid file");
    let module = library.module("f").expect("the only file");
    let own = module.with(features).into_iter();
    own.map(|declaration| declaration.text.as_str()).collect()
}

const MATH: (&str, &str) = (
    "lib/math.wgsl",
    "fn double(x: f32) -> f32 {\n    return twice * x;\n}\nconst twice = 2.0;\nfn unused() {\n}\n",
);

#[test]
fn imports_bring_declarations_and_what_they_need() {
    let kernel = "import package::lib::math::double;\nfn main() {\n    double(1.0);\n}\n";
    let needed = needed(&[MATH, ("kernels/k.wgsl", kernel)], "kernels/k", NONE);
    assert_eq!(
        needed.as_deref(),
        Ok(&["double".to_owned(), "twice".to_owned()][..])
    );
}

#[test]
fn lists_of_imports_may_have_several_lines() {
    let kernel = "import package::lib::math::{\n    double,\n    twice,\n};\nfn main() {\n    double(twice);\n}\n";
    let needed = needed(&[MATH, ("kernels/k.wgsl", kernel)], "kernels/k", NONE);
    assert_eq!(needed.map(|names| names.len()), Ok(2));
}

#[test]
fn members_of_structures_are_no_references() {
    let kernel = "import package::lib::math::double;\nfn main() {\n    x.double;\n    x.y.double = 1.0;\n}\n";
    let message = error(&[MATH, ("kernels/k.wgsl", kernel)]);
    assert!(
        message.ends_with("`double` is imported, but not used"),
        "{message}"
    );
}

#[test]
fn cyclic_imports_end() {
    let even = "import package::lib::odd::odd;\nfn even() {\n    odd();\n}\n";
    let odd = "import package::lib::even::even;\nfn odd() {\n    even();\n}\n";
    let kernel = "import package::lib::even::even;\nfn main() {\n    even();\n}\n";
    let files = [
        ("lib/even.wgsl", even),
        ("lib/odd.wgsl", odd),
        ("kernels/k.wgsl", kernel),
    ];
    let needed = needed(&files, "kernels/k", NONE);
    assert_eq!(
        needed.as_deref(),
        Ok(&["even".to_owned(), "odd".to_owned()][..])
    );
}

#[test]
fn libraries_import_from_the_kernel_that_is_composed() {
    let stub = ("kernel.wgsl", "const LEN = 1u;\n");
    let lib = (
        "lib/l.wgsl",
        "import package::kernel::LEN;\nfn len() -> u32 {\n    return LEN;\n}\n",
    );
    let with = "import package::lib::l::len;\nconst LEN = 2u;\nfn main() {\n    len();\n}\n";
    let found = needed(&[stub, lib, ("kernels/k.wgsl", with)], "kernels/k", NONE);
    assert_eq!(found.as_deref(), Ok(&["len".to_owned()][..]));
    let without = with.replace("const LEN = 2u;\n", "");
    assert_eq!(
        error(&[stub, lib, ("kernels/k.wgsl", &without)]),
        "shaders/lib/l.wgsl:1: shaders/kernels/k.wgsl with [] has no `LEN` to import here"
    );
}

#[test]
fn constants_come_from_the_host_and_first_from_the_variant() -> Result<()> {
    let kernel = "import constants::{HALF, PAIR, SIZE};\nfn main() {\n    HALF + PAIR[SIZE];\n}\n";
    let library = library(&[("kernels/k.wgsl", kernel)])?;
    let module = library.module("kernels/k")?;
    let constants = &[("SIZE", 3), ("HALF", 4)];
    let variant = Variant { constants, ..NONE };
    let needed = library.needed(module, &module.with(&[]), variant)?;
    let texts: String = needed.into_values().map(|(_, text)| text).collect();
    assert_eq!(
        texts,
        "const HALF = 4u;\nconst PAIR = array(1.0,2.0);\nconst SIZE = 3u;\n"
    );
    let error = library
        .needed(module, &module.with(&[]), NONE)
        .expect_err("no size");
    assert_eq!((error.file.as_str(), error.line), ("kernels/k.wgsl", 1));
    Ok(())
}

#[test]
fn errors_name_file_and_line() {
    let main = "fn main() {\n    x();\n}\n";
    for (kernel, expected) in [
        (
            format!("\nimport package::lib::none::x;\n{main}"),
            "2: shaders/lib/none.wgsl has no `x`",
        ),
        (
            format!("import package::lib::math::x;\n{main}"),
            "1: shaders/lib/math.wgsl has no `x`",
        ),
        (
            format!("import package::lib::math::double;\n{main}"),
            "1: `double` is imported, but not used",
        ),
        (
            format!("@if(vectos) const x = 1;\n{main}"),
            "1: `vectos` is no feature of src/gpu/kernels/table.rs",
        ),
        (
            format!("// A remark.\n@else const x = 1;\n{main}"),
            "2: `@else` without an `@if` right before",
        ),
        (
            format!("{main}const x = 1; const y = 2;\n"),
            "4: a declaration begins on a line of its own",
        ),
        (
            format!("{main}\nfn y() {{\n"),
            "5: this declaration does not end",
        ),
        (
            format!("{main}let x = 1;\n"),
            "4: neither an import nor a declaration",
        ),
    ] {
        let expected = format!("shaders/kernels/k.wgsl:{expected}");
        assert_eq!(error(&[MATH, ("kernels/k.wgsl", &kernel)]), expected);
    }
    for condition in [
        "@if(vectors &&) const x = 1;",
        "@if(!) const x = 1;",
        "@if((vectors) const x = 1;",
    ] {
        assert!(error(&[("kernels/k.wgsl", condition)]).starts_with("shaders/kernels/k.wgsl:1: "));
    }
    for import in [
        "import math::double;",
        "import package::lib::math::{double as d};",
    ] {
        assert!(
            error(&[MATH, ("kernels/k.wgsl", import)])
                .starts_with("shaders/kernels/k.wgsl:1: an import is ")
        );
    }
}

#[test]
fn names_that_meet_in_a_kernel_are_refused() {
    let other = (
        "lib/other.wgsl",
        "import package::lib::third::double;\nfn other() {\n    double();\n}\n",
    );
    let third = ("lib/third.wgsl", "fn double() {\n}\n");
    let kernel = "import package::lib::math::double;\nimport package::lib::other::other;\nfn main() {\n    double();\n    other();\n}\n";
    let message = error(&[MATH, other, third, ("kernels/k.wgsl", kernel)]);
    assert!(message.contains("`double` of shaders/lib/"), "{message}");
    let kernel =
        "import package::lib::other::other;\nfn main() {\n    other();\n}\nfn double() {\n}\n";
    let message = error(&[other, third, ("kernels/k.wgsl", kernel)]);
    assert!(
        message.ends_with("has the name of one of shaders/kernels/k.wgsl"),
        "{message}"
    );
}

#[test]
fn conditions_choose_declarations() {
    let source = "@if(vec4) alias real = vec4f;\n@else alias real = f32;\n\
                  @if(!vectors && (im2col || pointwise))\nfn f() {\n}\n";
    assert_eq!(text(source, &[]), "alias real = f32;\n");
    assert_eq!(text(source, &["vec4"]), "alias real = vec4f;\n");
    assert_eq!(
        text(source, &["pointwise"]),
        "alias real = f32;\nfn f() {\n}\n"
    );
    assert_eq!(
        text(source, &["pointwise", "vectors"]),
        "alias real = f32;\n"
    );
}

#[test]
fn conditions_choose_imports() {
    let one = ("lib/one.wgsl", "fn f() {\n}\n");
    let two = (
        "lib/two.wgsl",
        "import package::lib::math::twice;\nfn f() {\n    twice;\n}\n",
    );
    let kernel = "@if(f16) import package::lib::one::f;\n@if(!f16) import package::lib::two::f;\nfn main() {\n    f();\n}\n";
    let files = [MATH, one, two, ("kernels/k.wgsl", kernel)];
    let names = |features| needed(&files, "kernels/k", Variant { features, ..NONE });
    assert_eq!(names(&["f16"]).as_deref(), Ok(&["f".to_owned()][..]));
    assert_eq!(
        names(&[]).as_deref(),
        Ok(&["f".to_owned(), "twice".to_owned()][..])
    );
}

#[test]
fn comments_and_indentation_are_left_out() -> Result<()> {
    let source = "// A remark.\n\n@compute @workgroup_size(64)\nfn main() { // Another.\n    let x = 1;\n}\n";
    let library = library(&[("f.wgsl", source)])?;
    let expected = "@compute @workgroup_size(64)\nfn main() {\nlet x = 1;\n}\n";
    assert_eq!(own_text(&library, "f")?, expected);
    Ok(())
}

#[test]
fn functions_are_written_out_where_they_are_called() -> Result<()> {
    let source = "fn keep(at: u32, x: vec2f) {\n    slab[at] = x.x;\n    slab[at + 1u] = x.y;\n}\n\
                  fn load(at: u32) -> f32 {\n    return slab[at];\n}\nvar<workgroup> slab: array<f32, 4>;\n";
    let library = library(&[("f.wgsl", source)])?;
    let module = library.module("f")?;
    let inlined = |text: &str| inline::inlined(text, &module.with(&[]), module);
    assert_eq!(
        inlined("keep(i + 1u, v);\nlet x = load(j) + reload(j);\n")?,
        "slab[(i + 1u)] = (v).x;\nslab[(i + 1u) + 1u] = (v).y;\nlet x = slab[(j)] + reload(j);\n"
    );
    let error = inlined("load(f(j));")
        .expect_err("a call within a call")
        .to_string();
    assert_eq!(
        error,
        "shaders/f.wgsl:5: a call of `load` has a call among its arguments"
    );
    Ok(())
}

#[test]
fn the_crates_files_compose_for_both_targets() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders");
    let library = Library::read(folder.as_ref(), SHADER_CONSTANTS)?;
    let native = tables(&library, Target::Native)?;
    let wasm = tables(&library, Target::Wasm)?;
    assert_eq!(
        native.text,
        include_str!(concat!(env!("OUT_DIR"), "/shaders.wgsl"))
    );
    assert_eq!(
        wasm.text,
        include_str!(concat!(env!("OUT_DIR"), "/wasm.wgsl"))
    );
    assert_eq!(
        native.rust,
        include_str!(concat!(env!("OUT_DIR"), "/kernels.rs"))
    );
    // Each target has its own compiler's words for matrices of subgroups.
    for (own, other) in [(&native.text, &wasm.text), (&wasm.text, &native.text)] {
        let count = |text: &str| {
            ["coopMultiplyAdd(", "subgroupMatrixMultiplyAccumulate("]
                .map(|word| text.contains(word))
        };
        assert_eq!(count(own), count(other).map(|has| !has));
    }
    Ok(())
}
