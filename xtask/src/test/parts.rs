//! The parts of `cargo xtask test`, cheapest first.

use super::engines::{self, Engine};
use super::{Context, Part, counted, dependent, exhaustive, layers, publish};
use crate::demo;
use crate::docs;
use crate::files;
use crate::package::{self, Package};
use crate::setup::Model;
use crate::wasm::Variant;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use xshell::{Cmd, cmd};

pub(super) const PARTS: &[Part] = &[
    Part {
        name: "format",
        run: format,
    },
    Part {
        name: "layers",
        run: |context| layers::check(&context.project.root),
    },
    Part {
        name: "js",
        run: js,
    },
    Part {
        name: "clippy",
        run: clippy,
    },
    Part {
        name: "clippy-wasm",
        run: clippy_wasm,
    },
    Part {
        name: "native",
        run: native,
    },
    Part {
        name: "ptx",
        run: ptx,
    },
    Part {
        name: "deny",
        run: publish::deny,
    },
    Part {
        name: "publish",
        run: publish::package,
    },
    Part {
        name: "dependent",
        run: dependent::run,
    },
    Part {
        name: "wasm-simd128",
        run: |context| wasm(context, &Variant::SIMD128, Engine::Chromium),
    },
    Part {
        name: "wasm-relaxed",
        run: |context| wasm(context, &Variant::RELAXED, Engine::Chromium),
    },
    // After the part that has compiled the same tests.
    Part {
        name: "wasm-firefox",
        run: |context| wasm(context, &Variant::RELAXED, Engine::Firefox),
    },
];

/// The parts that build and test the npm package. They run beside the others.
pub(super) const PACKAGE_PARTS: &[Part] = &[
    Part {
        name: "package",
        run: |context| package::run(context.project, context.tools).map(drop),
    },
    Part {
        name: "wasm-pack",
        run: wasm_pack,
    },
    Part {
        name: "site",
        run: site,
    },
    Part {
        name: "pkg-tests",
        run: pkg_tests,
    },
    Part {
        name: "demo",
        run: demo,
    },
];

/// The part that needs the records of others.
pub(super) const LAST_PARTS: &[Part] = &[Part {
    name: "engines",
    run: engines::table,
}];

/// Parts that take hours, or check what seldom changes.
pub(super) const EXHAUSTIVE_PARTS: &[Part] = &[
    Part {
        name: "shaders",
        run: exhaustive::shaders,
    },
    Part {
        name: "entries",
        run: exhaustive::entries,
    },
    Part {
        name: "published",
        run: publish::package_in_full,
    },
    Part {
        name: "hostile",
        run: exhaustive::hostile,
    },
    Part {
        name: "readers",
        run: exhaustive::readers,
    },
    Part {
        name: "models",
        run: exhaustive::models,
    },
    Part {
        name: "functions",
        run: exhaustive::functions,
    },
    Part {
        name: "fuzz",
        run: exhaustive::fuzz,
    },
];

/// The packages of the native tests; the part that needs PTX's assembler and the package's tests run some of them.
/// Benchmarks are excluded: clippy has checked them, and their peers take a minute to compile.
const TESTED: [&str; 13] = [
    "-p",
    "relampago",
    "-p",
    "relampago-coefficients",
    "-p",
    "relampago-ptx",
    "-p",
    "xtask",
    "-p",
    "cluster",
    "-p",
    "serve",
    "--all-features",
];

fn format(context: &Context) -> Result<()> {
    Ok(cmd!(context.project.sh, "cargo fmt --all --check").run()?)
}

/// Runs clippy with all features, and with few: SIMD alone, PTX or language models with it, and the examples with what
/// each requires must build without warnings too.
fn clippy(context: &Context) -> Result<()> {
    let sh = &context.project.sh;
    cmd!(
        sh,
        "cargo clippy --workspace --exclude shaders-check --all-targets --all-features -- -D warnings"
    )
    .run()?;
    for feature in ["", "ptx", "llm"] {
        let alone = ["--no-default-features", "--features", feature];
        cmd!(sh, "cargo clippy {alone...} --lib -- -D warnings").run()?;
    }
    // As the examples' users build them; each feature's examples come with those that need none.
    for feature in ["llm", "cuda"] {
        cmd!(
            sh,
            "cargo clippy -p relampago --features {feature} --examples -- -D warnings"
        )
        .run()?;
    }
    Ok(())
}

/// Checks the types of the scripts that have them, and runs the scripts' own tests, which stand beside them.
fn js(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let (sh, tsc) = (&project.sh, tools.npm_program("tsc"));
    cmd!(sh, "{tsc} --project js").run()?;
    let mut tests = files::list(&project.root.join("js"))?;
    tests.retain(|path| path.to_string_lossy().ends_with(".test.js"));
    ensure!(!tests.is_empty(), "there are no tests in js/");
    // Stand-ins for modules have this condition in js/package.json.
    Ok(cmd!(sh, "node --test --conditions=test {tests...}").run()?)
}

fn clippy_wasm(context: &Context) -> Result<()> {
    let all = "gpu,js,js-llm,js-chat,js-tune,js-ptx,js-numeric,js-train";
    clippy_wasm_with(context, all)?;
    let clippy = cmd!(
        context.project.sh,
        "cargo clippy -p relampago-ptx --features js --target wasm32-unknown-unknown -- -D warnings"
    );
    Ok(context.tools.for_wasm(clippy).run()?)
}

/// Runs clippy with these features, for WebAssembly.
pub(super) fn clippy_wasm_with(context: &Context, features: &str) -> Result<()> {
    let clippy = cmd!(
        context.project.sh,
        "cargo clippy --lib --target wasm32-unknown-unknown
         --no-default-features --features {features} -- -D warnings"
    );
    let clippy = Variant::SIMD128.select(context.tools.for_wasm(clippy));
    Ok(clippy.run()?)
}

/// Builds the documentation's site with the types of the package that was built, and checks its links.
fn site(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let site = docs::build(project, tools, &Package::locate(project)?)?;
    docs::check_links(project, &site)
}

fn native(context: &Context) -> Result<()> {
    let test = cmd!(context.project.sh, "cargo test {TESTED...} --no-fail-fast");
    let models = context.project.cache.join("models");
    let test = test.env("RELAMPAGO_MODELS", models);
    with_gpu(context, test)?.run()?;
    cuda(context)
}

/// Runs the tests that are ignored because they need an NVIDIA GPU, by name, where its driver finds one.
fn cuda(context: &Context) -> Result<()> {
    let sh = &context.project.sh;
    let listed = cmd!(sh, "nvidia-smi --list-gpus")
        .quiet()
        .ignore_stderr()
        .read();
    if !listed.is_ok_and(|gpus| gpus.starts_with("GPU ")) {
        println!("No NVIDIA GPU: the tests that are ignored above without one were skipped.");
        return Ok(());
    }
    for test in ["cuda", "cuda_backend", "cuda_streams"] {
        let ignored = cmd!(
            sh,
            "cargo test {TESTED...} --test {test} -- --ignored --nocapture"
        );
        counted::run(ignored)?;
    }
    let name = "cuda::compile::tests::a_second_compilation_comes_from_the_cache";
    counted::run(cmd!(
        sh,
        "cargo test {TESTED...} --lib -- --ignored --exact {name}"
    ))
}

/// Tests PTX without a GPU. Prints the numbers of kernels, targets, interpreted cases and faults. With the features of
/// the native tests, which are compiled already, and have run the library's own.
fn ptx(context: &Context) -> Result<()> {
    let test = cmd!(
        context.project.sh,
        "cargo test {TESTED...} --test ptx -- --nocapture"
    );
    Ok(test.env("PTXAS", &context.tools.ptxas).run()?)
}

/// The library's own tests and those in `tests/browser.rs`; all others are for machines with
/// threads to block. Without the feature `js`, whose glue imports a file of the
/// package; the package's tests are its tests.
fn wasm(context: &Context, variant: &Variant, engine: Engine) -> Result<()> {
    let Context { project, tools, .. } = context;
    let (wasm_pack, browser) = (&tools.wasm_pack, engine.arguments(tools)?);
    let test = cmd!(
        project.sh,
        "{wasm_pack} --log-level warn test --mode no-install --headless {browser...}
         --release . --no-default-features --features gpu --lib --test browser"
    );
    // The runner gives a whole file of tests 20 seconds by default.
    let test = tools.for_wasm(test).env("WASM_BINDGEN_TEST_TIMEOUT", "600");
    engine.run(context, variant.select(test))
}

/// Runs wasm-pack, as users of the crate do, on the module that computes, for its three targets. Tests the packages
/// that it writes.
fn wasm_pack(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let (sh, wasm_pack) = (&project.sh, &tools.wasm_pack);
    let out = project.target("wasm-pack");
    for target in ["nodejs", "web", "bundler"] {
        let folder = out.join(target);
        let build = cmd!(
            sh,
            "{wasm_pack} --log-level warn build src/js/module --mode no-install --dev --target {target}
             --out-dir {folder} -- --features computing"
        );
        Variant::SIMD128.select(tools.for_wasm(build)).run()?;
    }
    let test = project.pkg_tests().join("wasm-pack/wasm-pack.test.mjs");
    let test = cmd!(sh, "node --test --test-reporter=spec {test}");
    Ok(tools.for_browser(test)?.env("WASM_PACK", out).run()?)
}

/// Three files at a time: each waits for its browser for a part of the time.
fn pkg_tests(context: &Context) -> Result<()> {
    let Context { project, tools, .. } = context;
    let tarball = Package::locate(project)?.tarball;
    let _inside = project.sh.push_dir(project.pkg_tests());
    let _records = engines::recording(context, "pkg-tests")?;
    // Not those of hosts, which lie in folders below.
    let files = project.sh.read_dir("tests")?;
    let test = cmd!(
        project.sh,
        "node --test --test-concurrency=3 --test-reporter=spec {files...}"
    )
    .env("RELAMPAGO_TARBALL", tarball)
    .env("RELAMPAGO_TESTED", TESTED.join(" "))
    .env("RELAMPAGO_MODEL", Model::smollm2(project).path());
    // Deno has a GPU.
    Ok(with_gpu(context, tools.for_browser(test)?)?.run()?)
}

fn demo(context: &Context) -> Result<()> {
    let package = Package::locate(context.project)?;
    let _records = engines::recording(context, "demo")?;
    demo::check(context.project, context.tools, &package)
}

/// The Vulkan loader complains without a directory of its own.
pub(super) fn with_gpu<'a>(context: &Context, cmd: Cmd<'a>) -> Result<Cmd<'a>> {
    let runtime = context.project.target("xdg-runtime");
    fs::create_dir_all(&runtime).context("cannot make a runtime directory")?;
    Ok(cmd.env("XDG_RUNTIME_DIR", runtime))
}
