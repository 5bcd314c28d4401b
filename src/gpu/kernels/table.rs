//! The kernels made of `shaders/kernels` and `shaders/steps`, and the facts that their text does not state: one long
//! table. `build.rs` includes this file.

/// A file of `shaders/kernels` and the kernels that are made of it.
pub(crate) struct Template {
    /// The file's name without its extension.
    pub(crate) file: &'static str,
    /// Whether its kernels prove that they stay within bounds.
    pub(crate) unchecked: bool,
    /// Whether WebAssembly has none of its kernels, because of the size of the download.
    pub(crate) native: bool,
    /// The file whose functions are inlined into the kernels in browsers.
    pub(crate) inlined: Option<&'static str>,
    pub(crate) instances: &'static [Instance],
}

/// A kernel made of a file.
pub(crate) struct Instance {
    pub(crate) name: &'static str,
    /// The features that are on in the conditions of shaders, of [`FEATURES`].
    pub(crate) features: &'static [&'static str],
    /// The constants, besides coefficients, that the shaders import from `constants`.
    pub(crate) constants: &'static [(&'static str, u32)],
}

/// A kernel that only Rust uses; Rust writes a part of it. Its text is separate, and modules for JavaScript do not
/// contain it.
pub(crate) struct Apart {
    /// The file's path in `shaders` without its extension.
    pub(crate) file: &'static str,
    /// Whether it is for native devices only; modules for browsers have an empty text.
    pub(crate) native: bool,
    pub(crate) instance: Instance,
    /// The declarations that are left out, since Rust writes them.
    pub(crate) left_out: &'static [&'static str],
}

/// The features of shaders. A target adds the feature of its compiler to those of an instance.
pub(crate) const FEATURES: &[&str] = &[
    // Elementwise operations before and after the kernel work on vectors of four values.
    "vec4",
    // Matrices and images are read and written by vectors of four columns.
    "vectors",
    // A matrix is that of a convolution's windows.
    "im2col",
    // A matrix is that of a convolution's windows of one value.
    "pointwise",
    // Rows are folded by subgroups of 32 invocations, or within a subgroup.
    "subgroups",
    "shuffles",
    // The formats of packed weights.
    "f16",
    "q4_0",
    "q8_0",
    // The words of weights in groups.
    "floats",
    "bytes",
    "nibbles",
    // Attention places the heads of the next token.
    "next",
    // Attention sees all tokens of a text, and no others.
    "within",
    // Norms are those of deviations from the mean, with a bias.
    "deviations",
    // Tiles have 64 rows and columns, and not 32.
    "wide",
    // The compilers that have different words for matrices of subgroups.
    "naga",
    "chromium",
];

/// The facts that most templates share.
const PLAIN: Template = Template {
    file: "",
    unchecked: false,
    native: false,
    inlined: None,
    instances: &[],
};

const fn instance(
    name: &'static str,
    features: &'static [&'static str],
    constants: &'static [(&'static str, u32)],
) -> Instance {
    Instance {
        name,
        features,
        constants,
    }
}

/// Returns a kernel whose whole text is in a file.
const fn apart(file: &'static str, name: &'static str, features: &'static [&'static str]) -> Apart {
    Apart {
        file,
        native: false,
        instance: instance(name, features, &[]),
        left_out: &[],
    }
}

/// Returns such a kernel for native devices only.
const fn native(
    file: &'static str,
    name: &'static str,
    features: &'static [&'static str],
) -> Apart {
    Apart {
        native: true,
        ..apart(file, name, features)
    }
}

/// The kernels of the table that `build.rs` writes.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        file: "argmax",
        instances: &[instance("argmax", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "attention",
        instances: &[instance("attention", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "concat",
        instances: &[instance("concat", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "convolve2d",
        instances: &[instance("convolve2d", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "convolve2d_near",
        unchecked: true,
        native: true,
        instances: &[
            instance("convolve2d_near", &["vec4", "vectors"], &[]),
            instance("convolve2d_near_any", &[], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "convolve2d_small",
        unchecked: true,
        native: true,
        instances: &[
            instance("convolve2d_small", &["vec4", "vectors"], &[]),
            instance("convolve2d_small_any", &[], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "convolve_layer",
        unchecked: true,
        instances: &[instance("convolve_layer", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "dot",
        instances: &[instance("dot", &["vec4"], &[])],
        ..PLAIN
    },
    Template {
        file: "elementwise",
        instances: &[instance("elementwise", &["vec4"], &[])],
        ..PLAIN
    },
    Template {
        file: "fft",
        instances: &[instance("fft", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "gather",
        instances: &[instance("gather", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "halves",
        instances: &[instance("halves", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "matmul",
        unchecked: true,
        instances: &[
            instance(
                "matmul_128",
                &["vec4", "vectors"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 2)],
            ),
            instance(
                "matmul_128_any",
                &[],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 2)],
            ),
            instance(
                "layer_128",
                &["im2col"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 2)],
            ),
            instance(
                "pointwise_128",
                &["vec4", "vectors", "pointwise"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 2)],
            ),
            instance(
                "matmul_64",
                &["vec4", "vectors"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 1)],
            ),
            instance(
                "matmul_64_any",
                &[],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 1)],
            ),
            instance(
                "layer_64",
                &["im2col"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 1)],
            ),
            instance(
                "pointwise_64",
                &["vec4", "vectors", "pointwise"],
                &[("BLOCK_ROWS", 2), ("BLOCK_COLS", 1)],
            ),
            instance(
                "matmul_32",
                &["vec4", "vectors"],
                &[("BLOCK_ROWS", 1), ("BLOCK_COLS", 1)],
            ),
            instance(
                "matmul_32_any",
                &[],
                &[("BLOCK_ROWS", 1), ("BLOCK_COLS", 1)],
            ),
            instance(
                "layer_32",
                &["im2col"],
                &[("BLOCK_ROWS", 1), ("BLOCK_COLS", 1)],
            ),
            instance(
                "pointwise_32",
                &["vec4", "vectors", "pointwise"],
                &[("BLOCK_ROWS", 1), ("BLOCK_COLS", 1)],
            ),
        ],
        ..PLAIN
    },
    Template {
        file: "matmul_direct",
        instances: &[
            instance("matmul_direct", &["vec4", "vectors"], &[]),
            instance("matmul_direct_any", &[], &[]),
            instance("layer_direct", &["im2col"], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "matmul_halves",
        inlined: Some("lib/matrices"),
        instances: &[instance("matmul_halves", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "matmul_subgroups",
        unchecked: true,
        native: true,
        instances: &[
            instance("matmul_subgroups_8", &["vec4", "vectors"], &[("BLOCKS", 1)]),
            instance("matmul_subgroups_8_any", &[], &[("BLOCKS", 1)]),
            instance(
                "matmul_subgroups_16",
                &["vec4", "vectors"],
                &[("BLOCKS", 2)],
            ),
            instance("matmul_subgroups_16_any", &[], &[("BLOCKS", 2)]),
        ],
        ..PLAIN
    },
    Template {
        file: "matvec_cols",
        native: true,
        instances: &[
            instance("matvec_cols", &["vec4", "vectors"], &[]),
            instance("matvec_cols_any", &[], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "matvec_rows",
        native: true,
        instances: &[
            instance("matvec_rows", &["vectors"], &[]),
            instance("matvec_rows_any", &[], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "matvec_subgroups",
        native: true,
        instances: &[
            instance("matvec_subgroups", &["vectors"], &[]),
            instance("matvec_subgroups_any", &[], &[]),
        ],
        ..PLAIN
    },
    Template {
        file: "norm_apply",
        instances: &[instance("norm_apply", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "norm_held",
        native: true,
        instances: &[
            instance(
                "norm_64",
                &["vec4", "shuffles"],
                &[("GROUP", 4), ("ROWS", 64)],
            ),
            instance(
                "norm_256",
                &["vec4", "shuffles"],
                &[("GROUP", 16), ("ROWS", 16)],
            ),
            instance(
                "norm_512",
                &["vec4", "shuffles"],
                &[("GROUP", 32), ("ROWS", 8)],
            ),
            instance("norm_1024", &["vec4"], &[("GROUP", 64), ("ROWS", 4)]),
            instance("norm_4096", &["vec4"], &[("GROUP", 256), ("ROWS", 1)]),
            instance("norm_16384", &["vec4"], &[("GROUP", 1024), ("ROWS", 1)]),
            instance(
                "norm_16384_by_32",
                &["vec4", "subgroups"],
                &[("GROUP", 1024), ("ROWS", 1)],
            ),
        ],
        ..PLAIN
    },
    Template {
        file: "norm_partial",
        instances: &[instance("norm_partial", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "norm_row",
        instances: &[instance("norm_row", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "pack_bytes",
        instances: &[instance("pack_bytes", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "rearrange",
        instances: &[instance("rearrange", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "reduce",
        instances: &[instance("reduce", &["vec4"], &[])],
        ..PLAIN
    },
    Template {
        file: "reduce_axis",
        instances: &[instance("reduce_axis", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "unpack_bytes",
        instances: &[instance("unpack_bytes", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "rope",
        instances: &[instance("rope", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "scan",
        instances: &[instance("scan", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "scatter",
        instances: &[instance("scatter", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "softmax_apply",
        instances: &[instance("softmax_apply", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "softmax_held",
        native: true,
        instances: &[
            instance(
                "softmax_64",
                &["vec4", "shuffles"],
                &[("GROUP", 4), ("ROWS", 64)],
            ),
            instance(
                "softmax_256",
                &["vec4", "shuffles"],
                &[("GROUP", 16), ("ROWS", 16)],
            ),
            instance(
                "softmax_512",
                &["vec4", "shuffles"],
                &[("GROUP", 32), ("ROWS", 8)],
            ),
            instance("softmax_1024", &["vec4"], &[("GROUP", 64), ("ROWS", 4)]),
            instance("softmax_4096", &["vec4"], &[("GROUP", 256), ("ROWS", 1)]),
            instance("softmax_16384", &["vec4"], &[("GROUP", 1024), ("ROWS", 1)]),
            instance(
                "softmax_16384_by_32",
                &["vec4", "subgroups"],
                &[("GROUP", 1024), ("ROWS", 1)],
            ),
        ],
        ..PLAIN
    },
    Template {
        file: "softmax_partial",
        instances: &[instance("softmax_partial", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "softmax_row",
        instances: &[instance("softmax_row", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "sort",
        instances: &[instance("sort", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "top_k",
        instances: &[instance("top_k", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "transpose",
        instances: &[instance("transpose", &[], &[])],
        ..PLAIN
    },
    Template {
        file: "trim",
        instances: &[
            instance("trim", &["vec4", "vectors"], &[]),
            instance("trim_any", &[], &[]),
        ],
        ..PLAIN
    },
];

/// The kernels that are not in the table.
pub(crate) const APART: &[Apart] = &[
    apart("steps/add_rows", "add_rows", &[]),
    apart("steps/add_splits", "add_splits", &[]),
    apart("steps/add_weights", "add_weights", &[]),
    apart("steps/attend", "attend", &[]),
    apart("steps/attend", "attend_f16", &["f16"]),
    apart("steps/attend", "attend_q8_0", &["q8_0"]),
    apart("steps/attend", "attend_next", &["next"]),
    apart("steps/attend", "attend_next_f16", &["next", "f16"]),
    apart("steps/attend", "attend_next_q8_0", &["next", "q8_0"]),
    apart("steps/attend", "attend_within", &["within"]),
    apart("steps/attend_tiled", "attend_tiled", &[]),
    apart("steps/attend_tiled", "attend_tiled_f16", &["f16"]),
    apart("steps/attend_tiled", "attend_tiled_q8_0", &["q8_0"]),
    apart("steps/cap_logits", "cap_logits", &[]),
    apart("steps/change_logits", "change_logits", &[]),
    apart("steps/forbid", "forbid", &[]),
    apart("steps/draw", "draw", &[]),
    apart("steps/gate", "gate", &[]),
    apart("steps/gelu_rows", "gelu_rows", &["vec4"]),
    apart("steps/largest", "largest", &[]),
    apart("steps/multiply_blocks", "multiply_floats", &["floats"]),
    apart("steps/multiply_blocks", "multiply_bytes", &["bytes"]),
    apart("steps/multiply_blocks", "multiply_nibbles", &["nibbles"]),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_floats_tiled",
        &["floats"],
    ),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_bytes_tiled",
        &["bytes"],
    ),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_nibbles_tiled",
        &["nibbles"],
    ),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_floats_wide",
        &["floats", "wide"],
    ),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_bytes_wide",
        &["bytes", "wide"],
    ),
    apart(
        "steps/multiply_blocks_tiled",
        "multiply_nibbles_wide",
        &["nibbles", "wide"],
    ),
    native(
        "steps/multiply_blocks_f16",
        "multiply_floats_f16",
        &["floats"],
    ),
    native(
        "steps/multiply_blocks_f16",
        "multiply_bytes_f16",
        &["bytes"],
    ),
    native(
        "steps/multiply_blocks_f16",
        "multiply_nibbles_f16",
        &["nibbles"],
    ),
    apart("steps/multiply_experts", "experts_floats", &["floats"]),
    apart("steps/multiply_experts", "experts_bytes", &["bytes"]),
    apart("steps/multiply_experts", "experts_nibbles", &["nibbles"]),
    apart("steps/norm_rows", "norm_rows", &[]),
    apart("steps/norm_rows", "layer_norm_rows", &["deviations"]),
    apart("steps/rank", "rank", &[]),
    apart("steps/route", "route", &[]),
    apart("steps/take_row", "take_floats", &["floats"]),
    apart("steps/take_row", "take_bytes", &["bytes"]),
    apart("steps/take_row", "take_nibbles", &["nibbles"]),
    apart("steps/place_heads", "place_heads", &[]),
    apart("steps/place_heads", "place_heads_f16", &["f16"]),
    apart("steps/place_heads", "place_heads_q8_0", &["q8_0"]),
    Apart {
        left_out: &["GROUP", "combine", "mapped"],
        ..apart("kernels/fold_tiles", "fold_tiles", &[])
    },
    apart("kernels/matmul_words", "matmul_f16", &["f16"]),
    apart("kernels/matmul_words", "matmul_q4_0", &["q4_0"]),
    apart("kernels/matmul_words", "matmul_q8_0", &["q8_0"]),
    apart("kernels/unpack_words", "unpack_f16", &["f16"]),
    apart("kernels/unpack_words", "unpack_q4_0", &["q4_0"]),
    apart("kernels/unpack_words", "unpack_q8_0", &["q8_0"]),
];
