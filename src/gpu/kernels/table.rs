//! Facts of the kernels in `shaders/kernels` that their text does not state. `build.rs` includes this file.

/// A file of `shaders/kernels` and the kernels that are made of it.
pub(crate) struct Template {
    /// The file's name without its extension.
    pub(crate) file: &'static str,
    /// Whether its kernels prove that they stay within bounds.
    pub(crate) unchecked: bool,
    /// Whether WebAssembly has none of its kernels, because of the size of the download.
    pub(crate) native: bool,
    /// Its kernels. An empty list means one kernel with the file's name.
    pub(crate) instances: &'static [Instance],
}

/// A kernel made of a template.
pub(crate) struct Instance {
    pub(crate) name: &'static str,
    /// Replaces `OP`, the first part of the names of library items.
    pub(crate) op: &'static str,
    /// WGSL that precedes the template's text.
    pub(crate) declarations: &'static str,
}

/// A template that is one kernel, which drivers keep within bounds.
pub(crate) const PLAIN: Template = Template {
    file: "",
    unchecked: false,
    native: false,
    instances: &[],
};

/// The templates that differ from `PLAIN`.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        file: "convolve2d_near",
        unchecked: true,
        native: true,
        instances: &[
            Instance {
                name: "convolve2d_near",
                op: "vectors",
                declarations: "",
            },
            Instance {
                name: "convolve2d_near_any",
                op: "scalars",
                declarations: "",
            },
        ],
    },
    Template {
        file: "convolve2d_small",
        unchecked: true,
        native: true,
        instances: &[
            Instance {
                name: "convolve2d_small",
                op: "vectors",
                declarations: "",
            },
            Instance {
                name: "convolve2d_small_any",
                op: "scalars",
                declarations: "",
            },
        ],
    },
    Template {
        file: "convolve_layer",
        unchecked: true,
        ..PLAIN
    },
    Template {
        file: "matmul",
        unchecked: true,
        instances: &[
            Instance {
                name: "matmul_128",
                op: "vectors",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 2u;",
            },
            Instance {
                name: "matmul_128_any",
                op: "scalars",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 2u;",
            },
            Instance {
                name: "layer_128",
                op: "patches",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 2u;",
            },
            Instance {
                name: "pointwise_128",
                op: "planes",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 2u;",
            },
            Instance {
                name: "matmul_64",
                op: "vectors",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "matmul_64_any",
                op: "scalars",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "layer_64",
                op: "patches",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "pointwise_64",
                op: "planes",
                declarations: "const BLOCK_ROWS = 2u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "matmul_32",
                op: "vectors",
                declarations: "const BLOCK_ROWS = 1u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "matmul_32_any",
                op: "scalars",
                declarations: "const BLOCK_ROWS = 1u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "layer_32",
                op: "patches",
                declarations: "const BLOCK_ROWS = 1u; const BLOCK_COLS = 1u;",
            },
            Instance {
                name: "pointwise_32",
                op: "planes",
                declarations: "const BLOCK_ROWS = 1u; const BLOCK_COLS = 1u;",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "matmul_direct",
        instances: &[
            Instance {
                name: "matmul_direct",
                op: "vectors",
                declarations: "",
            },
            Instance {
                name: "matmul_direct_any",
                op: "scalars",
                declarations: "",
            },
            Instance {
                name: "layer_direct",
                op: "patches",
                declarations: "",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "matmul_halves",
        instances: &[
            Instance {
                name: "matmul_halves",
                op: "naga",
                declarations: "enable f16; enable wgpu_cooperative_matrix;",
            },
            Instance {
                name: "matmul_halves",
                op: "chromium",
                declarations: "enable f16; enable chromium_experimental_subgroup_matrix; diagnostic(off, chromium.subgroup_matrix_uniformity);",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "matmul_subgroups",
        unchecked: true,
        native: true,
        instances: &[
            Instance {
                name: "matmul_subgroups_8",
                op: "vectors",
                declarations: "const BLOCKS = 1u;",
            },
            Instance {
                name: "matmul_subgroups_8_any",
                op: "scalars",
                declarations: "const BLOCKS = 1u;",
            },
            Instance {
                name: "matmul_subgroups_16",
                op: "vectors",
                declarations: "const BLOCKS = 2u;",
            },
            Instance {
                name: "matmul_subgroups_16_any",
                op: "scalars",
                declarations: "const BLOCKS = 2u;",
            },
        ],
    },
    Template {
        file: "matvec_cols",
        native: true,
        instances: &[
            Instance {
                name: "matvec_cols",
                op: "vectors",
                declarations: "",
            },
            Instance {
                name: "matvec_cols_any",
                op: "scalars",
                declarations: "",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "matvec_rows",
        native: true,
        instances: &[
            Instance {
                name: "matvec_rows",
                op: "vector",
                declarations: "",
            },
            Instance {
                name: "matvec_rows_any",
                op: "scalar",
                declarations: "",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "matvec_subgroups",
        native: true,
        instances: &[
            Instance {
                name: "matvec_subgroups",
                op: "vector",
                declarations: "",
            },
            Instance {
                name: "matvec_subgroups_any",
                op: "scalar",
                declarations: "",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "norm_held",
        native: true,
        instances: &[
            Instance {
                name: "norm_64",
                op: "shuffles",
                declarations: "const GROUP = 4u; const ROWS = 64u;",
            },
            Instance {
                name: "norm_256",
                op: "shuffles",
                declarations: "const GROUP = 16u; const ROWS = 16u;",
            },
            Instance {
                name: "norm_512",
                op: "shuffles",
                declarations: "const GROUP = 32u; const ROWS = 8u;",
            },
            Instance {
                name: "norm_1024",
                op: "vectors",
                declarations: "const GROUP = 64u; const ROWS = 4u;",
            },
            Instance {
                name: "norm_4096",
                op: "vectors",
                declarations: "const GROUP = 256u; const ROWS = 1u;",
            },
            Instance {
                name: "norm_16384",
                op: "vectors",
                declarations: "const GROUP = 1024u; const ROWS = 1u;",
            },
            Instance {
                name: "norm_16384_by_32",
                op: "subgroups",
                declarations: "const GROUP = 1024u; const ROWS = 1u;",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "softmax_held",
        native: true,
        instances: &[
            Instance {
                name: "softmax_64",
                op: "shuffles",
                declarations: "const GROUP = 4u; const ROWS = 64u;",
            },
            Instance {
                name: "softmax_256",
                op: "shuffles",
                declarations: "const GROUP = 16u; const ROWS = 16u;",
            },
            Instance {
                name: "softmax_512",
                op: "shuffles",
                declarations: "const GROUP = 32u; const ROWS = 8u;",
            },
            Instance {
                name: "softmax_1024",
                op: "vectors",
                declarations: "const GROUP = 64u; const ROWS = 4u;",
            },
            Instance {
                name: "softmax_4096",
                op: "vectors",
                declarations: "const GROUP = 256u; const ROWS = 1u;",
            },
            Instance {
                name: "softmax_16384",
                op: "vectors",
                declarations: "const GROUP = 1024u; const ROWS = 1u;",
            },
            Instance {
                name: "softmax_16384_by_32",
                op: "subgroups",
                declarations: "const GROUP = 1024u; const ROWS = 1u;",
            },
        ],
        ..PLAIN
    },
    Template {
        file: "trim",
        instances: &[
            Instance {
                name: "trim",
                op: "vectors",
                declarations: "",
            },
            Instance {
                name: "trim_any",
                op: "scalars",
                declarations: "",
            },
        ],
        ..PLAIN
    },
];
