//! What the package has more than once: for every page, and with all that the crate can do.

use xshell::Cmd;

pub(super) struct Edition {
    pub(super) name: &'static str,
    /// In the package; nothing is the package's own.
    pub(super) folder: &'static str,
    /// Scripts and types that take the place of others, in the project.
    pub(super) overlay: Option<&'static str>,
    small: bool,
    /// Of a download, in bytes: the script and one module, compressed as a web server would send them.
    pub(super) limit: usize,
}

pub(super) const EDITIONS: [Edition; 2] = [
    Edition {
        name: "small",
        folder: "",
        overlay: None,
        small: true,
        limit: 110 * 1024,
    },
    Edition {
        name: "full",
        folder: "full",
        overlay: Some("src/js/full"),
        small: false,
        limit: 190 * 1024,
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
