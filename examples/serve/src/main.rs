//! A server of a language model with `OpenAI`'s interface: `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`.
//!
//! `cargo run --release -p serve -- MODEL.gguf`. Eight answers (`--answers`) are generated at once, and share passes over the
//! model's weights; other requests wait in the order in which they came. Ctrl-C ends the server after the requests that it has accepted.

mod answer;
mod chat;
mod embeddings;
mod engine;
mod error;
mod options;
mod routes;

use anyhow::{Context, Result};
use options::{Options, USAGE};
use relampago::llm::LanguageModel;
use routes::Server;
use std::sync::Arc;
use tokio::net::TcpListener;

fn main() -> Result<()> {
    let Some(options) = Options::from_args()? else {
        println!("{USAGE}");
        return Ok(());
    };
    let model = LanguageModel::load(&options.model, options.load()?)
        .with_context(|| format!("{}", options.model.display()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(serve(&options, model))
}

/// Answers requests until a signal ends the server.
async fn serve(options: &Options, model: LanguageModel) -> Result<()> {
    let listener = TcpListener::bind(options.address).await?;
    let (engine, thread) = engine::start(model.clone(), options.queue, options.answers)?;
    let server = Arc::new(Server {
        name: options.name.clone(),
        model,
        engine,
        body: options.body,
    });
    println!("http://{}/v1 has {}", listener.local_addr()?, options.name);
    axum::serve(listener, routes::router(server))
        .with_graceful_shutdown(until_signal())
        .await?;
    // The last request's sender is gone, so that the engine ends.
    thread.join().ok();
    Ok(())
}

/// Waits for Ctrl-C, or for the signal by which process managers end programs. A second Ctrl-C ends the program at once.
async fn until_signal() {
    #[cfg(unix)]
    let terminated = async {
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        match signal {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}
