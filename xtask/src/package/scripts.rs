//! The scripts of `js/`, the built scripts, and the package's scripts and types that are made from both.

use super::entry::{Bundle, Entry};
use crate::files::{self, copy_tree};
use crate::project::Project;
use crate::setup::Tools;
use crate::wasm::{GLUE, Module};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use xshell::cmd;

/// A copy of `js/`, whose folder `modules` has the scripts that are built. `js/package.json` names them for imports.
pub(super) struct Scripts {
    folder: PathBuf,
}

impl Scripts {
    /// Copies the scripts, in place of an earlier copy.
    pub(super) fn copy(project: &Project) -> Result<Self> {
        let folder = project.target("npm/js");
        project.sh.remove_path(&folder)?;
        copy_tree(&project.root.join("js"), &folder)?;
        fs::create_dir_all(folder.join("modules"))?;
        Ok(Self { folder })
    }

    /// Adds the script that loads a module.
    pub(super) fn add_module(&self, module: &Module, from: &Path) -> Result<()> {
        let script = fs::read_to_string(from.join(GLUE[0]))?;
        let to = self.built(module.import);
        Ok(fs::write(to, with_imports_in_place(&script)?)?)
    }

    /// Adds the methods that come from the op table and the shaders' text; writes both, and the methods' types, into the
    /// package.
    pub(super) fn add_tables(&self, project: &Project, package: &Path) -> Result<()> {
        let table =
            |format: &str| -> Result<String> { Ok(project.example("op_table", &[format])? + "\n") };
        fs::write(self.built("ops"), table("js")?)?;
        fs::write(package.join("shaders.js"), table("shaders")?)?;
        Ok(fs::write(package.join("ops.d.ts"), table("d.ts")?)?)
    }

    fn built(&self, name: &str) -> PathBuf {
        self.folder.join(format!("modules/{name}.js"))
    }

    /// Makes the scripts of the package; everything else goes into them. A browser would ask for each only after it has
    /// read the one before: three instead of one cost a third of the start-up.
    pub(super) fn bundle<'a>(
        &self,
        project: &Project,
        tools: &Tools,
        entry: &Entry,
        bundles: impl IntoIterator<Item = &'a Bundle>,
        package: &Path,
    ) -> Result<()> {
        let esbuild = tools.npm_program("esbuild");
        for bundle in bundles {
            let Bundle {
                name,
                external,
                conditions,
            } = bundle;
            let (script, bundle) = (
                self.folder.join(entry.source).join(name),
                package.join(name),
            );
            let names = external.iter().map(|(name, _)| *name).chain(["node:*"]);
            let names = names.map(|name| format!("--external:{name}"));
            let conditions = conditions.join(",");
            let conditions = (!conditions.is_empty()).then(|| format!("--conditions={conditions}"));
            // Node prints the line of an error that nobody catches, so lines are short.
            let make = cmd!(
                project.sh,
                "{esbuild} {script} --bundle --minify --line-limit=1000 --format=esm --target=es2022 --outfile={bundle}
                 --log-level=warning"
            );
            make.args(names).args(conditions).quiet().run()?;
            let text = external
                .iter()
                .fold(fs::read_to_string(&bundle)?, |text, (from, to)| {
                    text.replace(from, to)
                });
            fs::write(bundle, text)?;
        }
        Ok(())
    }

    /// Copies the scripts that stay as they are.
    pub(super) fn copy_scripts(&self, entry: &Entry, package: &Path) -> Result<()> {
        for name in entry.copies {
            let script = fs::read_to_string(self.folder.join(entry.source).join(name))?;
            let to = package.join(name);
            fs::create_dir_all(to.parent().context("a script lies in a folder")?)?;
            fs::write(to, script.replace("#shaders", "./shaders.js"))?;
        }
        Ok(())
    }

    /// Copies types, those of all entries first.
    pub(super) fn copy_types(&self, entry: &Entry, package: &Path) -> Result<()> {
        for source in ["common", entry.source] {
            let source = self.folder.join("types").join(source);
            for file in files::list(&source)? {
                let name = file.strip_prefix(&source)?;
                let to = package.join(name);
                fs::create_dir_all(to.parent().context("types lie in a folder")?)?;
                let depth = name.components().count() - 1;
                let types = published_types(&fs::read_to_string(&file)?, entry, depth);
                fs::write(to, types)?;
            }
        }
        Ok(())
    }
}

/// Returns types with imports that are right in the package, where all types of an entry lie in its folder, `depth`
/// folders above these types.
fn published_types(types: &str, entry: &Entry, depth: usize) -> String {
    let root = if depth == 0 {
        "./".to_owned()
    } else {
        "../".repeat(depth)
    };
    let modules = entry.modules.iter();
    let modules = modules.map(|module| (format!("#{}", module.import), module.script));
    let shared = [("#ops", "ops"), ("#computing", "../relampago")];
    let shared = shared.map(|(import, script)| (import.to_owned(), script));
    let common = "../".repeat(depth + 1) + "common/";
    let types = types.replace(&format!("'{common}"), &format!("'{root}"));
    let types = types.replace("'../npm/", "'../");
    modules.chain(shared).fold(types, |types, (from, to)| {
        types.replace(&format!("'{from}'"), &format!("'{root}{to}.js'"))
    })
}

/// Returns wasm-bindgen's script with imports of the scripts in `js/` instead of its own copies of them. In other
/// places of the script such a name belongs to an import of the module, and stays.
fn with_imports_in_place(script: &str) -> Result<String> {
    let lines = script.split_inclusive('\n').map(import_in_place);
    lines.collect()
}

/// Returns a line with the script in `js/` in place of its copy, if the line imports one.
fn import_in_place(line: &str) -> Result<String> {
    const COPIES: &str = "./snippets/";
    const SCRIPTS: &str = "/js/";
    let copy = line
        .starts_with("import ")
        .then(|| line.split_once(COPIES))
        .flatten();
    let Some((before, copy)) = copy else {
        return Ok(line.to_owned());
    };
    let (_, path) = copy
        .split_once(SCRIPTS)
        .with_context(|| format!("{line:?} imports a copy that is of no script in js/"))?;
    Ok(format!("{before}../{path}"))
}

#[cfg(test)]
mod tests {
    use super::super::entry::ENTRIES;
    use super::{published_types, with_imports_in_place};

    #[test]
    fn published_types_import_within_their_entry() {
        let types = "from '../common/base.js'; from '#computing'; import '#ops';";
        let published = published_types(types, &ENTRIES[0], 0);
        assert_eq!(
            published,
            "from './base.js'; from './relampago.js'; import './ops.js';"
        );
        let published = published_types("from '#computing'", &ENTRIES[0], 1);
        assert_eq!(published, "from '../relampago.js'");
    }

    #[test]
    fn built_scripts_import_from_the_tree() {
        let script = "import { a } from './snippets/relampago-1f/js/npm/a.js';\nimport * as b from \"./snippets/relampago-1f/js/b.js\";\n\"./snippets/relampago-1f/js/b.js\": b,";
        let placed = with_imports_in_place(script).unwrap();
        assert_eq!(
            placed,
            "import { a } from '../npm/a.js';\nimport * as b from \"../b.js\";\n\"./snippets/relampago-1f/js/b.js\": b,"
        );
        assert!(with_imports_in_place("import './snippets/other/inline0.js'").is_err());
    }
}
