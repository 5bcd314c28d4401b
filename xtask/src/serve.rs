//! A static file server with the headers of a strict production site.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tiny_http::{Header, Request, Response, Server, StatusCode};

const HEADERS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
];

/// A browser asks for a page's files six at a time.
const THREADS: usize = 6;

/// Serves `folder` from background threads and returns the URL; port 0 takes a free one.
pub(crate) fn start(folder: &Path, port: u16) -> Result<String> {
    let server = Server::http(("127.0.0.1", port)).map_err(|error| anyhow!("{error}"))?;
    let address = server.server_addr();
    let (server, folder) = (Arc::new(server), Arc::<Path>::from(folder));
    for _ in 0..THREADS {
        let (server, folder) = (Arc::clone(&server), Arc::clone(&folder));
        thread::spawn(move || {
            while let Ok(request) = server.recv() {
                answer(request, &folder);
            }
        });
    }
    Ok(format!("http://{address}/"))
}

fn answer(request: Request, folder: &Path) {
    let file =
        resolve(folder, request.url()).and_then(|path| Some((File::open(&path).ok()?, path)));
    // A browser that has gone away is no error of the server's.
    let _ = match file {
        Some((file, path)) => {
            let mut response =
                Response::from_file(file).with_header(header("Content-Type", mime(&path)));
            for (name, value) in HEADERS {
                response.add_header(header(name, value));
            }
            request.respond(response)
        }
        None => request.respond(Response::empty(StatusCode(404))),
    };
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

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("header names and values here are plain ASCII")
}
