//! Prints the op table as documentation (`markdown`), or the parts of the npm package that come
//! from it: the list of methods (`js`), their types (`d.ts`) and the source of shaders (`shaders`).

use relampago::ops::{OPS, OpClass, OpInfo};

fn main() -> Result<(), String> {
    match std::env::args().nth(1).as_deref() {
        Some("markdown") => markdown(),
        Some("js") => js(),
        Some("d.ts") => typescript(),
        Some("shaders") => shaders(),
        other => return Err(format!("markdown, js, d.ts or shaders, not {other:?}")),
    }
    Ok(())
}

fn markdown() {
    println!("| operation | parameters | what it computes | ULP |\n|---|---|---|---|");
    for op in OPS {
        let parameters: Vec<&str> = op.parameters.iter().map(|(name, _)| *name).collect();
        // Links to Rust's documentation lead nowhere here.
        let docs = op.docs.concat().replace("[`", "`").replace("`]", "`");
        let docs = docs.replace('|', "\\|");
        let inputs = op.inputs.join(", ");
        println!(
            "| `{}({inputs})` | {} |{docs} | {} |",
            op.name,
            parameters.join(", "),
            op.ulp
        );
    }
}

fn js() {
    println!(
        "// Name, number of inputs and number of parameters, in the op table's order; whether it is elementwise; the names
// of its options, if the parameter is an object of options."
    );
    println!("export const ops = [");
    for op in OPS {
        println!(
            "    ['{}', {}, {}, {}{}],",
            op.js_name,
            op.inputs.len(),
            op.parameters.len(),
            is_elementwise(op),
            options(op)
        );
    }
    println!("];");
}

/// Returns the names of an operation's options, separated by spaces, as a further element of its entry.
fn options(op: &OpInfo) -> String {
    let names = op.parameters.iter().map(|(_, rust)| option_names(rust));
    let names: String = names.collect();
    if names.is_empty() {
        return names;
    }
    format!(", '{names}'")
}

/// Returns the names of the properties that `src/js/convert.rs` reads of a parameter.
fn option_names(rust: &str) -> &str {
    match rust {
        "Attention" => "tokens heads headLen kvHeads positions causal window softCap scale",
        "Conv2d" => "inputRows inputCols kernelRows kernelCols strideRows strideCols padding",
        "ConvLayer" => {
            "inputRows inputCols kernelRows kernelCols strideRows strideCols padding batch channels filters groups \
             dilationRows dilationCols"
        }
        "Matmul" => "m k n transposeA transposeB",
        "Rearrange" => "shape strides offset",
        "ReduceAxis" => "fold len outer inner",
        "Rope" => "tokens heads headLen rotated interleaved base first factors",
        _ => "",
    }
}

/// Returns whether each element of the result depends on one element of each input and on numbers.
fn is_elementwise(op: &OpInfo) -> bool {
    let numbers_only = op.parameters.iter().all(|(_, rust)| *rust == "f32");
    matches!(op.class, OpClass::Elementwise | OpClass::Transcendental) && numbers_only
}

/// Prints the script that the npm package loads where there is a GPU.
fn shaders() {
    let text = include_str!(concat!(env!("OUT_DIR"), "/wasm.wgsl"));
    println!("export default {text:?};");
}

fn typescript() {
    println!(
        "import type {{ AbortOptions, BufferId, Conv2dOptions, MatmulOptions, ResultOptions }} from './relampago.js';"
    );
    println!(
        "import type {{ AttentionOptions, ConvLayerOptions, RearrangeOptions, ReduceAxisOptions, RopeOptions }} from './device.js';"
    );
    println!("import type {{ DType, Operand, Tensor }} from './tensor/tensor.js';\n");
    println!("declare module './relampago.js' {{");
    println!("    interface GpuDevice {{");
    for op in OPS {
        let (result, last) = if op.output.is_some() {
            (
                "Promise<Float32Array<Memory>>",
                "result?: ResultOptions<Memory>",
            )
        } else {
            ("Promise<number>", "abort?: AbortOptions")
        };
        method(op, "Float32Array", Some(last.to_owned()), result);
    }
    println!("    }}\n    interface GpuCommandBatch {{");
    for op in OPS {
        method(op, "BufferId", None, "BufferId");
    }
    println!("    }}\n}}");
    tensor_methods();
}

/// The operations whose results are boolean as tensors.
const COMPARISONS: [&str; 3] = ["equal", "less", "lessEqual"];

/// Prints the types of the elementwise methods of `Tensor`, whose first input is the tensor.
fn tensor_methods() {
    println!(
        "\ndeclare module './tensor/tensor.js' {{\n    interface Tensor<D extends DType = 'f32'> {{"
    );
    for op in OPS.iter().filter(|op| is_elementwise(op)) {
        documentation(op);
        let others = op
            .inputs
            .iter()
            .skip(1)
            .map(|name| format!("{name}: Operand"));
        let all: Vec<String> = others.chain(parameters(op)).collect();
        let dtype = if COMPARISONS.contains(&op.js_name) {
            "<'bool'>"
        } else {
            ""
        };
        println!("        {}({}): Tensor{dtype};", op.js_name, all.join(", "));
    }
    println!("    }}\n}}");
}

fn documentation(op: &OpInfo) {
    println!("        /**");
    for line in op.docs {
        println!("         *{}", in_javascript(line));
    }
    println!("         */");
}

/// Returns a line of Rust's documentation with JavaScript's names: `[`Rope`]` is a link to the type of the options,
/// and `take_along_rows` is `takeAlongRows`.
fn in_javascript(line: &str) -> String {
    let link = |line: String, &(rust, options): &(&str, &str)| {
        line.replace(&format!("[`{rust}`]"), &format!("{{@link {options}}}"))
    };
    let linked = OPTIONS.iter().fold(line.to_owned(), link);
    let mut parts: Vec<String> = linked.split('`').map(str::to_owned).collect();
    // Code is between the marks.
    for code in parts.iter_mut().skip(1).step_by(2) {
        *code = camel_case(code);
    }
    parts.join("`")
}

fn parameters(op: &OpInfo) -> impl Iterator<Item = String> {
    let typed = |&(name, rust): &(&str, &str)| format!("{}: {}", camel_case(name), type_name(rust));
    op.parameters.iter().map(typed)
}

fn method(op: &OpInfo, input: &str, last: Option<String>, result: &str) {
    documentation(op);
    let inputs = op.inputs.iter().map(|name| format!("{name}: {input}"));
    let all: Vec<String> = inputs.chain(parameters(op)).chain(last).collect();
    let generic = if result.contains("Memory>") {
        "<Memory extends ArrayBufferLike = ArrayBuffer>"
    } else {
        ""
    };
    println!(
        "        {}{generic}({}): {result};",
        op.js_name,
        all.join(", ")
    );
}

/// The types of options, in Rust and in JavaScript.
const OPTIONS: [(&str, &str); 7] = [
    ("Conv2d", "Conv2dOptions"),
    ("ConvLayer", "ConvLayerOptions"),
    ("Matmul", "MatmulOptions"),
    ("Rearrange", "RearrangeOptions"),
    ("ReduceAxis", "ReduceAxisOptions"),
    ("Rope", "RopeOptions"),
    ("Attention", "AttentionOptions"),
];

fn type_name(rust: &str) -> &str {
    let found = OPTIONS.iter().find(|(name, _)| *name == rust);
    found.map_or("number", |(_, options)| options)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}
