//! The tables that `src/gpu/kernels.rs` includes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Result;
use super::kernel::{Kernel, Target};
use super::library::{Library, Variant};
use super::module::{Declaration, Module};
use super::table::{APART, Apart, Instance, TEMPLATES};

/// The files that the crate includes.
pub(crate) struct Tables {
    /// Rust code: the kernels and elementwise functions, by their positions in the text.
    pub(crate) rust: String,
    /// The text of all of them, one piece after the other.
    pub(crate) text: String,
}

/// The types of elementwise operations, which each kernel has its own of.
const TYPES: [&str; 4] = ["real", "word", "integer", "truth"];

/// Composes all kernels and elementwise functions of a target.
pub(crate) fn tables(library: &Library, target: Target) -> Result<Tables> {
    let mut texts = Texts::default();
    let kernels = kernels(library, target)?;
    let mut rust = String::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let _ = writeln!(rust, "{}", kernel.rust(index, &mut texts));
    }
    let mut functions = Vec::new();
    for (_, module) in library.folder("ops") {
        for declaration in module.with(&[]) {
            functions.push(function(library, module, declaration, &mut texts)?);
        }
    }
    let all = kernels
        .iter()
        .map(|kernel| format!("&{}", kernel.name.to_uppercase()));
    let _ = writeln!(
        rust,
        "static FUNCTIONS: &[Function] = &{};",
        list(functions)
    );
    let _ = writeln!(rust, "pub(super) static ALL: &[&Kernel] = &{};", list(all));
    let _ = writeln!(rust, "pub(super) const KERNELS: usize = {};", kernels.len());
    let _ = writeln!(rust, "const LENGTH: usize = {};", texts.all.len());
    let whole = APART.iter().filter(|apart| apart.left_out.is_empty());
    let whole = whole.map(|apart| {
        let name = apart.instance.name;
        format!("({name:?}, {})", name.to_uppercase())
    });
    let _ = writeln!(
        rust,
        "pub(super) static TEXTS: &[(&str, &str)] = &{};",
        list(whole)
    );
    for apart in APART {
        let (name, text) = (
            apart.instance.name.to_uppercase(),
            apart_text(library, apart, target)?,
        );
        let _ = writeln!(rust, "pub(super) const {name}: &str = {text:?};");
    }
    Ok(Tables {
        rust,
        text: texts.all,
    })
}

/// Returns the text of a file's own declarations, without features.
pub(crate) fn own_text(library: &Library, path: &str) -> Result<String> {
    let own = library.module(path)?.with(&[]);
    Ok(own
        .iter()
        .map(|declaration| declaration.text.as_str())
        .collect())
}

/// Returns the kernels of a target, in the order of the table.
fn kernels(library: &Library, target: Target) -> Result<Vec<Kernel>> {
    for (file, module) in library.folder("kernels") {
        let path = format!("kernels/{file}");
        let is_known = TEMPLATES.iter().any(|template| template.file == file)
            || APART.iter().any(|apart| apart.file == path);
        if !is_known {
            return Err(module.error(1, "this kernel has no row in src/gpu/kernels/table.rs"));
        }
    }
    let mut kernels = Vec::new();
    for template in TEMPLATES.iter().filter(|template| target.has(template)) {
        for instance in template.instances {
            kernels.push(Kernel::new(library, template, instance, target)?);
        }
    }
    Ok(kernels)
}

/// Returns the text of a kernel outside the table. The text is empty if the target has no such kernel.
fn apart_text(library: &Library, apart: &Apart, target: Target) -> Result<String> {
    if apart.native && target == Target::Wasm {
        return Ok(String::new());
    }
    let Instance {
        features,
        constants,
        ..
    } = apart.instance;
    let features = &[features, &[target.feature()]].concat()[..];
    let variant = Variant {
        features,
        constants,
    };
    let module = library.module(apart.file)?;
    let own = module.with(features);
    let mut text: String = module.directives_with(features).collect();
    for (_, needed) in library.needed(module, &own, variant)?.values() {
        text.push_str(needed);
    }
    let is_there = |item: &&&Declaration| !apart.left_out.contains(&item.name.as_str());
    text.extend(own.iter().filter(is_there).map(|item| item.text.as_str()));
    Ok(text)
}

/// Returns the Rust expression for an elementwise operation.
fn function(
    library: &Library,
    module: &Module,
    declaration: &Declaration,
    texts: &mut Texts,
) -> Result<String> {
    let variant = Variant {
        features: &[],
        constants: &[],
    };
    let mut needed = library.needed(module, &[declaration], variant)?;
    needed.retain(|name, _| !TYPES.contains(name));
    let text = texts.add(&numbered(&declaration.name, &declaration.text));
    let items = list(needed.values().map(|(_, text)| texts.add(text)));
    // WGSL's own functions may not be hidden, hence the underscores in `shaders/ops`.
    let name = declaration.name.trim_end_matches('_');
    Ok(format!(
        "Function {{ name: {name:?}, text: {text}, items: &{items} }}"
    ))
}

/// Returns a function's text with `#` for the number that tells a function with parameters from others of its kind, and
/// its parameters from theirs.
fn numbered(name: &str, text: &str) -> String {
    if !text.contains("params.") {
        return text.to_owned();
    }
    let own = text.replacen(name, &format!("{name}#"), 1);
    own.replace("params.a", "params.a#")
        .replace("params.b", "params.b#")
}

/// All pieces that shaders are composed of, one after the other. Rust knows the pieces by their places, so that the npm
/// package can load them when there is a GPU.
#[derive(Default)]
struct Texts {
    all: String,
    places: BTreeMap<String, String>,
}

impl Texts {
    /// Returns the Rust expression for a piece, which is added unless it is there.
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
}

impl Kernel {
    /// Returns the Rust declaration of the kernel.
    fn rust(&self, index: usize, texts: &mut Texts) -> String {
        let hooks = self.hooks.iter();
        let hooks = list(hooks.map(|(name, text)| format!("({name:?}, {})", texts.add(text))));
        let [start, end] = [&self.start, &self.end].map(|text| texts.add(text));
        let items = list(self.items.iter().map(|text| texts.add(text)));
        let (name, upper) = (self.name, self.name.to_uppercase());
        let (inputs, uniforms, vectors) = (self.inputs, self.uniforms, self.vectors);
        let (unchecked, any_group) = (self.unchecked, self.any_group);
        format!(
            "pub(super) static {upper}: Kernel = Kernel {{ index: {index}, name: {name:?}, \
             start: {start}, end: {end}, hooks: &{hooks}, items: &{items}, inputs: {inputs}, \
             #[cfg(not(target_arch = \"wasm32\"))] uniforms: {uniforms}, vectors: {vectors}, \
             unchecked: {unchecked}, any_group: {any_group} }};",
        )
    }
}

/// Returns an array of Rust expressions.
fn list(expressions: impl IntoIterator<Item = String>) -> String {
    let expressions: Vec<_> = expressions.into_iter().collect();
    format!("[{}]", expressions.join(","))
}
