//! A kernel of the table, composed.

use super::Result;
use super::inline::inlined;
use super::library::{Library, Needed, Variant};
use super::module::{Declaration, Module};
use super::table::{Instance, Template};

/// The target that kernels are composed for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Target {
    Wasm,
    Native,
}

/// A kernel's text in pieces, with the properties that Rust needs.
pub(super) struct Kernel {
    pub(super) name: &'static str,
    /// The text up to the end of its parameters, and from there.
    pub(super) start: String,
    pub(super) end: String,
    /// Functions that elementwise operations may replace, by name.
    pub(super) hooks: Vec<(&'static str, String)>,
    /// Directives, and declarations of other files.
    pub(super) items: Vec<String>,
    pub(super) inputs: usize,
    pub(super) uniforms: usize,
    pub(super) vectors: bool,
    pub(super) unchecked: bool,
    pub(super) any_group: bool,
}

/// The functions that elementwise operations replace.
const HOOKS: [&str; 3] = ["after", "before0", "before1"];
/// The file that declares the types of elementwise operations.
const TYPES: &str = "lib/real";
/// The feature with which these are vectors.
const VECTORS: &str = "vec4";
/// The first declaration of a kernel. Parameters of elementwise operations are added at its end.
const PARAMS: &str = "Params";

impl Target {
    /// Returns the feature by which files choose between the words of compilers.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Wasm => "chromium",
            Self::Native => "naga",
        }
    }

    /// Returns whether the kernels of a template are part of the target's table.
    pub(super) fn has(self, template: &Template) -> bool {
        self == Self::Native || !template.native
    }
}

impl Module {
    pub(super) fn is_kernel(&self) -> bool {
        self.declarations
            .iter()
            .any(|declaration| declaration.name == "main")
    }

    /// Returns the declarations that exist with these features.
    pub(super) fn with(&self, features: &[&str]) -> Vec<&Declaration> {
        let declarations = self.declarations.iter();
        declarations
            .filter(|declaration| declaration.holds(features))
            .collect()
    }

    /// Returns the texts of the directives that there are with features.
    pub(super) fn directives_with(&self, features: &[&str]) -> impl Iterator<Item = &str> {
        let directives = self.directives.iter();
        directives
            .filter(|directive| directive.holds(features))
            .map(|directive| directive.text.as_str())
    }
}

impl Kernel {
    /// Composes an instance of a template.
    pub(super) fn new(
        library: &Library,
        template: &Template,
        instance: &Instance,
        target: Target,
    ) -> Result<Self> {
        let module = library.module(&format!("kernels/{}", template.file))?;
        let features = &[instance.features, &[target.feature()]].concat()[..];
        let variant = Variant {
            features,
            constants: instance.constants,
        };
        let own = module.with(features);
        let mut needed = library.needed(module, &own, variant)?;
        let has_hooks =
            own.iter().any(|item| item.name == "before0") || needed.contains_key("after");
        if has_hooks {
            let types = library.module(TYPES)?.with(features).into_iter();
            needed.extend(types.map(|item| (item.name.as_str(), (TYPES, item.text.clone()))));
        }
        let mut hooks = Vec::new();
        let mut rest = String::new();
        let mut start = None;
        for declaration in &own {
            let Declaration { name, text, .. } = declaration;
            if let Some(hook) = HOOKS.into_iter().find(|hook| hook == name) {
                hooks.push((hook, text.clone()));
            } else if name == PARAMS {
                start = text.strip_suffix("}\n").map(str::to_owned);
            } else {
                rest.push_str(text);
            }
        }
        let start =
            start.ok_or_else(|| module.error(1, "a kernel declares a structure `Params`"))?;
        if let (Some(path), Target::Wasm) = (template.inlined, target) {
            rest = inline_module(&rest, library.module(path)?, &mut needed, features)?;
        }
        // The library's `after` is a hook like a kernel's own.
        hooks.extend(needed.remove("after").map(|(_, text)| ("after", text)));
        let directives = module.directives_with(features).map(str::to_owned);
        let is_open =
            |item: &&Declaration| item.name == "GROUP" && item.text.starts_with("override");
        Ok(Self {
            name: instance.name,
            // Uniform parameters come first, one output comes last.
            inputs: rest.matches("@binding(").count().saturating_sub(2),
            uniforms: rest.matches("var<uniform>").count().saturating_sub(1),
            vectors: features.contains(&VECTORS),
            unchecked: template.unchecked,
            any_group: own.iter().any(is_open),
            items: directives
                .chain(needed.into_values().map(|(_, text)| text))
                .collect(),
            start,
            end: format!("}}\n{rest}"),
            hooks,
        })
    }
}

/// Inlines the functions of a module where a text calls them, and drops them from the declarations that the text needs.
fn inline_module(
    text: &str,
    module: &Module,
    needed: &mut Needed<'_>,
    features: &[&str],
) -> Result<String> {
    let declarations = module.with(features);
    let text = inlined(text, &declarations, module)?;
    let functions = declarations
        .iter()
        .filter(|item| item.text.starts_with("fn "));
    for function in functions {
        needed.remove(function.name.as_str());
    }
    Ok(text)
}
