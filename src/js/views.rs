//! `TensorView`, matmuls of views and tiled reductions.

use std::cell::Cell;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter, get, invalid, set};
use super::device::JsDevice;
use super::error::{promise, to_js};
use super::types::*;
use crate::alloc::js_array as array;
use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::ops::reduce_op::{MaxOp, MinOp, Partials, SumOp};
use crate::ops::shape::{check_len, product};
use crate::simd::Fold;
use crate::tensor::{MemoryLayout, PartitionView, TensorView};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** The lengths of one to four dimensions. */
export type Shape = readonly number[];

/** The layout of a view's values; the default is row-major from index 0. */
export interface ViewOptions {
    /** The order of values in memory: the last dimension varies fastest, the first one does, or tiles. */
    layout?: 'rowMajor' | 'columnMajor' | { readonly tileSize: readonly [rows: number, cols: number] } | undefined;
    /** The distance between neighbouring values in each dimension, instead of a layout. */
    strides?: readonly number[] | undefined;
    /** The index of the first value. */
    offset?: number | undefined;
}

/** The name of a reduction. Maximum and minimum are NaN if any value is NaN. */
export type Reduction = 'sum' | 'max' | 'min';

/** The results of a reduction by tiles, one for each tile. */
export interface Partials {
    /** The tiles' values, the last dimension varying fastest. */
    readonly values: Float32Array<ArrayBuffer>;
    /** The number of tiles along each of four dimensions. */
    readonly tileCount: [number, number, number, number];
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Shape")]
    pub type Shape;
    #[wasm_bindgen(typescript_type = "number[]")]
    pub type Lengths;
    #[wasm_bindgen(typescript_type = "ViewOptions")]
    pub type ViewOptions;
    #[wasm_bindgen(typescript_type = "Reduction")]
    pub type ReductionName;
    #[wasm_bindgen(typescript_type = "Partials")]
    pub type JsPartials;
    #[wasm_bindgen(typescript_type = "Promise<Partials>")]
    pub type PromiseOfPartials;
    #[wasm_bindgen(typescript_type = "Promise<number>")]
    pub type PromiseOfNumber;
}

/// A shape of up to four dimensions with strides and an offset. Slicing and transposing return
/// another view and copy nothing. Views are immutable and hold no data.
#[wasm_bindgen(js_name = TensorView)]
pub struct JsView {
    /// The view; `None` after `dispose`.
    view: Cell<Option<TensorView>>,
}

#[wasm_bindgen(js_class = TensorView)]
impl JsView {
    /// Creates a view of this shape.
    #[wasm_bindgen(constructor)]
    pub fn new(shape: Shape, options: Option<ViewOptions>) -> Result<Self, JsValue> {
        let options: JsValue = options.map_or(JsValue::UNDEFINED, Into::into);
        if !options.is_undefined() {
            convert::require_view_options(&options)?;
        }
        Self::made(view(&shape, &options))
    }

    /// The lengths of the four dimensions; unused ones are 1.
    #[wasm_bindgen(getter)]
    pub fn shape(&self) -> Result<Lengths, JsValue> {
        Ok(list(self.view().map_err(|error| to_js(&error))?.shape()).unchecked_into())
    }

    /// The distance between neighbouring values in each dimension, in values.
    #[wasm_bindgen(getter)]
    pub fn strides(&self) -> Result<Lengths, JsValue> {
        Ok(list(self.view().map_err(|error| to_js(&error))?.strides()).unchecked_into())
    }

    /// The index of the first value in the data.
    #[wasm_bindgen(getter)]
    pub fn offset(&self) -> Result<usize, JsValue> {
        self.of(|view| Ok(view.offset()))
    }

    /// The number of values.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> Result<usize, JsValue> {
        self.of(|view| Ok(view.numel()))
    }

    /// Returns the range from `start` to before `end` of a dimension.
    pub fn slice(&self, dim: Count, start: Count, end: Count) -> Result<Self, JsValue> {
        self.another(|view| {
            let dim = usize::from_js(&dim, "dim")?;
            let start = usize::from_js(&start, "start")?;
            view.slice_dim(dim, start..usize::from_js(&end, "end")?)
        })
    }

    /// Returns the view with two dimensions exchanged.
    pub fn transpose(&self, dim0: Count, dim1: Count) -> Result<Self, JsValue> {
        self.another(|view| {
            view.transpose(
                usize::from_js(&dim0, "dim0")?,
                usize::from_js(&dim1, "dim1")?,
            )
        })
    }

    /// Returns a view of the same values in another shape. The view must be row-major without gaps.
    pub fn reshape(&self, shape: Shape) -> Result<Self, JsValue> {
        self.another(|view| view.reshape(lengths(&shape, "shape")?))
    }

    /// Copies the view's elements of `values` to a new array, row by row.
    pub fn gather(&self, values: Values) -> Result<Values, JsValue> {
        self.of(|view| {
            let values = convert::copied(values.into(), "values")?;
            let shown = view.bind(&values)?.contiguous()?;
            Ok(array::of(&shown)?.unchecked_into())
        })
    }

    /// Reduces the view's elements of `values` to one value, on SIMD.
    pub fn reduce(&self, reduction: ReductionName, values: Values) -> Result<f32, JsValue> {
        self.of(|view| {
            let values = convert::copied(values.into(), "values")?;
            let bound = view.bind(&values)?;
            bound.fold(&fold(&reduction)?)
        })
    }

    /// Reduces each tile of this shape to one value, on SIMD. Tiles at the edges are smaller.
    #[wasm_bindgen(js_name = reduceTiles)]
    pub fn reduce_tiles(
        &self,
        reduction: ReductionName,
        values: Values,
        tile: Shape,
    ) -> Result<JsPartials, JsValue> {
        self.of(|view| {
            let values = convert::copied(values.into(), "values")?;
            let tiles = PartitionView::new(view, lengths(&tile, "tile")?)?;
            let partials = tiles.fold(&fold(&reduction)?, &values)?;
            Ok(partials_to_js(&partials)?.unchecked_into())
        })
    }

    /// Releases its memory. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.view.take();
    }
}

impl JsView {
    fn made(view: Result<TensorView>) -> Result<Self, JsValue> {
        let view = Cell::new(Some(view.map_err(|error| to_js(&error))?));
        Ok(Self { view })
    }

    fn view(&self) -> Result<TensorView> {
        let what = "TensorView";
        self.view.get().ok_or(Error::Disposed { what })
    }

    fn of<T>(&self, f: impl FnOnce(TensorView) -> Result<T>) -> Result<T, JsValue> {
        self.view().and_then(f).map_err(|error| to_js(&error))
    }

    fn another(&self, f: impl FnOnce(TensorView) -> Result<TensorView>) -> Result<Self, JsValue> {
        Self::made(self.view().and_then(f))
    }
}

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Computes the matmul of the views `aView` of `a` and `bView` of `b`, read in place. The
    /// result is row-major.
    #[wasm_bindgen(js_name = matmulView)]
    pub fn matmul_view(
        &self,
        #[wasm_bindgen(js_name = aView)] a_view: &JsView,
        a: Values,
        #[wasm_bindgen(js_name = bView)] b_view: &JsView,
        b: Values,
        abort: Option<AbortOptions>,
    ) -> PromiseOfValues {
        let call = || -> Result<_> {
            let views = (a_view.view()?, b_view.view()?);
            Ok((
                self.handle()?,
                views,
                convert::copied(a.into(), "a")?,
                convert::copied(b.into(), "b")?,
            ))
        };
        let call = call();
        let work = async move {
            let (device, views, a, b) = call?;
            let (a, b) = (views.0.bind(&a)?, views.1.bind(&b)?);
            let mut c = try_zeros(product("c", views.0.shape()[0], views.1.shape()[1])?)?;
            device.matmul_view_async(&a, &b, &mut c).await?;
            Ok(array::of(&c)?.into())
        };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// Reduces a row-major `rows × cols` matrix to one value, tile by tile.
    #[wasm_bindgen(js_name = tiledReduce2d)]
    pub fn tiled_reduce_2d(
        &self,
        reduction: ReductionName,
        values: Values,
        rows: Count,
        cols: Count,
        abort: Option<AbortOptions>,
    ) -> PromiseOfNumber {
        let call = self.reduction(&reduction, values, &rows, &cols);
        let work = async move {
            let (device, fold, x, [rows, cols]) = call?;
            Ok(device.fold_all(fold, &x, rows, cols).await?.into())
        };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// Reduces each 16 × 16 tile of a row-major `rows × cols` matrix to one value.
    #[wasm_bindgen(js_name = tiledReducePartial)]
    pub fn tiled_reduce_partial(
        &self,
        reduction: ReductionName,
        values: Values,
        rows: Count,
        cols: Count,
        abort: Option<AbortOptions>,
    ) -> PromiseOfPartials {
        let call = self.reduction(&reduction, values, &rows, &cols);
        let work = async move {
            let (device, fold, x, [rows, cols]) = call?;
            partials_to_js(&device.fold_tiles(fold, &x, rows, cols).await?)
        };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }
}

impl JsDevice {
    /// Converts the arguments of a tiled reduction.
    #[allow(clippy::type_complexity)] // Named, it would have to be taken apart just the same.
    fn reduction(
        &self,
        reduction: &JsValue,
        values: Values,
        rows: &JsValue,
        cols: &JsValue,
    ) -> Result<(crate::device::GpuDevice, Fold, Vec<f32>, [usize; 2])> {
        let shape = [usize::from_js(rows, "rows")?, usize::from_js(cols, "cols")?];
        let fold = fold(reduction)?;
        Ok((
            self.handle()?,
            fold,
            convert::copied(values.into(), "values")?,
            shape,
        ))
    }
}

/// Returns the named reduction.
fn fold(name: &JsValue) -> Result<Fold> {
    match name.as_string().as_deref() {
        Some("sum") => Fold::of::<SumOp>(),
        Some("max") => Fold::of::<MaxOp>(),
        Some("min") => Fold::of::<MinOp>(),
        _ => Err(invalid("reduction", name, "'sum', 'max' or 'min'")),
    }
}

fn view(shape: &JsValue, options: &JsValue) -> Result<TensorView> {
    let dims = lengths(shape, "shape")?;
    let strides = get(options, "strides");
    let view = if strides.is_undefined() {
        TensorView::new(dims)?.with_layout(layout(&get(options, "layout"))?)?
    } else {
        let steps = lengths(&strides, "strides")?;
        check_len("strides", count(shape), count(&strides))?;
        TensorView::with_strides(dims, steps)?
    };
    match get(options, "offset") {
        absent if absent.is_undefined() => Ok(view),
        offset => view.with_offset(usize::from_js(&offset, "offset")?),
    }
}

fn layout(value: &JsValue) -> Result<MemoryLayout> {
    match value.as_string().as_deref() {
        None if value.is_undefined() => Ok(MemoryLayout::RowMajor),
        Some("rowMajor") => Ok(MemoryLayout::RowMajor),
        Some("columnMajor") => Ok(MemoryLayout::ColumnMajor),
        None if value.is_object() => {
            let sides = get(value, "tileSize");
            let [rows, cols, ..] = lengths(&sides, "tileSize")?;
            check_len("tileSize", 2, count(&sides))?;
            let tile_size = [rows, cols];
            Ok(MemoryLayout::Tiled { tile_size })
        }
        _ => {
            let known = "'rowMajor', 'columnMajor' or an object with a tileSize";
            Err(invalid("layout", value, known))
        }
    }
}

/// Converts one to four numbers; missing ones are 1.
fn lengths(value: &JsValue, what: &'static str) -> Result<[usize; 4]> {
    let wanted = "an array of one to four whole numbers";
    let array: &Array = value
        .dyn_ref()
        .filter(|array: &&Array| (1..=4).contains(&array.length()))
        .ok_or_else(|| invalid(what, value, wanted))?;
    let mut lengths = [1; 4];
    for (length, value) in lengths.iter_mut().zip(array.iter()) {
        *length = usize::from_js(&value, what)?;
    }
    Ok(lengths)
}

/// Returns the number of lengths that were given to [`lengths`].
fn count(lengths: &JsValue) -> usize {
    let array: &Array = lengths.unchecked_ref();
    array.length() as usize
}

fn list(numbers: [usize; 4]) -> Array {
    numbers.iter().map(|&n| JsValue::from(n as f64)).collect()
}

fn partials_to_js(partials: &Partials) -> Result<JsValue> {
    let object = js_sys::Object::new();
    set(&object, "values", array::of(&partials.values)?);
    set(&object, "tileCount", list(partials.tile_count));
    Ok(object.into())
}
