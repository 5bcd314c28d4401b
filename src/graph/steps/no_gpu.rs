//! The back-end of a build without the feature `gpu`: a type without values, so that nothing here ever runs. Models are
//! compiled for it as for the others.

use super::{
    Activation, Attention, BufferCache, Columns, Element, ExpertProduct, HeadPlaces, Norm, Product,
    Routing, StepBackend, StepKernels, StepPass,
};
use crate::error::Result;
use crate::tensor::ggml::WeightType;
use std::convert::Infallible;
use std::future::Ready;

#[allow(refining_impl_trait)] // An opaque type must be one that a value has.
impl StepBackend for Infallible {
    type Buffer = Infallible;
    type Weights = Infallible;
    type Cache = BufferCache<Infallible>;
    type CacheMemory = Infallible;
    type Pass<'a> = Infallible;

    const KERNELS: StepKernels = StepKernels {
        norm: "",
        add: "",
        silu: "",
        gelu: "",
        soft_cap: "",
        place: [""; 3],
        attend: [""; 3],
        attend_next: None,
        encoder: None,
        route: "",
    };

    fn block(&self) -> usize {
        match *self {}
    }

    fn pass(&self) -> Result<Infallible> {
        match *self {}
    }

    fn weights(&self, _: WeightType, _: &[&[u8]], _: usize) -> Ready<Result<Infallible>> {
        match *self {}
    }

    fn expert_kernel(weights: &Infallible) -> &'static str {
        match *weights {}
    }

    fn row_kernel(weights: &Infallible, _: bool) -> (&'static str, Vec<(usize, usize)>) {
        match *weights {}
    }
}

/// Implements methods that return `Result<()>`, which nothing can call.
macro_rules! never_called {
    ($($name:ident($($argument:ty),*);)*) => {$(
        fn $name(&mut self, $(_: $argument),*) -> Result<()> {
            match *self {}
        }
    )*};
}

#[allow(refining_impl_trait)]
impl StepPass for Infallible {
    type Buffer = Infallible;
    type Weights = Infallible;
    type Cache = Infallible;

    fn allocate(&mut self, _: usize) -> Result<Infallible> {
        match *self {}
    }

    fn upload(&mut self, _: &[f32]) -> Result<Infallible> {
        match *self {}
    }

    fn submit(self, _: Option<(&Infallible, usize)>) -> Result<Ready<Result<Vec<f32>>>> {
        match self {}
    }

    never_called! {
        write(&[f32], &Infallible);
        norm(&Infallible, Norm<'_, Infallible>, &Infallible, usize);
        multiply(&Infallible, &Infallible, Columns<'_, Infallible>, Product, Option<Norm<'_, Infallible>>);
        largest(Element<'_, Infallible>, usize, Element<'_, Infallible>);
        add((&Infallible, usize), Columns<'_, Infallible>, usize);
        place(&Infallible, &HeadPlaces<'_, Infallible>, &Infallible, &Infallible);
        attend((&Infallible, &Infallible), &Attention, &Infallible, &Infallible);
        soft_cap(&Infallible, usize, f32);
        route(&Infallible, &Infallible, usize, Routing);
        multiply_experts(&Infallible, &Infallible, Columns<'_, Infallible>, &Infallible, ExpertProduct);
        gate(&Infallible, &Infallible, [usize; 2], Activation);
    }
}
