//! Composes the shaders, so that nothing searches or cuts WGSL at run time. The tests of
//! `src/gpu/kernels.rs` validate all of them; who builds this crate need not.
//!
//! `shaders/kernels/*.wgsl` are entry points, `shaders/ops/*.wgsl` the functions of elementwise
//! operations, from which `src/gpu/fused.rs` makes what runs before and after a kernel.
//! `src/gpu/kernels/table.rs` lists instances of a kernel; `OP` stands in it for the first part of names
//! of library items.
//! `shaders/lib/*.wgsl` and the constants of `src/coefficients.rs` are a library of items; each
//! kernel and function gets just those that it needs, directly or through others. What naga and
//! Chromium have different words for is an item of each, and the words of Chromium's stand in its kernels
//! where these call them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs, path::Path};

use coefficients::SHADER_CONSTANTS;
use table::{PLAIN, TEMPLATES, Template};

#[path = "src/coefficients.rs"]
#[allow(dead_code)] // The SIMD back-end uses more of them than the shaders do.
mod coefficients;

#[path = "src/gpu/kernels/table.rs"]
mod table;

/// Top-level WGSL declarations by name.
type Items = BTreeMap<String, String>;

/// What makes a kernel of a template.
struct Instance {
    name: String,
    op: String,
    declarations: String,
}

struct Kernel {
    instance: Instance,
    /// The text up to the end of its parameters, and from there, with `#` for `OP`.
    start: String,
    end: String,
    hooks: Vec<(String, String)>,
    items: Vec<String>,
    inputs: usize,
    uniforms: usize,
    vectors: bool,
    unchecked: bool,
    any_group: bool,
}

/// The library's number of invocations in a workgroup, which a kernel that declares none of its own
/// leaves open.
const GROUP: &str = "GROUP";
/// The `OP` of kernels with matrices of subgroups, in naga's words and in Chromium's.
const NAGA: &str = "naga";
const CHROMIUM: &str = "chromium";
/// The `OP` of convolution layers that matmul kernels compute, and the `OP` whose library items they use where
/// they have none of their own.
const LAYERS: [(&str, &str); 2] = [("patches", "scalars"), ("planes", "vectors")];
/// The `OP` of kernels that read and write vectors, the last of which fold by subgroups or parts of these,
/// and what hooks work on there.
const VECTORS: [&str; 4] = ["vectors", "subgroups", "shuffles", "planes"];
const VECTOR_TYPES: &str = "alias real = vec4f;
alias word = vec4u;
alias integer = vec4i;
alias truth = vec4<bool>;
";

/// An elementwise operation.
struct Function {
    name: String,
    source: String,
    items: Vec<String>,
}

fn main() {
    for path in [
        "build.rs",
        "shaders",
        "src/coefficients.rs",
        "src/gpu/kernels/table.rs",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    let build = declare_instruction_sets();

    let items = library();
    let files = wgsl_files("shaders/ops").into_iter();
    let functions: Vec<Function> = files
        .flat_map(|(_, source)| split_items(&source))
        .map(|(name, source)| function(&name, source, &items))
        .collect();
    let tables = |build: Build| {
        let mut texts = Texts::default();
        let kernels = kernels(&items, build);
        let table = generate(&mut texts, &items, &kernels, &functions);
        (table, texts.all)
    };
    let own = tables(build);
    // A native build writes the text that the npm package loads: the one that its modules were built with.
    let files = [
        ("kernels.rs", own.0),
        ("shaders.wgsl", own.1),
        ("wasm.wgsl", tables(Build::Wasm).1),
    ];
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    for (file, content) in files {
        fs::write(Path::new(&out).join(file), content).expect("OUT_DIR is writable");
    }
}

/// The target that the kernels are for.
#[derive(Clone, Copy, PartialEq)]
enum Build {
    Wasm,
    Native,
}

impl Build {
    /// Returns whether a template's kernels are part of it.
    fn has(self, template: &str) -> bool {
        self == Self::Native || !facts(template).native
    }

    /// Returns whether its drivers know the words of a template's instance.
    fn understands(self, instance: &Instance) -> bool {
        match instance.op.as_str() {
            NAGA => self == Self::Native,
            CHROMIUM => self != Self::Native,
            _ => true,
        }
    }
}

/// The kernels of all templates that are part of a build.
fn kernels(items: &Items, build: Build) -> Vec<Kernel> {
    let mut templates = wgsl_files("shaders/kernels");
    templates.retain(|(template, _)| build.has(template));
    let of_template = |(template, source): &(String, String)| {
        let instances = instances(template).into_iter();
        let instances = instances.filter(|instance| build.understands(instance));
        let kernels = instances.map(|instance| compose(instance, template, source, items));
        kernels.collect::<Vec<_>>()
    };
    templates.iter().flat_map(of_template).collect()
}

/// Declares the instruction set and returns the target. The npm package has a module for each instruction set.
/// Selecting it by a variable and not by `RUSTFLAGS` leaves crate hashes alone, so that the modules share their
/// JavaScript and dependencies.
fn declare_instruction_sets() -> Build {
    const RELAXED: &str = "RELAMPAGO_WASM_RELAXED";
    println!("cargo::rustc-check-cfg=cfg(relampago_package, relampago_relaxed)");
    println!("cargo::rerun-if-env-changed={RELAXED}");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return Build::Native;
    }
    let target_features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if env::var(RELAXED).as_deref() == Ok("1") || target_features.contains("relaxed-simd") {
        println!("cargo::rustc-cfg=relampago_relaxed");
    }
    Build::Wasm
}

fn library() -> Items {
    let mut items = Items::new();
    for (_, source) in wgsl_files("shaders/lib") {
        items.extend(split_items(&source));
    }
    for (layer, other) in LAYERS {
        inherit(&mut items, layer, other);
    }
    for (name, values) in SHADER_CONSTANTS {
        let list = values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>();
        let value = match &list[..] {
            [one] => format!("const {name} = {one};"),
            many => format!("const {name} = array({});", many.join(",")),
        };
        items.insert((*name).to_owned(), value);
    }
    items
}

/// Gives an `OP` the items of another for all that it has none of its own for.
fn inherit(items: &mut Items, op: &str, other: &str) {
    for (name, item) in items.clone() {
        if let Some(rest) = name.strip_prefix(other) {
            let own = || item.replace(other, op);
            items.entry(format!("{op}{rest}")).or_insert_with(own);
        }
    }
}

/// File stems and contents, without comments and indentation.
fn wgsl_files(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).expect("shaders are part of the crate");
    let paths = entries.map(|entry| entry.expect("readable folder").path());
    let mut files: Vec<_> = paths
        .map(|path| {
            let stem = path.file_stem().expect("a file name").to_string_lossy();
            (stem.into_owned(), minify(&read_or_empty(&path)))
        })
        .collect();
    files.sort();
    files
}

fn read_or_empty(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn minify(source: &str) -> String {
    let code = |line: &str| {
        line.split("//")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let lines = source.lines().map(code).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits a library file into its top-level declarations, each of which starts a line.
fn split_items(source: &str) -> Items {
    let mut items = Items::new();
    let mut current = String::new();
    for line in minify(source).lines() {
        if let Some(name) = declared_name(line) {
            current = name;
        }
        let item: &mut String = items.entry(current.clone()).or_default();
        item.push_str(line);
        item.push('\n');
    }
    items
}

/// How the library's declarations begin.
const DECLARATIONS: [&str; 6] = [
    "fn ",
    "const ",
    "override ",
    "struct ",
    "alias ",
    "var<workgroup> ",
];

fn declared_name(line: &str) -> Option<String> {
    let rest = DECLARATIONS
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    identifiers(rest).next().map(str::to_owned)
}

fn identifiers(source: &str) -> impl Iterator<Item = &str> {
    source
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The names of all items that `source` refers to, directly or through other items.
fn needed_items(source: &str, items: &Items) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let mut pending = vec![source];
    while let Some(text) = pending.pop() {
        for word in identifiers(text) {
            if let Some(item) = items.get(word)
                && needed.insert(word.to_owned())
            {
                pending.push(item);
            }
        }
    }
    needed
}

/// The types of elementwise operations, in which a kernel that runs with any of them says what
/// its values are.
const TYPES: [&str; 4] = ["real", "word", "integer", "truth"];

/// The facts of a template.
fn facts(template: &str) -> &'static Template {
    let named = |row: &&Template| row.file == template;
    TEMPLATES.iter().find(named).unwrap_or(&PLAIN)
}

/// The kernels of a template.
fn instances(template: &str) -> Vec<Instance> {
    let instance = |row: &table::Instance| {
        let types = if VECTORS.contains(&row.op) {
            VECTOR_TYPES
        } else {
            ""
        };
        Instance {
            name: row.name.to_owned(),
            op: row.op.to_owned(),
            declarations: format!("{types}{}\n", row.declarations),
        }
    };
    let mut instances: Vec<Instance> = facts(template).instances.iter().map(instance).collect();
    if instances.is_empty() {
        instances.push(Instance {
            name: template.to_owned(),
            op: String::new(),
            declarations: String::new(),
        });
    }
    instances
}

/// A text with Chromium's words for matrices where it calls functions of them. Chromium looks at one
/// function at a time, and keeps places in arrays within bounds that it does not see there: products
/// took 1.7 times as long.
fn inlined(text: &str, items: &Items) -> String {
    let mut text = text.replace("OP", CHROMIUM);
    for (name, item) in items.iter().filter(|(name, _)| name.starts_with(CHROMIUM)) {
        let Some((parameters, body)) = function_parts(item) else {
            continue;
        };
        while let Some(start) = text.find(&format!("{name}(")) {
            let end = start + text[start..].find(')').expect("a call ends");
            let given = text[start + name.len() + 1..end].to_owned();
            assert!(
                !given.contains('('),
                "{name}({given}: an argument has a call of its own"
            );
            let parameters = parameters.iter().copied();
            let arguments: BTreeMap<&str, &str> = parameters.zip(given.split(", ")).collect();
            text.replace_range(start..=end, &with_arguments(body, &arguments));
        }
    }
    text
}

/// The names of a function's parameters, and what stands for a call of it: its value, or its statements
/// but for the last semicolon. Nothing of other items.
fn function_parts(item: &str) -> Option<(Vec<&str>, &str)> {
    let (head, body) = item.strip_prefix("fn ")?.split_once(" {\n")?;
    let parameters = head.split(['(', ')']).nth(1)?.split(", ");
    let names = parameters.filter_map(|typed| typed.split(':').next());
    let body = body.strip_suffix(";\n}\n")?;
    Some((names.collect(), body.trim_start_matches("return ")))
}

/// A function's text with arguments for its parameters.
fn with_arguments(body: &str, arguments: &BTreeMap<&str, &str>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = body.split_inclusive(|c| !is_part(c));
    let replace = |part: &str| {
        let word = part.trim_end_matches(|c| !is_part(c));
        match arguments.get(word) {
            Some(argument) => format!("({argument}){}", &part[word.len()..]),
            None => part.to_owned(),
        }
    };
    words.map(replace).collect()
}

/// Instantiates a kernel.
fn compose(instance: Instance, template: &str, text: &str, items: &Items) -> Kernel {
    let text = match instance.op.as_str() {
        CHROMIUM => &inlined(text, items),
        _ => text,
    };
    let source = instance.declarations.clone() + &text.replace("OP", &instance.op);
    // A kernel's own declarations win over library items of the same name.
    let own = split_items(&source);
    let mut needed = needed_items(&source, items);
    if needed.contains("after") || own.contains_key("before0") {
        needed.extend(TYPES.map(String::from));
    }
    needed.retain(|name| !own.contains_key(name));
    // Uniform parameters come first, one output comes last.
    let bindings = source.matches("@binding(").count();
    let (start, end, hooks) = cut(&text.replace("OP", "#"));
    Kernel {
        inputs: bindings - 2,
        uniforms: source.matches("var<uniform>").count() - 1,
        start,
        end,
        hooks,
        unchecked: facts(template).unchecked,
        vectors: source.contains("alias real = vec4f"),
        any_group: needed.iter().any(|name| name == GROUP),
        items: needed.into_iter().collect(),
        instance,
    }
}

/// An elementwise operation, and what it needs.
fn function(name: &str, source: String, items: &Items) -> Function {
    let needed = needed_items(&source, items);
    Function {
        // WGSL's own functions may not be hidden, hence the underscores in `shaders/ops`.
        name: name.trim_end_matches('_').to_owned(),
        items: needed
            .into_iter()
            .filter(|name| !TYPES.contains(&name.as_str()))
            .collect(),
        source: numbered(name, source),
    }
}

/// The text with `#` for the number that tells a function with parameters from others of its
/// kind, and its parameters from theirs.
fn numbered(name: &str, source: String) -> String {
    if !source.contains("params.") {
        return source;
    }
    let own = source.replacen(name, &format!("{name}#"), 1);
    own.replace("params.a", "params.a#")
        .replace("params.b", "params.b#")
}

/// Functions of a kernel that elementwise operations replace.
const HOOKS: [&str; 3] = ["after", "before0", "before1"];

/// A kernel's text without its hooks, cut where its parameters end, and the hooks.
fn cut(source: &str) -> (String, String, Vec<(String, String)>) {
    const FUNCTION_END: &str = "\n}\n";
    const PARAMETERS_END: &str = "}\n@group(0) @binding(0)";
    let mut rest = source.to_owned();
    let mut hooks = Vec::new();
    for hook in HOOKS {
        if let Some(at) = rest.find(&format!("fn {hook}(")) {
            let len = rest[at..].find(FUNCTION_END).expect("a hook is a function");
            let text: String = rest.drain(at..at + len + FUNCTION_END.len()).collect();
            hooks.push((hook.to_owned(), text));
        }
    }
    let at = rest.find(PARAMETERS_END);
    let at = at.expect("parameters stand before the bindings");
    (rest[..at].to_owned(), rest[at..].to_owned() + "\n", hooks)
}

/// Everything that shaders are put together from, one after the other. Rust knows the pieces by
/// their places, so that the npm package can load them when there is a GPU.
#[derive(Default)]
struct Texts {
    all: String,
    places: BTreeMap<String, String>,
}

impl Texts {
    /// The Rust expression for a piece.
    fn add(&mut self, text: &str) -> String {
        if let Some(place) = self.places.get(text) {
            return place.clone();
        }
        let start = self.all.len();
        self.all.push_str(text);
        let place = format!("Text({start}, {})", self.all.len());
        self.places.insert(text.to_owned(), place.clone());
        place
    }

    /// The Rust expression for pieces of the library.
    fn items(&mut self, library: &Items, names: &[String]) -> String {
        let named = names.iter().filter(|name| *name != "after");
        list(named.map(|name| self.add(&library[name])))
    }
}

/// Writes the Rust that `src/gpu/kernels.rs` includes.
fn generate(
    texts: &mut Texts,
    library: &Items,
    kernels: &[Kernel],
    functions: &[Function],
) -> String {
    let mut rust = String::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let _ = writeln!(rust, "{}", kernel.rust(index, texts, library));
    }
    let functions = functions.iter().map(|function| {
        let Function {
            name,
            source,
            items,
        } = function;
        let (text, items) = (texts.add(source), texts.items(library, items));
        format!("Function {{ name: {name:?}, text: {text}, items: &{items} }}")
    });
    let functions = list(functions);
    let _ = writeln!(rust, "static FUNCTIONS: &[Function] = &{functions};");
    let all = list(
        kernels
            .iter()
            .map(|kernel| format!("&{}", upper(&kernel.instance.name))),
    );
    let _ = writeln!(rust, "#[cfg(test)] static ALL: &[&Kernel] = &{all};");
    let kernels = kernels.len();
    let _ = writeln!(rust, "pub(super) const KERNELS: usize = {kernels};");
    let _ = writeln!(rust, "const LENGTH: usize = {};", texts.all.len());
    rust
}

impl Kernel {
    fn rust(&self, index: usize, texts: &mut Texts, library: &Items) -> String {
        let Instance {
            name,
            op,
            declarations,
        } = &self.instance;
        let mut hooks = self.hooks.clone();
        // The library's `after` is a hook like a kernel's own.
        if self.items.iter().any(|name| name == "after") {
            hooks.push(("after".to_owned(), library["after"].clone()));
        }
        let hooks = hooks
            .iter()
            .map(|(name, text)| format!("({name:?}, {})", texts.add(text)));
        let hooks = list(hooks);
        let [start, end, declarations] =
            [&self.start, &self.end, declarations].map(|text| texts.add(text));
        let (upper, items) = (upper(name), texts.items(library, &self.items));
        let (inputs, uniforms, vectors) = (self.inputs, self.uniforms, self.vectors);
        let (unchecked, any_group) = (self.unchecked, self.any_group);
        format!(
            "pub(super) static {upper}: Kernel = Kernel {{ index: {index}, name: {name:?}, start: {start}, end: {end}, op: {op:?}, declarations: {declarations}, hooks: &{hooks}, items: &{items}, inputs: {inputs}, #[cfg(not(target_arch = \"wasm32\"))] uniforms: {uniforms}, vectors: {vectors}, unchecked: {unchecked}, any_group: {any_group} }};",
        )
    }
}

/// An array of Rust expressions.
fn list(expressions: impl Iterator<Item = String>) -> String {
    format!("[{}]", expressions.collect::<Vec<_>>().join(","))
}

fn upper(name: &str) -> String {
    name.to_uppercase()
}
