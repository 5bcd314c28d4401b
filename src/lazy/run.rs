//! Computes results as one program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::batch::Argument;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::{Backend, GpuDevice};
use crate::error::Result;
use crate::lazy::graph::{Graph, Step};
use crate::lazy::lower::Place;
use crate::lazy::node::{Node, Source};
use crate::lazy::programs::{Planned, Programs};

/// A device with the programs of its tensors.
pub(super) struct Context {
    pub(super) device: GpuDevice,
    programs: Mutex<Programs>,
}

/// A program with its arguments.
struct Ready {
    planned: Arc<Planned>,
    sources: Vec<Source>,
}

impl Ready {
    fn arguments(&self) -> Vec<Argument<'_>> {
        let arguments = self.sources.iter().map(|source| match source {
            Source::Values(values) => Argument::Values(values),
            Source::Buffer(buffer) => Argument::Buffer(buffer),
        });
        arguments.collect()
    }
}

impl Context {
    pub(super) fn new(device: GpuDevice) -> Self {
        let programs = Mutex::default();
        Self { device, programs }
    }

    pub(super) fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes nodes and returns their values.
    pub(super) async fn read(&self, nodes: &[Arc<Node>]) -> Result<Vec<Vec<f32>>> {
        let sources: Vec<_> = nodes.iter().map(|node| node.source()).collect();
        let computed = nodes.iter().zip(&sources);
        let computed = computed.filter_map(|(node, source)| match source {
            Some(_) => None,
            None => Some(Arc::clone(node)),
        });
        let computed: Vec<_> = computed.collect();
        let mut values = self.read_computed(&computed).await?.into_iter();
        let mut results = Vec::with_capacity(nodes.len());
        for source in sources {
            results.push(match source {
                Some(source) => self.read_source(&source).await?,
                None => values.next().unwrap_or_default(),
            });
        }
        Ok(results)
    }

    async fn read_computed(&self, nodes: &[Arc<Node>]) -> Result<Vec<Vec<f32>>> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let ready = self.ready(nodes).await?;
        let mut outputs = match &ready.planned.program {
            Some(program) => program.read_async(&ready.arguments()).await?,
            None => Vec::new(),
        };
        let places = &ready.planned.places;
        let mut results = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            results.push(match *place {
                Place::Leaf(leaf) => self.read_source(&ready.sources[leaf]).await?,
                // Another result may be the same buffer.
                Place::Output(output) if places[at + 1..].contains(place) => {
                    self.device.cpu().copy(&outputs[output])?
                }
                Place::Output(output) => std::mem::take(&mut outputs[output]),
            });
        }
        Ok(results)
    }

    /// Computes nodes whose results stay on the device, and makes leaves of them.
    pub(super) async fn keep(&self, nodes: &[Arc<Node>]) -> Result<()> {
        let computed = nodes.iter().filter(|node| node.source().is_none());
        let computed: Vec<_> = computed.cloned().collect();
        if !computed.is_empty() {
            let ready = self.ready(&computed).await?;
            let buffers = match &ready.planned.program {
                Some(program) => program.run_async(&ready.arguments()).await?,
                None => Vec::new(),
            };
            for (node, place) in computed.iter().zip(&ready.planned.places) {
                let buffer = match *place {
                    Place::Leaf(leaf) => self.resident(&ready.sources[leaf]).await?,
                    Place::Output(output) => buffers[output].clone(),
                };
                node.settle(buffer);
            }
        }
        for node in nodes {
            self.upload(node).await?;
        }
        Ok(())
    }

    /// Computes a node whose result stays on the device, and returns its buffer.
    pub(super) async fn buffer(&self, node: &Arc<Node>) -> Result<DeviceBuffer> {
        self.keep(std::slice::from_ref(node)).await?;
        let source = node.source().unwrap_or(Source::Values(Arc::default()));
        self.resident(&source).await
    }

    /// Finds or plans the program of nodes, and collects its arguments.
    async fn ready(&self, nodes: &[Arc<Node>]) -> Result<Ready> {
        let graph = Graph::of(nodes);
        let structure = graph.structure();
        let key = structure.key();
        let cached = self.programs().find(&key);
        let planned = if let Some(planned) = cached {
            planned
        } else {
            let planned = Arc::new(Planned::new(&self.device, &structure).await?);
            self.programs().insert(key, &planned);
            planned
        };
        let mut sources = Vec::new();
        for entry in graph.entries {
            if let Step::Leaf(source) = entry.step {
                sources.push(self.argument(&entry.node, source).await?);
            }
        }
        Ok(Ready { planned, sources })
    }

    /// Returns the source of a leaf for a run. Large values of the host that were used before stay on the GPU from now
    /// on, so that they are copied twice at most.
    async fn argument(&self, node: &Node, source: Source) -> Result<Source> {
        if matches!(source, Source::Buffer(_)) || node.size() < LEAST_RESIDENT {
            return Ok(source);
        }
        if self.device.backend() == Backend::Simd {
            // A program recognises a buffer, and packs a matrix that it gets again.
            return self.resident(&source).await.map(Source::Buffer);
        }
        if !node.note_use() {
            return Ok(source);
        }
        let buffer = self.resident(&source).await?;
        node.settle(buffer.clone());
        Ok(Source::Buffer(buffer))
    }

    /// Moves the values of a leaf to the device.
    async fn upload(&self, node: &Node) -> Result<()> {
        if let Some(source @ Source::Values(_)) = node.source() {
            node.settle(self.resident(&source).await?);
        }
        Ok(())
    }

    /// Returns the values of a leaf in a buffer: on SIMD the same memory, which nothing changes.
    async fn resident(&self, source: &Source) -> Result<DeviceBuffer> {
        match source {
            Source::Values(values) if self.device.backend() == Backend::Simd => {
                let storage = Storage::Host(Arc::clone(values));
                Ok(DeviceBuffer::new(self.device.clone(), storage))
            }
            Source::Values(values) => self.device.upload_async(values).await,
            Source::Buffer(buffer) => Ok(buffer.clone()),
        }
    }

    async fn read_source(&self, source: &Source) -> Result<Vec<f32>> {
        match source {
            Source::Values(values) => self.device.cpu().copy(values),
            Source::Buffer(buffer) => buffer.read_async().await,
        }
    }
}

/// The number of elements from which values that are used again stay on the device.
const LEAST_RESIDENT: usize = 1024;
