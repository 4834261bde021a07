//! Several devices of this process as one: each is a rank, on a thread of its own while a program runs.
use crate::job::{Job, Maker, Placed};
use crate::lengths::Lengths;
use crate::rank::{Outcome, Rank, Stop};
use crate::{Survey, Tally, Threads};
use lacuna_engine::lower::Sweep;
use lacuna_engine::{
    AnyFormat, Backend, Basis, Caller, Cell, Cells, Cost, DeviceInfo, Divided, Error, Finish, History,
    Matrix, Number, NumberType, Op, OpKind, PlanId, Program, Resource, Result, Run, Scalar, State, Vector,
    Workers, as_one, catching, check_copy, watched, with_number,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Several devices of this process as one backend. Rank 0 computes on the calling thread.
pub struct Group {
    ranks: Vec<Rank>,
    lengths: Lengths,
    /// By serial.
    matrices: HashMap<u32, Placed>,
    vectors: HashMap<u32, Basis>,
    jobs: HashMap<u32, Arc<Job>>,
    poisons: bool,
}

impl Group {
    /// The devices as ranks, in this order. They **must** be of one kind and new: nothing was allocated on them.
    ///
    /// # Errors
    /// [`Error::Argument`] for none.
    pub fn new(parts: Vec<Box<dyn Divided>>) -> Result<Self> {
        if parts.is_empty() {
            let message = "expected at least one, got 0".into();
            return Err(Error::Argument { what: "ranks".into(), message });
        }
        let links = Threads::new(parts.len());
        let rank = |(part, links)| Rank::new(part, Box::new(links));
        let ranks: Vec<Rank> = parts.into_iter().zip(links).map(rank).collect();
        let lengths = Lengths::new(ranks.len(), 0);
        let (matrices, vectors, jobs) = Default::default();
        Ok(Group { ranks, lengths, matrices, vectors, jobs, poisons: false })
    }
    /// Keeps vectors of fewer rows whole on every rank, if there are longer ones: as those of the coarse levels of a multigrid
    /// method, for which messages cost more than arithmetic. 0 by default.
    #[must_use]
    pub fn whole_below(mut self, rows: usize) -> Self {
        self.lengths.whole_below = rows;
        self
    }
    /// Fills new vectors with NaN on every rank, so that results show what is read without having been written or sent: for
    /// tests.
    #[must_use]
    pub fn poisoned(mut self) -> Self {
        self.poisons = true;
        self
    }
    /// How the square matrix with the most entries is divided, if there is one and it is known what its format reads.
    pub fn survey(&mut self) -> Option<Survey> {
        let is_square = |placed: &Placed| placed.format.shape().0 == placed.format.shape().1;
        let square = self.matrices.iter_mut().filter(|(_, placed)| is_square(placed));
        // Of several, the first.
        let (_, largest) = square.max_by_key(|(serial, placed)| (placed.format.nnz(), Reverse(**serial)))?;
        let division = self.lengths.division(largest.format.shape().0);
        let halo = largest.halo(&division, &division)?;
        Some(Survey::new(&largest.format, &division.cuts, &halo))
    }
    /// What each rank has sent since the last call.
    pub fn take_tallies(&mut self) -> Vec<Tally> {
        self.ranks.iter_mut().map(|rank| std::mem::take(&mut rank.tally)).collect()
    }

    /// Makes the same handle on every rank, or on none.
    fn make<H: PartialEq + Copy>(
        &mut self,
        what: &str,
        make: impl Fn(&mut dyn Divided) -> Result<H>,
        resource: fn(H) -> Resource,
    ) -> Result<H> {
        let made = as_one(&mut self.ranks, |rank| make(&mut *rank.part));
        let handles: Vec<Option<H>> = made.iter().map(|made| made.as_ref().ok().copied()).collect();
        let first = handles.first().copied().flatten();
        if let Some(first) = first.filter(|first| handles.iter().all(|handle| handle.as_ref() == Some(first)))
        {
            return Ok(first);
        }
        for (rank, handle) in self.ranks.iter_mut().zip(handles) {
            handle.into_iter().for_each(|handle| rank.part.free(resource(handle)));
        }
        let message = "it is not the same on all ranks: a format says something else each time, or the devices are not of one kind";
        let differ = Error::Structure { operation: what.into(), message: message.into() };
        Err(made.into_iter().find_map(std::result::Result::err).unwrap_or(differ))
    }
    /// Calls every rank.
    fn each(&mut self, mut call: impl FnMut(&mut dyn Divided) -> Result<()>) -> Result<()> {
        self.ranks.iter_mut().try_for_each(|rank| call(&mut *rank.part))
    }
    /// Calls every rank with the rows of a vector that it computes.
    fn each_rows(
        &mut self,
        v: Vector,
        mut call: impl FnMut(&mut dyn Divided, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let division = self.lengths.division(v.len);
        let ranks = self.ranks.iter_mut().enumerate();
        ranks
            .map(|(rank, part)| (part, division.rows(rank)))
            .try_for_each(|(rank, rows)| call(&mut *rank.part, rows))
    }
    /// Runs one operation, with the state of a program that is run elsewhere.
    fn alone(&mut self, kind: OpKind, pass: &Sweep, state: State<'_>) -> Result<()> {
        let program = Program::once(Op { kind, sweep: pass.clone() })?;
        let plan = self.plan(&program)?;
        let before = *state.control;
        let first = |rank: &mut Rank, job: &Job| rank.once(&program, job, state);
        let others = |rank: &mut Rank, job: &Job| {
            let (mut control, mut history) = (before, History::off());
            rank.once(&program, job, State { control: &mut control, history: &mut history })
        };
        let done = self.together(&program, plan, first, others);
        self.free(Resource::Plan(plan));
        done
    }
    /// Runs a program with a `watch` that does not panic.
    fn run(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        let limit = run.limit;
        let first = |rank: &mut Rank, job: &Job| rank.run(program, job, run);
        let others = |rank: &mut Rank, job: &Job| {
            rank.run(program, job, Run { limit, history: &mut History::off(), watch: None })
        };
        self.together(program, plan, first, others)
    }
    /// All ranks at once, each on a thread, the first on the calling one. Returns what the first returns, or the first error.
    fn together<R: Send>(
        &mut self,
        program: &Program,
        plan: PlanId,
        first: impl FnOnce(&mut Rank, &Job) -> Outcome<R>,
        others: impl Fn(&mut Rank, &Job) -> Outcome<R> + Sync,
    ) -> Result<R> {
        let stale = || Error::Stale { operation: program.name().into(), what: "plan" };
        let job = self.jobs.get(&plan.serial).filter(|job| job.plan == plan).ok_or_else(stale)?.clone();
        program.check_plan(job.program)?;
        let failed =
            |operation: String, message: String| Error::Device { device: "ranks".into(), operation, message };
        let (job, caller, others) = (&*job, &Caller::here(), &others);
        let ends = std::thread::scope(|scope| {
            let (leader, rest) = self.ranks.split_first_mut().ok_or_else(stale)?;
            let mut threads = Vec::with_capacity(rest.len());
            for (number, rank) in (1..).zip(rest) {
                let work = move || caller.run(|| guarded(rank, |rank| others(rank, job)));
                let thread = std::thread::Builder::new().name(format!("rank {number}"));
                match thread.spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        leader.links.abort();
                        return Err(failed(
                            format!("starting the thread of rank {number}"),
                            error.to_string(),
                        ));
                    }
                }
            }
            let mut ends = vec![guarded(leader, |rank| first(rank, job))];
            ends.extend(threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Stop::Elsewhere))));
            Ok(ends)
        });
        if ends.as_ref().map_or(true, |ends| ends.iter().any(|end| end.is_err())) {
            // The old ones may have ended for good, or hold messages that nobody received.
            let links = Threads::new(self.ranks.len());
            self.ranks.iter_mut().zip(links).for_each(|(rank, links)| rank.links = Box::new(links));
        }
        let (mut done, mut elsewhere) = (None, false);
        for end in ends? {
            match end {
                Ok(end) => _ = done.get_or_insert(end),
                Err(Stop::Own(error)) => return Err(error),
                Err(Stop::Elsewhere) => elsewhere = true,
            }
        }
        let unknown = || failed(program.name().into(), "a rank ended without a reason".into());
        done.filter(|_| !elsewhere).ok_or_else(unknown)
    }
}

/// Runs a rank. If it cannot go on, for an error or a panic, nobody waits for it.
fn guarded<R>(rank: &mut Rank, run: impl FnOnce(&mut Rank) -> Outcome<R>) -> Outcome<R> {
    let mut stop = None;
    let done = catching(|| {
        run(rank).map_err(|why| {
            stop = Some(why);
            Error::Cancelled { operation: "a rank".into() }
        })
    });
    done.map_err(|panic| {
        // Whoever has ended together with the others harms nobody by this.
        rank.links.abort();
        stop.unwrap_or(Stop::Own(panic))
    })
}

impl Backend for Group {
    fn info(&self) -> DeviceInfo {
        let count = self.ranks.len();
        let Some(first) = self.ranks.first().map(|rank| rank.part.info()) else {
            return DeviceInfo::new("ranks", "none", 0);
        };
        let name = match count {
            1 => format!("1 rank on {}", first.name),
            _ => format!("{count} ranks on {}", first.name),
        };
        DeviceInfo::new("ranks", name, count).memory(first.memory).details(first.details)
    }
    /// Those of one device for the whole matrix: the choice does not depend on the number of ranks.
    fn formats(&self, rows: usize, bytes: usize) -> &'static [Cost] {
        self.ranks.first().map_or(&[], |rank| rank.part.formats(rows, bytes))
    }
    fn workers(&self) -> Option<Arc<dyn Workers>> {
        None
    }
    fn vectors(&mut self, kind: NumberType, n: usize, columns: usize, narrow: bool) -> Result<Basis> {
        let basis = self.make("vectors", |part| part.vectors(kind, n, columns, narrow), Resource::Vectors)?;
        self.lengths.enter(n);
        self.vectors.insert(basis.serial, basis);
        if self.poisons && n > 0 {
            with_number!(kind, T => {
                let poison = vec![T::from_real(f64::NAN); n];
                for j in 0..columns {
                    let bytes = bytemuck::cast_slice(&poison);
                    self.each(|part| part.set_rows(basis.column(j), std::slice::from_ref(&(0..n)), bytes))?;
                }
            });
        }
        Ok(basis)
    }
    fn cells(&mut self, kind: NumberType, count: usize) -> Result<Cells> {
        self.make("cells", |part| part.cells(kind, count), Resource::Cells)
    }
    fn matrix(&mut self, a: AnyFormat) -> Result<Matrix> {
        let handle = self.make("a matrix", |part| part.matrix(a.clone()), Resource::Matrix)?;
        self.lengths.enter_matrix(&a);
        self.matrices.insert(handle.serial, Placed::new(a));
        Ok(handle)
    }
    fn set_matrix(&mut self, a: Matrix, to: AnyFormat) -> Result<()> {
        self.each(|part| part.set_matrix(a, to.clone()))?;
        if let Some(placed) = self.matrices.get_mut(&a.serial) {
            placed.format = to;
        }
        Ok(())
    }
    fn free(&mut self, what: Resource) {
        self.ranks.iter_mut().for_each(|rank| rank.part.free(what));
        match what {
            Resource::Vectors(basis) => {
                if let Some(basis) = self.vectors.remove(&basis.serial) {
                    self.lengths.leave(basis.len);
                }
            }
            Resource::Matrix(a) => {
                if let Some(placed) = self.matrices.remove(&a.serial) {
                    let (rows, cols) = placed.format.shape();
                    [rows, cols].into_iter().for_each(|n| self.lengths.leave(n));
                }
            }
            Resource::Plan(plan) => drop(self.jobs.remove(&plan.serial)),
            Resource::Cells(_) => {}
        }
    }
    fn upload(&mut self, from: &[u8], to: Vector) -> Result<()> {
        let size = to.kind.size();
        Error::check_length("upload", "the host slice", to.len * size, from.len())?;
        self.each_rows(to, |part, rows| {
            let own = &from[rows.start * size..rows.end * size];
            part.set_rows(to, &[rows], own)
        })
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        self.each_rows(v, |part, rows| part.clear_rows(v, rows))
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        let size = from.kind.size();
        Error::check_length("download", "the bytes", from.len * size, to.len())?;
        let mut own = Vec::new();
        self.each_rows(from, |part, rows| {
            own.clear();
            part.rows_of(from, std::slice::from_ref(&rows), &mut own)?;
            to[rows.start * size..rows.end * size].copy_from_slice(&own);
            Ok(())
        })
    }
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        let mut own = Vec::new();
        self.each_rows(from, |part, rows| {
            own.clear();
            part.rows_of(from, std::slice::from_ref(&rows), &mut own)?;
            with_number!(from.kind, F => with_number!(to.kind, G => {
                let numbers = own.chunks_exact(size_of::<F>()).map(bytemuck::pod_read_unaligned::<F>);
                let numbers: Vec<G> = numbers.map(Scalar::converted).collect();
                part.set_rows(to, &[rows], bytemuck::cast_slice(&numbers))
            }))
        })
    }
    fn write(&mut self, cell: Cell, value: Number) -> Result<()> {
        self.each(|part| part.write(cell, value))
    }
    fn read(&mut self, cells: &[Cell], to: &mut [u8]) -> Result<()> {
        match self.ranks.first_mut() {
            Some(rank) => rank.part.read(cells, to),
            None => Ok(()),
        }
    }
    lacuna_engine::primitives_by!(alone);
    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        let plan = self.make("a plan", |part| part.plan(program), Resource::Plan)?;
        let Group { ranks, lengths, matrices, .. } = self;
        let job = match ranks.first_mut() {
            Some(rank) => Maker { part: &mut *rank.part, lengths, matrices }.job(program, plan),
            None => Err(Error::Stale { operation: program.name().into(), what: "plan" }),
        };
        match job {
            Ok(job) => _ = self.jobs.insert(plan.serial, Arc::new(job)),
            Err(error) => {
                self.free(Resource::Plan(plan));
                return Err(error);
            }
        }
        Ok(plan)
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        watched(run, |run| self.run(program, plan, run))
    }
}
