//! Several devices as one: those of this process, each on a thread of its own while a program runs, or one in each of several
//! processes.
use crate::job::{Job, Maker, Placed};
use crate::lengths::Lengths;
use crate::rank::{Outcome, Rank, Stop};
use crate::{Links, Survey, Tally, Threads, agreement};
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

/// Several devices as one backend: all of them in this process ([`Group::new`]), or this process is one of several that call the
/// same methods in the same order ([`Group::member`]). The first rank of a process computes on the calling thread.
pub struct Group {
    /// Those of this process.
    ranks: Vec<Rank>,
    /// The number of ranks in all processes.
    count: usize,
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
        Ok(Group::of(parts.into_iter().zip(links).map(rank).collect()))
    }
    /// The rank of this process among those that its links join. All of them **must** call the same methods with the same values, in
    /// the same order: each call that makes something, and each that moves data, is compared, and differing ones are errors on
    /// all. Every process gets all rows of what is downloaded.
    pub fn member(part: Box<dyn Divided>, links: Box<dyn Links>) -> Self {
        Group::of(vec![Rank::new(part, links)])
    }
    /// `ranks` are those of this process.
    fn of(ranks: Vec<Rank>) -> Self {
        let count = ranks.first().map_or(0, |rank| rank.links.ranks());
        let (matrices, vectors, jobs) = Default::default();
        let lengths = Lengths::new(count, 0);
        Group { ranks, count, lengths, matrices, vectors, jobs, poisons: false }
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
    /// What each rank of this process has sent since the last call.
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
        let same = first.filter(|first| handles.iter().all(|handle| handle.as_ref() == Some(first)));
        let message = "it is not the same on all ranks: a format says something else each time, or the devices are not of one kind";
        let differ = || Error::Structure { operation: what.into(), message: message.into() };
        let done = same.ok_or_else(|| made.into_iter().find_map(Result::err).unwrap_or_else(differ));
        let done = self.agree(what, 0, done);
        if done.is_err() {
            for (rank, handle) in self.ranks.iter_mut().zip(handles) {
                handle.into_iter().for_each(|handle| rank.part.free(resource(handle)));
            }
        }
        done
    }
    /// Fails in every process if something failed in one, or if they did different things, which `word` tells.
    fn agree<R>(&mut self, what: &str, word: u64, done: Result<R>) -> Result<R> {
        match &mut self.ranks[..] {
            [only] if self.count > 1 => {
                // What differs between calls is their names and words.
                let name = what.bytes().fold(word, |sum, byte| sum.rotate_left(7) ^ u64::from(byte));
                agreement::agree(&mut *only.links, what, name, done)
            }
            _ => done,
        }
    }
    /// Calls every rank.
    fn each(&mut self, what: &str, mut call: impl FnMut(&mut dyn Divided) -> Result<()>) -> Result<()> {
        let done = self.ranks.iter_mut().try_for_each(|rank| call(&mut *rank.part));
        self.agree(what, 0, done)
    }
    /// Calls every rank with the rows of a vector that it computes.
    fn each_rows(
        &mut self,
        what: &str,
        v: Vector,
        mut call: impl FnMut(&mut dyn Divided, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let division = self.lengths.division(v.len);
        let done = self.ranks.iter_mut().try_for_each(|rank| {
            let rows = division.rows(rank.links.rank());
            call(&mut *rank.part, rows)
        });
        self.agree(what, v.len as u64, done)
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
            ends.extend(
                threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Stop::Elsewhere(None)))),
            );
            Ok(ends)
        });
        let failed_here = ends.as_ref().map_or(true, |ends| ends.iter().any(|end| end.is_err()));
        if failed_here && self.ranks.len() == self.count {
            // The old ones may have ended for good, or hold messages that nobody received.
            let links = Threads::new(self.ranks.len());
            self.ranks.iter_mut().zip(links).for_each(|(rank, links)| rank.links = Box::new(links));
        }
        let (mut done, mut elsewhere) = (None, None);
        for (number, end) in ends?.into_iter().enumerate() {
            match end {
                Ok(end) => _ = done.get_or_insert(end),
                Err(Stop::Own(error)) => return Err(named(error, self.ranks[number].links.rank())),
                Err(Stop::Elsewhere(why)) => elsewhere = elsewhere.or(Some(why)),
            }
        }
        let unknown = || failed(program.name().into(), "a rank ended without a reason".into());
        match elsewhere {
            None => done.ok_or_else(unknown),
            Some(why) => Err(why.unwrap_or_else(unknown)),
        }
    }
}

/// The error of a rank, which says whose it is.
fn named(mut error: Error, rank: usize) -> Error {
    if let Error::Device { device, .. } | Error::OutOfMemory { device, .. } = &mut error {
        device.push_str(&format!(", rank {rank}"));
    }
    error
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
        if !rank.ended {
            rank.links.abort();
        }
        stop.unwrap_or(Stop::Own(panic))
    })
}

impl Backend for Group {
    fn info(&self) -> DeviceInfo {
        let count = self.count;
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
                    self.each("vectors", |part| part.set_rows(basis.column(j), std::slice::from_ref(&(0..n)), bytes))?;
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
        self.each("new values of a matrix", |part| part.set_matrix(a, to.clone()))?;
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
        self.each_rows("upload", to, |part, rows| {
            let own = &from[rows.start * size..rows.end * size];
            part.set_rows(to, &[rows], own)
        })
    }
    fn clear(&mut self, v: Vector) -> Result<()> {
        self.each_rows("clear", v, |part, rows| part.clear_rows(v, rows))
    }
    fn download(&mut self, from: Vector, to: &mut [u8]) -> Result<()> {
        let size = from.kind.size();
        Error::check_length("download", "the bytes", from.len * size, to.len())?;
        let mut own = Vec::new();
        self.each_rows("download", from, |part, rows| {
            own.clear();
            part.rows_of(from, std::slice::from_ref(&rows), &mut own)?;
            to[rows.start * size..rows.end * size].copy_from_slice(&own);
            Ok(())
        })?;
        let division = self.lengths.division(from.len);
        match &mut self.ranks[..] {
            [only] if self.count > 1 && !division.whole => {
                let counts: Vec<usize> =
                    (0..self.count).map(|rank| division.rows(rank).len() * size).collect();
                // Parts of ranks follow each other.
                let mut all = Vec::new();
                only.links.all_gather(&own, &counts, &mut all)?;
                to.copy_from_slice(&all);
                Ok(())
            }
            _ => Ok(()),
        }
    }
    fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        check_copy(from, to)?;
        let mut own = Vec::new();
        self.each_rows("copy", from, |part, rows| {
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
        self.each("write", |part| part.write(cell, value))
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
        let job = {
            let word = job.as_ref().map_or(0, Job::word);
            self.agree(program.name(), word, job)
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
