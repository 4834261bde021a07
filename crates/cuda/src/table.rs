//! A program in the form the kernels take: one record by value for each operation that runs as a kernel of its own, one
//! table for the kernel that runs them all. The structures here mirror those of `sweep.cuh` and `program.cu`.
use crate::driver::Address;
use crate::store::Store;
use lacuna_core::encode::*;
use lacuna_core::{Error, Matrix, Result, Scalar, Vector};

/// Elements of a segment of a canonical sum.
pub(crate) const SEGMENT: u32 = lacuna_core::sum::SEGMENT as u32;
const MAX_SLOTS: usize = 32;
const MAX_TERMS: usize = 96;
const MAX_DOTS: usize = 32;

const TERM_MINUS: u32 = 1;
const TERM_CELL_FLAG: u32 = 2;
const TERM_FIRST: u32 = 4;
const TERM_LAST: u32 = 8;
const TERM_FACTOR_FLAG: u32 = 16;
const TERM_EMPTY: u32 = 32;
const TERM_SHARED: u32 = 64;
const TERM_FRESH: u32 = 128;
/// `PLAN_WRAPS` of `program.cu`.
const PLAN_WRAPS: u32 = 1 << 31;
/// Instructions of a plan, at the most: the lanes of a warp.
const PLAN_INSTRUCTIONS: usize = 32;

const VECTOR_WRITTEN: u32 = 1;
const VECTOR_SHARED: u32 = 2;

/// `CONTROL_NEXT` of `cells.cuh`.
pub(crate) const CONTROL_NEXT: usize = 14;
/// `CONTROL_EPOCH` of `cells.cuh`.
pub(crate) const CONTROL_EPOCH: usize = 15;

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

/// Four words, as the device loads them.
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
    groups: u32,
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
    pad: [u32; 2],
    x: Address,
    row_ptr: Address,
    col_idx: Address,
    values: Address,
    stride: u64,
    slot: [Address; MAX_SLOTS],
    term: [Quad; MAX_TERMS],
    dot_cell: [u32; MAX_DOTS],
    load: [u8; MAX_SLOTS],
    store: [u8; MAX_SLOTS],
    dot_a: [u8; MAX_DOTS],
    dot_b: [u8; MAX_DOTS],
}

/// An operation as a kernel of its own.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: Box<StreamOp>,
    /// The stem of the kernel.
    pub(crate) kernel: &'static str,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
}

/// Segments of `n` elements; one where there are none, which sums to 0.
pub(crate) fn segments(n: u32) -> u32 {
    n.div_ceil(SEGMENT).max(1)
}

fn words<T>(e: &Encoded<T>, op: u32, at: u32, length: u32) -> &[u32] {
    let at = e.op(op, at) as usize;
    &e.words[at..at + length as usize]
}

/// The terms of all updates of an operation, four words each; `place` maps a slot to what the kernel knows it by.
fn flat_terms<T>(
    e: &Encoded<T>,
    op: u32,
    place: impl Fn(u32) -> u32,
    shared: impl Fn(u32) -> bool,
) -> Vec<[u32; 4]> {
    let mut terms = Vec::new();
    let mut written = Vec::new();
    let mut at = e.op(op, OP_UPDATES) as usize;
    for _ in 0..e.op(op, OP_UPDATE_COUNT) {
        let (slot, count) = (e.words[at + UPDATE_SLOT as usize], e.words[at + UPDATE_TERMS as usize]);
        at += UPDATE_WORDS as usize;
        let dst = place(slot);
        let through = if shared(slot) { TERM_SHARED } else { 0 };
        if count == 0 {
            terms.push([TERM_EMPTY | TERM_FIRST | TERM_LAST | through, NONE, 0, dst]);
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
                flags |= TERM_LAST | through;
            }
            let mut operands = place(w[TERM_SLOT as usize]);
            if written.contains(&w[TERM_SLOT as usize]) {
                flags |= TERM_FRESH;
            }
            if w[TERM_FACTOR as usize] != NONE {
                flags |= TERM_FACTOR_FLAG;
                operands |= place(w[TERM_FACTOR as usize]) << 16;
            }
            terms.push([flags, w[TERM_CELL as usize], operands, dst]);
            at += TERM_WORDS as usize;
        }
        written.push(slot);
    }
    terms
}

fn too_large(name: &str, what: &str, got: usize, most: usize) -> Error {
    Error::Unsupported {
        operation: format!("pass `{name}`"),
        message: format!("it has {got} {what}; a pass on a CUDA device has at most {most}: split it"),
    }
}

/// An operation as a kernel of its own, or `None` where it is nothing but instructions.
pub(crate) fn step<T: Scalar>(store: &Store, e: &Encoded<T>, op: u32, name: &str) -> Result<Option<Step>> {
    if e.is_scalar(op) {
        return Ok(None);
    }
    let field = |f: u32| e.op(op, f);
    let vector = |v: u32| store.address(e.vectors[v as usize], name);
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
        pad: [0; 2],
        x: 0,
        row_ptr: 0,
        col_idx: 0,
        values: 0,
        stride: 0,
        slot: [0; MAX_SLOTS],
        term: [Quad::default(); MAX_TERMS],
        dot_cell: [0; MAX_DOTS],
        load: [0; MAX_SLOTS],
        store: [0; MAX_SLOTS],
        dot_a: [0; MAX_DOTS],
        dot_b: [0; MAX_DOTS],
    };
    let terms = flat_terms(e, op, |slot| slot, |_| false);
    for (what, got, most) in [
        ("vectors", s.slots as usize, MAX_SLOTS),
        ("terms", terms.len(), MAX_TERMS),
        ("dot products", s.dots as usize, MAX_DOTS),
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
    }
    let mut room = s.slots + 2 * s.dots;
    let kernel = match field(OP_KIND) {
        KIND_SWEEP => "sweep",
        KIND_SPMV => {
            let a = store.stored(e.matrices[field(OP_MATRIX) as usize], name)?;
            let kernel = product_kernel(a.kernel)?;
            s.x = vector(field(OP_X))?;
            s.lanes = a.lanes;
            if let [row_ptr, col_idx, values] = a.arrays[..] {
                (s.row_ptr, s.col_idx, s.values) = (row_ptr, col_idx, values);
            }
            kernel
        }
        kind => {
            let (address, stride) = store.basis_address(e.bases[field(OP_BASIS) as usize], name)?;
            (s.values, s.stride) = (address, stride as u64);
            s.x = vector(field(OP_Y))?;
            if kind == KIND_BASIS_DOT {
                (s.dots, s.dot_cells_follow, room) = (s.columns, 1, 0);
                "basis_dot"
            } else {
                "basis_axpy"
            }
        }
    };
    let shared = room * SEGMENT * size_of::<T>() as u32;
    Ok(Some(Step { op: Box::new(s), kernel, shared }))
}

/// The stem of the kernel that multiplies by a format.
pub(crate) fn product_kernel(format: &'static str) -> Result<&'static str> {
    match format {
        "csr" => Ok("spmv_csr"),
        other => Err(Error::Unsupported {
            operation: format!("product with a matrix in format `{other}`"),
            message: "the CUDA backend has no kernel for it; convert it to `csr`".into(),
        }),
    }
}

/// Why a program cannot run as one kernel.
pub(crate) type Refusal = &'static str;

/// `ProgramArgs` of `program.cu`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ProgramArgs {
    pub(crate) words: Address,
    pub(crate) cells: Address,
    pub(crate) control: Address,
    pub(crate) history: Address,
    pub(crate) exchange: Address,
    pub(crate) passes: u64,
    pub(crate) word_count: u32,
    pub(crate) first: [u32; 3],
    pub(crate) at_vectors: u32,
    pub(crate) at_columns: u32,
    pub(crate) at_bases: u32,
    pub(crate) at_matrices: u32,
    pub(crate) at_plans: u32,
    pub(crate) at_hazards: u32,
    pub(crate) vectors: u32,
    pub(crate) cell_first: u32,
    pub(crate) cell_count: u32,
    pub(crate) n: u32,
    pub(crate) segments: u32,
    pub(crate) groups: u32,
    pub(crate) exchange_words: u32,
    pub(crate) at_cells: u32,
    pub(crate) at_sums: u32,
    pub(crate) at_home: u32,
    pub(crate) home_stride: u32,
    pub(crate) at_row_ptr: u32,
    pub(crate) at_col_idx: u32,
    pub(crate) at_values: u32,
}

/// The table of a program that runs as one kernel.
#[derive(Clone, Debug)]
pub(crate) struct ProgramTable {
    pub(crate) words: Vec<u32>,
    /// What does not depend on the launch.
    pub(crate) args: ProgramArgs,
    /// The most sums of an operation.
    pub(crate) sums: u32,
    /// The most lanes of a matrix.
    pub(crate) lanes: u32,
}

/// The table of a program for the kernel that runs all of it, or why there is none.
pub(crate) fn program_table<T: Scalar>(
    store: &Store,
    e: &Encoded<T>,
    name: &str,
) -> Result<Result<ProgramTable, Refusal>> {
    let ops = 0..e.ops();
    let n = e.n;
    if ops.clone().any(|op| !e.is_scalar(op) && e.op(op, OP_N) != n) {
        return Ok(Err("its operations go over different numbers of rows"));
    }
    if e.matrices.iter().any(|a| a.rows != n as usize || a.cols != n as usize) {
        return Ok(Err("a matrix is not square"));
    }
    let mut table = e.words.clone();
    let mut vectors: Vec<Vector<T>> = e.vectors.clone();
    let mut columns = Vec::new();
    let mut bases = Vec::new();
    for basis in &e.bases {
        bases.push(columns.len() as u32);
        for j in 0..basis.columns {
            let column = basis.column(j);
            let at = vectors.iter().position(|v| *v == column).unwrap_or_else(|| {
                vectors.push(column);
                vectors.len() - 1
            });
            columns.push(at as u32);
        }
    }
    if vectors.len() >= 1 << 16 {
        return Ok(Err("it has too many vectors"));
    }
    let mut flags = vec![0; vectors.len()];
    let mut hazards = Vec::new();
    for op in ops.clone() {
        if e.op(op, OP_KIND) == KIND_SPMV {
            flags[e.op(op, OP_X) as usize] |= VECTOR_SHARED;
        }
    }
    let mut sums = 0;
    for op in ops {
        let record = (op * OP_WORDS) as usize;
        let slots = words(e, op, OP_SLOTS, e.op(op, OP_SLOT_COUNT)).to_vec();
        let mut written: Vec<u32> = words(e, op, OP_STORES, e.op(op, OP_STORE_COUNT) * MOVE_WORDS)
            .chunks(MOVE_WORDS as usize)
            .map(|w| w[MOVE_VECTOR as usize])
            .collect();
        let kind = e.op(op, OP_KIND);
        if matches!(kind, KIND_SPMV | KIND_BASIS_AXPY) {
            written.push(e.op(op, OP_Y));
        }
        let bit = |v: u32| 1u64 << v.min(63);
        let mut writes = 0;
        for v in written {
            flags[v as usize] |= VECTOR_WRITTEN;
            if flags[v as usize] & VECTOR_SHARED != 0 {
                writes |= bit(v);
            }
        }
        let reads = if kind == KIND_SPMV { bit(e.op(op, OP_X)) } else { 0 };
        hazards.extend([writes as u32, (writes >> 32) as u32, reads as u32, (reads >> 32) as u32]);
        let terms = flat_terms(
            e,
            op,
            |slot| slots[slot as usize],
            |slot| flags[slots[slot as usize] as usize] & VECTOR_SHARED != 0,
        );
        table[record + OP_UPDATES as usize] = table.len() as u32;
        table[record + OP_TERM_COUNT as usize] = terms.len() as u32;
        table.extend(terms.concat());
        let dots = e.op(op, OP_DOTS) as usize;
        for d in 0..e.op(op, OP_DOT_COUNT) as usize {
            let at = dots + d * DOT_WORDS as usize;
            for operand in [DOT_A, DOT_B] {
                table[at + operand as usize] = slots[e.words[at + operand as usize] as usize];
            }
        }
        sums = sums.max(e.op(op, OP_DOT_COUNT));
        if kind == KIND_BASIS_DOT {
            sums = sums.max(e.op(op, OP_COLUMNS));
        }
    }
    let mut plans = Vec::new();
    for op in 0..e.ops() {
        let next = successor(e, op);
        let plan = plan(words(e, op, OP_AFTER, e.op(op, OP_AFTER_COUNT) * INSTR_WORDS));
        plans.extend(match plan {
            Some((instructions, levels)) => {
                table.resize(table.len().next_multiple_of(ALIGN_WORDS as usize), 0);
                let at = table.len() as u32;
                table.extend(instructions.concat());
                [at, instructions.len() as u32, levels, next]
            }
            None => [0, 0, NONE, NONE],
        });
    }
    let mut lanes = 1;
    let mut matrices = Vec::new();
    for a in &e.matrices {
        let stored = store.stored(*a, name)?;
        let [row_ptr, col_idx, values] = stored.arrays[..] else {
            return Ok(Err("a matrix is in a format the kernel does not know"));
        };
        if stored.kernel != "csr" {
            return Ok(Err("a matrix is in a format the kernel does not know"));
        }
        lanes = lanes.max(stored.lanes);
        for address in [row_ptr, col_idx, values] {
            matrices.extend([address as u32, (address >> 32) as u32]);
        }
        matrices.extend([stored.lanes, NONE]);
    }
    let mut places = Vec::new();
    for (v, flags) in vectors.iter().zip(&flags) {
        let address = store.address(*v, name)?;
        places.extend([address as u32, (address >> 32) as u32, *flags, 0]);
    }
    let mut append = |list: Vec<u32>| {
        let at = table.len() as u32;
        table.extend(list);
        table.resize(table.len().next_multiple_of(ALIGN_WORDS as usize), 0);
        at
    };
    let args = ProgramArgs {
        first: e.sections.each_ref().map(|s| s.start),
        at_vectors: append(places),
        at_columns: append(columns),
        at_bases: append(bases),
        at_matrices: append(matrices),
        at_plans: append(plans),
        at_hazards: append(hazards),
        vectors: vectors.len() as u32,
        cell_first: e.cells.start,
        cell_count: e.cells.end - e.cells.start,
        n,
        segments: segments(n),
        groups: segments(n).div_ceil(SEGMENT),
        word_count: 0,
        ..ProgramArgs::default()
    };
    let args = ProgramArgs { word_count: table.len() as u32, ..args };
    Ok(Ok(ProgramTable { words: table, args, sums, lanes }))
}

/// The operation whose sweep follows that of `op` where nothing is decided, with [`PLAN_WRAPS`] where a pass through `each` ends
/// between; `NONE` where that takes more than going on: another section, or instructions before the sweep.
fn successor<T>(e: &Encoded<T>, op: u32) -> u32 {
    let last = e.op(op, OP_LAST) != 0;
    let section = e.op(op, OP_SECTION);
    if last && (section != SECTION_EACH || e.op(op, OP_NEXT) != SECTION_EACH) {
        return NONE;
    }
    let next = if last { e.sections[SECTION_EACH as usize].start } else { op + 1 };
    if e.op(next, OP_BEFORE_COUNT) != 0 || e.is_scalar(next) {
        return NONE;
    }
    if last { next | PLAN_WRAPS } else { next }
}

/// Instructions for the lanes of a warp, one each, and their levels; `None` where they go one by one. In a level
/// are those that need nothing of it or of later ones, and set nothing that an earlier one has yet to read.
fn plan(code: &[u32]) -> Option<(Vec<[u32; 4]>, u32)> {
    let mut out: Vec<[u32; 4]> = Vec::new();
    // Cells read and written by each instruction, and its level.
    let mut known: Vec<([Option<u32>; 2], Option<u32>, u32)> = Vec::new();
    let mut counts = 0;
    for w in code.chunks(INSTR_WORDS as usize) {
        let (code, dst, a, b) =
            (w[INSTR_CODE as usize], w[INSTR_DST as usize], w[INSTR_A as usize], w[INSTR_B as usize]);
        let (reads, writes, packed) = match code {
            CODE_COPY | CODE_NEG | CODE_CONJ | CODE_SQRT => ([Some(a), None], Some(dst), [code, dst, a, a]),
            CODE_ADD | CODE_SUB | CODE_MUL | CODE_DIV | CODE_MAX => {
                ([Some(a), Some(b)], Some(dst), [code, dst, a, b])
            }
            CODE_STOP | CODE_LEAVE => {
                let reads = match dst {
                    TEST_ALWAYS => [None, None],
                    TEST_LESS_EQUAL | TEST_GREATER => [Some(a), Some(b)],
                    _ => [Some(a), None],
                };
                let soft = if code == CODE_STOP { w[INSTR_D as usize] << 24 } else { 0 };
                (reads, None, [code | dst << 16 | soft, w[INSTR_C as usize], a, b])
            }
            CODE_COUNT => {
                counts += 1;
                ([Some(dst), None], None, [code, 0, dst, dst])
            }
            _ => return None,
        };
        let level = known
            .iter()
            .filter(|(read, written, _)| {
                let needs = written.is_some() && reads.contains(written);
                let overwrites = writes.is_some() && (read.contains(&writes) || *written == writes);
                needs || overwrites
            })
            .map(|(.., level)| level + 1)
            .max()
            .unwrap_or(0);
        // What is taken back is what was there before: one writer for each cell.
        if writes.is_some() && known.iter().any(|(_, written, _)| *written == writes) {
            return None;
        }
        known.push((reads, writes, level));
        out.push([packed[0] | level << 8, packed[1], packed[2], packed[3]]);
    }
    if out.len() > PLAN_INSTRUCTIONS || counts > 1 {
        return None;
    }
    let levels = known.iter().map(|(.., level)| level + 1).max().unwrap_or(0);
    Some((out, levels))
}

/// The most entries that consecutive segments, shared among `blocks`, have in one block. The matrix must be in
/// compressed rows.
pub(crate) fn most_entries<T: Scalar>(
    store: &Store,
    a: Matrix<T>,
    segments: u32,
    blocks: u32,
) -> Option<u32> {
    let format = store.format(a)?;
    let arguments = format.arguments();
    let lacuna_core::Argument::Indices(row_ptr) = arguments.first()? else { return None };
    let row = |segment: u64| ((segment * u64::from(SEGMENT)) as usize).min(a.rows);
    let cut = |block: u32| row(u64::from(segments) * u64::from(block) / u64::from(blocks));
    (0..blocks)
        .map(|b| Some(row_ptr.get(cut(b + 1))? - row_ptr.get(cut(b))?))
        .try_fold(0, |most, count| count.map(|count: u32| most.max(count)))
}
