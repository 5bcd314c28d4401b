//! Invalid WGSL is refused with its position, in WGSL's words.

use relampago::{CustomOp, Error};

fn refused(wgsl: &str) -> String {
    let op = CustomOp::new("broken", &["x"], &[], wgsl, |[x], []| x);
    match op.expect_err(wgsl) {
        Error::Wgsl { name, message } => {
            assert_eq!(name, "broken");
            message
        }
        other => panic!("{wgsl}: {other}"),
    }
}

const MISTAKES: &[&str] = &[
    "1i",
    "x + vec2f(1.0, 2.0)",
    "sin(true)",
    "var y = 1; y = x; return f32(y);",
    "var y = x; y = 1i; return y;",
    "let y: i32 = x; return x;",
    "foo(x)",
    "x.y",
    "x[0]",
    "select(1.0, 2i, x > 0.0)",
    "x << 1",
    "sqrt(1i)",
    "x = 1.0; return x;",
    "clamp(x, 0.0)",
    "clamp(x, 0.0, vec2f(1.0))",
    "x % 2i",
    "return bitcast<i32>(x);",
    "x && x",
    "x || 1.0",
    "switch x { default: { return x; } }",
    "loop { return x; }",
    "break; return x;",
    "continue; return x;",
    "1.0 / 0.0",
    "1 / 0",
    "f32(1u << 40u)",
    "array<f32, 2>(x, x)",
    "let y = x",
    "return x + ;",
    "dot(x, x)",
    "1e50",
    "let p = &x; return *p;",
    "mat2x2f(x, x, x, x)",
    "max(x, 1u)",
    "while x { return x; } return x;",
    "f32(vec2f(x))",
    "x == 1i",
    "discard",
    "fn",
    "x.x",
    "return (x",
    "pow(x)",
    "let f = f16(x); return f32(f);",
    "textureLoad(x)",
    "u32(x) + x",
    "ldexp(x, 1.0)",
    "1 + 1i",
    "fma(x, 1u, 2.0)",
    "var a: array<f32, 2>; a = x; return a[0];",
    "let v = vec2f(x); return v.xyz;",
    "return vec2f(x)[2];",
    "is_nan(1i)",
    "minimum(x, x, x)",
    "nan_where(x, x)",
    "if x > 0.0 { if x { return x; } } return x;",
    "all(x)",
    "any(1.0)",
    "cross(x, x)",
    "transpose(x)",
    "f32(true && x)",
    "~x",
    "-true",
    "x & 1u",
    "vec3f(x).xy",
    "var y: f32 = 1u; return y;",
    "ptr(x)",
    "atomicAdd(&x, 1.0)",
    "x++; return x;",
];

#[allow(clippy::too_many_lines)] // A table.
#[test]
fn invalid_wgsl_returns_error_with_position() {
    // The function around the text and the longer names of the library's functions do not count.
    for (wgsl, place, line) in [
        (
            "x + nothing",
            "line 1, column 5: ",
            "x + nothing\n        ^",
        ),
        ("x +\n  nothing", "line 2, column 3: ", "  nothing\n      ^"),
        (
            "maximum(x, 1.0) + nothing",
            "line 1, column 19: ",
            "nothing",
        ),
        (
            "let é = x; return é + nothing;",
            "line 1, column 23: ",
            "nothing",
        ),
        (
            "let y = x;\nreturn vec4f(y);",
            "line 2, column 8: ",
            "return vec4f(y);",
        ),
        ("(x", "line 1, column 3: ", "(x\n      ^"),
        ("x +* 2.0", "line 1, column 4: ", "x +* 2.0\n       ^"),
    ] {
        let message = refused(wgsl);
        assert!(message.starts_with(place), "{wgsl}: {message}");
        assert!(message.contains(line), "{wgsl}: {message}");
    }
    for (wgsl, message) in [
        (
            "vec4f(x)",
            "line 1, column 1: the result has type `vec4<f32>`, but must have type `f32`",
        ),
        (
            "x > 0.0",
            "line 1, column 1: the result has type `bool`, but must have type `f32`",
        ),
        (
            "is_nan(x)",
            "line 1, column 1: the result has type `bool`, but must have type `f32`",
        ),
        (
            "let v = vec2f(x); return v;",
            "line 1, column 9: the result has type `vec2<f32>`",
        ),
        (
            "return;",
            "line 1, column 1: it must end with `return` and a value on every path",
        ),
        (
            "if x > 0.0 { return x; }",
            "it must end with `return` and a value on every path",
        ),
        (
            "if x { return x; } return 1.0;",
            "line 1, column 1: a condition has type `f32`, but must have type `bool`",
        ),
        (
            "x + 1i",
            "line 1, column 1: `+` does not take values of types `f32` and `i32`: convert one of them",
        ),
        (
            "-(x > 0.0)",
            "line 1, column 1: `-` does not take a value of type `bool`",
        ),
        (
            "!x",
            "line 1, column 1: `!` does not take a value of type `f32`",
        ),
        ("x && x", "`&&` and `||` take values of type `bool` alone"),
        (
            "select(1.0, 2.0, x)",
            "line 1, column 1: the last argument of `select` has type `f32`, but must have type `bool`",
        ),
        (
            "maximum(x)",
            "line 1, column 1: `maximum` takes 2 arguments, not 1",
        ),
        (
            "maximum(x, 1i)",
            "line 1, column 12: argument 2 of `maximum` has type `i32`, but must have type `f32`",
        ),
        (
            "return vec2f(x)[2];",
            "Index 2 is out of bounds for this value",
        ),
        (
            "x[0]",
            "only vectors, matrices and arrays have elements by index",
        ),
        (
            "var a = array<f32, 2>(x, x); return a[3];",
            "line 1, column 37: there is no element 3 in a value of type `array<f32, 2>`",
        ),
        (
            "for (var i = 0; i < x; i++) { } return x;",
            "line 1, column 17: `<` does not take values of types `i32` and `f32`",
        ),
        (
            "subgroupAdd(x)",
            "line 1, column 1: it uses a feature of GPUs that functions here may not use",
        ),
    ] {
        let refused = refused(wgsl);
        assert!(refused.starts_with(message), "{wgsl}: {refused}");
    }
    // Of naga's numbers of expressions, types and functions none is left.
    for wgsl in MISTAKES {
        let message = refused(wgsl);
        for internal in [
            "Some(",
            "Scalar",
            "Handle",
            "Expression",
            "Function",
            "[0]",
            "[1]",
            "[2]",
            "[3]",
        ] {
            let own = wgsl.contains(internal);
            assert!(own || !message.contains(internal), "{wgsl}: {message}");
        }
    }
    for wgsl in ["", "x +* 2.0", "vec4f(x)", "x > 0.0", "return x", "1i"] {
        refused(wgsl);
    }
    // What kernels have besides is not there for it.
    for wgsl in [
        "x + params.a0",
        "y[0]",
        "real(x)",
        "workgroup_index(vec3u(), vec3u()) + x",
    ] {
        refused(wgsl);
    }
    let message = refused("custom(x)");
    assert!(message.contains("recursive"), "{message}");
}

#[test]
fn wgsl_with_side_effects_is_refused() {
    let more = "declares more than one function";
    assert!(refused("x); } fn other() { let y = (1.0").contains(more));
    assert!(refused("return x; } const K = 1.0; fn other() {").contains(more));
    assert!(refused("return x; } struct S { a: f32").contains(more));
    assert!(refused("return x; } var<private> p: f32; fn g() {").contains(more));
    let effect = "more than compute a value";
    assert!(refused("workgroupBarrier(); return x;").contains(effect));
    assert!(refused("dpdx(x)").contains(effect));
    assert!(refused("discard; return x;").contains(effect));
    refused("subgroupAdd(x)");
}
