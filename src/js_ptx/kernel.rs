//! A written kernel, and several in one text.

use js_sys::Reflect;
use serde::Serialize;
use tsify::{Ts, Tsify};
use wasm_bindgen::prelude::*;

use super::{invalid, target_of, to_js};
use crate::js_shared::whole;
use crate::ptx::{self, Launch, Param, PtxKernel, Sizes};

/// A kernel for one target, verified, with its launch and its parameters as data.
#[wasm_bindgen(js_name = PtxKernel)]
pub struct Kernel(PtxKernel);

impl Kernel {
    pub(super) fn new(kernel: PtxKernel) -> Self {
        Self(kernel)
    }
}

#[wasm_bindgen(js_class = PtxKernel)]
impl Kernel {
    /// The entry point's name, different for every variant.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// What it was written for.
    #[wasm_bindgen(getter, unchecked_return_type = "TargetName")]
    pub fn target(&self) -> String {
        self.0.target().to_string()
    }

    /// The text of a module with this kernel alone.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> Result<String, JsValue> {
        let module = ptx::PtxModule::new(self.0.target()).with(self.0.clone());
        Ok(module.map_err(|error| to_js(&error))?.emit())
    }

    /// The parameters, in the order of a launch.
    #[wasm_bindgen(getter)]
    pub fn params(&self) -> Result<Ts<ParamList>, JsValue> {
        plain(ParamList(self.0.params().to_vec()))
    }

    /// Block, grid and cluster.
    #[wasm_bindgen(getter)]
    pub fn launch(&self) -> Result<Ts<Launch>, JsValue> {
        plain(self.0.launch().clone())
    }

    /// An estimate of the 32-bit registers that a thread takes.
    #[wasm_bindgen(getter)]
    pub fn registers(&self) -> u32 {
        self.0.registers()
    }

    /// All shared memory, in bytes.
    #[wasm_bindgen(getter, js_name = sharedBytes)]
    pub fn shared_bytes(&self) -> u32 {
        self.0.shared_bytes()
    }

    /// Shared memory that the launch has to ask for, in bytes.
    #[wasm_bindgen(getter, js_name = dynamicSharedBytes)]
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.0.dynamic_shared()
    }

    /// The grid for these sizes, by the names of the parameters, on a GPU of so many
    /// multiprocessors. It has 0 blocks along an axis where there is nothing to compute, as for a
    /// product without rows: drivers refuse such a launch, so skip it. Throws a `RelampagoError`
    /// beyond what the hardware launches (`LIMIT_EXCEEDED`): 65,535 blocks along y and z, which
    /// batches and heads lie along.
    pub fn grid(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Record<string, number>")] sizes: JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] multiprocessors: JsValue,
    ) -> Result<Vec<u32>, JsValue> {
        if !sizes.is_object() {
            return Err(invalid("`sizes` must be an object"));
        }
        let multiprocessors = whole(&multiprocessors)
            .ok_or_else(|| invalid("`multiprocessors` must be a whole number below 2³²"))?;
        let sizes = Named(self.0.params(), &sizes);
        let grid = self.0.grid(&sizes, multiprocessors);
        Ok(grid.map_err(|error| to_js(&error))?.to_vec())
    }
}

/// Sizes by their names.
struct Named<'a>(&'a [Param], &'a JsValue);

impl Sizes for Named<'_> {
    fn size(&self, index: usize) -> Option<u64> {
        let value = Reflect::get(self.1, &self.0[index].name.into()).ok()?;
        whole(&value).map(u64::from)
    }
}

/// A text with several kernels.
#[wasm_bindgen(js_name = PtxModule)]
pub struct Module(ptx::PtxModule);

#[wasm_bindgen(js_class = PtxModule)]
impl Module {
    /// Without kernels. Throws a `RelampagoError` (`INVALID_ARGUMENT`) if there is no such target.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "TargetName")] target: JsValue,
    ) -> Result<Self, JsValue> {
        Ok(Self(ptx::PtxModule::new(target_of(&target)?)))
    }

    /// Adds a kernel. Throws a `RelampagoError` if it was written for a later target or another
    /// architecture (`UNSUPPORTED`), or if there is one of its name (`INVALID_ARGUMENT`).
    pub fn add(&mut self, kernel: &Kernel) -> Result<(), JsValue> {
        let added = self.0.add(kernel.0.clone());
        added.map_err(|error| to_js(&error))
    }

    /// The text.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.0.emit()
    }
}

/// Parameters, in the order of a launch.
#[derive(Serialize, Tsify)]
pub struct ParamList(Vec<Param>);

fn plain<T: Tsify + Serialize>(value: T) -> Result<Ts<T>, JsValue> {
    value.into_ts().map_err(|error| invalid(&error.to_string()))
}
