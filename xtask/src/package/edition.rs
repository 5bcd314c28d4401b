//! What the package has more than once: for every page, with all that the crate can do, and PTX alone.

use super::variant::Variant;
use xshell::Cmd;

pub(super) struct Edition {
    pub(super) name: &'static str,
    /// In the package; nothing is the package's own.
    pub(super) folder: &'static str,
    /// Folders of the project whose scripts and types it has; later ones take the place of earlier.
    pub(super) sources: &'static [&'static str],
    /// Of the crate `src/js/module`.
    pub(super) features: &'static str,
    /// Of cargo, beside the profile's own.
    pub(super) settings: &'static [&'static str],
    pub(super) variants: &'static [Variant],
    /// What is made of the sources.
    pub(super) scripts: &'static [Script],
    /// Whether there are operations, with methods and shaders.
    pub(super) op_table: bool,
    small: bool,
    /// Of a download, in bytes: the script and one module, compressed as a web server would send them.
    pub(super) limit: usize,
}

/// A script with everything in it that it asks for, but for what it finds in the package.
pub(super) struct Script {
    pub(super) name: &'static str,
    /// What it finds there: by which name in the sources, and by which in the package.
    pub(super) external: &'static [(&'static str, &'static str)],
}

/// A worker's has the core once more. If it shared that of `index.js`, which may start workers, webpack
/// would warn everyone of a script that starts itself. `index.js` is made last: the others are made of
/// the core that becomes a part of it.
const COMPUTING: &[Script] = &[
    Script {
        name: "workers/relampago_worker.js",
        external: &[("./shaders.js", "../shaders.js")],
    },
    Script {
        name: "workers/create.js",
        external: &[
            ("../core.js", "../index.js"),
            ("../extras.js", "../index.js"),
        ],
    },
    Script {
        name: "index.js",
        external: &[
            ("./workers/create.js", "./workers/create.js"),
            ("./shaders.js", "./shaders.js"),
        ],
    },
];

pub(super) const EDITIONS: [Edition; 3] = [
    Edition {
        name: "small",
        folder: "",
        sources: &["src/js/common", "src/js/npm"],
        features: "computing",
        settings: &[],
        variants: &[Variant::SIMD128, Variant::RELAXED],
        scripts: COMPUTING,
        op_table: true,
        small: true,
        limit: 110 * 1024,
    },
    Edition {
        name: "full",
        folder: "full",
        sources: &["src/js/common", "src/js/npm", "src/js/full"],
        features: "computing",
        settings: &[],
        variants: &[Variant::SIMD128, Variant::RELAXED],
        scripts: COMPUTING,
        op_table: true,
        small: false,
        limit: 183 * 1024,
    },
    Edition {
        name: "ptx",
        folder: "ptx",
        sources: &["src/js/common", "src/js/ptx"],
        features: "ptx",
        // What writes text need not be fast.
        settings: &["profile.wasm.package.relampago.opt-level='z'"],
        variants: &[Variant::PTX],
        scripts: &[Script {
            name: "index.js",
            external: &[],
        }],
        op_table: false,
        small: false,
        limit: 168 * 1024,
    },
];

impl Edition {
    /// build.rs turns the variable into a `cfg`.
    pub(super) fn select<'a>(&self, cmd: Cmd<'a>) -> Cmd<'a> {
        const VARIABLE: &str = "RELAMPAGO_WASM_SMALL";
        if self.small {
            cmd.env(VARIABLE, "1")
        } else {
            cmd.env_remove(VARIABLE)
        }
    }
}
