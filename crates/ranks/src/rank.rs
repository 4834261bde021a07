//! One rank: runs its part of a program, and meets the others where they need each other.
use crate::halo::{Halo, Part, count};
use crate::job::{Exchange, Job, Task};
use crate::lengths::Division;
use crate::{Links, Tally, agreement};
use lacuna_engine::division::finish_sum;
use lacuna_engine::sum::maximum;
use lacuna_engine::{
    Control, Divided, Error, Finish, History, Program, Progress, Result, Run, Section, State, Vector,
    next_section, with_number,
};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

/// Bytes of the word that says how a rank is.
const WORD: usize = 8;
/// It failed: all end.
const FAILED: u64 = 1;
/// Its caller wants the run to be cancelled.
const CANCEL: u64 = 2;
/// Interval between calls of the caller's `watch`.
const TELL: Duration = Duration::from_millis(40);

/// Why a rank ended before the program did.
pub(crate) enum Stop {
    /// By an error of its own.
    Own(Error),
    /// Another rank failed, with this error if it is known.
    Elsewhere(Option<Error>),
}

/// A rank: its device, and its links to the others.
pub(crate) struct Rank {
    pub(crate) part: Box<dyn Divided>,
    pub(crate) links: Box<dyn Links>,
    pub(crate) tally: Tally,
    /// The error that it met, until all know.
    error: Option<Error>,
    /// Whether all ranks have ended together, for an error of one of them.
    pub(crate) ended: bool,
    /// What its caller wants, and what any caller wanted at the last gather.
    wish: u64,
    wishes: u64,
    /// What it sends and receives.
    mine: Vec<u8>,
    all: Vec<u8>,
    counts: Vec<usize>,
    finished: Vec<u8>,
}

/// What a rank does, unless it stops.
pub(crate) type Outcome<T = ()> = std::result::Result<T, Stop>;

impl Rank {
    pub(crate) fn new(part: Box<dyn Divided>, links: Box<dyn Links>) -> Self {
        Rank {
            part,
            links,
            tally: Tally::default(),
            error: None,
            ended: false,
            wish: 0,
            wishes: 0,
            mine: Vec::new(),
            all: Vec::new(),
            counts: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Runs its part of a program. All ranks end in the same way: if one fails, all do.
    pub(crate) fn run(&mut self, program: &Program, job: &Job, run: Run<'_>) -> Outcome<Finish> {
        self.timed(program, job, |rank| {
            let finish = rank.drive(program, job, run)?;
            rank.tally.iterations += finish.iterations;
            Ok(finish)
        })
    }

    /// Runs its part of the only operation of a program, with the state of another one.
    pub(crate) fn once(&mut self, program: &Program, job: &Job, state: State<'_>) -> Outcome {
        self.timed(program, job, |rank| {
            let [only, ..] = &job.sections;
            only.iter().try_for_each(|task| rank.operation(job, task, state.control, state.history))
        })
    }

    fn timed<R>(
        &mut self,
        program: &Program,
        job: &Job,
        run: impl FnOnce(&mut Self) -> Outcome<R>,
    ) -> Outcome<R> {
        let began = Instant::now();
        (self.error, self.ended, self.wish, self.wishes) = (None, false, 0, 0);
        let begun = self.part.begin(program, job.plan);
        self.note(begun);
        self.agree()?;
        let done = run(self)?;
        self.agree()?;
        self.tally.time += began.elapsed();
        Ok(done)
    }

    fn drive(&mut self, program: &Program, job: &Job, run: Run<'_>) -> Outcome<Finish> {
        let Run { limit, history, mut watch } = run;
        history.reset(limit);
        let mut control = Control::new(limit, program.confirms());
        let (mut section, mut told) = (Section::Setup, Instant::now());
        while control.section != Section::Stopped {
            control.enter(section);
            let gathers = self.tally.gathers;
            let steps = if section == Section::Each { &job.steps[..] } else { &[] };
            let rest = job.sections.get(section as usize);
            for tasks in steps.iter().chain(rest) {
                for task in tasks {
                    self.operation(job, task, &mut control, history)?;
                    self.obey(&mut control);
                    if control.halted() {
                        break;
                    }
                }
                if section == Section::Each
                    && let Some(watch) = watch.as_mut().filter(|_| told.elapsed() >= TELL)
                {
                    told = Instant::now();
                    let progress = Progress { iterations: control.iterations, rr: control.recurrence };
                    if let ControlFlow::Break(()) = watch(progress) {
                        self.wish |= CANCEL;
                    }
                }
                if control.halted() {
                    break;
                }
            }
            // Whoever waits for a word gets one in every iteration.
            if section == Section::Each && self.tally.gathers == gathers {
                self.agree()?;
                self.obey(&mut control);
            }
            section = next_section(program, section, &control);
        }
        Ok(Finish::of(program, &control))
    }

    /// Cancels the iteration if a caller wanted that at the last gather.
    fn obey(&self, control: &mut Control) {
        if self.wishes & CANCEL != 0 && control.section == Section::Each && !control.halted() {
            control.cancel();
        }
    }

    /// Keeps the first error, which the others learn of at the next gather.
    fn note(&mut self, done: Result<()>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    fn operation(&mut self, job: &Job, task: &Task, control: &mut Control, history: &mut History) -> Outcome {
        let Task { at, division, .. } = task;
        let state = State { control: &mut *control, history: &mut *history };
        if !self.part.before(job.plan, *at, state).map_err(Stop::Own)? {
            return Ok(());
        }
        let me = self.links.rank();
        let own = if task.all_rows { division.all() } else { division.segments(me) };
        match &task.exchange {
            Exchange::Nothing => self.compute(job, task, own),
            Exchange::Halo(vectors, halo) => self.with_halo(job, task, vectors, halo)?,
            Exchange::Gather(vectors, of) => {
                self.gather_whole(vectors, |rank| of.rows(rank))?;
                self.compute(job, task, own);
            }
            Exchange::Spread { from, halo, to } => {
                self.with_halo(job, task, from, halo)?;
                self.gather(to, |rank| division.cuts.rows(rank))?;
            }
            Exchange::Host(x, of, y) => self.host(job, task, (*x, of), *y)?,
        }
        let mut finished = std::mem::take(&mut self.finished);
        finished.clear();
        if task.sums > 0 {
            self.sum(job, task, &mut finished)?;
        }
        let state = State { control, history };
        let done = self.part.after(job.plan, *at, &finished, state).map_err(Stop::Own);
        self.finished = finished;
        done
    }

    /// Computes some segments, unless this rank has failed.
    fn compute(&mut self, job: &Job, task: &Task, segments: Range<usize>) {
        if self.error.is_none() && (!segments.is_empty() || task.all_rows) {
            let done = self.part.part(job.plan, task.at, segments);
            self.note(done);
        }
    }

    /// Exchanges halos; computes the interior meanwhile and the border afterwards.
    fn with_halo(&mut self, job: &Job, task: &Task, vectors: &[Vector], halo: &Halo) -> Outcome {
        let Part { sends, receives, interior, border } = halo.part(self.links.rank());
        let began = Instant::now();
        for (to, rows) in sends {
            self.pack(vectors, rows);
            let Rank { links, mine, .. } = self;
            links.send(*to, mine).map_err(elsewhere)?;
        }
        self.tally.messages += began.elapsed();
        for segments in interior {
            self.compute(job, task, segments.clone());
        }
        let began = Instant::now();
        for (from, rows) in receives {
            self.all.clear();
            let bytes = bytes_of(vectors, rows);
            self.links.receive(*from, bytes, &mut self.all).map_err(elsewhere)?;
            let all = std::mem::take(&mut self.all);
            self.unpack(vectors, rows, &all);
            self.all = all;
            self.tally.halo += bytes as u64;
        }
        self.tally.exchanges += 1;
        self.tally.messages += began.elapsed();
        for segments in border {
            self.compute(job, task, segments.clone());
        }
        Ok(())
    }

    /// Puts rows of vectors into `mine`: anything of the same length if this rank has failed.
    fn pack(&mut self, vectors: &[Vector], rows: &[Range<usize>]) {
        self.mine.clear();
        for v in vectors {
            let done = self.part.rows_of(*v, rows, &mut self.mine);
            self.note(done);
        }
        self.mine.resize(bytes_of(vectors, rows), 0);
    }

    /// Sets rows of vectors.
    fn unpack(&mut self, vectors: &[Vector], rows: &[Range<usize>], from: &[u8]) {
        let mut rest = from;
        for v in vectors {
            let (own, more) = rest.split_at(count(rows) * v.kind.size());
            let done = self.part.set_rows(*v, rows, own);
            self.note(done);
            rest = more;
        }
    }

    /// Every rank gets all rows of vectors of one length, of which each has some.
    fn gather(&mut self, vectors: &[Vector], rows: impl Fn(usize) -> Range<usize>) -> Outcome {
        let began = Instant::now();
        let (me, ranks) = (self.links.rank(), self.links.ranks());
        let own = [rows(me)];
        self.pack(vectors, &own);
        self.counts.clear();
        self.counts.extend((0..ranks).map(|rank| bytes_of(vectors, &[rows(rank)])));
        self.meet()?;
        let all = std::mem::take(&mut self.all);
        let mut rest = &all[..];
        for rank in 0..ranks {
            let (word_and_rows, more) = rest.split_at(self.counts[rank]);
            if rank != me {
                self.unpack(vectors, &[rows(rank)], &word_and_rows[WORD..]);
            }
            rest = more;
        }
        self.all = all;
        self.tally.messages += began.elapsed();
        Ok(())
    }

    /// [`Rank::gather`] of what cannot be divided.
    fn gather_whole(&mut self, vectors: &[Vector], rows: impl Fn(usize) -> Range<usize>) -> Outcome {
        let own = rows(self.links.rank());
        self.tally.whole += vectors.len() as u64;
        self.tally.whole_bytes += bytes_of(vectors, &[own]) as u64;
        self.gather(vectors, rows)
    }

    /// A function of the host: called by rank 0 alone, which hands on its result.
    fn host(&mut self, job: &Job, task: &Task, x: (Vector, &Division), y: Vector) -> Outcome {
        if !x.1.whole {
            self.gather_whole(&[x.0], |rank| x.1.rows(rank))?;
        }
        if self.links.rank() == 0 {
            self.compute(job, task, task.division.all());
        }
        self.gather(&[y], |rank| if rank == 0 { 0..y.len } else { 0..0 })
    }

    /// Finishes the sums of an operation from those of all ranks.
    fn sum(&mut self, job: &Job, task: &Task, finished: &mut Vec<u8>) -> Outcome {
        let began = Instant::now();
        let Task { at, division, sums, maxima, kind, .. } = task;
        let (me, ranks) = (self.links.rank(), self.links.ranks());
        let bytes = |rank: usize| sums * division.trees(rank).len() * kind.size();
        self.mine.clear();
        if self.error.is_none() {
            let done = self.part.sums(job.plan, *at, division.trees(me), &mut self.mine);
            self.note(done);
        }
        self.mine.resize(bytes(me), 0);
        if division.whole {
            finished.extend_from_slice(&self.mine);
            return Ok(());
        }
        self.counts.clear();
        self.counts.extend((0..ranks).map(bytes));
        self.meet()?;
        let (all, counts) = (&self.all, &self.counts);
        with_number!(*kind, T => {
            for sum in 0..*sums {
                let mut start = 0;
                let of_all = (0..ranks).flat_map(|rank| {
                    let trees = division.trees(rank);
                    let first = start + WORD + sum * trees.len() * size_of::<T>();
                    start += counts[rank];
                    let values = all[first..first + trees.len() * size_of::<T>()].chunks_exact(size_of::<T>());
                    trees.iter().copied().zip(values.map(bytemuck::pod_read_unaligned::<T>))
                });
                let finish = match sum < sums - maxima {
                    true => finish_sum(of_all),
                    false => maximum(of_all.map(|(_, largest)| largest)),
                };
                finished.extend_from_slice(bytemuck::bytes_of(&finish));
            }
        });
        self.tally.messages += began.elapsed();
        Ok(())
    }

    /// All ranks learn how the others are.
    fn agree(&mut self) -> Outcome {
        self.mine.clear();
        self.counts.clear();
        self.counts.resize(self.links.ranks(), 0);
        self.meet()
    }

    /// Gathers `mine` of all ranks, of `counts` bytes, each after its word; adds the word to the counts.
    fn meet(&mut self) -> Outcome {
        let failed = if self.error.is_some() { FAILED } else { 0 };
        let word = (self.wish | failed).to_le_bytes();
        self.mine.splice(0..0, word);
        self.counts.iter_mut().for_each(|count| *count += WORD);
        let done = self.links.all_gather(&self.mine, &self.counts, &mut self.all);
        done.map_err(elsewhere)?;
        self.tally.gathers += 1;
        self.tally.gathered += self.mine.len() as u64;
        let mut start = 0;
        let words = self.counts.iter().map(|count| {
            let word =
                self.all[start..].first_chunk::<WORD>().map_or(FAILED, |word| u64::from_le_bytes(*word));
            start += count;
            word
        });
        self.wishes = words.fold(self.wishes, |all, word| all | word);
        if self.wishes & FAILED == 0 {
            return Ok(());
        }
        let own = self.error.take();
        let first = agreement::first_error(&mut *self.links, own.as_ref(), &mut self.all);
        self.ended = first.is_ok();
        Err(match own {
            Some(own) => Stop::Own(own),
            None => Stop::Elsewhere(first.unwrap_or_else(Some)),
        })
    }
}

/// A link that failed: another rank could not go on.
fn elsewhere(error: Error) -> Stop {
    Stop::Elsewhere(Some(error))
}

/// Bytes of rows of vectors.
fn bytes_of(vectors: &[Vector], rows: &[Range<usize>]) -> usize {
    count(rows) * vectors.iter().map(|v| v.kind.size()).sum::<usize>()
}
