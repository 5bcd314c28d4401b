//! Kernels and modules as JavaScript classes.

use js_sys::Reflect;
use serde::Serialize;
use tsify::{Ts, Tsify};
use wasm_bindgen::prelude::*;

use super::{invalid, target_of, to_js};
use crate::js_shared::whole;
use relampago_ptx as ptx;
use relampago_ptx::{Launch, Param, PtxKernel, Sizes};

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
    /// The name of the entry point, unique for every variant.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// The target that the kernel was built for.
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

    /// The block, the grid and the cluster.
    #[wasm_bindgen(getter)]
    pub fn launch(&self) -> Result<Ts<Launch>, JsValue> {
        plain(self.0.launch().clone())
    }

    /// The estimated number of 32-bit registers of a thread.
    #[wasm_bindgen(getter)]
    pub fn registers(&self) -> u32 {
        self.0.registers()
    }

    /// The size of all shared memory, in bytes.
    #[wasm_bindgen(getter, js_name = sharedBytes)]
    pub fn shared_bytes(&self) -> u32 {
        self.0.shared_bytes()
    }

    /// The size of the dynamic shared memory that the launch must request, in bytes.
    #[wasm_bindgen(getter, js_name = dynamicSharedBytes)]
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.0.dynamic_shared()
    }

    /// Computes the grid for sizes given by parameter name, on a GPU with `multiprocessors`
    /// multiprocessors. An axis has 0 blocks if there is nothing to compute; drivers reject such a
    /// launch, so skip it. Throws a `RelampagoError` (`LIMIT_EXCEEDED`) beyond the hardware's
    /// limits: 65,535 blocks along y and z, the axes of batches and heads.
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

/// The sizes of a launch by parameter name.
struct Named<'a>(&'a [Param], &'a JsValue);

impl Sizes for Named<'_> {
    fn size(&self, index: usize) -> Option<u64> {
        let value = Reflect::get(self.1, &self.0[index].name.into()).ok()?;
        whole(&value).map(u64::from)
    }
}

/// A module with several kernels.
#[wasm_bindgen(js_name = PtxModule)]
pub struct Module(ptx::PtxModule);

#[wasm_bindgen(js_class = PtxModule)]
impl Module {
    /// Creates a module without kernels. Throws a `RelampagoError` (`INVALID_ARGUMENT`) if there is
    /// no such target.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "TargetName")] target: JsValue,
    ) -> Result<Self, JsValue> {
        Ok(Self(ptx::PtxModule::new(target_of(&target)?)))
    }

    /// Adds a kernel. Throws a `RelampagoError` if it was built for a later target or another
    /// architecture (`UNSUPPORTED`), or if the module has a kernel with its name
    /// (`INVALID_ARGUMENT`).
    pub fn add(&mut self, kernel: &Kernel) -> Result<(), JsValue> {
        let added = self.0.add(kernel.0.clone());
        added.map_err(|error| to_js(&error))
    }

    /// The text of the module.
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
