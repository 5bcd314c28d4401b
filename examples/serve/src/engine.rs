//! The thread that has the model. It generates several answers at once, which share passes over the weights, and takes
//! requests in the order in which they came.

use crate::error::ApiError;
use axum::http::StatusCode;
use relampago::llm::{
    AnswerEvent, AnswerId, Answers, Delta, EmbedOptions, FinishReason, GenerateOptions, Generation,
    LanguageModel, Message, Session, TokenLogprobs,
};
use std::collections::{HashMap, VecDeque};
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

/// Starts the thread, whose queue has room for `queue` requests, and which generates at most `most` answers at once. It ends
/// when all queues are dropped.
pub(crate) fn start(
    model: LanguageModel,
    queue: usize,
    most: usize,
) -> std::io::Result<(Engine, JoinHandle<()>)> {
    let (sender, jobs) = mpsc::channel(queue.max(1));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let thread = std::thread::Builder::new().name("engine".to_owned());
    let work = Work {
        answers: model.answers(),
        model,
        most: most.max(1),
        running: HashMap::new(),
        idle: Vec::new(),
        texts: VecDeque::new(),
    };
    let thread = thread.spawn(move || runtime.block_on(work.run(jobs)))?;
    Ok((Engine(sender), thread))
}

/// A conversation that is being answered.
struct Running {
    conversation: Conversation,
    has_begun: bool,
    /// The number of tokens whose probabilities were sent.
    known: usize,
}

/// A session that waits for a conversation that goes on.
struct Idle {
    session: Session,
    messages: Vec<Message>,
}

/// Texts to embed, and the vectors of the first ones.
struct Embedding {
    texts: Texts,
    vectors: Vec<Vec<f32>>,
    tokens: usize,
}

struct Work {
    model: LanguageModel,
    answers: Answers,
    /// The most answers at once.
    most: usize,
    running: HashMap<AnswerId, Running>,
    /// The sessions that have no answer, the last used one last.
    idle: Vec<Idle>,
    texts: VecDeque<Embedding>,
}

impl Work {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        loop {
            while self.running.len() + self.texts.len() < self.most {
                let is_idle = self.running.is_empty() && self.texts.is_empty();
                let job = if is_idle {
                    jobs.recv().await
                } else {
                    jobs.try_recv().ok()
                };
                match job {
                    Some(job) => self.begin(job),
                    None if is_idle => return,
                    None => break,
                }
            }
            self.leave();
            self.embed().await;
            self.step().await;
            while let Some((id, event)) = self.answers.ready() {
                self.send(id, event);
            }
        }
    }

    fn begin(&mut self, job: Job) {
        match job {
            Job::Chat(conversation) => {
                let events = conversation.events.clone();
                if let Err(error) = self.add(*conversation) {
                    events.send(Event::Failed(error)).ok();
                }
            }
            Job::Embed(texts) => self.texts.push_back(Embedding {
                texts,
                vectors: Vec::new(),
                tokens: 0,
            }),
        }
    }

    /// Begins to answer a conversation, in the session that has most of it.
    fn add(&mut self, conversation: Conversation) -> Result<(), ApiError> {
        let answer = self.session(&conversation.messages).and_then(|session| {
            session.into_chat(&conversation.messages, conversation.options.clone())
        });
        match answer.and_then(|answer| self.answers.add(answer)) {
            Ok(id) => {
                let running = Running {
                    conversation,
                    has_begun: false,
                    known: 0,
                };
                self.running.insert(id, running);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the idle session that shares the most messages with a conversation; if none shares any, a new one, or the one that
    /// has been idle for longest.
    fn session(&mut self, messages: &[Message]) -> relampago::Result<Session> {
        let common = |idle: &Idle| {
            let pairs = idle.messages.iter().zip(messages);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let shares = |&index: &usize| common(&self.idle[index]);
        let best = (0..self.idle.len()).max_by_key(shares);
        let has_room = self.idle.len() + self.running.len() < self.most;
        match best {
            Some(best) if common(&self.idle[best]) > 0 => Ok(self.idle.remove(best).session),
            Some(_) if !has_room => Ok(self.idle.remove(0).session),
            _ => self.model.session(),
        }
    }

    /// Ends the answers whose clients have gone away.
    fn leave(&mut self) {
        let gone = self.running.iter();
        let gone = gone.filter(|(_, running)| running.conversation.events.is_closed());
        let gone: Vec<AnswerId> = gone.map(|(&id, _)| id).collect();
        for id in gone {
            if let (Some(answer), Some(running)) =
                (self.answers.remove(id), self.running.remove(&id))
            {
                self.keep(answer, running.conversation.messages);
            }
        }
        self.texts
            .retain(|embedding| !embedding.texts.vectors.is_closed());
    }

    /// Keeps the session of an answer for its conversation.
    fn keep(&mut self, answer: Generation<'static>, mut messages: Vec<Message>) {
        messages.push(answer.message().clone());
        if let Some(session) = answer.into_session() {
            self.idle.push(Idle { session, messages });
        }
    }

    /// Embeds texts: all of the first request if there is no answer, else one, so that answers go on.
    async fn embed(&mut self) {
        let Some(mut embedding) = self.texts.pop_front() else {
            return;
        };
        let Embedding {
            texts,
            vectors,
            tokens,
        } = &mut embedding;
        let rest = &texts.inputs[vectors.len()..];
        let count = if self.answers.is_empty() {
            rest.len()
        } else {
            1
        };
        let result = tokio::select! {
            biased;
            () = texts.vectors.closed() => return,
            result = embed(&self.model, &rest[..count.min(rest.len())], &texts.options) => result,
        };
        match result {
            Ok((new, count)) => {
                vectors.extend(new);
                *tokens += count;
            }
            Err(error) => {
                embedding.texts.vectors.send(Err(error)).ok();
                return;
            }
        }
        if embedding.vectors.len() < embedding.texts.inputs.len() {
            self.texts.push_back(embedding);
        } else {
            let vectors = (embedding.vectors, embedding.tokens);
            embedding.texts.vectors.send(Ok(vectors)).ok();
        }
    }

    /// Advances the answers. One alone whose client goes away ends at the next pause.
    async fn step(&mut self) {
        let mut running = self.running.values();
        let (Some(only), None) = (running.next(), running.next()) else {
            return self.answers.step_async().await;
        };
        tokio::select! {
            biased;
            () = only.conversation.events.closed() => {}
            () = self.answers.step_async() => {}
        }
    }

    /// Sends a part of an answer to its client.
    fn send(&mut self, id: AnswerId, event: AnswerEvent) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        let events = running.conversation.events.clone();
        if !running.has_begun && !matches!(event, AnswerEvent::Failed(..)) {
            running.has_begun = true;
            events.send(Event::Begin).ok();
        }
        match event {
            AnswerEvent::Delta(delta) => {
                let logprobs = self.answers.get(id).map_or(&[][..], Generation::logprobs);
                let new = logprobs.get(running.known..).unwrap_or_default().to_vec();
                running.known = logprobs.len();
                events.send(Event::Delta(delta, new)).ok();
            }
            AnswerEvent::Ended(answer) => {
                let usage = Usage {
                    prompt: answer.prompt_tokens(),
                    completion: answer.tokens().len(),
                };
                let reason = answer.finish_reason().unwrap_or(FinishReason::Stop);
                events.send(Event::End(reason, usage)).ok();
                self.end(id, answer);
            }
            AnswerEvent::Failed(error, answer) => {
                events.send(Event::Failed(error.into())).ok();
                self.end(id, answer);
            }
            _ => {}
        }
    }

    fn end(&mut self, id: AnswerId, answer: Generation<'static>) {
        if let Some(running) = self.running.remove(&id) {
            self.keep(answer, running.conversation.messages);
        }
    }
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
