//! One WebAssembly build per instruction set.

use super::exports;
use super::stamp::unless_made;
use crate::project::Project;
use crate::setup::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Cmd, cmd};

/// What wasm-opt may assume and do. -O3 and -Oz differ little in size after LTO, and the
/// kernels are why anyone downloads the module.
const WASM_OPT: &[&str] = &[
    "-O3",
    "--strip-debug",
    "--strip-producers",
    "--strip-target-features",
    "--enable-simd",
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// wasm-bindgen's output: the script that loads a module, with its types, and the module.
pub(super) const GLUE: [&str; 2] = ["relampago.js", "relampago.d.ts"];
const MODULE: &str = "relampago_bg.wasm";

pub(crate) struct Variant {
    name: &'static str,
    relaxed: bool,
}

/// A finished build: wasm-bindgen's output folder and the optimised module.
pub(super) struct Built {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    pub(super) module: PathBuf,
}

impl Variant {
    pub(crate) const SIMD128: Self = Self {
        name: "simd128",
        relaxed: false,
    };
    pub(crate) const RELAXED: Self = Self {
        name: "relaxed",
        relaxed: true,
    };

    /// `sources` stands for everything that the build reads.
    pub(super) fn build(&self, project: &Project, tools: &Tools, sources: u64) -> Result<Built> {
        let folder = project.target(format!("npm/build-{}", self.name));
        let (bound, module) = (folder.join(MODULE), folder.join("optimised.wasm"));
        unless_made(&bound, &sources, || self.compile(project, tools, &folder))?;
        let content = fs::read(&bound).context("wasm-pack leaves a module")?;
        unless_made(&module, &(content, WASM_OPT, self.relaxed), || {
            self.optimise(project, tools, &bound, &module)
        })?;
        let name = self.name;
        Ok(Built {
            name,
            folder,
            module,
        })
    }

    fn compile(&self, project: &Project, tools: &Tools, folder: &Path) -> Result<()> {
        let (sh, wasm_pack) = (&project.sh, &tools.wasm_pack);
        let build = cmd!(
            sh,
            "{wasm_pack} --log-level warn build --mode no-install --target web --profile wasm
             --no-opt --no-pack --out-name relampago --out-dir {folder}
             -- --no-default-features --features gpu,js"
        );
        self.select(tools.for_wasm(build)).run()?;
        name_closures(folder)
    }

    /// build.rs turns the variable into a `cfg`. Target features given through RUSTFLAGS
    /// would change every symbol's hash, and with it the glue that both modules share.
    pub(crate) fn select<'a>(&self, cmd: Cmd<'a>) -> Cmd<'a> {
        const VARIABLE: &str = "RELAMPAGO_WASM_RELAXED";
        if self.relaxed {
            cmd.env(VARIABLE, "1")
        } else {
            cmd.env_remove(VARIABLE)
        }
    }

    fn optimise(&self, project: &Project, tools: &Tools, from: &Path, to: &Path) -> Result<()> {
        let wasm_opt = tools.npm_bin.join("wasm-opt");
        let relaxed = self.relaxed.then_some("--enable-relaxed-simd");
        let optimise = cmd!(project.sh, "{wasm_opt} {from} -o {to}")
            .args(WASM_OPT)
            .args(relaxed);
        Ok(optimise.run()?)
    }
}

fn name_closures(folder: &Path) -> Result<()> {
    let names = exports::stable_names(&fs::read_to_string(folder.join(GLUE[0]))?);
    for file in GLUE.map(|file| folder.join(file)) {
        let text = fs::read_to_string(&file)?;
        fs::write(file, exports::rename_in_text(&text, &names))?;
    }
    let module = folder.join(MODULE);
    let renamed = exports::rename_in_module(&fs::read(&module)?, &names)?;
    Ok(fs::write(module, renamed)?)
}

/// One glue serves both modules, so both builds must have produced the same one.
pub(super) fn require_same_glue(built: &[Built]) -> Result<()> {
    for file in GLUE {
        let read = |built: &Built| fs::read(built.folder.join(file)).with_context(|| file);
        let first = read(&built[0])?;
        for other in &built[1..] {
            if read(other)? != first {
                let (a, b) = (&built[0].folder, &other.folder);
                bail!("{file} differs between {} and {}", a.display(), b.display());
            }
        }
    }
    Ok(())
}
