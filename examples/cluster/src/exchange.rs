//! Sends what each worker computes in a round to all workers.

use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::dataflow::operators::vec::Broadcast;
use timely::dataflow::operators::{Inspect, Probe};
use timely::dataflow::{InputHandleVec, ProbeHandle};
use timely::worker::Worker;

/// The sums of blocks, by the number of the block.
pub(crate) type Sums = BTreeMap<u64, Vec<f32>>;

/// A round, the number of a block, and its sums.
type Message = (u64, u64, Vec<f32>);

/// A dataflow that every worker feeds with the sums of its blocks, and that brings those of all blocks to every worker.
pub(crate) struct Exchange {
    input: InputHandleVec<u64, Message>,
    probe: ProbeHandle<u64>,
    /// Sums that have arrived, by round: a faster worker's next round may arrive before this one is complete here.
    arrived: Rc<RefCell<BTreeMap<u64, Sums>>>,
}

impl Exchange {
    pub(crate) fn new(worker: &mut Worker) -> Self {
        let mut input = InputHandleVec::new();
        let arrived = Rc::<RefCell<BTreeMap<u64, Sums>>>::default();
        let kept = Rc::clone(&arrived);
        let probe = worker.dataflow(|scope| {
            let messages = input.to_stream(scope).broadcast();
            let messages = messages.inspect(move |(round, block, sums): &Message| {
                let mut arrived = kept.borrow_mut();
                let round = arrived.entry(*round).or_default();
                round.insert(*block, sums.clone());
            });
            messages.probe().0
        });
        Self {
            input,
            probe,
            arrived,
        }
    }

    /// Sends the sums of a block to all workers, in the current round.
    pub(crate) fn send(&mut self, block: u64, sums: Vec<f32>) {
        self.input.send((*self.input.time(), block, sums));
    }

    /// Ends the round: waits for all workers, and returns the sums of all blocks.
    pub(crate) fn receive(&mut self, worker: &mut Worker, blocks: u64) -> Result<Sums> {
        let round = *self.input.time();
        self.input.advance_to(round + 1);
        worker.step_while(|| self.probe.less_equal(&round));
        let sums = self.arrived.borrow_mut().remove(&round).unwrap_or_default();
        let found = sums.len() as u64;
        ensure!(
            found == blocks,
            "round {round} has the sums of {found} of {blocks} blocks: another worker failed"
        );
        Ok(sums)
    }
}
