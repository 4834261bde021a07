//! A program as launches: one to three for each operation.
use crate::Mode;
use crate::backend::OpenCl;
use crate::compiler::{self, FOLD, SEGMENT, TEAM};
use crate::driver::{Arg, Kernel};
use crate::plan::Launch;
use lacuna_engine::encode::{self, Encoded};
use lacuna_engine::{Error, MAX_LANES, Matrix, Result, not_triangular, with_each};
use lacuna_gpu::{Stage, columns_pay, rows_come_first, solve_stages};

/// The launches of an operation.
pub(crate) struct Steps {
    /// Launches ahead of the operation: partial sums of a product, or the stages of a triangular solve.
    pub(crate) ahead: Vec<Launch>,
    pub(crate) operation: Launch,
    /// If it has many partial sums.
    pub(crate) fold: Option<Launch>,
}

/// The kernel name of an operation, and the kernels ahead of it.
type Stems = (Vec<Ahead>, &'static str);

/// A kernel ahead of an operation.
#[derive(Clone, Copy)]
struct Ahead {
    stem: &'static str,
    groups: usize,
    /// Range of places or levels of a triangular solve.
    range: Option<[u32; 2]>,
}

impl Steps {
    /// The launches in order.
    pub(crate) fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.ahead.iter().chain([&self.operation]).chain(&self.fold)
    }
    pub(crate) fn launches_mut(&mut self) -> impl Iterator<Item = &mut Launch> {
        self.ahead.iter_mut().chain([&mut self.operation]).chain(&mut self.fold)
    }
}

/// Work-groups of one team for each compute unit: as many as run at once if a work-item takes 128 registers,
/// so that no tail of work-groups runs alone.
const TEAMS_A_UNIT: usize = 16;
/// The same for a CPU, where a work-group takes whole segments.
const GROUPS_A_UNIT: usize = 4;

impl OpenCl {
    /// The launches of every operation; `None` for one that has only instructions.
    pub(crate) fn launches(&mut self, encoded: &Encoded, operation: &str) -> Result<Vec<Option<Steps>>> {
        let narrow = compiler::variant(encoded);
        let mut entries = vec![("advance", narrow), ("sweep", narrow)];
        let mut stems = Vec::new();
        for op in 0..encoded.ops() {
            let of_op = if encoded.is_scalar(op) { None } else { Some(self.stems(encoded, op, operation)?) };
            entries.extend(
                of_op
                    .iter()
                    .flat_map(|(ahead, stem)| ahead.iter().map(|a| a.stem).chain([*stem]))
                    .map(|stem| (stem, narrow)),
            );
            stems.push(of_op);
        }
        if !self.segments_each {
            entries.push(("fold", narrow));
        }
        self.build(encoded.kind, &entries)?;
        let ops = (0..encoded.ops()).zip(stems);
        ops.map(|(op, stems)| stems.map(|stems| self.steps_of(encoded, op, stems, operation)).transpose())
            .collect()
    }

    /// Whether several columns are multiplied at once: a kernel for that exists and, on GPUs, it is faster,
    /// which holds only for slices of large matrices.
    pub(crate) fn multiplies_columns(&self, a: Matrix) -> bool {
        let kernel = self.store.spmv_kernel(a, "spmm").ok().and_then(columns_kernel);
        let (Some(kernel), Ok(a)) = (kernel, self.store.format(a, "spmm")) else { return false };
        let streaming =
            self.options.mode != Mode::Auto || columns_pay(a.kernel(), a.bytes(), self.driver.device.cache());
        (self.segments_each || kernel == "spmm_sell" && streaming) && !a.has_long_rows()
    }

    /// The kernel of an operation, and what runs ahead of it.
    fn stems(&self, encoded: &Encoded, op: u32, operation: &str) -> Result<Stems> {
        let kind = encoded.op(op, encode::OP_KIND);
        let mut ahead = Vec::new();
        let first = |stem, groups| vec![Ahead { stem, groups, range: None }];
        let stem = match kind {
            encode::KIND_SPMV => {
                let a = encoded.matrices[encoded.op(op, encode::OP_MATRIX) as usize];
                let kernel = self.store.spmv_kernel(a, operation)?;
                match self.store.format(a, operation)?.partial_sums() {
                    0 if self.rows_come_first(a) => {
                        ahead = first("spmv_csr_first", a.rows);
                        "sweep"
                    }
                    0 => kernel,
                    pieces => {
                        ahead = first("spmv_pieces", pieces);
                        kernel
                    }
                }
            }
            encode::KIND_SPMM => {
                let a = encoded.matrices[encoded.op(op, encode::OP_MATRIX) as usize];
                let kernel = self.store.spmv_kernel(a, operation)?;
                columns_kernel(kernel).ok_or_else(|| Error::Unsupported {
                    operation: format!("{operation} by the kernel `{kernel}`"),
                    message: "no kernel takes several columns together; multiply them one by one".into(),
                })?
            }
            encode::KIND_BASIS_DOT => "basis_dot",
            encode::KIND_BASIS_AXPY => "basis_axpy",
            encode::KIND_BASIS_GRAM => "basis_gram",
            encode::KIND_BASIS_COMBINE => "basis_combine",
            encode::KIND_TRI_SOLVE => {
                let a = encoded.matrices[encoded.op(op, encode::OP_MATRIX) as usize];
                ahead = self.solve(a, operation)?;
                "sweep"
            }
            _ => "sweep",
        };
        Ok((ahead, stem))
    }

    /// The stages of a triangular solve.
    fn solve(&self, a: Matrix, operation: &str) -> Result<Vec<Ahead>> {
        // A work-group of a GPU processes a few times its work-items in the time of a launch, one of a CPU
        // more.
        let (narrow, size) = if self.segments_each { (256, 1) } else { (2 * TEAM as u32, TEAM) };
        let ahead = |stage| match stage {
            Stage::Level(first, end) => {
                let groups = ((end - first) as usize).div_ceil(size);
                Ahead { stem: "tri_solve_level", groups, range: Some([first, end]) }
            }
            Stage::Levels(first, end) => {
                Ahead { stem: "tri_solve_levels", groups: 1, range: Some([first, end]) }
            }
            Stage::Groups(depth, groups) => {
                Ahead { stem: "tri_solve_groups", groups: groups as usize, range: Some([depth, groups]) }
            }
        };
        let format = self.store.format(a, operation)?;
        let stages = with_each!(format, a => solve_stages(&**a, narrow));
        let stages = stages.ok_or_else(|| not_triangular(operation, format.kernel()))?;
        Ok(stages.into_iter().map(ahead).collect())
    }

    fn steps_of(&self, encoded: &Encoded, op: u32, (ahead, stem): Stems, operation: &str) -> Result<Steps> {
        let kind = encoded.op(op, encode::OP_KIND);
        let segments = (encoded.op(op, encode::OP_N) as usize).div_ceil(SEGMENT);
        let dots = match kind {
            encode::KIND_BASIS_DOT | encode::KIND_BASIS_GRAM => encode::OP_COLUMNS,
            _ => encode::OP_DOT_COUNT,
        };
        let sums = encoded.op(op, dots) as usize;
        let folds = !self.segments_each && sums * segments > FOLD;
        let (size, most) = if self.segments_each { (1, GROUPS_A_UNIT) } else { (TEAM, TEAMS_A_UNIT) };
        let step = |stem, groups: usize, range: Option<[u32; 2]>| -> Result<Launch> {
            let kernel = self.step_kernel(encoded, op, (stem, range), operation)?;
            Ok(Launch { kernel, groups: groups.clamp(1, most * self.driver.device.units), size })
        };
        let fold = || step("fold", sums * segments.div_ceil(SEGMENT), None);
        // After a solve there are only instructions.
        let segments = if kind == encode::KIND_TRI_SOLVE { 1 } else { segments };
        let ahead = ahead.into_iter().map(|Ahead { stem, groups, range }| step(stem, groups, range));
        Ok(Steps {
            ahead: ahead.collect::<Result<_>>()?,
            operation: step(stem, segments, None)?,
            fold: folds.then(fold).transpose()?,
        })
    }

    /// Whether the rows of a product are computed ahead of the pass.
    fn rows_come_first(&self, a: Matrix) -> bool {
        rows_come_first(a.rows, a.nnz, self.driver.device.units)
            && (self.store.format(a, "spmv_dot"))
                .is_ok_and(|format| format.kernel() == "csr" && format.lanes() == MAX_LANES)
    }

    /// A kernel of an operation with its constant arguments.
    fn step_kernel(
        &self,
        encoded: &Encoded,
        op: u32,
        (stem, range): (&'static str, Option<[u32; 2]>),
        operation: &str,
    ) -> Result<Kernel> {
        let mut kernel = self.kernel(encoded.kind, (stem, compiler::variant(encoded)))?;
        let (size, cells) = (encoded.kind.size(), encoded.cells.len());
        let work = compiler::work(encoded.kind, if self.segments_each { SEGMENT } else { TEAM });
        let table = self.table_bytes(encoded, op);
        let budget = self.local_budget().saturating_sub(work + table) / size;
        let slots = encoded.op(op, encode::OP_SLOT_COUNT) as usize;
        // A pass after `spmv_csr_first` reads the rows from the vector.
        let behind = stem == "sweep" && encoded.op(op, encode::OP_KIND) == encode::KIND_SPMV;
        let (cap, resident) = if behind {
            (0, if cells <= budget { cells } else { 0 })
        } else if self.segments_each {
            (1, 0)
        } else {
            let cap = slots.clamp(1, (budget / SEGMENT).max(1));
            (cap, if cells <= budget { cells.max(cap * SEGMENT) } else { cap * SEGMENT })
        };
        let local = (cap * SEGMENT).max(resident).max(1);
        // For a stage of a solve, its range takes the place of the local memory sizes.
        let [cap, resident] = range.unwrap_or([cap as u32, resident as u32]);
        let args = [
            Arg::Word(encoded.cells.start),
            Arg::Word(cells as u32),
            Arg::Word(op),
            Arg::Word(cap),
            Arg::Word(resident),
            Arg::Local(work),
            Arg::Local(local * size),
            Arg::Local(8 * encode::CONTROL_WORDS as usize),
            Arg::Local(table),
        ];
        for (i, arg) in args.iter().enumerate() {
            kernel.set(9 + i as u32, arg).map_err(self.driver.fail(operation))?;
        }
        Ok(kernel)
    }

    /// Bytes of local memory for what a work-group reads of the table for every segment: see
    /// `kernels-opencl/sweep.cl`.
    fn table_bytes(&self, encoded: &Encoded, op: u32) -> usize {
        if self.segments_each {
            return 0;
        }
        let field = |field| encoded.op(op, field) as usize;
        let weights = if field(encode::OP_KIND) == encode::KIND_BASIS_AXPY as usize {
            field(encode::OP_COLUMNS).next_multiple_of(4)
        } else {
            0
        };
        let words = field(encode::OP_DOTS) + field(encode::OP_DOT_COUNT) * encode::DOT_WORDS as usize
            - field(encode::OP_SLOTS);
        let numbers = weights + field(encode::OP_TERM_COUNT);
        8 * field(encode::OP_SLOT_COUNT).next_multiple_of(2) + numbers * encoded.kind.size() + 4 * words
    }
}

/// The kernel that multiplies several columns at once, for the kernel of one vector, if there is one.
fn columns_kernel(product: &str) -> Option<&'static str> {
    match product {
        "spmv_csr" => Some("spmm_csr"),
        "spmv_dia" => Some("spmm_dia"),
        "spmv_sell" => Some("spmm_sell"),
        "spmv_bcsr" => Some("spmm_bcsr"),
        _ => None,
    }
}
