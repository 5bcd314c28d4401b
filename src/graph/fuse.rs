//! Fusion: groups operations into kernels. Elementwise operations are fused with each other, after
//! a matmul, convolution, softmax, norm, transpose or reduction whose result they take, and before
//! a softmax, norm or reduction. They read repeated rows, columns and elements where these lie.

use super::memory_plan;
use super::node::{Node, live_by};
use crate::ops::{Cycle, Op};

/// The largest number of inputs of a kernel. WebGPU guarantees eight storage buffers; an operation that is not
/// elementwise binds up to three of its own, besides the buffers that chains read. A norm's gain and bias count as
/// inputs and are not read by chains.
const MAX_INPUTS: usize = 5;
/// Elementwise operations of a kernel at most, whose parameters, up to two each and one for all,
/// must fit beside the others'.
pub(crate) const MAX_STEPS: usize = 23;

/// Operations that run together; only the result of the last one is written.
pub(crate) struct Kernel {
    /// The computed nodes. The last one is written.
    pub(crate) members: Vec<usize>,
    /// The nodes read.
    pub(crate) inputs: Vec<usize>,
    /// An operation that is not elementwise, whose result the chain takes.
    pub(crate) head: Option<Head>,
    pub(crate) chain: Chain,
}

/// An operation that is not elementwise.
pub(crate) struct Head {
    pub(crate) node: usize,
    /// The chain that computes each operand.
    pub(crate) operands: Vec<Chain>,
}

/// Elementwise operations on the elements at one index.
pub(crate) struct Chain {
    pub(crate) steps: Vec<Step>,
    pub(crate) result: Operand,
    /// The inputs that are read in a pattern.
    pub(crate) repeats: Vec<Repeated>,
    /// The largest number of blocks of intermediate results that are alive at once.
    pub(crate) blocks: usize,
}

/// An input whose elements are read at several indices each: `inputs[input][i / inner % len]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repeated {
    pub(crate) input: usize,
    pub(crate) cycle: Cycle,
}

pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) operands: Vec<Operand>,
    /// The block that the step's result is written to.
    pub(crate) block: usize,
}

/// The source of a step's operand; numbers of inputs are indices into [`Kernel::inputs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Step(usize),
    Input(usize),
    /// One of the chain's repeated inputs.
    Repeated(usize),
    /// The result of the kernel's head.
    Head,
}

impl Kernel {
    /// The node whose values are written.
    pub(crate) fn root(&self) -> usize {
        self.members.last().copied().unwrap_or_default()
    }
}

/// A node's role in its kernel.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Elementwise, after the head: each element of the output depends on its element at the same
    /// index.
    After,
    Head,
    /// Elementwise: computes an operand of the head.
    Before(usize),
}

/// A node of a kernel, with its operation.
#[derive(Clone, Copy)]
struct Member<'a> {
    node: usize,
    op: &'a Op,
}

/// A kernel while nodes are still being found for it.
#[derive(Default)]
struct Draft<'a> {
    /// The nodes, from the last to the first.
    members: Vec<Member<'a>>,
    inputs: Vec<usize>,
    head: Option<usize>,
}

/// A node that an operation reads, in a pattern if it is repeated.
#[derive(Clone, Copy)]
struct Read {
    node: usize,
    cycle: Option<Cycle>,
}

struct Fuser<'a> {
    nodes: &'a [Node],
    /// The operands of each node.
    reads: Vec<Vec<Read>>,
    /// The operations that read a node, and as which operand.
    users: Vec<Vec<(usize, usize)>>,
    drafts: Vec<Draft<'a>>,
    /// The draft of each node, with its role there.
    roles: Vec<Option<(usize, Role)>>,
}

/// The kernels that compute `outputs`, in the order in which they run. Each operation has its
/// own unless they are to be `fused`.
pub(crate) fn kernels(nodes: &[Node], outputs: &[usize], fused: bool) -> Vec<Kernel> {
    let reads: Vec<Vec<Read>> = (0..nodes.len())
        .map(|node| reads(nodes, node, fused))
        .collect();
    let of = |node: usize| reads[node].iter().map(|read| read.node);
    let live = live_by(nodes.len(), outputs, of);
    let mut users = vec![Vec::new(); nodes.len()];
    for user in (0..nodes.len()).filter(|&user| live[user]) {
        for (operand, input) in of(user).enumerate() {
            users[input].push((user, operand));
        }
    }
    let mut fuser = Fuser {
        nodes,
        reads,
        users,
        drafts: Vec::new(),
        roles: vec![None; nodes.len()],
    };
    for node in (0..nodes.len()).rev() {
        if let Some((op, _)) = nodes[node].operation()
            && live[node]
        {
            let member = Member { node, op };
            fuser.place(member, fused && !outputs.contains(&node));
        }
    }
    // Found from the last to the first.
    let mut kernels = Vec::new();
    for (index, draft) in fuser.drafts.iter().enumerate().rev() {
        kernels.push(fuser.finish(index, draft));
    }
    kernels
}

/// Returns the operands of a node. An elementwise operation of a `fused` graph reads a repeated operand in place. At
/// least one of its operands must be as long as its result.
fn reads(nodes: &[Node], node: usize, fused: bool) -> Vec<Read> {
    let plain = |&node: &usize| Read { node, cycle: None };
    let Some((op, inputs)) = nodes[node].operation() else {
        return Vec::new();
    };
    if let (Op::BiasAdd { cols, .. }, [x, bias]) = (op, inputs) {
        let cycle = Cycle {
            inner: 1,
            len: *cols,
        };
        let bias = Read {
            node: *bias,
            cycle: Some(cycle),
        };
        return vec![plain(x), bias];
    }
    let mut reads: Vec<Read> = inputs.iter().map(plain).collect();
    // Parameters of users' operations and of patterns together would be too many.
    if fused && op.is_elementwise() && !matches!(op, Op::Custom(_)) {
        for read in &mut reads {
            *read = repeated(nodes, read.node).unwrap_or(*read);
        }
        if reads.iter().all(|read| read.cycle.is_some()) {
            reads[0] = plain(&inputs[0]);
        }
    }
    reads
}

/// Returns the node whose elements another one repeats.
fn repeated(nodes: &[Node], node: usize) -> Option<Read> {
    let (Op::Rearrange { options }, &[of]) = nodes[node].operation()? else {
        return None;
    };
    let cycle = options.cycle(nodes[of].len)?;
    Some(Read {
        node: of,
        cycle: Some(cycle),
    })
}

/// Returns whether each element depends on the operands' elements at the same index alone; a bias,
/// on its element for the column.
fn is_map(op: &Op) -> bool {
    op.is_elementwise() || matches!(op, Op::BiasAdd { .. })
}

/// Returns whether elementwise operations can be fused into the computation of an operand; of a
/// softmax or a norm, the rows.
fn takes_chains(op: &Op, operand: usize) -> bool {
    op.is_scalar() || (is_by_rows(op) && operand == 0)
}

/// Returns whether elementwise operations can be fused after an operation: after all that are not
/// elementwise themselves, unless they read their own results, take several steps, write words of bytes, or have kernels for weights of few
/// bits or with users' text.
fn heads_chains(op: &Op) -> bool {
    let is_apart = matches!(
        op,
        Op::TopKRows { .. }
            | Op::CumsumRows { .. }
            | Op::CumprodRows { .. }
            | Op::SortRows { .. }
            | Op::ArgsortRows { .. }
            | Op::FftRows { .. }
            | Op::MatmulCached(_)
            | Op::PackBytes { .. }
            | Op::CustomReduce(_)
    );
    !is_map(op) && !is_apart
}

/// Returns whether an operation is a softmax or a norm.
fn is_by_rows(op: &Op) -> bool {
    op.class() == crate::ops::OpClass::Softmax
}

impl<'a> Fuser<'a> {
    fn op(&self, node: usize) -> Option<&'a Op> {
        Some(self.nodes[node].operation()?.0)
    }

    /// Puts a node into the kernel that reads it, or into a new one.
    fn place(&mut self, member: Member<'a>, fused: bool) {
        let Member { node, op } = member;
        let place = if fused { self.joins(node) } else { None };
        let (draft, role) = place.unwrap_or_else(|| {
            self.drafts.push(Draft::default());
            let role = if is_map(op) { Role::After } else { Role::Head };
            (self.drafts.len() - 1, role)
        });
        self.roles[node] = Some((draft, role));
        let inputs = self.inputs_with(draft, node);
        let draft = &mut self.drafts[draft];
        draft.inputs = inputs;
        draft.members.push(member);
        if role == Role::Head {
            draft.head = Some(node);
        }
    }

    /// Returns the inputs of a draft with one more node.
    fn inputs_with(&self, draft: usize, node: usize) -> Vec<usize> {
        let mut inputs = self.drafts[draft].inputs.clone();
        inputs.retain(|&input| input != node);
        for read in &self.reads[node] {
            if !inputs.contains(&read.node) {
                inputs.push(read.node);
            }
        }
        inputs
    }

    /// Returns the draft in which a node can be computed, with its role: the draft that contains all users of the node,
    /// if each of them reads its values in the same role.
    fn joins(&self, node: usize) -> Option<(usize, Role)> {
        let (user, operand) = *self.users[node].first()?;
        let (draft, role) = self.taken(user, operand)?;
        for &(user, operand) in &self.users[node] {
            if self.taken(user, operand) != Some((draft, role)) {
                return None;
            }
        }
        let op = self.op(node)?;
        let role = match role {
            _ if is_map(op) => role,
            Role::After if heads_chains(op) && self.drafts[draft].head.is_none() => Role::Head,
            _ => return None,
        };
        let fits = self.drafts[draft].members.len() < MAX_STEPS
            && self.inputs_with(draft, node).len() <= MAX_INPUTS;
        fits.then_some((draft, role))
    }

    /// The draft of a node, and the role that an elementwise operation would have which
    /// computes one of its operands.
    fn taken(&self, user: usize, operand: usize) -> Option<(usize, Role)> {
        let (draft, role) = self.roles[user]?;
        let op = self.op(user)?;
        match role {
            Role::Head if takes_chains(op, operand) => Some((draft, Role::Before(operand))),
            Role::Head => None,
            // What is repeated is read at other indices than those of the result.
            _ if self.reads[user][operand].cycle.is_some() => None,
            role => Some((draft, role)),
        }
    }

    fn finish(&self, index: usize, draft: &Draft<'a>) -> Kernel {
        let mut members = draft.members.clone();
        members.reverse();
        let chain = |role: Role, end: usize| self.chain((index, role), &members, draft, end);
        let mut head = None;
        if let Some(node) = draft.head {
            let mut operands = Vec::new();
            for (place, &input) in self.nodes[node].inputs().iter().enumerate() {
                operands.push(chain(Role::Before(place), input));
            }
            head = Some(Head { node, operands });
        }
        let chain = chain(Role::After, draft.members[0].node);
        Kernel {
            members: members.iter().map(|member| member.node).collect(),
            inputs: draft.inputs.clone(),
            head,
            chain,
        }
    }

    /// The steps of a draft in one role, which end in a node.
    fn chain(
        &self,
        role: (usize, Role),
        members: &[Member<'_>],
        draft: &Draft<'_>,
        end: usize,
    ) -> Chain {
        let mut members = members.to_vec();
        members.retain(|member| self.roles[member.node] == Some(role));
        let nodes: Vec<usize> = members.iter().map(|member| member.node).collect();
        let (mut steps, mut repeats) = (Vec::new(), Vec::new());
        for &member in &members {
            steps.push(self.step(member, &nodes, &draft.inputs, &mut repeats));
        }
        Chain {
            blocks: share_blocks(&mut steps),
            steps,
            result: operand(end, &nodes, &draft.inputs),
            repeats,
        }
    }

    /// Returns the step of a member in the chain of the nodes `steps`. Adds inputs that it repeats to `repeats`.
    fn step(
        &self,
        member: Member<'_>,
        steps: &[usize],
        inputs: &[usize],
        repeats: &mut Vec<Repeated>,
    ) -> Step {
        let mut operands = Vec::new();
        for read in &self.reads[member.node] {
            let operand = operand(read.node, steps, inputs);
            operands.push(match (operand, read.cycle) {
                (Operand::Input(input), Some(cycle)) => {
                    let repeated = Repeated { input, cycle };
                    let known = repeats.iter().position(|&other| other == repeated);
                    Operand::Repeated(known.unwrap_or_else(|| {
                        repeats.push(repeated);
                        repeats.len() - 1
                    }))
                }
                _ => operand,
            });
        }
        // The chain repeats the bias, so only a sum is left.
        let op = if matches!(member.op, Op::BiasAdd { .. }) {
            Op::VecAdd
        } else {
            member.op.clone()
        };
        Step {
            op,
            operands,
            block: 0,
        }
    }
}

/// Returns the place of a node's elements for a step.
fn operand(node: usize, steps: &[usize], inputs: &[usize]) -> Operand {
    let place = |list: &[usize]| list.iter().position(|&other| other == node);
    match (place(steps), place(inputs)) {
        (Some(step), _) => Operand::Step(step),
        (None, Some(input)) => Operand::Input(input),
        (None, None) => Operand::Head,
    }
}

/// Says for each step which block its values go to; the number of blocks.
fn share_blocks(steps: &mut [Step]) -> usize {
    let mut last_uses = vec![0; steps.len()];
    for (place, step) in steps.iter().enumerate() {
        last_uses[place] = place;
        for operand in &step.operands {
            if let Operand::Step(earlier) = *operand {
                last_uses[earlier] = place;
            }
        }
    }
    let shared = memory_plan::share(&vec![1; steps.len()], &last_uses);
    for (place, step) in steps.iter_mut().enumerate() {
        step.block = shared.slots[place];
    }
    shared.capacities.len()
}
