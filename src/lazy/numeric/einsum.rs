//! Einstein summation: axes with labels, contracted pairwise.

mod labels;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::elementwise::elementwise;
use crate::lazy::join::with_front_axis;
use crate::lazy::linear::matmul;
use crate::lazy::movement::{permuted, reshape, view};
use crate::lazy::node::Node;
use crate::lazy::numeric::einsum::labels::{Labels, parse};
use crate::lazy::reduce::sum;
use crate::lazy::shape::{broadcast, check_result, mismatch, size_of};
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;
use crate::ops::Op;

/// Einstein summation.
impl Tensor {
    /// Sums products of tensors whose axes have labels, as `NumPy`'s and `PyTorch`'s `einsum`: `"ij,jk->ik"` is a
    /// matmul. Axes with one label are multiplied element by element, and summed if the result has not the label. A
    /// label twice in one term takes the diagonal; `...` stands for all axes without labels, which broadcast. Without
    /// `->` the result has `...` and the labels that appear once, in alphabetical order.
    ///
    /// Tensors are contracted from left to right, by matmuls where axes are summed.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensor, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let a = tensors.arange(0.0, 6.0, 1.0)?.reshape(&[2, 3])?;
    /// let squares = Tensor::einsum("ij,kj->ik", &[&a, &a])?;
    /// assert_eq!(squares.read()?, [5.0, 14.0, 14.0, 50.0]);
    /// assert_eq!(Tensor::einsum("ii", &[&squares])?.item()?, 55.0);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for labels that cannot be read or do not fit the tensors, `ShapeMismatch` for one label of axes
    /// with different lengths, `LimitExceeded` where more than 6 axes are left between two steps.
    pub fn einsum(labels: &str, tensors: &[&Tensor]) -> Result<Tensor> {
        let (first, nodes) = Self::joined("einsum", tensors)?;
        let ranks: Vec<usize> = nodes.iter().map(|node| node.shape.len()).collect();
        let labels = parse(labels, &ranks)?;
        let terms = terms(&nodes, &labels)?;
        let result = contract(terms, &labels.output)?;
        Ok(first.with(result.in_order(&labels.output)))
    }
}

/// A tensor whose axes have labels, each of them once.
struct Term {
    node: Arc<Node>,
    labels: Vec<char>,
}

/// Returns the tensors with each label once. An axis of length 1 that broadcasts with another one is left out.
fn terms(nodes: &[Arc<Node>], labels: &Labels) -> Result<Vec<Term>> {
    let mut lengths: Vec<(char, usize)> = Vec::new();
    for (node, own) in nodes.iter().zip(&labels.inputs) {
        for (&label, &length) in own.iter().zip(&node.shape) {
            match lengths.iter_mut().find(|(known, _)| *known == label) {
                None => lengths.push((label, length)),
                Some((_, known)) if *known == 1 => *known = length,
                Some((_, known)) if length == 1 || length == *known => {}
                Some((_, known)) => return Err(other_length(label, *known, length)),
            }
        }
    }
    let is_wide = |label: char| lengths.contains(&(label, 1));
    let of = |(node, own): (&Arc<Node>, &Vec<char>)| {
        let node = Arc::clone(node);
        let term = diagonals(Term {
            node,
            labels: own.clone(),
        })?;
        Ok(term.without(|label, length| length == 1 && !is_wide(label)))
    };
    nodes.iter().zip(&labels.inputs).map(of).collect()
}

fn other_length(label: char, known: usize, length: usize) -> Error {
    let message = format!("axes with the label `{label}` have {known} and {length} elements");
    mismatch("einsum", message)
}

/// Replaces axes with one label by their diagonal.
fn diagonals(mut term: Term) -> Result<Term> {
    loop {
        let labels = &term.labels;
        let pairs = labels.iter().enumerate().find_map(|(first, label)| {
            let second = labels[first + 1..]
                .iter()
                .position(|other| other == label)?;
            Some((first, first + 1 + second))
        });
        let Some((first, second)) = pairs else {
            return Ok(term);
        };
        let length = term.node.shape[first];
        if length != term.node.shape[second] {
            return Err(other_length(labels[first], length, term.node.shape[second]));
        }
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.retain(|&axis| axis != first && axis != second);
        let left: Vec<char> = order.iter().map(|&axis| labels[axis]).collect();
        order.extend([first, second]);
        let last = permuted(&term.node, &order);
        let mut shape = last.shape[..left.len()].to_vec();
        // Neighbours on the diagonal are a row and an element apart.
        let flat = reshape(&last, &[&shape[..], &[length * length]].concat());
        let mut walk = Walk::along(flat.shape.len());
        walk.steps[left.len()] = length as isize + 1;
        shape.push(length);
        term = Term {
            node: view(&flat, walk, &shape),
            labels: [&left[..], &[labels[first]]].concat(),
        };
    }
}

/// Contracts terms from left to right to one with the labels of the result.
fn contract(terms: Vec<Term>, output: &[char]) -> Result<Term> {
    let mut left = terms.into_iter();
    let Some(mut result) = left.next() else {
        return Err(Error::Empty { op: "einsum" });
    };
    while let Some(term) = left.next() {
        let later = left.as_slice().iter().flat_map(|term| &term.labels);
        let needed: Vec<char> = output.iter().chain(later).copied().collect();
        result = combine(&result, &term, &needed)?;
    }
    Ok(result.summed(|label| !output.contains(&label)))
}

/// The labels of two terms by their use.
struct Roles {
    /// Labels that both terms have, and that are needed later.
    batch: Vec<char>,
    first: Vec<char>,
    second: Vec<char>,
    /// Labels that both terms have, and that are summed.
    summed: Vec<char>,
}

/// Multiplies two terms, and sums labels that nothing needs later.
fn combine(a: &Term, b: &Term, needed: &[char]) -> Result<Term> {
    let a = a.summed(|label| !needed.contains(&label) && !b.labels.contains(&label));
    let b = b.summed(|label| !needed.contains(&label) && !a.labels.contains(&label));
    let (shared, first): (Vec<char>, _) =
        a.labels.iter().partition(|label| b.labels.contains(label));
    let (batch, summed) = shared.iter().partition(|label| needed.contains(label));
    let second = b.labels.iter().copied();
    let second = second.filter(|label| !a.labels.contains(label)).collect();
    let roles = Roles {
        batch,
        first,
        second,
        summed,
    };
    let is_vector = roles.first.is_empty() || roles.second.is_empty();
    let node = if roles.summed.is_empty() || is_vector && !roles.batch.is_empty() {
        multiplied(&a, &b, &roles)?
    } else {
        let left = a.grouped(&[&roles.batch, &roles.first, &roles.summed]);
        let right = b.grouped(&[&roles.batch, &roles.summed, &roles.second]);
        if roles.batch.is_empty() {
            let matrix = |node: &Arc<Node>| reshape(node, &node.shape[1..]);
            with_front_axis(&matmul(&matrix(&left), &matrix(&right))?)
        } else {
            matmul(&left, &right)?
        }
    };
    let mut labels = roles.batch;
    labels.extend(roles.first);
    labels.extend(roles.second);
    let length = |label: &char| a.length(*label).or(b.length(*label)).unwrap_or(1);
    let shape: Vec<usize> = labels.iter().map(length).collect();
    check_result(&shape)?;
    let node = reshape(&node, &shape);
    Ok(Term { node, labels })
}

/// Multiplies element by element, and sums.
fn multiplied(a: &Term, b: &Term, roles: &Roles) -> Result<Arc<Node>> {
    let left = a.grouped(&[&roles.batch, &roles.first, &[], &roles.summed]);
    let right = b.grouped(&[&roles.batch, &[], &roles.second, &roles.summed]);
    let shape = broadcast("einsum", &[("a", &left.shape), ("b", &right.shape)])?;
    let product = elementwise(Op::Mul, &[&left, &right], &shape);
    if roles.summed.is_empty() {
        return Ok(product);
    }
    Ok(sum(&product, vec![3]))
}

impl Term {
    fn length(&self, label: char) -> Option<usize> {
        let axis = self.labels.iter().position(|&own| own == label)?;
        Some(self.node.shape[axis])
    }

    /// Returns the term without axes of length 1 for which `is_gone` holds.
    fn without(&self, is_gone: impl Fn(char, usize) -> bool) -> Self {
        let axes = self.labels.iter().zip(&self.node.shape);
        let left = axes.filter(|&(&label, &length)| !is_gone(label, length));
        let (labels, shape): (Vec<char>, Vec<usize>) = left.unzip();
        let node = reshape(&self.node, &shape);
        Self { node, labels }
    }

    /// Returns the term with the axes summed for whose labels `is_gone` holds.
    fn summed(&self, is_gone: impl Fn(char) -> bool) -> Self {
        let axes = 0..self.labels.len();
        let (gone, left): (Vec<usize>, Vec<usize>) =
            axes.partition(|&axis| is_gone(self.labels[axis]));
        let labels = left.iter().map(|&axis| self.labels[axis]).collect();
        let node = if gone.is_empty() {
            Arc::clone(&self.node)
        } else {
            sum(&self.node, gone)
        };
        Self { node, labels }
    }

    /// Returns the elements with one axis for each group of labels.
    fn grouped(&self, groups: &[&[char]]) -> Arc<Node> {
        let length = |label: &char| self.length(*label).unwrap_or(1);
        let lengths = groups.iter().map(|group| {
            let lengths: Vec<usize> = group.iter().map(length).collect();
            size_of(&lengths)
        });
        reshape(
            &self.in_order(&groups.concat()),
            &lengths.collect::<Vec<_>>(),
        )
    }

    /// Returns the elements with the axes in the order of labels.
    fn in_order(&self, labels: &[char]) -> Arc<Node> {
        let axes = labels
            .iter()
            .filter_map(|label| self.labels.iter().position(|own| own == label));
        let order: Vec<usize> = axes.collect();
        if order.is_sorted() {
            return Arc::clone(&self.node);
        }
        permuted(&self.node, &order)
    }
}
