//! Generation as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::Generation;
use crate::error::Result;

/// A generation whose next piece of text is a future. The future owns the generation, and returns it with the text.
struct TextStream<F, S> {
    /// The future of the next piece; `None` after the last one.
    next: Option<Pin<Box<F>>>,
    step: S,
}

impl<'a, F, S> Stream for TextStream<F, S>
where
    F: Future<Output = (Generation<'a>, Option<Result<String>>)>,
    S: Fn(Generation<'a>) -> F + Unpin,
{
    type Item = Result<String>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(next) = &mut this.next else {
            return Poll::Ready(None);
        };
        let Poll::Ready((generation, text)) = next.as_mut().poll(context) else {
            return Poll::Pending;
        };
        if text.is_some() {
            next.set((this.step)(generation));
        } else {
            this.next = None;
        }
        Poll::Ready(text)
    }
}

impl<'a> Generation<'a> {
    /// Returns the rest of the answer as a stream of the pieces of text that [`Generation::next_async`] returns. Dropping
    /// the stream cancels the rest.
    ///
    /// ```no_run
    /// use futures_core::Stream;
    /// use relampago::{Error, llm::{GenerateOptions, LanguageModel}};
    ///
    /// async fn answer(
    ///     model: &LanguageModel,
    ///     question: &str,
    /// ) -> Result<impl Stream<Item = Result<String, Error>> + Send + use<>, Error> {
    ///     let answer = model.complete_async(question, GenerateOptions::default()).await?;
    ///     Ok(answer.into_stream())
    /// }
    /// ```
    pub fn into_stream(self) -> impl Stream<Item = Result<String>> + Unpin + use<'a> {
        let step = |mut generation: Generation<'a>| async move {
            let text = generation.next_async().await;
            (generation, text)
        };
        TextStream {
            next: Some(Box::pin(step(self))),
            step,
        }
    }
}
