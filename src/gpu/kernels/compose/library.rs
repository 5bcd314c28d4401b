//! All files, and the declarations that one of them needs of the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::module::{Declaration, Module, Source};
use super::{Error, Result, identifiers};

/// The files of `shaders/`.
pub(crate) struct Library {
    /// By path in `shaders/` without the extension.
    modules: BTreeMap<String, Module>,
    /// The texts of the constants that every file may import, by name.
    constants: BTreeMap<String, String>,
}

/// The features and constants by which variants of a file differ.
#[derive(Clone, Copy)]
pub(super) struct Variant<'v> {
    /// The features that are on in conditions.
    pub(super) features: &'v [&'v str],
    /// The names and values of constants that this variant may import.
    pub(super) constants: &'v [(&'v str, u32)],
}

/// Declarations of other files by name: the file that has it, and the text.
pub(super) type Needed<'l> = BTreeMap<&'l str, (&'l str, String)>;

/// The target of a name in a file.
enum Found<'l> {
    Declaration(&'l Module, &'l Declaration),
    Constant(String),
}

impl Library {
    /// Parses the files of a folder.
    pub(crate) fn read(folder: &Path, constants: &[(&str, &[f32])]) -> Result<Self> {
        let mut files = Vec::new();
        let failed = |error: io::Error| Error::new("", 1, error.to_string());
        read_folder(folder, "", &mut files).map_err(failed)?;
        Self::new(&files, constants)
    }

    /// Parses files, given by their paths in `shaders/` and texts. Returns an error if a file imports a declaration
    /// that exists with no feature, or that it does not use.
    pub(crate) fn new(files: &[(String, String)], constants: &[(&str, &[f32])]) -> Result<Self> {
        let parse = |(file, source): &(String, String)| {
            let path = file.strip_suffix(".wgsl").unwrap_or(file);
            Ok((path.to_owned(), Module::parse(file, source)?))
        };
        let modules: Result<_> = files.iter().map(parse).collect();
        let constants = constants.iter();
        let library = Self {
            modules: modules?,
            constants: constants
                .map(|&(name, values)| constant(name, values))
                .collect(),
        };
        let mut modules = library.modules.values();
        modules.try_for_each(|module| library.check(module))?;
        Ok(library)
    }

    fn check(&self, module: &Module) -> Result<()> {
        for import in &module.imports {
            let name = &import.name;
            if !module.uses(name) {
                let message = format!("`{name}` is imported, but not used");
                return Err(module.error(import.line, message));
            }
            let path = match &import.from {
                Source::File(path) => path,
                Source::Kernel => "kernel",
                Source::Constants => continue,
            };
            let has_it = |other: &Module| other.declarations.iter().any(|item| item.name == *name);
            if !self.modules.get(path).is_some_and(has_it) {
                let message = format!("shaders/{path}.wgsl has no `{name}`");
                return Err(module.error(import.line, message));
            }
        }
        Ok(())
    }

    /// Returns a file, by its path without the extension.
    pub(super) fn module(&self, path: &str) -> Result<&Module> {
        let missing = || Error::new(&format!("{path}.wgsl"), 1, "there is no such file");
        self.modules.get(path).ok_or_else(missing)
    }

    /// Returns the files of a folder by their names without the extension.
    pub(super) fn folder<'l>(&'l self, folder: &str) -> Vec<(&'l str, &'l Module)> {
        let within = |path: &'l String| path.strip_prefix(folder)?.strip_prefix('/');
        let modules = self.modules.iter();
        modules
            .filter_map(|(path, module)| Some((within(path)?, module)))
            .collect()
    }

    /// Returns the declarations of other files that declarations of a file need, directly or through others.
    pub(super) fn needed<'l>(
        &'l self,
        root: &'l Module,
        own: &[&'l Declaration],
        variant: Variant<'_>,
    ) -> Result<Needed<'l>> {
        let mut needed = Needed::new();
        let mut pending: Vec<_> = own.iter().map(|&declaration| (root, declaration)).collect();
        while let Some((module, declaration)) = pending.pop() {
            for word in identifiers(&declaration.text) {
                let Some(found) = self.find(module, word, root, variant)? else {
                    continue;
                };
                let (file, name, text) = match &found {
                    Found::Declaration(module, found) => {
                        (module.file.as_str(), found.name.as_str(), &found.text)
                    }
                    Found::Constant(text) => ("constants", word, text),
                };
                if file == root.file {
                    continue;
                }
                let own = root.declaration(word, variant.features);
                let own = own.map(|_| root.file.as_str());
                match needed.get(word).map(|(file, _)| *file).or(own) {
                    Some(other) if other == file => continue,
                    Some(other) => {
                        let message = format!(
                            "`{word}` of shaders/{file} has the name of one of shaders/{other}"
                        );
                        return Err(module.error(declaration.line, message));
                    }
                    None => needed.insert(name, (file, text.clone())),
                };
                if let Found::Declaration(module, declaration) = found {
                    pending.push((module, declaration));
                }
            }
        }
        Ok(needed)
    }

    /// Returns the declaration that a word in a file refers to, unless it is local, built in or of the kernel.
    fn find<'l>(
        &'l self,
        module: &'l Module,
        word: &str,
        root: &Module,
        variant: Variant<'_>,
    ) -> Result<Option<Found<'l>>> {
        let features = variant.features;
        if let Some(declaration) = module.declaration(word, features) {
            return Ok(Some(Found::Declaration(module, declaration)));
        }
        let Some(import) = module.import(word, features) else {
            return Ok(None);
        };
        let found = match &import.from {
            Source::Kernel if root.is_kernel() && root.declaration(word, features).is_none() => {
                None
            }
            Source::Kernel => return Ok(None),
            Source::Constants => self.constant(word, variant).map(Found::Constant),
            Source::File(path) => self.modules.get(path).and_then(|module| {
                let declaration = module.declaration(word, features)?;
                Some(Found::Declaration(module, declaration))
            }),
        };
        let message = || {
            format!(
                "shaders/{} with {features:?} has no `{word}` to import here",
                root.file
            )
        };
        found
            .map(Some)
            .ok_or_else(|| module.error(import.line, message()))
    }

    fn constant(&self, name: &str, variant: Variant<'_>) -> Option<String> {
        let mut constants = variant.constants.iter();
        match constants.find(|(own, _)| *own == name) {
            Some((_, value)) => Some(format!("const {name} = {value}u;\n")),
            None => self.constants.get(name).cloned(),
        }
    }
}

/// Reads the files of a folder and of those in it, by their paths from where it began.
fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            read_folder(&path, &format!("{prefix}{name}/"), files)?;
        } else if name.ends_with(".wgsl") {
            files.push((format!("{prefix}{name}"), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Returns a constant's name and text.
fn constant(name: &str, values: &[f32]) -> (String, String) {
    let list: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
    let value = match &list[..] {
        [one] => one.clone(),
        many => format!("array({})", many.join(",")),
    };
    (name.to_owned(), format!("const {name} = {value};\n"))
}
