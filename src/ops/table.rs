//! The rows of the op table: one an operation.
//!
//! A row reads
//!
//! ```text
//! /// The formula, for the documentation of every method.
//! sync_name async_name jsName Variant(inputs, …) -> output { parameter: type, … } Class, ulp,
//!     [{ parameter: value, … }, …]
//!     => { |g| gradient, … };
//! ```
//!
//! Between the documentation and the names may stand `#[doc(alias = "…")]`, names by which rustdoc finds
//! the operation. A row without parameters has no braces and no list. The list has the parameters that
//! an elementwise operation is tested with. Other operations need inputs that fit their parameters, so
//! their cases stand in the tests.
//!
//! An elementwise row ends in its derivative: the gradient of each input, where `g` is the gradient of the result, as
//! an expression of the inputs, the result and the parameters, whose methods `lazy/value.rs` has. `()` stands for an
//! input on which the result depends by steps or not at all.
//!
//! `ulp` is the stated accuracy: the distance from the true result, in units of `f32::EPSILON`
//! times the result's condition-scaled magnitude (see [`crate::reference`], also for what is said of
//! sums), that no back-end exceeds. One half means correctly rounded.

/// Hands the op table to the macro named: first the operations whose result is a slice, then
/// those whose result is one value.
macro_rules! for_each_op {
    ($emit:path) => {
        $emit! {
            vectors {
                /// Rectified linear unit: `y = max(x, 0)`.
                relu relu_async relu Relu(x) -> y Elementwise, 0.5
                    => { |g| g.only_where(x.greater(0.0)) };
                /// Leaky rectified linear unit: `y = x` where `x ≥ 0`, `negative_slope · x` elsewhere.
                leaky_relu leaky_relu_async leakyRelu LeakyRelu(x) -> y { negative_slope: f32 } Elementwise, 0.5, [{ negative_slope: 0.01 }, { negative_slope: -2.0 }, { negative_slope: 1.5 }]
                    => { |g| x.less(0.0).choose(g * negative_slope, g) };
                /// Exponential linear unit: `y = x` where `x > 0`, `alpha · (eˣ − 1)` elsewhere.
                elu elu_async elu Elu(x) -> y { alpha: f32 } Transcendental, 3.0, [{ alpha: 1.0 }, { alpha: 0.3 }]
                    => { |g| x.greater(0.0).choose(g, g * alpha * x.minimum(0.0).exp()) };
                /// Logistic function: `y = 1 / (1 + e⁻ˣ)`.
                #[doc(alias = "logistic")]
                sigmoid sigmoid_async sigmoid Sigmoid(x) -> y Transcendental, 3.0
                    => { |g| g * y * (1.0 - y) };
                /// Hyperbolic tangent.
                tanh tanh_async tanh Tanh(x) -> y Transcendental, 3.0
                    => { |g| g * (1.0 - y * y) };
                /// Swish, also called `SiLU`: `y = x / (1 + e⁻ˣ)`; its limit 0 at −∞.
                #[doc(alias = "silu")]
                swish swish_async swish Swish(x) -> y Transcendental, 4.0
                    => { |g| g * x.swish_slope() };
                /// Gaussian error linear unit, exact: `y = x · Φ(x) = x/2 · (1 + erf(x/√2))`; its limit 0 at −∞.
                gelu gelu_async gelu Gelu(x) -> y Transcendental, 6.0
                    => { |g| g * x.gelu_slope() };
                /// Gaussian error linear unit by the tanh formula (Hendrycks and Gimpel, 2016):
                /// `y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`; its limit 0 at −∞.
                #[doc(alias = "gelu_new")]
                gelu_tanh gelu_tanh_async geluTanh GeluTanh(x) -> y Transcendental, 4.0
                    => { |g| g * x.gelu_tanh_slope() };
                /// Clamp: `y = min(max(x, min), max)`. `min` may not exceed `max`, nor be NaN.
                #[doc(alias = "clamp")]
                clip clip_async clip Clip(x) -> y { min: f32, max: f32 } Elementwise, 0.5, [{ min: -1.5, max: 2.5 }, { min: f32::NEG_INFINITY, max: 0.0 }]
                    => { |g| g.only_where(x.equal(y)) };
                /// Exponential: `y = eˣ`.
                exp exp_async exp Exp(x) -> y Transcendental, 2.0
                    => { |g| g * y };
                /// Natural logarithm; NaN below zero, −∞ at zero.
                #[doc(alias = "ln")]
                log log_async log Log(x) -> y Transcendental, 2.0
                    => { |g| g / x };
                /// Square root; NaN below zero.
                sqrt sqrt_async sqrt Sqrt(x) -> y Elementwise, 4.0
                    => { |g| g * 0.5 / y };
                /// Absolute value.
                abs abs_async abs Abs(x) -> y Elementwise, 0.5
                    => { |g| g * x.sign() };
                /// Negation: `y = −x`.
                #[doc(alias = "negate")]
                neg neg_async neg Neg(x) -> y Elementwise, 0.5
                    => { |g| -g };
                /// Multiplication by a constant: `y = factor · x`.
                scale scale_async scale Scale(x) -> y { factor: f32 } Elementwise, 0.5, [{ factor: 2.5 }, { factor: -0.3 }]
                    => { |g| g * factor };
                /// Square: `y = x²`.
                square square_async square Square(x) -> y Elementwise, 0.5
                    => { |g| g * (x * 2.0) };
                /// Reciprocal: `y = 1 / x`; ∞ with the sign of `x` at zero.
                #[doc(alias = "recip")]
                reciprocal reciprocal_async reciprocal Reciprocal(x) -> y Elementwise, 4.0
                    => { |g| -g * (y * y) };
                /// Reciprocal of the square root: `y = 1 / √x`; NaN below zero, ∞ with the sign of `x` at zero.
                #[doc(alias = "inverse_sqrt")]
                rsqrt rsqrt_async rsqrt Rsqrt(x) -> y Elementwise, 4.0
                    => { |g| g * -0.5 * (y * y * y) };
                /// Rectified linear unit with an upper bound: `y = min(max(x, 0), 6)`.
                relu6 relu6_async relu6 Relu6(x) -> y Elementwise, 0.5
                    => { |g| g.only_where(x.greater(0.0) * x.less(6.0)) };
                /// Hard swish (Howard et al., 2019): `y = x · min(max(x + 3, 0), 6) / 6`; its limit 0 at −∞.
                #[doc(alias = "hard_swish")]
                hardswish hardswish_async hardswish Hardswish(x) -> y Elementwise, 2.0
                    => { |g| g * (((x + 3.0).clip(0.0, 6.0) + x.only_where(x.greater(-3.0) * x.less(3.0))) / 6.0) };
                /// Sign: −1 below zero, 1 above; a zero stays what it is.
                sign sign_async sign Sign(x) -> y Elementwise, 0.5
                    => { |g| () };
                /// The nearest integer; halves are rounded to the even one.
                round round_async round Round(x) -> y Elementwise, 0.5
                    => { |g| () };
                /// The largest integer that is not above `x`.
                floor floor_async floor Floor(x) -> y Elementwise, 0.5
                    => { |g| () };
                /// The smallest integer that is not below `x`.
                ceil ceil_async ceil Ceil(x) -> y Elementwise, 0.5
                    => { |g| () };
                /// Softplus: `y = ln(1 + eˣ)`.
                softplus softplus_async softplus Softplus(x) -> y Transcendental, 4.0
                    => { |g| g * x.sigmoid() };
                /// Mish (Misra, 2019): `y = x · tanh(ln(1 + eˣ))`; its limit 0 at −∞.
                mish mish_async mish Mish(x) -> y Transcendental, 6.0
                    => { |g| g * x.mish_slope() };
                /// Error function: `y = 2/√π · ∫₀ˣ e^(−t²) dt`.
                erf erf_async erf Erf(x) -> y Transcendental, 3.0
                    => { |g| g * ((-x.square()).exp() * FRAC_2_SQRT_PI) };
                /// Sine of an angle in radians. The result is as accurate as if `x` had one rounding error: for large `x` the
                /// absolute error is at most `2 ε |x|`. NaN where `|x|` exceeds 4194304 (2²²).
                sin sin_async sin Sin(x) -> y Transcendental, 2.0
                    => { |g| g * x.cos() };
                /// Cosine of an angle in radians, with the accuracy and the range of `sin`.
                cos cos_async cos Cos(x) -> y Transcendental, 2.0
                    => { |g| -g * x.sin() };
                /// Elementwise sum: `y = a + b`.
                #[doc(alias = "add")]
                vec_add vec_add_async vecAdd VecAdd(a, b) -> y Elementwise, 0.5
                    => { |g| g, g };
                /// Elementwise difference: `y = a − b`.
                #[doc(alias = "subtract")]
                sub sub_async sub Sub(a, b) -> y Elementwise, 0.5
                    => { |g| g, -g };
                /// Elementwise product: `y = a · b`.
                #[doc(alias = "multiply")]
                #[doc(alias = "hadamard")]
                mul mul_async mul Mul(a, b) -> y Elementwise, 0.5
                    => { |g| g * b, g * a };
                /// Elementwise quotient: `y = a / b`.
                #[doc(alias = "divide")]
                div div_async div Div(a, b) -> y Elementwise, 4.0
                    => { |g| g / b, -g * y / b };
                /// Elementwise minimum; NaN where either input is NaN.
                minimum minimum_async minimum Minimum(a, b) -> y Elementwise, 0.5
                    => { |g| g * (a.less(b) + a.equal(b) * 0.5), g * (b.less(a) + a.equal(b) * 0.5) };
                /// Elementwise maximum; NaN where either input is NaN.
                maximum maximum_async maximum Maximum(a, b) -> y Elementwise, 0.5
                    => { |g| g * (b.less(a) + a.equal(b) * 0.5), g * (a.less(b) + a.equal(b) * 0.5) };
                /// Power `y = aᵇ`, with C's special cases: 1 where `b` is 0 or `a` is 1, even beside NaN; NaN where `a` is
                /// negative and finite and `b` no integer.
                #[doc(alias = "power")]
                pow pow_async pow Pow(a, b) -> y Transcendental, 8.0
                    => { |g| g * a.power_slope(b), g * (y * (a + a.equal(0.0)).log()) };
                /// 1 where `a` equals `b`, 0 elsewhere; 0 beside NaN.
                #[doc(alias = "eq")]
                equal equal_async equal Equal(a, b) -> y Elementwise, 0.5
                    => { |g| (), () };
                /// 1 where `a < b`, 0 elsewhere; 0 beside NaN.
                #[doc(alias = "lt")]
                less less_async less Less(a, b) -> y Elementwise, 0.5
                    => { |g| (), () };
                /// 1 where `a ≤ b`, 0 elsewhere; 0 beside NaN.
                #[doc(alias = "le")]
                less_equal less_equal_async lessEqual LessEqual(a, b) -> y Elementwise, 0.5
                    => { |g| (), () };
                /// `a` where `condition` is not 0, and −0 elsewhere, which changes no sum. `vec_add` of this and of
                /// `keep_unless` selects between two inputs.
                #[doc(alias = "where")]
                #[doc(alias = "select")]
                keep_where keep_where_async keepWhere KeepWhere(a, condition) -> y Elementwise, 0.5
                    => { |g| g.only_where(condition), () };
                /// `a` where `condition` is 0, and −0 elsewhere: see `keep_where`.
                #[doc(alias = "masked_fill")]
                keep_unless keep_unless_async keepUnless KeepUnless(a, condition) -> y Elementwise, 0.5
                    => { |g| g.only_where(condition.equal(0.0)), () };
                /// Gated activation with swish: `y = a / (1 + e⁻ᵃ) · b`, where a gate below 1.2e-38 counts as 0.
                #[doc(alias = "swiglu")]
                #[doc(alias = "silu_and_mul")]
                silu_mul silu_mul_async siluMul SiluMul(a, b) -> y Transcendental, 5.0
                    => { |g| g * b * a.swish_slope(), g * a.swish() };
                /// Gated activation with GELU by the tanh formula: `y = gelu_tanh(a) · b`, where a gate
                /// below 1.2e-38 counts as 0.
                #[doc(alias = "geglu")]
                #[doc(alias = "gelu_and_mul")]
                gelu_mul gelu_mul_async geluMul GeluMul(a, b) -> y Transcendental, 5.0
                    => { |g| g * b * a.gelu_tanh_slope(), g * a.gelu_tanh() };
                /// Adds a vector of `cols` values to each row of a row-major `rows × cols` matrix.
                #[doc(alias = "add_bias")]
                bias_add bias_add_async biasAdd BiasAdd(x, bias) -> y { rows: usize, cols: usize } Elementwise, 0.5;
                /// Softmax of one vector: `yᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x)`.
                softmax softmax_async softmax Softmax(x) -> y Softmax, 8.0;
                /// Logarithm of the softmax of one vector: `yᵢ = xᵢ − max x − log Σⱼ exp(xⱼ − max x)`.
                #[doc(alias = "logsoftmax")]
                log_softmax log_softmax_async logSoftmax LogSoftmax(x) -> y Softmax, 8.0;
                /// Softmax of each row of a row-major `rows × cols` matrix.
                #[doc(alias = "batched softmax")]
                softmax_rows softmax_rows_async softmaxRows SoftmaxRows(x) -> y { rows: usize, cols: usize } Softmax, 8.0;
                /// Logarithm of the softmax of each row of a row-major `rows × cols` matrix.
                log_softmax_rows log_softmax_rows_async logSoftmaxRows LogSoftmaxRows(x) -> y { rows: usize, cols: usize } Softmax, 8.0;
                /// Layer normalisation (Ba, Kiros and Hinton, 2016) of each row of a row-major
                /// `rows × cols` matrix: `y = (x − mean) / √(variance + epsilon) · gain + bias`, where
                /// `variance = Σ (x − mean)² / cols`. `gain` and `bias` have `cols` values, `epsilon`
                /// is positive.
                #[doc(alias = "layernorm")]
                layer_norm layer_norm_async layerNorm LayerNorm(x, gain, bias) -> y { rows: usize, cols: usize, epsilon: f32 } Softmax, 8.0;
                /// Root mean square normalisation (Zhang and Sennrich, 2019) of each row of a row-major
                /// `rows × cols` matrix: `y = x / √(Σ x² / cols + epsilon) · gain`. `gain` has `cols`
                /// values, `epsilon` is positive.
                #[doc(alias = "rmsnorm")]
                rms_norm rms_norm_async rmsNorm RmsNorm(x, gain) -> y { rows: usize, cols: usize, epsilon: f32 } Softmax, 8.0;
                /// Two-dimensional convolutions of images with many channels by many filters, with the
                /// batch, groups, strides, dilation and padding of its [`ConvLayer`].
                #[doc(alias = "conv2d")]
                #[doc(alias = "convolution")]
                convolve_layer convolve_layer_async convolveLayer ConvolveLayer(input, weights) -> result { options: ConvLayer } Convolution, 64.0;
                /// Matrix product `C = A · B` of row-major matrices, `m × k` times `k × n`; zeros where `k` is 0.
                #[doc(alias = "gemm")]
                #[doc(alias = "mm")]
                #[doc(alias = "dot")]
                matmul matmul_async matmul Matmul(a, b) -> c { m: usize, k: usize, n: usize } Matmul, 64.0;
                /// Matrix product `C = A · B` as [`Matmul`] says: its operands may be stored transposed.
                #[doc(alias = "gemm")]
                #[doc(alias = "mm")]
                matmul_with matmul_with_async matmulWith MatmulWith(a, b) -> c { options: Matmul } Matmul, 64.0;
                /// Transpose of a row-major `rows × cols` matrix.
                #[doc(alias = "permute")]
                transpose transpose_async transpose Transpose(x) -> y { rows: usize, cols: usize } Movement, 0.5;
                /// Elements of `x` in the order of a strided view, as its [`Rearrange`] says: slices, permuted axes and
                /// repeated elements.
                #[doc(alias = "as_strided")]
                #[doc(alias = "broadcast")]
                #[doc(alias = "slice")]
                #[doc(alias = "permute")]
                rearrange rearrange_async rearrange Rearrange(x) -> y { options: Rearrange } Movement, 0.5;
                /// Splits the 32 bits of each element of `x` into four bytes, the lowest one first, and returns each as a
                /// number from 0 to 1: `y = byte / 255`. The four numbers are `stride` elements apart in the result. `stride` is 1 for pixels, or
                /// the number of elements of `x`, which makes planes of an image's channels.
                #[doc(alias = "unpack4x8unorm")]
                #[doc(alias = "image")]
                unpack_bytes unpack_bytes_async unpackBytes UnpackBytes(x) -> y { stride: usize } Movement, 4.0, [{ stride: 1 }];
                /// Numbers from 0 to 1 as bytes, four in the bits of each element of the result, the first one lowest:
                /// `byte = ⌊255 · min(max(x, 0), 1) + ½⌋`. NaN becomes 0, and so do missing bytes of the last element. The
                /// four numbers are `stride` elements apart in `x`, as in the result of `unpack_bytes`. Only the bits of the
                /// result have a meaning, not its elements as numbers.
                #[doc(alias = "pack4x8unorm")]
                #[doc(alias = "image")]
                pack_bytes pack_bytes_async packBytes PackBytes(x) -> y { stride: usize } Movement, 0.5, [{ stride: 1 }];
                /// Joins the rows of two row-major matrices, `rows × a_cols` and `rows × b_cols`: row-major
                /// `rows × (a_cols + b_cols)`.
                #[doc(alias = "concatenate")]
                #[doc(alias = "hstack")]
                concat_rows concat_rows_async concatRows ConcatRows(a, b) -> y { rows: usize, a_cols: usize, b_cols: usize } Movement, 0.5;
                /// Sums, means, extremes or their indices along one axis, as its [`ReduceAxis`] says.
                #[doc(alias = "reduce_sum")]
                #[doc(alias = "argmin")]
                reduce_axis reduce_axis_async reduceAxis ReduceAxis(x) -> y { options: ReduceAxis } Reduction, 8.0;
                /// Rows of a row-major `rows × cols` table, one for each index. Indices are whole numbers from 0,
                /// stored as `f32`, so a table has at most 2²⁴ rows. An index beyond the table is an error where
                /// the host has the indices; where a device computed them or a buffer has them, its row is NaN.
                #[doc(alias = "embedding")]
                #[doc(alias = "index_select")]
                #[doc(alias = "take")]
                gather_rows gather_rows_async gatherRows GatherRows(table, indices) -> y { rows: usize, cols: usize } Movement, 0.5;
                /// Sums of the rows of `x` that have the same index: row `r` of the row-major `rows × cols` result is the sum of
                /// the rows whose index is `r`, or zeros. Indices are as in `gather_rows`, but a row with an invalid one is in no
                /// sum. There are at most 2²⁴ indices.
                #[doc(alias = "scatter_add")]
                #[doc(alias = "segment_sum")]
                #[doc(alias = "index_add")]
                scatter_rows scatter_rows_async scatterRows ScatterRows(x, indices) -> y { rows: usize, cols: usize } Movement, 8.0;
                /// Elements of each row of a row-major `rows × cols` matrix, `k` by their indices within the row:
                /// row-major `rows × k`. Indices are as in `gather_rows`.
                #[doc(alias = "gather")]
                #[doc(alias = "take_along_axis")]
                #[doc(alias = "take_along_dim")]
                take_along_rows take_along_rows_async takeAlongRows TakeAlongRows(x, indices) -> y { rows: usize, cols: usize, k: usize } Movement, 0.5;
                /// Index of the largest element of each row of a row-major `rows × cols` matrix: of the first
                /// largest one, or of the first NaN. A row has at most 2²⁴ elements.
                #[doc(alias = "argmax")]
                argmax_rows argmax_rows_async argmaxRows ArgmaxRows(x) -> indices { rows: usize, cols: usize } Reduction, 0.5;
                /// Indices of the `k` largest elements of each row of a row-major `rows × cols` matrix, from the
                /// largest on: row-major `rows × k`. NaN comes before numbers, and of equal elements the first.
                /// `take_along_rows` returns the elements. A row has at most 2²⁴ elements.
                #[doc(alias = "topk")]
                #[doc(alias = "argsort")]
                top_k_rows top_k_rows_async topKRows TopKRows(x) -> indices { rows: usize, cols: usize, k: usize } Reduction, 0.5;
                /// Sums of each row's elements up to each one, of a row-major `rows × cols` matrix. NaN is in all sums after it.
                #[doc(alias = "cumulative_sum")]
                #[doc(alias = "prefix_sum")]
                #[doc(alias = "scan")]
                cumsum_rows cumsum_rows_async cumsumRows CumsumRows(x) -> y { rows: usize, cols: usize } Movement, 8.0;
                /// Products of each row's elements up to each one, of a row-major `rows × cols` matrix. Where a product of
                /// neighbours exceeds the range of `f32`, products that contain it may, too.
                #[doc(alias = "cumulative_product")]
                cumprod_rows cumprod_rows_async cumprodRows CumprodRows(x) -> y { rows: usize, cols: usize } Movement, 8.0;
                /// Elements of each row in ascending order, of a row-major `rows × cols` matrix, NaN last. A row has at most 2²⁴
                /// elements.
                #[doc(alias = "sort")]
                sort_rows sort_rows_async sortRows SortRows(x) -> y { rows: usize, cols: usize } Movement, 0.5;
                /// Indices of each row's elements in ascending order, of a row-major `rows × cols` matrix. Equal elements
                /// stay in their order, and NaN comes last. A row has at most 2²⁴ elements.
                #[doc(alias = "argsort")]
                argsort_rows argsort_rows_async argsortRows ArgsortRows(x) -> indices { rows: usize, cols: usize } Movement, 0.5;
                /// Discrete Fourier transform of each of `rows` rows of `len` complex numbers, whose real and imaginary parts
                /// are neighbours: `yₖ = Σⱼ xⱼ · e^(−2πi·jk/len)`. `len` is a power of two up to 2²⁴. A row with NaN or an
                /// infinity has some results that are NaN.
                #[doc(alias = "fourier")]
                fft_rows fft_rows_async fftRows FftRows(x) -> y { rows: usize, len: usize } Movement, 8.0;
                /// Rotary position embedding (Su et al., 2021) of heads, as its [`Rope`] says: pairs of elements are
                /// rotated by angles that grow with the token's position.
                #[doc(alias = "rotary embedding")]
                rope rope_async rope Rope(x) -> y { options: Rope } Movement, 2.0;
                /// Scaled dot-product attention (Vaswani et al., 2017) of several heads, as its [`Attention`] says:
                /// `softmax(Q · Kᵀ · scale) · V` for each head. It may be causal, and may have a window, a soft cap of the
                /// scores, and fewer heads of keys and values than of queries.
                #[doc(alias = "scaled_dot_product_attention")]
                #[doc(alias = "multi-head attention")]
                #[doc(alias = "flash attention")]
                attention attention_async attention Attention(queries, keys, values) -> mixed { options: Attention } Matmul, 8.0;
                /// Two-dimensional convolution as in machine learning (the kernel is not flipped),
                /// with the stride and padding of its [`Conv2d`].
                #[doc(alias = "conv2d")]
                #[doc(alias = "convolution")]
                #[doc(alias = "cross_correlation")]
                convolve2d_with convolve2d_with_async convolve2d Convolve2d(input, kernel) -> result { options: Conv2d } Convolution, 32.0;
            }
            scalars {
                /// Dot product `Σ aᵢ · bᵢ`; 0 of no values.
                #[doc(alias = "inner_product")]
                dot dot_async dot Dot(a, b) -> f32 Reduction, 8.0;
                /// Sum of all values; 0 of no values.
                #[doc(alias = "reduce_sum")]
                sum sum_async sum Sum(x) -> f32 Reduction, 8.0;
                /// Largest value; NaN where any is NaN.
                #[doc(alias = "reduce_max")]
                #[doc(alias = "amax")]
                max max_async max Max(x) -> f32 Reduction, 0.5;
                /// Smallest value; NaN where any is NaN.
                #[doc(alias = "reduce_min")]
                #[doc(alias = "amin")]
                min min_async min Min(x) -> f32 Reduction, 0.5;
                /// Arithmetic mean.
                #[doc(alias = "reduce_mean")]
                #[doc(alias = "average")]
                mean mean_async mean Mean(x) -> f32 Reduction, 8.0;
                /// Index of the first largest value, or of the first NaN where there is one.
                #[doc(alias = "arg_max")]
                argmax argmax_async argmax Argmax(x) -> usize Reduction, 0.5;
            }
        }
    };
}
pub(crate) use for_each_op;
