//! The entry points of the package: `relampago`, `relampago/llm` and `relampago/ptx`. Each has modules of its own.

use crate::wasm::{Module, Variant};

pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The entry point's folder in the package; empty for the package's root.
    pub(super) folder: &'static str,
    /// Folders of the project with its scripts and types.
    pub(super) sources: &'static [&'static str],
    /// The module that the entry begins with, and others.
    pub(super) modules: &'static [Module],
    /// The scripts that esbuild makes of the sources.
    pub(super) scripts: &'static [Script],
    /// Whether it has the operations' methods and shaders.
    pub(super) op_table: bool,
    /// Limit of a download in bytes: the script and one variant of the first module, compressed with gzip.
    pub(super) limit: usize,
}

/// Settings for modules that work on texts, which needs no speed.
const SMALL: &[&str] = &["profile.wasm.package.relampago.opt-level='z'"];

/// A script that contains everything it imports, except external imports.
pub(super) struct Script {
    pub(super) name: &'static str,
    /// Imports that stay: the name in the sources, and the one in the package.
    pub(super) external: &'static [(&'static str, &'static str)],
}

/// The worker's script has the core a second time. If it imported that of `index.js`, which may start workers,
/// webpack would warn of a script that starts itself. `index.js` comes last, since the others are made of the
/// core that becomes a part of it.
const COMPUTING: &[Script] = &[
    Script {
        name: "workers/relampago_worker.js",
        external: &[("./shaders.js", "../shaders.js")],
    },
    Script {
        name: "workers/create.js",
        external: &[("../core.js", "../index.js")],
    },
    Script {
        name: "index.js",
        external: &[
            ("./workers/create.js", "./workers/create.js"),
            ("./shaders.js", "./shaders.js"),
        ],
    },
];

/// The worker's script has the engine a second time, for the reason above.
const LANGUAGE_MODELS: &[Script] = &[
    Script {
        name: "llm_worker.js",
        external: &[],
    },
    Script {
        name: "index.js",
        external: &[],
    },
];

/// The entries that the page loads come first.
pub(super) const ENTRIES: [Entry; 3] = [
    Entry {
        name: "relampago",
        folder: "",
        sources: &["src/js/common", "src/js/npm"],
        modules: &[Module {
            script: "relampago",
            features: "computing",
            settings: &[],
            variants: &[Variant::SIMD128, Variant::RELAXED],
        }],
        scripts: COMPUTING,
        op_table: true,
        limit: 251 * 1024,
    },
    Entry {
        name: "llm",
        folder: "llm",
        sources: &["src/js/common", "src/js/llm"],
        modules: &[
            Module {
                script: "relampago",
                features: "llm",
                settings: &[],
                variants: &[Variant::SIMD128, Variant::RELAXED],
            },
            Module {
                script: "relampago_chat",
                features: "chat",
                settings: SMALL,
                variants: &[Variant::CHAT],
            },
        ],
        scripts: LANGUAGE_MODELS,
        op_table: false,
        limit: 320 * 1024,
    },
    Entry {
        name: "ptx",
        folder: "ptx",
        sources: &["src/js/common", "src/js/ptx"],
        modules: &[Module {
            script: "relampago",
            features: "ptx",
            settings: SMALL,
            variants: &[Variant::PTX],
        }],
        scripts: &[Script {
            name: "index.js",
            external: &[],
        }],
        op_table: false,
        limit: 180 * 1024,
    },
];
