//! The OpenCL C kernels of Lacuna, one file for each family of operations. The OpenCL backend compiles the
//! files in `shared` directly, the CUDA backend through a prelude.

/// The name and the text of a file.
pub type Source = (&'static str, &'static str);

macro_rules! sources {
    ($($folder:literal: $($stem:ident),*;)*) => {
        [$($((concat!(stringify!($stem), ".cl"), include_str!(concat!($folder, stringify!($stem), ".cl")))),*),*]
    };
}

/// The base of every kernel, in order of dependency.
pub const BASE: [Source; 3] = sources!["shared/": scalar, cells, shape;];

/// The kernels of set-ups, which the CUDA backend compiles too, after what they begin with.
pub const LEVELS: [Source; 2] = sources!["shared/": scalar; "": levels;];

/// The parts of a generated kernel, in order.
pub const GENERATED: [Source; 9] = sources![
    "shared/": scalar, cells, shape, words, exchange, steps, entries;
    "shared/": resident, resident_rows;
];

/// Those that follow if vectors are streamed.
pub const STREAMING: [Source; 4] = sources!["shared/": grids, streaming, streaming_rows, streaming_grids;];

/// The frame around the operations of a generated kernel.
pub const FRAME: &str = include_str!("shared/frame.cl");

/// The kernels of single operations and of whole programs in one work-group, in order.
pub const OPERATIONS: [Source; 27] = sources![
    "shared/": scalar, cells, shape, grids;
    "": sum, sweep;
    "": spmv_csr, spmv_dia, spmv_sell, spmv_bcsr, spmv_hyb, spmv_packed, spmv_dense, spmv_pkt;
    "": spmv_stencil, spmv_interpolation;
    "": columns, spmm_csr, spmm_dia, spmm_sell, spmm_bcsr;
    "": basis, tri_solve, product, independent, levels, program;
];
