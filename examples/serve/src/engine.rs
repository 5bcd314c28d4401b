//! The thread that has the model. It runs one request at a time, in the order in which they came.

use crate::error::ApiError;
use axum::http::StatusCode;
use relampago::llm::{
    Delta, EmbedOptions, FinishReason, GenerateOptions, LanguageModel, Message, Session,
    TokenLogprobs,
};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// The number of tokens of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) completion: usize,
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Event {
    /// The prompt has been read.
    Begin,
    /// A piece of the answer, with the probabilities of the tokens since the last piece.
    Delta(Delta, Vec<TokenLogprobs>),
    End(FinishReason, Usage),
    Failed(ApiError),
}

/// A conversation to answer. Dropping the receiver of the events cancels it.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    pub(crate) options: GenerateOptions,
    pub(crate) events: mpsc::UnboundedSender<Event>,
}

/// Vectors, and the number of tokens that were read for them.
pub(crate) type Vectors = (Vec<Vec<f32>>, usize);

/// Texts to embed.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) inputs: Vec<String>,
    pub(crate) options: EmbedOptions,
    pub(crate) vectors: oneshot::Sender<Result<Vectors, ApiError>>,
}

#[derive(Debug)]
pub(crate) enum Job {
    Chat(Box<Conversation>),
    Embed(Texts),
}

/// The queue of requests.
#[derive(Clone, Debug)]
pub(crate) struct Engine(mpsc::Sender<Job>);

impl Engine {
    /// Adds a request to the queue.
    ///
    /// # Errors
    /// 429 if the queue is full.
    pub(crate) fn add(&self, job: Job) -> Result<(), ApiError> {
        self.0.try_send(job).map_err(|_| {
            let status = StatusCode::TOO_MANY_REQUESTS;
            ApiError::new(
                status,
                Some("queue_full"),
                "too many requests wait: try again later",
            )
        })
    }
}

/// Starts the thread, whose queue has room for `len` requests. It ends when all queues are dropped.
pub(crate) fn start(model: LanguageModel, len: usize) -> std::io::Result<(Engine, JoinHandle<()>)> {
    let (sender, mut jobs) = mpsc::channel(len.max(1));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let thread = std::thread::Builder::new().name("engine".to_owned());
    let thread = thread.spawn(move || {
        let mut session = None;
        while let Some(job) = jobs.blocking_recv() {
            runtime.block_on(run(&model, &mut session, job));
        }
    })?;
    Ok((Engine(sender), thread))
}

async fn run(model: &LanguageModel, session: &mut Option<Session>, job: Job) {
    match job {
        Job::Chat(conversation) => {
            let gone = conversation.events.clone();
            tokio::select! {
                biased;
                // The client has gone away: the work ends at its next pause.
                () = gone.closed() => {}
                result = chat(model, session, &conversation) => {
                    if let Err(error) = result {
                        gone.send(Event::Failed(error)).ok();
                    }
                }
            }
        }
        Job::Embed(mut texts) => {
            let work = embed(model, &texts.inputs, &texts.options);
            let vectors = tokio::select! {
                biased;
                () = texts.vectors.closed() => return,
                vectors = work => vectors,
            };
            texts.vectors.send(vectors).ok();
        }
    }
}

/// Answers a conversation. The session keeps what it has in common with the next one.
async fn chat(
    model: &LanguageModel,
    session: &mut Option<Session>,
    conversation: &Conversation,
) -> Result<(), ApiError> {
    let session = match session {
        Some(session) => session,
        none => none.insert(model.session()?),
    };
    let Conversation {
        messages,
        options,
        events,
    } = conversation;
    let mut answer = session.chat_async(messages, options.clone()).await?;
    events.send(Event::Begin).ok();
    let mut known = 0;
    while let Some(delta) = answer.next_delta_async().await {
        let logprobs = answer.logprobs();
        let new = logprobs[known..].to_vec();
        known = logprobs.len();
        events.send(Event::Delta(delta?, new)).ok();
    }
    let usage = Usage {
        prompt: answer.prompt_tokens(),
        completion: answer.tokens().len(),
    };
    let reason = answer.finish_reason().unwrap_or(FinishReason::Stop);
    events.send(Event::End(reason, usage)).ok();
    Ok(())
}

async fn embed(
    model: &LanguageModel,
    texts: &[String],
    options: &EmbedOptions,
) -> Result<Vectors, ApiError> {
    let mut tokens = 0;
    for text in texts {
        tokens += model.tokenize(text, false)?.len();
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = model.embed_async(&texts, options.clone()).await?;
    Ok((vectors, tokens))
}
