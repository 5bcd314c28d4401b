//! One WebAssembly build per instruction set.

use crate::project::Project;
use crate::setup::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use xshell::{Cmd, cmd};

/// What wasm-opt may assume and do. -O3 and -Oz differ little in size after LTO, and the
/// kernels are why anyone downloads the module.
const WASM_OPT: &[&str] = &[
    "-O3",
    "--enable-simd",
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
];

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

    pub(super) fn build(&self, project: &Project, tools: &Tools) -> Result<Built> {
        let folder = project.target(format!("npm/build-{}", self.name));
        self.compile(project, tools, &folder)?;
        let module = folder.join("optimised.wasm");
        self.optimise(project, tools, &folder.join("relampago_bg.wasm"), &module)?;
        Ok(Built {
            name: self.name,
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
        Ok(self.select(project, tools.for_wasm(build)).run()?)
    }

    /// build.rs turns the variable into a `cfg`. Target features given through RUSTFLAGS
    /// would change every symbol's hash, and with it the glue that both modules share.
    /// Two target folders, because one would be rebuilt at every change of the variable.
    pub(crate) fn select<'a>(&self, project: &Project, cmd: Cmd<'a>) -> Cmd<'a> {
        let cmd = cmd.env(
            "CARGO_TARGET_DIR",
            project.target(format!("wasm-{}", self.name)),
        );
        if self.relaxed {
            cmd.env("RELAMPAGO_WASM_RELAXED", "1")
        } else {
            cmd
        }
    }

    /// Skipped when the same module was optimised with the same flags before.
    fn optimise(&self, project: &Project, tools: &Tools, from: &Path, to: &Path) -> Result<()> {
        let (sh, wasm_opt) = (&project.sh, tools.npm_bin.join("wasm-opt"));
        let module = fs::read(from).context("wasm-pack leaves a module")?;
        let mut hasher = DefaultHasher::new();
        (module, WASM_OPT, self.relaxed).hash(&mut hasher);
        let (hash, stamp) = (hasher.finish().to_string(), to.with_extension("stamp"));
        if to.is_file() && fs::read_to_string(&stamp).is_ok_and(|done| done == hash) {
            return Ok(());
        }
        let relaxed = self.relaxed.then_some("--enable-relaxed-simd");
        eprintln!("...  wasm-opt {}", self.name);
        cmd!(sh, "{wasm_opt} {from} -o {to}")
            .args(WASM_OPT)
            .args(relaxed)
            .quiet()
            .run()?;
        Ok(sh.write_file(stamp, hash)?)
    }
}

/// One glue serves both modules, so both builds must have produced the same one.
pub(super) fn require_same_glue(built: &[Built]) -> Result<()> {
    for file in ["relampago.js", "relampago.d.ts"] {
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
