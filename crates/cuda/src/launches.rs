//! A program as its kernels take it: one record, passed by value, for each operation. The structures here
//! mirror those of `sweep.cuh`.
use crate::driver::{Address, kernel_name};
use crate::store::{Store, StoredMatrix};
use lacuna_engine::encode::*;
use lacuna_engine::lower::{MOST_DOTS, MOST_TERMS, MOST_VECTORS};
use lacuna_engine::{Error, NumberType, Result, not_triangular};
use lacuna_formats::PACKET;
use lacuna_gpu::Stage;

/// Elements of a segment of a canonical sum.
pub(crate) const SEGMENT: u32 = lacuna_engine::sum::SEGMENT as u32;
/// A dot product without a factor.
const NO_SLOT: u8 = u8::MAX;

const TERM_MINUS: u32 = 1;
const TERM_CELL_FLAG: u32 = 2;
const TERM_FIRST: u32 = 4;
const TERM_LAST: u32 = 8;
const TERM_FACTOR_FLAG: u32 = 16;
const TERM_EMPTY: u32 = 32;
/// Ways to run an operation outside a program: `Common::alone`.
pub(crate) const ALONE: u32 = 1;
pub(crate) const PART: u32 = 2;
/// `CONTROL_NEXT` of `cells.cuh`.
pub(crate) const CONTROL_NEXT: usize = 14;

/// `Common` of `sweep.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Common {
    pub(crate) words: Address,
    pub(crate) first: [u32; 3],
    pub(crate) pad: u32,
    pub(crate) cells: Address,
    pub(crate) control: Address,
    pub(crate) history: Address,
    pub(crate) partial: Address,
    pub(crate) group: Address,
    pub(crate) tickets: Address,
    pub(crate) alone: u32,
    pub(crate) pad1: u32,
}

/// Four words, which the device loads at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Quad([u32; 4]);

/// `StreamOp` of `sweep.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct StreamOp {
    op: u32,
    pub(crate) n: u32,
    pub(crate) segments: u32,
    pub(crate) groups: u32,
    terms: u32,
    loads: u32,
    stores: u32,
    pub(crate) dots: u32,
    slots: u32,
    lanes: u32,
    columns: u32,
    h: u32,
    add: u32,
    dot_cells_follow: u32,
    /// The sums from this one on are maxima.
    pub(crate) maxima: u32,
    pad: u32,
    sizes: [u32; 2],
    /// The segments that are computed.
    pub(crate) first: u32,
    pub(crate) end: u32,
    x: Address,
    arrays: [Address; 4],
    stride: u64,
    y: Address,
    y_stride: u64,
    slot: [Address; MOST_VECTORS],
    term: [Quad; MOST_TERMS],
    dot_cell: [u32; MOST_DOTS],
    load: [u8; MOST_VECTORS],
    store: [u8; MOST_VECTORS],
    dot_a: [u8; MOST_DOTS],
    dot_b: [u8; MOST_DOTS],
    dot_factor: [u8; MOST_DOTS],
}

/// An operation as its own kernel.
#[derive(Clone, Debug)]
pub(crate) struct OpLaunch {
    pub(crate) op: Box<StreamOp>,
    /// The stem of the kernel's name.
    pub(crate) kernel: &'static str,
    /// Whether the kernel takes narrow vectors.
    narrow: bool,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// Number of blocks with work.
    pub(crate) blocks: u32,
}

impl StreamOp {
    /// The cells of its sums, in the order in which kernels compute them.
    pub(crate) fn sum_cells(&self) -> impl Iterator<Item = u32> {
        let follow = self.dot_cells_follow != 0;
        (0..self.dots).map(move |d| if follow { self.h + d } else { self.dot_cell[d as usize] })
    }
    /// Sets the arrays and sizes of a matrix.
    fn multiply(&mut self, a: &StoredMatrix) {
        self.lanes = a.lanes;
        self.sizes.iter_mut().zip(&a.sizes).for_each(|(to, size)| *to = *size);
        self.arrays.iter_mut().zip(&a.arrays).for_each(|(to, array)| *to = array.address);
    }
}

impl OpLaunch {
    /// The name of the kernel for a number type.
    pub(crate) fn kernel_name(&self, kind: NumberType) -> String {
        let stem = if self.narrow { format!("{}_narrow", self.kernel) } else { self.kernel.into() };
        kernel_name(&stem, kind)
    }
    /// A triangular solve as the steps of its stages, then one for the instructions that follow.
    pub(crate) fn stages(self, stages: Vec<Stage>) -> Vec<OpLaunch> {
        let mut steps: Vec<_> = stages
            .into_iter()
            .map(|stage| {
                let (kernel, sizes, blocks) = match stage {
                    Stage::Level(first, end) => {
                        ("tri_solve_level", [first, end], (end - first).div_ceil(SEGMENT))
                    }
                    Stage::Levels(first, end) => ("tri_solve_levels", [first, end], 1),
                    Stage::Groups(depth, groups) => {
                        // A warp for each.
                        ("tri_solve_groups", [depth, groups], groups.div_ceil(SEGMENT / 32))
                    }
                };
                let mut op = self.op.clone();
                op.sizes = sizes;
                OpLaunch { op, kernel, narrow: false, shared: 0, blocks }
            })
            .collect();
        let mut op = self.op;
        (op.n, op.segments, op.groups, op.end) = (0, 1, 1, 1);
        steps.push(OpLaunch { op, kernel: "sweep", narrow: false, shared: self.shared, blocks: 1 });
        steps
    }
    /// A product with compressed rows as two steps: all rows by any number of warps, then the pass as a sweep
    /// that reads them from the vector.
    pub(crate) fn rows_first(self) -> [OpLaunch; 2] {
        let mut pass = self;
        let rows_of_a_block = SEGMENT / pass.op.lanes;
        let blocks = pass.op.n.div_ceil(rows_of_a_block);
        let narrow = pass.narrow;
        let rows = OpLaunch { op: pass.op.clone(), kernel: "spmv_csr_first", narrow, shared: 0, blocks };
        pass.kernel = "sweep";
        pass.op.load[pass.op.loads as usize] = 0;
        pass.op.loads += 1;
        [rows, pass]
    }
}

/// Whether the address of a vector marks it as narrow: see `Store::place`.
fn is_narrow(place: &Address) -> bool {
    place & 1 == 1
}

/// Numbers that the sums of `count` segments take: `room_of` of `sum.cuh`.
pub(crate) fn room_of(count: u32) -> usize {
    count.next_multiple_of(SEGMENT) as usize
}

/// Segments of `n` elements; at least one, which sums to 0.
fn segments(n: u32) -> u32 {
    n.div_ceil(SEGMENT).max(1)
}

fn words(e: &Encoded, op: u32, at: u32, length: u32) -> &[u32] {
    let at = e.op(op, at) as usize;
    &e.words[at..at + length as usize]
}

/// The terms of all updates of an operation, four words each.
fn flat_terms(e: &Encoded, op: u32) -> Vec<[u32; 4]> {
    let mut terms = Vec::new();
    let mut at = e.op(op, OP_UPDATES) as usize;
    for _ in 0..e.op(op, OP_UPDATE_COUNT) {
        let (dst, count) = (e.words[at + UPDATE_SLOT as usize], e.words[at + UPDATE_TERMS as usize]);
        at += UPDATE_WORDS as usize;
        if count == 0 {
            terms.push([TERM_EMPTY | TERM_FIRST | TERM_LAST, NONE, 0, dst]);
        }
        for i in 0..count {
            let w = &e.words[at..at + TERM_WORDS as usize];
            let mut flags = match w[TERM_COEFFICIENT as usize] {
                COEFFICIENT_ONE => 0,
                COEFFICIENT_MINUS_ONE => TERM_MINUS,
                _ => TERM_CELL_FLAG,
            };
            if i == 0 {
                flags |= TERM_FIRST;
            }
            if i + 1 == count {
                flags |= TERM_LAST;
            }
            let mut operands = w[TERM_SLOT as usize];
            if w[TERM_FACTOR as usize] != NONE {
                flags |= TERM_FACTOR_FLAG;
                operands |= w[TERM_FACTOR as usize] << 16;
            }
            terms.push([flags, w[TERM_CELL as usize], operands, dst]);
            at += TERM_WORDS as usize;
        }
    }
    terms
}

fn too_large(name: &str, what: &str, got: usize, most: usize) -> Error {
    Error::Unsupported {
        operation: format!("pass `{name}`"),
        message: format!("it has {got} {what}; a pass on a CUDA device has at most {most}: split it"),
    }
}

/// An operation as its own kernel, or `None` if it has only instructions.
pub(crate) fn step(store: &Store, e: &Encoded, op: u32, name: &str) -> Result<Option<OpLaunch>> {
    if e.is_scalar(op) {
        return Ok(None);
    }
    let field = |f: u32| e.op(op, f);
    let vector = |v: u32| store.place(e.vectors[v as usize], name);
    let n = field(OP_N);
    let mut s = StreamOp {
        op,
        n,
        segments: segments(n),
        groups: segments(n).div_ceil(SEGMENT),
        terms: 0,
        loads: field(OP_LOAD_COUNT),
        stores: field(OP_STORE_COUNT),
        dots: field(OP_DOT_COUNT),
        slots: field(OP_SLOT_COUNT),
        lanes: 1,
        columns: field(OP_COLUMNS),
        h: field(OP_H),
        add: field(OP_ADD),
        dot_cells_follow: 0,
        maxima: if field(OP_MAXIMA) > 0 { field(OP_DOT_COUNT) - field(OP_MAXIMA) } else { NONE },
        pad: 0,
        sizes: [0; 2],
        first: 0,
        end: segments(n),
        x: 0,
        arrays: [0; 4],
        stride: 0,
        y: 0,
        y_stride: 0,
        slot: [0; MOST_VECTORS],
        term: [Quad::default(); MOST_TERMS],
        dot_cell: [0; MOST_DOTS],
        load: [0; MOST_VECTORS],
        store: [0; MOST_VECTORS],
        dot_a: [0; MOST_DOTS],
        dot_b: [0; MOST_DOTS],
        dot_factor: [NO_SLOT; MOST_DOTS],
    };
    let terms = flat_terms(e, op);
    for (what, got, most) in [
        ("vectors", s.slots as usize, MOST_VECTORS),
        ("terms", terms.len(), MOST_TERMS),
        ("dot products", s.dots as usize, MOST_DOTS),
    ] {
        if got > most {
            return Err(too_large(name, what, got, most));
        }
    }
    s.terms = terms.len() as u32;
    for (to, from) in s.term.iter_mut().zip(terms) {
        *to = Quad(from);
    }
    for (to, v) in s.slot.iter_mut().zip(words(e, op, OP_SLOTS, s.slots)) {
        *to = vector(*v)?;
    }
    for (to, at, count) in [(&mut s.load, OP_LOADS, s.loads), (&mut s.store, OP_STORES, s.stores)] {
        let moves = words(e, op, at, count * MOVE_WORDS).chunks(MOVE_WORDS as usize);
        to.iter_mut().zip(moves).for_each(|(to, w)| *to = w[MOVE_SLOT as usize] as u8);
    }
    for (d, w) in words(e, op, OP_DOTS, s.dots * DOT_WORDS).chunks(DOT_WORDS as usize).enumerate() {
        s.dot_cell[d] = w[DOT_CELL as usize];
        s.dot_a[d] = w[DOT_A as usize] as u8;
        s.dot_b[d] = w[DOT_B as usize] as u8;
        s.dot_factor[d] = u8::try_from(w[DOT_FACTOR as usize]).unwrap_or(NO_SLOT);
    }
    let mut room = s.slots + 2 * s.dots;
    let elements = |stride: usize| (stride / e.kind.size()) as u64;
    let kernel = match field(OP_KIND) {
        KIND_SWEEP => "sweep",
        KIND_SPMV => {
            let a = store.stored(e.matrices[field(OP_MATRIX) as usize], name)?;
            let kernel = product_kernel(a.kernel)?;
            s.x = vector(field(OP_X))?;
            s.multiply(a);
            if kernel == "spmv_pkt" {
                room += PACKET as u32 / SEGMENT;
            }
            kernel
        }
        KIND_SPMM => {
            let a = store.stored(e.matrices[field(OP_MATRIX) as usize], name)?;
            s.multiply(a);
            let [x, y] = [OP_X, OP_Y].map(|of| store.basis_place(e.bases[field(of) as usize], name));
            let ((x, stride), (y, y_stride)) = (x?, y?);
            (s.x, s.stride, s.y, s.y_stride) = (x, elements(stride), y, elements(y_stride));
            columns_kernel(a.kernel).ok_or_else(|| Error::Unsupported {
                operation: format!("{name} with a matrix in format `{}`", a.kernel),
                message: "no kernel takes its columns together; multiply them one by one".into(),
            })?
        }
        KIND_TRI_SOLVE => {
            let a = store.stored(e.matrices[field(OP_MATRIX) as usize], name)?;
            if a.kernel != "triangular" {
                return Err(not_triangular(name, a.kernel));
            }
            s.multiply(a);
            (s.x, s.y) = (vector(field(OP_X))?, vector(field(OP_Y))?);
            "tri_solve_level"
        }
        kind @ (KIND_BASIS_GRAM | KIND_BASIS_COMBINE) => {
            let bases = [OP_BASIS, OP_Y].map(|of| e.bases[field(of) as usize]);
            let [v, y] = bases.map(|of| store.basis_place(of, name));
            let ((v, stride), (y, y_stride)) = (v?, y?);
            (s.arrays[0], s.stride, s.y, s.y_stride) = (v, elements(stride), y, elements(y_stride));
            s.sizes = bases.map(|of| of.columns as u32);
            room = 0;
            if kind == KIND_BASIS_GRAM {
                (s.dots, s.dot_cells_follow) = (s.columns, 1);
                "block_gram"
            } else {
                "block_combine"
            }
        }
        kind => {
            let (place, stride) = store.basis_place(e.bases[field(OP_BASIS) as usize], name)?;
            s.arrays[0] = place;
            s.stride = (stride / e.kind.element(is_narrow(&place))) as u64;
            s.x = vector(field(OP_Y))?;
            if kind == KIND_BASIS_DOT {
                (s.dots, s.dot_cells_follow, room) = (s.columns, 1, 0);
                "basis_dot"
            } else {
                "basis_axpy"
            }
        }
    };
    let shared = room * SEGMENT * e.kind.size() as u32;
    let blocks = s.segments;
    let narrow = s.slot.iter().chain(&s.arrays).chain([&s.x]).any(is_narrow);
    Ok(Some(OpLaunch { op: Box::new(s), kernel, narrow, shared, blocks }))
}

/// The stem of the product kernel of a format.
pub(crate) fn product_kernel(format: &'static str) -> Result<&'static str> {
    match format {
        "csr" => Ok("spmv_csr"),
        "dia" => Ok("spmv_dia"),
        "sell" | "ell" => Ok("spmv_sell"),
        "bcsr" => Ok("spmv_bcsr"),
        "hyb" | "coo" => Ok("spmv_hyb"),
        "stencil" => Ok("spmv_stencil"),
        "interpolation" => Ok("spmv_interpolation"),
        "packed" => Ok("spmv_packed"),
        "dense" => Ok("spmv_dense"),
        "pkt" => Ok("spmv_pkt"),
        other => Err(Error::Unsupported {
            operation: format!("product with a matrix in format `{other}`"),
            message: "the CUDA backend has no kernel for it; convert it to `csr`".into(),
        }),
    }
}

/// The stem of the kernel of a format that multiplies several columns at once, if there is one.
pub(crate) fn columns_kernel(format: &str) -> Option<&'static str> {
    match format {
        "csr" => Some("spmm_csr"),
        "dia" => Some("spmm_dia"),
        "sell" | "ell" => Some("spmm_sell"),
        "bcsr" => Some("spmm_bcsr"),
        _ => None,
    }
}
