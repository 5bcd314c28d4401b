//! The entry points of the package: `relampago`, `relampago/numeric`, `relampago/train`, `relampago/llm` and
//! `relampago/ptx`. Each has its own modules.

use crate::wasm::{Module, Variant};

pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The entry point's folder in the package; empty for the package's root.
    pub(super) folder: &'static str,
    /// The folder of `js/` with its scripts, and that of `js/types/` with its types.
    pub(super) source: &'static str,
    /// The module that the entry begins with, and others.
    pub(super) modules: &'static [Module],
    /// The scripts of the package that esbuild makes of the sources.
    pub(super) bundles: &'static [Bundle],
    /// Scripts that stay as they are, except for their imports of built scripts.
    pub(super) copies: &'static [&'static str],
    /// Whether it has the operations' methods and shaders.
    pub(super) op_table: bool,
    /// Limit of a download in bytes: the script and one variant of the first module, compressed with gzip.
    pub(super) limit: usize,
}

/// Settings for modules that work on texts and graphs, which needs no speed.
const SMALL: &[&str] = &["profile.wasm.package.relampago.opt-level='z'"];

/// A script that contains everything it imports, except external imports.
pub(super) struct Bundle {
    pub(super) name: &'static str,
    /// Imports that stay: the name in the sources, and the one in the package.
    pub(super) external: &'static [(&'static str, &'static str)],
    /// The conditions by which `js/package.json` names the module that it loads.
    pub(super) conditions: &'static [&'static str],
}

/// The condition of a module whose threads share memory.
const THREADS: &str = "threads";
/// The condition of a module that tunes.
const TUNE: &str = "tune";

impl Bundle {
    /// A bundle that imports nothing.
    const fn alone(name: &'static str) -> Self {
        Self {
            name,
            external: &[],
            conditions: &[],
        }
    }

    /// Returns whether it loads a module whose threads share memory.
    pub(super) fn has_threads(&self) -> bool {
        self.conditions.contains(&THREADS)
    }
}

/// Reads files in Node, around the entry's own script.
const NODE: Bundle = Bundle {
    name: "node.js",
    external: &[
        ("./index.js", "./index.js"),
        ("./workers/create_node.js", "./workers/create_node.js"),
    ],
    conditions: &[],
};

/// The worker's script has the script of the module a second time. If it imported that of `index.js`, which may start
/// workers, webpack would warn of a script that starts itself.
const COMPUTING: &[Bundle] = &[
    Bundle {
        name: "workers/relampago_worker.js",
        external: &[("#shaders", "../shaders.js")],
        conditions: &[],
    },
    Bundle {
        name: "workers/relampago_threads.js",
        external: &[("#shaders", "../shaders.js")],
        conditions: &[THREADS],
    },
    Bundle {
        name: "workers/create.js",
        external: &[("../core.js", "../index.js")],
        conditions: &[],
    },
    Bundle {
        name: "workers/create_node.js",
        external: &[("../core.js", "../index.js")],
        conditions: &[],
    },
    Bundle {
        name: "index.js",
        external: &[
            ("./workers/create.js", "./workers/create.js"),
            ("#shaders", "./shaders.js"),
        ],
        conditions: &[],
    },
    NODE,
];

/// The worker's script has the engine a second time, for the reason above.
const LANGUAGE_MODELS: &[Bundle] = &[
    Bundle::alone("llm_worker.js"),
    Bundle {
        name: "llm_threads.js",
        external: &[],
        conditions: &[THREADS],
    },
    Bundle {
        name: "tune_worker.js",
        external: &[],
        conditions: &[TUNE],
    },
    Bundle {
        name: "tune_threads.js",
        external: &[],
        conditions: &[TUNE, THREADS],
    },
    Bundle::alone("index.js"),
    NODE,
];

/// Errors, tensors and nodes are those of `relampago`.
const OF_TENSORS: &[Bundle] = &[
    Bundle {
        name: "index.js",
        external: &[
            ("../npm/index.js", "../index.js"),
            ("../common/error.js", "../index.js"),
            ("./error.js", "../index.js"),
        ],
        conditions: &[],
    },
    Bundle {
        name: "node.js",
        external: &[("./index.js", "./index.js")],
        conditions: &[],
    },
];

/// All entries; those of the demo come first.
pub(super) const ENTRIES: [Entry; 5] = [
    Entry {
        name: "relampago",
        folder: "",
        source: "npm",
        modules: &[
            Module {
                script: "relampago",
                import: "computing",
                features: "computing",
                settings: &[],
                variants: &[Variant::SIMD128, Variant::RELAXED],
            },
            Module {
                script: "relampago",
                import: "computing-threads",
                features: "computing,threads",
                settings: &[],
                variants: &[Variant::SHARED_SIMD128, Variant::SHARED_RELAXED],
            },
        ],
        bundles: COMPUTING,
        copies: &["static.js", "full/index.js"],
        op_table: true,
        limit: 275 * 1024,
    },
    Entry {
        name: "llm",
        folder: "llm",
        source: "llm",
        modules: &[
            Module {
                script: "relampago",
                import: "llm",
                features: "llm",
                settings: &[],
                variants: &[Variant::SIMD128, Variant::RELAXED],
            },
            Module {
                script: "relampago",
                import: "llm-threads",
                features: "llm,threads",
                settings: &[],
                variants: &[Variant::SHARED_SIMD128, Variant::SHARED_RELAXED],
            },
            Module {
                script: "relampago_tune",
                import: "tune",
                features: "tune",
                settings: &[],
                variants: &[Variant::TUNE_SIMD128, Variant::TUNE_RELAXED],
            },
            Module {
                script: "relampago_tune",
                import: "tune-threads",
                features: "tune,threads",
                settings: &[],
                variants: &[Variant::TUNE_SHARED_SIMD128, Variant::TUNE_SHARED_RELAXED],
            },
            Module {
                script: "relampago_chat",
                import: "chat",
                features: "chat",
                settings: SMALL,
                variants: &[Variant::CHAT],
            },
        ],
        bundles: LANGUAGE_MODELS,
        copies: &[],
        op_table: false,
        limit: 360 * 1024,
    },
    Entry {
        name: "train",
        folder: "train",
        source: "train",
        modules: &[Module {
            script: "relampago",
            import: "train",
            features: "train",
            settings: SMALL,
            variants: &[Variant::TRAIN],
        }],
        bundles: OF_TENSORS,
        copies: &[],
        op_table: false,
        limit: 64 * 1024,
    },
    Entry {
        name: "numeric",
        folder: "numeric",
        source: "numeric",
        modules: &[Module {
            script: "relampago",
            import: "numeric",
            features: "numeric",
            settings: SMALL,
            variants: &[Variant::NUMERIC],
        }],
        bundles: OF_TENSORS,
        copies: &[],
        op_table: false,
        limit: 72 * 1024,
    },
    Entry {
        name: "ptx",
        folder: "ptx",
        source: "ptx",
        modules: &[Module {
            script: "relampago",
            import: "ptx",
            features: "ptx",
            settings: SMALL,
            variants: &[Variant::PTX],
        }],
        bundles: &[Bundle::alone("index.js"), NODE],
        copies: &[],
        op_table: false,
        limit: 180 * 1024,
    },
];
