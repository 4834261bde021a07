//! A program in the form of the kernel that runs all of it. The structures here mirror those of `program.cuh`.
use crate::driver::Address;
use crate::halo::{Halo, compressed_rows, cuts, halo};
use crate::operations::{Builder, VECTOR_SHARED};
use crate::store::Store;
use crate::table::{SEGMENT, segments};
use lacuna_core::encode::*;
use lacuna_core::{Result, Scalar, Vector};

const VECTOR_RECORD: usize = 12;
const MATRIX_RECORD: usize = 16;
/// `CHANGED_BYTES` of `program.cuh`.
pub(crate) const CHANGED_BYTES: usize = 1024;
/// Bytes of a program's words that each block keeps in shared memory, at the most.
const SHARED_WORDS: usize = 24 << 10;

/// `ProgramArgs` of `program.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct ProgramArgs {
    pub(crate) table: Address,
    pub(crate) words: Address,
    pub(crate) cells: Address,
    pub(crate) history: Address,
    pub(crate) exchange: Address,
    pub(crate) result: Address,
    pub(crate) halo: Address,
    pub(crate) passes: u64,
    pub(crate) control: [u64; CONTROL_WORDS as usize],
    pub(crate) table_words: u32,
    pub(crate) at_words: u32,
    pub(crate) first: [u32; 3],
    pub(crate) at_ops: u32,
    pub(crate) at_vectors: u32,
    pub(crate) at_matrices: u32,
    pub(crate) at_terms: u32,
    pub(crate) ops: u32,
    pub(crate) vectors: u32,
    pub(crate) matrices: u32,
    pub(crate) terms: u32,
    pub(crate) cell_first: u32,
    pub(crate) cell_count: u32,
    pub(crate) n: u32,
    pub(crate) segments: u32,
    pub(crate) groups: u32,
    pub(crate) rows: u32,
    pub(crate) exchange_words: u32,
    pub(crate) at_cells: u32,
    pub(crate) at_sums: u32,
    pub(crate) at_halo: u32,
    pub(crate) halo_most: u32,
    pub(crate) at_row_ptr: u32,
    pub(crate) at_col_idx: u32,
    pub(crate) at_values: u32,
    pub(crate) at_list: u32,
    pub(crate) at_groups: u32,
    pub(crate) short_history: u32,
    pub(crate) result_cells: u32,
    pub(crate) changed_first: u32,
    pub(crate) changed_count: u32,
    pub(crate) pad: [u32; 3],
    pub(crate) changed: [u64; CHANGED_BYTES / 8],
}

/// A program's table, and what a launch needs besides.
#[derive(Clone, Debug)]
pub(crate) struct WholeTable<T> {
    pub(crate) table: Vec<u32>,
    pub(crate) args: ProgramArgs,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    pub(crate) threads: u32,
    /// Vectors that are kept as words too, and the elements of each.
    pub(crate) as_words: Vec<(u32, usize)>,
    /// For each matrix.
    pub(crate) halos: Vec<Halo<T>>,
    /// The program as encoded, where it is not in the table.
    pub(crate) far_words: bool,
}

/// Why a program cannot run as one kernel.
pub(crate) type Refusal = &'static str;

/// `AHEAD` of `program.cuh`: entries that a lane of a row reads at once.
const AHEAD: u32 = 8;
/// The most threads of a block.
const THREADS: u32 = 512;

/// The table of a program for a launch of that many blocks, each with `room` bytes of shared memory, or why there is none.
pub(crate) fn whole_table<T: Scalar>(
    store: &Store,
    e: &Encoded<T>,
    name: &str,
    blocks: u32,
    room: usize,
) -> Result<Result<WholeTable<T>, Refusal>> {
    let n = e.n;
    if (0..e.ops()).any(|op| !e.is_scalar(op) && e.op(op, OP_N) != n) {
        return Ok(Err("its operations go over different numbers of rows"));
    }
    if e.matrices.iter().any(|a| a.rows != n as usize || a.cols != n as usize) {
        return Ok(Err("a matrix is not square"));
    }
    let mut lanes = 1;
    for a in &e.matrices {
        let stored = store.stored(*a, name)?;
        if stored.kernel != "csr" || stored.arrays.len() != 3 {
            return Ok(Err("a matrix is in a format the kernel does not know"));
        }
        lanes = lanes.max(stored.lanes);
    }
    let one = blocks == 1;
    let mut b = Builder::new(e);
    if b.vectors.len() >= 1 << 15 {
        return Ok(Err("it has too many vectors"));
    }
    if !one {
        b.share();
    }
    let segments = segments(n);
    let most_segments = segments.div_ceil(blocks);
    let rows = most_segments.saturating_mul(SEGMENT).min(n);
    let cuts = cuts(n, segments, blocks);
    let mut halos = Vec::new();
    for a in &e.matrices {
        let Some(arrays) = compressed_rows(store, *a) else {
            return Ok(Err("a matrix is in a format the kernel does not know"));
        };
        let Some(halo) = halo(arrays, &cuts, rows, store.stored(*a, name)?.lanes) else {
            return Ok(Err("the rows of a matrix differ too much in length"));
        };
        halos.push(halo);
    }
    let mut args = ProgramArgs {
        first: e.sections.each_ref().map(|s| s.start),
        ops: e.ops(),
        vectors: b.vectors.len() as u32,
        matrices: e.matrices.len() as u32,
        cell_first: e.cells.start,
        cell_count: e.cells.end - e.cells.start,
        n,
        segments,
        groups: segments.div_ceil(SEGMENT),
        rows,
        at_halo: NONE,
        halo_most: halos.iter().map(|h| h.most).max().unwrap_or(0),
        at_words: NONE,
        ..ProgramArgs::new()
    };
    args.result_cells = (args.cell_count as usize * size_of::<T>() <= RESULT_CELLS_BYTES).into();
    b.operations::<T>(&mut args, one);

    // The vectors and matrices: addresses, and what changes with the layout is filled in below.
    args.at_vectors = b.table.len() as u32;
    let mut as_words = Vec::new();
    for (v, flags) in b.vectors.iter().zip(&b.flags) {
        let address = store.address(*v, name)?;
        if flags & VECTOR_SHARED != 0 {
            as_words.push(((b.table.len() - args.at_vectors as usize) as u32 / VECTOR_RECORD as u32, v.len));
        }
        b.table.extend([0, 0, address as u32, (address >> 32) as u32, 0, 0, 0, 0, *flags, NONE, 0, 0]);
    }
    args.at_matrices = b.table.len() as u32;
    for a in &e.matrices {
        let stored = store.stored(*a, name)?;
        let row_ptr = stored.arrays[0];
        b.table.extend([row_ptr as u32, (row_ptr >> 32) as u32]);
        b.table.extend([0; 10]);
        b.table.extend([stored.lanes, 0, 0, 0]);
    }
    let far_words = e.words.len() * 4 > SHARED_WORDS;
    if !far_words {
        args.at_words = b.table.len() as u32;
        b.table.extend(&e.words);
    }
    b.align();
    args.table_words = b.table.len() as u32;

    let word = size_of::<T>();
    let mut at = 0usize;
    let mut place = |bytes: usize| {
        let here = at;
        let end = (at + bytes).next_multiple_of(16);
        (end <= room).then(|| {
            at = end;
            here as u32
        })
    };
    let sums = if one { segments } else { args.groups } * b.sums;
    let (Some(_), Some(at_cells), Some(at_sums)) =
        (place(b.table.len() * 4), place((args.cell_count as usize + 2) * word), place(sums as usize * word))
    else {
        return Ok(Err("its cells and table do not fit into shared memory"));
    };
    (args.at_cells, args.at_sums) = (at_cells, at_sums);
    args.at_halo = place(args.halo_most as usize * word).unwrap_or(NONE);
    // The vectors of the operations, then the matrix, then the columns of bases, which are read less often.
    let at_vectors = args.at_vectors as usize;
    let home = |v: usize, table: &mut Vec<u32>, place: &mut dyn FnMut(usize) -> Option<u32>| {
        // Of no rows the first is read all the same, and left out.
        if let Some(here) = place(rows.max(1) as usize * word) {
            table[at_vectors + v * VECTOR_RECORD + 9] = here;
        }
    };
    let in_bases =
        |v: &Vector<T>| e.bases.iter().any(|basis| (0..basis.columns).any(|j| basis.column(j) == *v));
    let plain: Vec<usize> = (0..b.vectors.len()).filter(|v| !in_bases(&b.vectors[*v])).collect();
    let columns: Vec<usize> = (0..b.vectors.len()).filter(|v| in_bases(&b.vectors[*v])).collect();
    for v in plain {
        home(v, &mut b.table, &mut place);
    }
    if let Some(halo) = halos.first() {
        let behind = (halo.entries + AHEAD * 32) as usize;
        let most_groups = (rows * lanes).div_ceil(32) as usize + 1;
        let sizes =
            [behind * word, behind * 4, (rows as usize + 1) * 4, halo.most as usize * 4, most_groups * 4];
        let padded: usize = sizes.iter().map(|s| s.next_multiple_of(16)).sum();
        // All of it or nothing.
        if let Some(mut here) = place(padded) {
            let mut next = |size: usize| {
                let now = here;
                here += size.next_multiple_of(16) as u32;
                now
            };
            args.at_values = next(sizes[0]);
            args.at_col_idx = next(sizes[1]);
            args.at_row_ptr = next(sizes[2]);
            args.at_list = next(sizes[3]);
            args.at_groups = next(sizes[4]);
        }
    }
    for v in columns {
        home(v, &mut b.table, &mut place);
    }
    let wide = lanes > 1 || !e.bases.is_empty();
    let threads = if wide { THREADS } else { (most_segments * SEGMENT).clamp(SEGMENT, THREADS) };
    let parts = if word > 8 { 2 } else { 1 };
    args.exchange_words = (b.sums * segments * parts).max(blocks);
    Ok(Ok(WholeTable { table: b.table, args, shared: at as u32, threads, as_words, halos, far_words }))
}

/// Bytes of cells that come to the host with the end of a solve, at the most.
const RESULT_CELLS_BYTES: usize = 64 << 10;

impl ProgramArgs {
    fn new() -> Self {
        ProgramArgs {
            table: 0,
            words: 0,
            cells: 0,
            history: 0,
            exchange: 0,
            result: 0,
            halo: 0,
            passes: 0,
            control: [0; CONTROL_WORDS as usize],
            table_words: 0,
            at_words: 0,
            first: [0; 3],
            at_ops: 0,
            at_vectors: 0,
            at_matrices: 0,
            at_terms: 0,
            ops: 0,
            vectors: 0,
            matrices: 0,
            terms: 0,
            cell_first: 0,
            cell_count: 0,
            n: 0,
            segments: 0,
            groups: 0,
            rows: 0,
            exchange_words: 0,
            at_cells: 0,
            at_sums: 0,
            at_halo: 0,
            halo_most: 0,
            at_row_ptr: 0,
            at_col_idx: 0,
            at_values: 0,
            at_list: 0,
            at_groups: 0,
            short_history: 0,
            result_cells: 0,
            changed_first: 0,
            changed_count: 0,
            pad: [0; 3],
            changed: [0; CHANGED_BYTES / 8],
        }
    }
}

impl<T> WholeTable<T> {
    /// Sets the address of a vector's words.
    pub(crate) fn set_words(&mut self, vector: u32, address: Address) {
        let at = self.args.at_vectors as usize + vector as usize * VECTOR_RECORD + 4;
        self.set(at, address);
    }
    /// Sets the addresses of a matrix's columns, values, groups, list and offsets.
    pub(crate) fn set_halo(&mut self, matrix: usize, addresses: [Address; 5]) {
        let at = self.args.at_matrices as usize + matrix * MATRIX_RECORD;
        for (i, address) in addresses.into_iter().enumerate() {
            self.set(at + 2 + 2 * i, address);
        }
    }
    fn set(&mut self, at: usize, address: Address) {
        self.table[at] = address as u32;
        self.table[at + 1] = (address >> 32) as u32;
    }
}
