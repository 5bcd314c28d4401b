//! Builds WebAssembly modules, for each instruction set, and the scripts that load them.

mod glue;
mod stamp;

use crate::project::Project;
use crate::setup::{TARGET, Tools};
use anyhow::{Context, Result, bail};
pub(crate) use stamp::sources;
use stamp::unless_made;
use std::fs;
use std::path::{Path, PathBuf};
use xshell::{Cmd, cmd};

/// Options of wasm-opt. rustc has already optimised for speed; wasm-opt makes a download 3% smaller.
const WASM_OPT: &[&str] = &[
    "-Os",
    // What is alike compresses best as functions of its own, unless it is as short as a call.
    "--one-caller-inline-max-function-size=0",
    "--always-inline-max-function-size=4",
    // Constant parts of addresses go into loads and stores: none of them lies in the first
    // kilobyte, which is the stack's last.
    "--low-memory-unused",
    "--strip-debug",
    "--strip-producers",
    "--strip-target-features",
    "--enable-simd",
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
];

/// The standard library, built for size and without the texts of panics, which a module has no
/// way to show.
const SMALL_STD: &[&str] = &[
    "-Zbuild-std=std,panic_abort",
    "-Zbuild-std-features=optimize_for_size",
];

/// Options that remove the texts of panics, and inline short functions in code compiled for size, which makes it
/// smaller. Instructions keep the order of the source: LLVM's own loads all that a tile of a product needs before it
/// multiplies, which is more than engines have registers for. Loops are unrolled and made of vectors where kernels say
/// so; elsewhere it would only make them longer. Without reference types wasm-bindgen numbers objects, and modules are
/// 1% smaller. Node 20 (V8 11.3) ends the process when it discards the compiled code of a caller of an export that
/// returns a reference; such modules have no such export. With the `cfg` the library uses tiles as high as that order
/// allows.
const SMALL_CODE: &[&str] = &[
    "-Zunstable-options",
    "-Cpanic=immediate-abort",
    "-Zinline-mir=yes",
    "-Cllvm-args=-pre-RA-sched=source",
    "-Cllvm-args=-unroll-runtime=false",
    "-Cno-vectorize-loops",
    "-Ctarget-feature=-reference-types,-multivalue",
    "--cfg=relampago_package",
];

/// Options of a module whose threads share its memory. The limit is the most that a module can ask for; whoever makes
/// the memory may set a lower one.
const SHARED: &[&str] = &[
    "-Ctarget-feature=+atomics,+bulk-memory,+mutable-globals",
    "-Clink-arg=--shared-memory",
    "-Clink-arg=--import-memory",
    "-Clink-arg=--max-memory=4294967296",
    "-Clink-arg=--export=__wasm_init_tls",
    "-Clink-arg=--export=__tls_size",
    "-Clink-arg=--export=__tls_align",
    "-Clink-arg=--export=__tls_base",
];

/// wasm-bindgen's output: the script that loads a module, with its types, and the module.
pub(crate) const GLUE: [&str; 2] = ["relampago.js", "relampago.d.ts"];
const MODULE: &str = "relampago_bg.wasm";
/// The crate that links the library as a module.
const CRATE: &str = "relampago-module";

/// A module, for one instruction set or for several.
pub(crate) struct Module {
    /// The name of the script that loads the module, as in the package's types.
    pub(crate) script: &'static str,
    /// The name after `#` by which the scripts in `js/` import the script that loads the module.
    pub(crate) import: &'static str,
    /// Features of the crate `src/js/module`.
    pub(crate) features: &'static str,
    /// Settings of cargo, beside the profile's own.
    pub(crate) settings: &'static [&'static str],
    pub(crate) variants: &'static [Variant],
}

pub(crate) struct Variant {
    pub(crate) name: &'static str,
    relaxed: bool,
    /// Whether its memory is shared among threads.
    shared: bool,
}

/// A finished build: wasm-bindgen's output folder and the optimised module.
#[derive(Clone)]
pub(crate) struct Built {
    pub(crate) name: &'static str,
    pub(crate) folder: PathBuf,
    pub(crate) module: PathBuf,
}

impl Module {
    /// Returns whether threads share the module's memory.
    pub(crate) fn has_threads(&self) -> bool {
        self.variants.iter().any(|variant| variant.shared)
    }
}

impl Variant {
    pub(crate) const SIMD128: Self = Self::plain("simd128");
    pub(crate) const RELAXED: Self = Self {
        relaxed: true,
        ..Self::plain("relaxed")
    };
    /// For pages whose threads share memory.
    pub(crate) const SHARED_SIMD128: Self = Self {
        shared: true,
        ..Self::plain("shared_simd128")
    };
    /// For pages whose threads share memory.
    pub(crate) const SHARED_RELAXED: Self = Self {
        relaxed: true,
        shared: true,
        ..Self::plain("shared_relaxed")
    };
    /// Runs models and tunes them.
    pub(crate) const TUNE_SIMD128: Self = Self::plain("tune_simd128");
    /// Runs models and tunes them.
    pub(crate) const TUNE_RELAXED: Self = Self {
        relaxed: true,
        ..Self::plain("tune_relaxed")
    };
    /// Runs models and tunes them, for pages whose threads share memory.
    pub(crate) const TUNE_SHARED_SIMD128: Self = Self {
        shared: true,
        ..Self::plain("tune_shared_simd128")
    };
    /// Runs models and tunes them, for pages whose threads share memory.
    pub(crate) const TUNE_SHARED_RELAXED: Self = Self {
        relaxed: true,
        shared: true,
        ..Self::plain("tune_shared_relaxed")
    };
    /// Writes text, and needs no vectors.
    pub(crate) const PTX: Self = Self::plain("ptx");
    /// Reads chat templates and JSON schemas, and needs no vectors.
    pub(crate) const CHAT: Self = Self::plain("chat");
    /// Adds nodes of gradients to graphs, and needs no vectors.
    pub(crate) const TRAIN: Self = Self::plain("train");
    /// Adds nodes of functions to graphs, and needs no vectors.
    pub(crate) const NUMERIC: Self = Self::plain("numeric");

    /// A variant for one thread, without relaxed SIMD.
    const fn plain(name: &'static str) -> Self {
        Self {
            name,
            relaxed: false,
            shared: false,
        }
    }

    /// Builds a module of the package's entry `entry`. `sources` stands for everything that the build reads.
    pub(crate) fn build(
        &self,
        (entry, module): (&str, &Module),
        project: &Project,
        tools: &Tools,
        sources: u64,
    ) -> Result<Built> {
        let folder = project.target(format!("npm/build-{entry}-{}", self.name));
        let (bound, optimised) = (folder.join(MODULE), folder.join("optimised.wasm"));
        unless_made(
            &bound,
            &(
                sources,
                module.features,
                module.settings,
                SMALL_STD,
                SMALL_CODE,
                SHARED,
                include_str!("glue.rs"),
            ),
            || {
                let compiled = self.compile((entry, module), project, tools)?;
                glue::bind(&compiled, &folder)
            },
        )?;
        let content = fs::read(&bound).context("wasm-bindgen leaves a module")?;
        let versions = fs::read(project.pkg_tests().join("package-lock.json"))?;
        let inputs = (content, WASM_OPT, self.relaxed, versions);
        unless_made(&optimised, &inputs, || {
            self.optimise(project, tools, &bound, &optimised)
        })?;
        let name = self.name;
        Ok(Built {
            name,
            folder,
            module: optimised,
        })
    }

    /// Returns the path of the module as the compiler leaves it.
    fn compile(
        &self,
        (entry, module): (&str, &Module),
        project: &Project,
        tools: &Tools,
    ) -> Result<PathBuf> {
        // Panics name their places; nobody need know where on this machine those lie.
        let registry = Tools::cargo_home()?.join("registry/src");
        let remap = format!("--remap-path-prefix={}=", registry.display());
        let shared = if self.shared { SHARED } else { &[] };
        let flags = [&[remap.as_str()], SMALL_CODE, shared].concat();
        let config = format!("target.{TARGET}.rustflags={flags:?}");
        let features = module.features;
        let settings = module.settings.iter().flat_map(|set| ["--config", set]);
        // A target folder of its own, since cargo locks it; with other flags it would compile everything anew.
        let suffix = if self.shared { "-shared" } else { "" };
        let target = project.target(format!("npm/cargo-{entry}{suffix}"));
        let build = cmd!(
            project.sh,
            "cargo build --profile wasm --target {TARGET} -p {CRATE} --features {features} --config {config}"
        )
        .args(settings)
        .args(SMALL_STD)
        .env("CARGO_TARGET_DIR", &target)
        // The options above are cargo's and the compiler's own, though not yet stable.
        .env("RUSTC_BOOTSTRAP", "1");
        self.select(tools.for_wasm(build)).run()?;
        let file = CRATE.replace('-', "_") + ".wasm";
        Ok(target.join(TARGET).join("wasm").join(file))
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
        let wasm_opt = tools.npm_program("wasm-opt");
        let relaxed = self.relaxed.then_some("--enable-relaxed-simd");
        // Engines ignore what a load says of its address, and saying nothing compresses best; but an atomic one must say it.
        let shared = if self.shared {
            "--enable-threads"
        } else {
            "--dealign"
        };
        let optimise = cmd!(project.sh, "{wasm_opt} {from} -o {to}")
            .args(WASM_OPT)
            .args(relaxed)
            .arg(shared);
        Ok(optimise.run()?)
    }
}

/// One glue serves both modules, so both builds must have produced the same one.
pub(crate) fn require_same_glue(built: &[Built]) -> Result<()> {
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
