//! [`IncomingModel`]: a model whose file arrives in pieces.

use super::gguf::{Gguf, invalid};
use super::model::Upload;
use super::saved::SAMPLE;
use super::{LanguageModel, LoadOptions, TensorInfo};
use crate::error::{Error, Result};

/// A model whose file arrives in pieces, from a network for example, and whose matrices go to a GPU as they arrive. The
/// process holds the metadata, the embedding, the vectors and the matrices of one step, so the file may be larger than
/// its memory. The model stays on its GPU; after a lost device, load it again.
///
/// ```no_run
/// use relampago::llm::{IncomingModel, LanguageModel, LoadOptions};
/// use relampago::{Backend, GpuDevice};
/// use std::io::Read;
///
/// let mut options = LoadOptions::default();
/// options.device = Some(GpuDevice::builder().backend(Backend::Gpu).build()?);
/// # let mut download = std::fs::File::open("model.gguf").map_err(|error| error.to_string())?;
/// # let len = download.metadata().map_err(|error| error.to_string())?.len();
/// let mut read = |piece: &mut Vec<u8>| {
///     piece.clear();
///     let taken = download.by_ref().take(16 << 20).read_to_end(piece);
///     taken.map_err(|error| error.to_string())
/// };
/// let mut piece = Vec::new();
/// read(&mut piece)?; // 16 MB, which have the metadata of most models
/// let mut incoming = IncomingModel::new(piece.clone(), len, options)?;
/// while !piece.is_empty() {
///     incoming.write(&piece)?;
///     read(&mut piece)?;
/// }
/// let model: LanguageModel = incoming.finish()?;
/// # Ok::<(), String>(())
/// ```
pub struct IncomingModel {
    upload: Upload,
    /// The number of bytes that have arrived.
    position: u64,
    /// The tensors that have not arrived, the first one in the file last.
    expected: Vec<TensorInfo>,
    /// The bytes of the next tensor that have arrived.
    bytes: Vec<u8>,
    /// Whether a piece is being taken, or was not taken to its end.
    is_broken: bool,
}

impl std::fmt::Debug for IncomingModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tensors = self.expected.len();
        write!(
            f,
            "IncomingModel({} bytes, {tensors} tensors to come)",
            self.position
        )
    }
}

impl IncomingModel {
    /// Creates a model of the first bytes of its file, which have all metadata, and of the file's size (`u64::MAX` if that
    /// is not known). [`write`](Self::write) takes these bytes, too.
    ///
    /// # Errors
    /// `LimitExceeded` with the number of bytes that are needed, if there are more; `InvalidModel` for a file that is
    /// damaged or needs an unsupported feature; `InvalidArgument` for a context out of range and for options whose
    /// device is not on a GPU through wgpu.
    pub fn new(head: Vec<u8>, len: u64, options: LoadOptions) -> Result<Self> {
        // Saved sessions are marked by all bytes before the weights, which are there.
        let file = Gguf::from_heads(vec![(head, len)])?;
        let upload = Upload::new(file, options)?;
        let mut expected = upload.file().tensors().to_vec();
        expected.retain(|tensor| tensor.bytes() > 0);
        expected.sort_by_key(|tensor| std::cmp::Reverse(tensor.range().start));
        Ok(Self {
            upload,
            position: 0,
            expected,
            bytes: Vec::new(),
            is_broken: false,
        })
    }

    /// Takes the next bytes of the file, and copies the matrices that are complete to the GPU.
    ///
    /// # Errors
    /// `LimitExceeded` if the GPU cannot hold a matrix, `OutOfMemory`, `DeviceLost`. After an error, or if the future was
    /// dropped, the model cannot be completed: all further calls return `InvalidModel`.
    pub async fn write_async(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.is_broken = true;
        self.take(bytes).await?;
        self.is_broken = false;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.is_broken {
            let what = "an earlier piece of the file was not taken to its end";
            return Err(invalid(what, format!("byte {}", self.position)));
        }
        Ok(())
    }

    async fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some(next) = self.expected.last() {
            let range = next.range();
            let end = if self.position < range.start {
                range.start
            } else {
                range.end
            };
            let wanted = usize::try_from(end - self.position).unwrap_or(usize::MAX);
            let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
            if end == range.end {
                self.keep(taken, wanted)?;
            }
            bytes = rest;
            self.position += taken.len() as u64;
            if self.position < end {
                return Ok(());
            }
            if end == range.end {
                let data = std::mem::take(&mut self.bytes);
                if let Some(tensor) = self.expected.pop() {
                    self.upload.add(&tensor, data, SAMPLE).await?;
                }
            }
        }
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Appends bytes of the next tensor; `missing` bytes of it have not arrived.
    fn keep(&mut self, bytes: &[u8], missing: usize) -> Result<()> {
        // A file of unknown size may be damaged, and shorter than its tensors.
        let is_known = self.file().bytes() < u64::MAX;
        let more = if is_known { missing } else { bytes.len() };
        let reserved = self.bytes.try_reserve(more);
        let needed = (self.bytes.len() + more) as u64;
        reserved.map_err(|_| Error::OutOfMemory { bytes: needed })?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the model, once the whole file has arrived. It stays on its device: the weights are nowhere else.
    ///
    /// # Errors
    /// `InvalidModel` if the file has ended too early, a piece was not taken or the tokenizer is not supported; `OutOfMemory`, `LimitExceeded` or
    /// `DeviceLost` if the GPU cannot hold the vectors.
    pub async fn finish_async(self) -> Result<LanguageModel> {
        self.check()?;
        if let Some(missing) = self.expected.last() {
            let what = format!("the file ends before tensor `{}`", missing.name());
            return Err(invalid(what, format!("byte {}", self.position)));
        }
        LanguageModel::of_model(self.upload.finish(self.position).await?)
    }

    /// The metadata, and the table of tensors.
    pub(crate) fn file(&self) -> &Gguf {
        self.upload.file()
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl IncomingModel {
    /// Blocking version of [`IncomingModel::write_async`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        crate::runtime::block_on(self.write_async(bytes))
    }

    /// Blocking version of [`IncomingModel::finish_async`].
    pub fn finish(self) -> Result<LanguageModel> {
        crate::runtime::block_on(self.finish_async())
    }
}
