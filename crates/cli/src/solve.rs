//! `lacuna solve`
use crate::args::{SolveArgs, check_restart};
use crate::convert::{check_columns_output, check_vector_output, save_vector};
use crate::launched::Job;
use crate::plot;
use crate::report::{Report, Times};
use crate::solving::{SettingUp, Solving};
use lacuna::ndarray::{ArrayView1, ArrayViewMut1};
use lacuna::solvers::{max_norm, residual};
use lacuna::{Csr, Device, LinearSystem, Norm, Outcome, Prepared, Scalar, Stop, Structure, Way};
use lacuna_measure::failure::{NOT_CONVERGED, Result};
use lacuna_measure::input::{STANDARD, Source, is_stream, set_threads};
use lacuna_measure::interrupt::{cancel_on_interrupt, solved};
use lacuna_measure::number::with_type;
use lacuna_measure::out;
use lacuna_measure::quantity::{counted, many};
use lacuna_measure::session::unsuited;
use lacuna_measure::vector::{Length, VectorSource, right_hand_side};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(args: &SolveArgs, job: Option<&Job>) -> Result<ExitCode> {
    check_restart(&args.method, args.restart)?;
    args.plot.as_deref().map_or(Ok(()), plot::check_name)?;
    out::check_outputs(
        &[
            ("--output", args.output.as_deref()),
            ("--json", args.report.json.as_deref()),
            ("--plot", args.plot.as_deref()),
        ],
        &[
            ("the matrix", Some(&args.matrix)),
            ("--rhs", args.rhs.as_deref().filter(|rhs| VectorSource::is_file(rhs))),
            ("--x0", args.x0.as_deref()),
        ],
    )?;
    set_threads(args.place.threads)?;
    let source = Source::open(&args.matrix)?;
    let is_stream = |path: &Option<String>| path.as_deref().is_some_and(is_stream);
    if is_stream(&args.rhs) || is_stream(&args.x0) {
        source.keep_stream()?;
    }
    let rhs = args.rhs.as_deref().map(|rhs| VectorSource::open("--rhs", rhs)).transpose()?;
    if let (Some(rhs), true) = (&rhs, is_stream(&args.x0)) {
        rhs.keep_stream()?;
    }
    let x0 = args.x0.as_deref().map(|x0| VectorSource::open_file("--x0", x0)).transpose()?;
    let several = rhs.as_ref().is_some_and(VectorSource::is_several);
    let check = if several { check_columns_output } else { check_vector_output };
    args.output.as_deref().map_or(Ok(()), check)?;
    let also_complex = [&rhs, &x0].into_iter().flatten().any(VectorSource::is_complex);
    let kind = source.number_type(args.number, also_complex)?;
    let start = Instant::now();
    let dev = match job {
        Some(job) => job.device(args)?,
        None => args.place.open()?,
    };
    let task = Solve { args, job, source, rhs, x0, open: start.elapsed() };
    match several {
        true => with_type!(kind, T => task.solve_columns::<T>(&dev)),
        false => with_type!(kind, T => task.solve::<T>(&dev)),
    }
}

/// A solve whose input and device are open.
pub(crate) struct Solve<'a> {
    pub(crate) args: &'a SolveArgs,
    /// The processes that solve it together, if there are several.
    pub(crate) job: Option<&'a Job>,
    pub(crate) source: Source,
    /// `None` for ones, or for the vector stored with the matrix.
    pub(crate) rhs: Option<VectorSource>,
    pub(crate) x0: Option<VectorSource>,
    open: Duration,
}

/// A system whose input is read, and how long that took.
struct Given<T> {
    a: Arc<Csr<T>>,
    b: Vec<T>,
    x0: Vec<T>,
    read: Duration,
}

impl Solve<'_> {
    fn solve<T: Scalar>(self, dev: &Device) -> Result<ExitCode> {
        let args = self.args;
        let reading = Instant::now();
        let a = self.source.read::<T>(args.report.quiet)?;
        let b = right_hand_side::<T>(self.rhs.as_ref(), &self.source, a.rows(), args.report.quiet)?;
        let x0 = match &self.x0 {
            Some(x0) => x0.read::<T>(Length::Columns(a.cols()), &self.source, args.report.quiet)?,
            None => lacuna::backend::pages::zeroed("the solution", a.cols())?,
        };
        self.job.map_or(Ok(()), |job| job.agree(&a, [&b, &x0]))?;
        let given = Given { a: Arc::new(a), b, x0, read: reading.elapsed() };
        self.warn(&given.a);

        let mut best = self.once(dev, &given)?;
        for _ in 1..args.repeat {
            let next = self.once(dev, &given)?;
            if next.0.times.total() < best.0.times.total() {
                best = next;
            }
        }
        let (mut report, x) = best;
        if report.outcome.misfit.is_nan() {
            report.largest = residual(&given.a, &given.b, &x).largest;
            report.relative_largest =
                if report.largest == 0.0 { 0.0 } else { report.largest / max_norm(&given.b) };
        }
        self.print(&report)?;
        if let Some(path) = &args.output {
            if !x.iter().all(|v| v.finite()) {
                out::note(&format!("{path}: not written, the solution is not finite"));
            } else {
                save_vector(path, &x)?;
            }
        }
        Ok(if report.outcome.converged() { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
    }

    /// Says before the first iteration that the method that was named does not suit the matrix.
    pub(crate) fn warn<T: Scalar>(&self, a: &Csr<T>) {
        if let Some(why) = unsuited(&self.args.method, || Structure::of(a)) {
            self.source.note(&why, self.args.report.quiet);
        }
    }

    /// Sets up and solves the system.
    fn once<T: Scalar>(&self, dev: &Device, given: &Given<T>) -> Result<(Report, Vec<T>)> {
        let Given { a, b, x0, read } = given;
        let mut x = lacuna::backend::pages::zeroed("the solution", x0.len())?;
        x.copy_from_slice(x0);
        let (shape, nnz, stop) = ((a.rows(), a.cols()), a.nnz(), self.stop::<T>());
        let system = self.system(a.clone(), stop);
        let setting_up = self.setting_up(shape, nnz);
        let start = Instant::now();
        let mut system = system.on(dev).prepare()?;
        let setup = start.elapsed();
        drop(setting_up);
        let begins = Way { method: system.method().clone(), preconditioner: system.preconditioner().clone() };
        let bytes_per_iteration = system.bytes_per_iteration();
        let outcome = self.watched(&mut system, b, &mut x, stop)?;
        let mut setup_parts = system.setup_parts().to_vec();
        if !outcome.setup.is_zero() {
            setup_parts.push(("fallback", outcome.setup));
        }
        let report = Report {
            matrix: self.source.name().into(),
            notes: self.source.notes(),
            shape,
            nnz,
            kind: T::KIND,
            device: dev.info().clone(),
            by: outcome.finished_by().map_or(begins, |(way, _)| way.clone()),
            format: system.format().clone(),
            order: system.order().clone(),
            stop,
            bytes_per_iteration,
            times: Times {
                read: *read,
                open: self.open,
                setup: setup + outcome.setup,
                setup_parts,
                transfers: outcome.transfers,
                iterations: outcome.iterating(),
            },
            outcome,
            largest: f64::NAN,
            relative_largest: f64::NAN,
        };
        Ok((report, x))
    }

    /// Shows on a terminal what is set up, which takes long for some preconditioners.
    pub(crate) fn setting_up(&self, shape: (usize, usize), nnz: usize) -> SettingUp {
        let (args, matrix) = (self.args, self.source.name());
        let (size, nnz) = (counted(shape), many(nnz, "entry", "entries"));
        let named = [&args.method, &args.precond].map(String::as_str);
        let named: Vec<_> = named.into_iter().filter(|name| !["auto", "none"].contains(name)).collect();
        let what = format!("{matrix}: {size}, {nnz}; setting up {}", named.join(", "));
        SettingUp::new(args.report.quiet || args.report.json.is_some(), what.trim_end())
    }

    pub(crate) fn stop<T: Scalar>(&self) -> Stop {
        Stop::default()
            .rtol(self.args.rtol.unwrap_or(LinearSystem::<T>::DEFAULT_RTOL))
            .atol(self.args.atol)
            .norm(Norm::from(self.args.norm))
            .max_iters(self.args.max_iters)
    }

    pub(crate) fn system<T: Scalar>(&self, a: Arc<Csr<T>>, stop: Stop) -> LinearSystem<T> {
        let system = LinearSystem::new(a)
            .method(&self.args.method)
            .preconditioner(&self.args.precond)
            .format(&self.args.format)
            .reorder(&self.args.reorder)
            .scale(&self.args.scale)
            .refine(self.args.refine)
            .stop(stop);
        match self.args.restart {
            Some(restart) => system.restart(restart as usize),
            None => system,
        }
    }

    /// Solves with progress on the terminal; Ctrl-C cancels.
    fn watched<T: Scalar>(
        &self,
        system: &mut Prepared<T>,
        b: &[T],
        x: &mut [T],
        stop: Stop,
    ) -> Result<Outcome> {
        let norm = stop.norm.of(b);
        let relative = stop.rtol.max(stop.atol / norm);
        let mut progress = Solving::new(self.args.report.quiet, relative, stop.limit((b.len(), x.len())));
        let mut watch = |watch| -> ControlFlow<()> { progress.at(watch) };
        cancel_on_interrupt();
        let outcome = system.solve_watched(ArrayView1::from(b), ArrayViewMut1::from(x), Some(&mut watch));
        solved();
        Ok(outcome?.clone())
    }

    fn print(&self, report: &Report) -> Result<()> {
        let args = self.args;
        let aside = args.output.as_deref() == Some(STANDARD);
        let json = args.report.json.as_deref();
        out::report_aside(args.report.quiet, aside, json, || report.summary(args.verbose), || report.json())?;
        if let Some(path) = &args.plot {
            plot::save(&plot::convergence(report), path)?;
        }
        Ok(())
    }
}
