//! The program's options.

use anyhow::{Context, Result};
use relampago::llm::LoadOptions;
use relampago::{Backend, GpuDevice};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) const USAGE: &str =
    "usage: serve MODEL.gguf [--address 127.0.0.1:8080] [--name NAME] [--context TOKENS]
    [--backend gpu|simd|cuda] [--threads N] [--answers N] [--queue REQUESTS] [--body BYTES]";

pub(crate) struct Options {
    pub(crate) model: PathBuf,
    /// The name by which clients ask for the model.
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// The most answers that are generated at once. Each has a session.
    pub(crate) answers: usize,
    /// The largest number of requests that wait.
    pub(crate) queue: usize,
    /// The largest number of bytes of a request.
    pub(crate) body: usize,
    context: Option<usize>,
    threads: Option<usize>,
    backend: Option<Backend>,
}

impl Options {
    /// Reads the command line; `None` asks for the usage.
    pub(crate) fn from_args() -> Result<Option<Self>> {
        use lexopt::prelude::{Long, Value, ValueExt};
        let mut parser = lexopt::Parser::from_env();
        let (mut path, mut name) = (None, None);
        let mut options = Self {
            model: PathBuf::new(),
            name: String::new(),
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            answers: 8,
            queue: 64,
            body: 4 << 20,
            context: None,
            threads: None,
            backend: None,
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Value(value) => path = Some(PathBuf::from(value)),
                Long("name") => name = Some(parser.value()?.string()?),
                Long("address") => options.address = parser.value()?.parse()?,
                Long("answers") => options.answers = parser.value()?.parse()?,
                Long("queue") => options.queue = parser.value()?.parse()?,
                Long("body") => options.body = parser.value()?.parse()?,
                Long("context") => options.context = Some(parser.value()?.parse()?),
                Long("threads") => options.threads = Some(parser.value()?.parse()?),
                Long("backend") => options.backend = Some(parser.value()?.parse()?),
                Long("help") => return Ok(None),
                _ => return Err(argument.unexpected().into()),
            }
        }
        options.model = path.context(USAGE)?;
        let stem = options.model.file_stem().unwrap_or_default();
        options.name = name.unwrap_or_else(|| stem.to_string_lossy().into_owned());
        Ok(Some(options))
    }

    /// The options that the model is loaded with.
    pub(crate) fn load(&self) -> relampago::Result<LoadOptions> {
        let mut load = LoadOptions::default();
        load.context_length = self.context;
        load.threads = self.threads;
        if let Some(backend) = self.backend {
            load.device = Some(GpuDevice::builder().backend(backend).build()?);
        }
        Ok(load)
    }
}
