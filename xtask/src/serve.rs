//! A static file server with the headers of a strict production site.
//!
//! The server needs no library, because each connection has one thread and one answer. (`tiny_http` leaves a connection
//! waiting for ever if a browser opens several at once.)

use anyhow::{Context, Result};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::UNIX_EPOCH;

const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
     img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// The pages that mdBook, rustdoc and `TypeDoc` write have scripts and styles within.
const POLICY_OF_DOCUMENTATION: &str = "default-src 'self' data: 'unsafe-inline'";

/// The worker that runs samples: scripts from memory run there, and nowhere else.
const POLICY_OF_SAMPLES: &str = "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; \
     connect-src 'self'; worker-src 'self'";

const HEADERS: &[(&str, &str)] = &[
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
];

/// Reserves a port; 0 takes a free one.
pub(crate) fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("cannot serve on port {port}"))
}

/// Serves `folder` from background threads and returns the URL.
pub(crate) fn start(listener: TcpListener, folder: &Path) -> Result<String> {
    let address = listener.local_addr()?;
    let folder = Arc::<Path>::from(folder);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let folder = Arc::clone(&folder);
            // A browser that has gone away is no error of the server's.
            thread::spawn(move || answer(&connection, &folder).ok());
        }
    });
    Ok(format!("http://{address}/"))
}

fn answer(connection: &TcpStream, folder: &Path) -> io::Result<()> {
    let mut lines = BufReader::new(connection).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    // All of the request is read before it is answered: closing earlier would reset it.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let url = request
        .strip_prefix("GET ")
        .and_then(|rest| rest.split(' ').next());
    let file = url.and_then(|url| resolve(folder, url));
    let policy = policy(url.unwrap_or_default());
    let response = match file.and_then(|path| Some((fs::read(&path).ok()?, path))) {
        Some((content, path)) => {
            let head = format!("200 OK\r\nETag: {}", etag(&path)?);
            response(&head, mime(&path), &content, policy)
        }
        None => response(
            "404 Not Found",
            mime(Path::new("404.txt")),
            b"not found",
            policy,
        ),
    };
    (&*connection).write_all(&response?)
}

/// Returns the content security policy of the file that `url` names.
fn policy(url: &str) -> &'static str {
    match url {
        "/run/worker.js" => POLICY_OF_SAMPLES,
        _ if url.starts_with("/docs/") => POLICY_OF_DOCUMENTATION,
        _ => POLICY,
    }
}

/// Names the version of a file: pages cache language models by it.
fn etag(path: &Path) -> io::Result<String> {
    let file = fs::metadata(path)?;
    let modified = file.modified()?.duration_since(UNIX_EPOCH);
    let time = modified.map_err(io::Error::other)?.as_nanos();
    Ok(format!("\"{:x}-{time:x}\"", file.len()))
}

/// Puts an answer together; `head` is the status, and headers of this answer alone.
fn response(head: &str, mime: &str, content: &[u8], policy: &str) -> io::Result<Vec<u8>> {
    let mut response = Vec::with_capacity(content.len() + 1024);
    write!(response, "HTTP/1.1 {head}\r\nConnection: close\r\n")?;
    let policy = ("Content-Security-Policy", policy);
    for (name, value) in HEADERS.iter().chain([&policy]) {
        write!(response, "{name}: {value}\r\n")?;
    }
    let length = content.len();
    write!(
        response,
        "Content-Type: {mime}\r\nContent-Length: {length}\r\n\r\n"
    )?;
    response.extend_from_slice(content);
    Ok(response)
}

/// The file that `url` names, if it stays inside `folder`.
fn resolve(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.trim_start_matches('/');
    let inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let path = folder.join(path);
    let path = if path.is_dir() {
        path.join("index.html")
    } else {
        path
    };
    (inside && path.is_file()).then_some(path)
}

fn mime(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("svg") => "image/svg+xml",
        Some("ico") => "image/x-icon",
        Some("md" | "txt" | "ts") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_worker_of_samples_runs_scripts_from_memory() {
        let runs_from_memory = |url| policy(url).contains("script-src 'self' blob:");
        assert!(runs_from_memory("/run/worker.js"));
        for url in ["/", "/run/runner.js", "/docs/index.html"] {
            assert!(!runs_from_memory(url), "{url}");
        }
    }

    #[test]
    fn only_files_inside_the_folder_are_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let served = |url| resolve(&folder, url).is_some();
        assert!(served("/serve.rs") && served("/serve.rs?query") && served("/setup/mod.rs"));
        assert!(!served("/../Cargo.toml") && !served("/setup/../../Cargo.toml"));
        assert!(!served("/") && !served("/setup") && !served("/absent.rs"));
    }
}
