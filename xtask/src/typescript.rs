//! TypeScript for the playground, whose worker checks types in the browser.

use crate::project::Project;
use crate::setup::Tools;
use anyhow::Result;
use std::fs;
use std::path::Path;
use xshell::cmd;

/// Writes TypeScript as one script, and the types of JavaScript and the DOM, into `folder`.
pub(crate) fn add(project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
    let sh = &project.sh;
    // TypeScript 7 is a program, which no page can load.
    let library = project.pkg_tests().join("node_modules/typescript-6/lib");
    let (esbuild, name) = (tools.npm_program("esbuild"), "typescript.js");
    let (script, bundle) = (library.join(name), folder.join(name));
    let options = ["--bundle", "--minify", "--format=esm", "--log-level=error"];
    let build = cmd!(sh, "{esbuild} {script} {options...} --outfile={bundle}");
    build.quiet().run()?;
    for file in sh.read_dir(&library)? {
        let name = file.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("lib.") {
            fs::copy(&file, folder.join(name))?;
        }
    }
    let licence = library.with_file_name("LICENSE.txt");
    fs::copy(licence, folder.join("LICENSE.txt"))?;
    Ok(())
}
