//! Prepares a system: chooses whatever was left open, puts the matrix on the device and records the solve.
use crate::auto_solver::{Candidates, Open, is_refusal};
use crate::factor::{factor_of, lost, rounded, rounds, times, unless_lost};
use crate::order::Order;
use crate::prepared::{Parts, Prepared, sentences};
use crate::remembered_method::{self, Memory, REMEMBERED};
use crate::settings::{MethodChoice, PreconditionerChoice, combined};
use crate::stages::Stages;
use crate::{
    Chosen, LinearSystem, choose_method, choose_multigrid, choose_preconditioner, refine, tune_format,
};
use lacuna_engine::{Backend, Error, Format, LinOp, Matrix, Result, Scalar, check_process};
use lacuna_formats::{Csr, Pair, Stencil, Structure, choose_format, convert};
use lacuna_solvers::{
    Amg, METHODS, Method, Multigrid, Needs, Options, PRECONDITIONERS, Placed, Preconditioner, Solver, method,
    name_of, preconditioner,
};
use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

/// Why `stencil` is chosen beside `multigrid`.
const FOR_MULTIGRID: &str = "multigrid needs a stencil, of which nothing is stored";

/// Why what the caller named is chosen.
const ASKED_FOR: &str = "asked for";

/// A preconditioner that was asked for or chosen; no implementation for the identity.
type Kind<T> = Option<Box<dyn Preconditioner<T>>>;

/// See [`LinearSystem::prepare`].
pub(crate) fn prepare<T: Scalar, B: Backend>(system: LinearSystem<T>, dev: &mut B) -> Result<Prepared<T>> {
    check_process("preparing a solve")?;
    let mark = dev.mark();
    let prepared = if system.refines { refine::prepare(system, dev) } else { prepared(system, dev) };
    if prepared.is_err() {
        dev.release(mark);
    }
    prepared
}

/// A system that is solved in one precision. What is on the device stays there if it fails.
fn prepared<T: Scalar, B: Backend>(system: LinearSystem<T>, dev: &mut B) -> Result<Prepared<T>> {
    let mut stages = Stages::start();
    check_shapes(&system)?;
    let (asked_method, asked_preconditioner, asked_as) = combined(system.method, system.preconditioner)?;
    let mut remarks = Vec::new();
    let (given, rounding) = match system.format.as_deref() {
        Some(name) if rounds(name) => rounded(&system.a)?,
        _ => (system.a, None),
    };
    let automatic = matches!(asked_method, MethodChoice::Auto | MethodChoice::Tune);
    let (order, mut facts) = ordered(&given, &system.reorder, automatic)?;
    let on_host = dev.device().memory.is_none();
    let chooses_preconditioner = matches!(asked_preconditioner, PreconditionerChoice::Auto);
    let tunes = matches!(asked_method, MethodChoice::Tune);
    let memory = tunes.then(|| Memory::of(dev, &given));
    if tunes && !chooses_preconditioner {
        remarks.push(
            "tune recalls a method with its preconditioner: with one named, the method is chosen".into(),
        );
    }
    let recalls = memory.as_ref().filter(|_| chooses_preconditioner);
    let remembered = recalls.and_then(Memory::recall::<T>);
    let (mut chosen_method, method) = method_for(asked_method, remembered.as_ref(), &facts, &system.options)?;
    // A method that stands for another with a preconditioner.
    let names_other = |chosen: &mut Chosen| match asked_as {
        Some(name) if name != name_of(&chosen.name) => chosen.why = format!("for {name}"),
        _ => {}
    };
    names_other(&mut chosen_method);
    let may_be_gmres = automatic && given.rows() == given.cols();
    remarks.extend(without_cycles(&system.options, &*method, may_be_gmres));
    let definite = method.info().positive_definite();
    let adjoint = system.adjoint || method.needs_adjoint();
    // Found here, since the range of the numbers depends on it.
    let mut asked_preconditioner = asked_for(asked_preconditioner)?;
    if let Some((chosen, _)) = &mut asked_preconditioner {
        names_other(chosen);
    }
    let of_asked = asked_preconditioner.as_ref().and_then(|(_, kind)| kind.as_ref());
    let narrow = of_asked.is_some_and(|kind| kind.is_narrow());
    let factor = factor_of(&given, definite, narrow);
    let a = times(factor, facts.a.clone())?;
    let lost = lost::<T, T>(&given, factor.exponent);
    if factor.negative {
        facts.negate();
    }
    let (mut chosen_preconditioner, kind, stencil) = match asked_preconditioner {
        Some((chosen, kind)) => (chosen, kind, None),
        None => open_preconditioner(&a, &facts, remembered.as_ref(), &*method, on_host)?,
    };
    if let (Some(lost), true) = (&lost, chooses_preconditioner && kind.is_none()) {
        chosen_preconditioner.why.clone_from(lost);
    }
    let mut format =
        chosen_format(dev, &a, &facts, system.format.as_deref(), &chosen_preconditioner, kind.as_deref())?;
    stages.end("analysis");
    let on_grid = stencil.is_some();
    let (pair, norm_of_stencil) = stored(dev, &a, stencil, &mut format, adjoint)?;
    stages.end("matrix");
    let placed = match place(dev, kind, &a, pair.a) {
        // The values, or the coarse matrices that follow from them, do not suit what was chosen by their structure.
        Err(refused) if chooses_preconditioner && is_refusal(&refused) => {
            let refused = order.in_given_rows(refused);
            let simple = || choose_preconditioner(&a, facts.get(), method.info().hermitian());
            chosen_preconditioner =
                instead_of(&chosen_preconditioner, &refused, remembered.is_some(), simple);
            place(dev, preconditioner(&chosen_preconditioner.name)?, &a, pair.a)
        }
        placed => placed,
    };
    let placed = placed.map_err(|error| unless_lost(order.in_given_rows(error), &lost))?;
    stages.end("preconditioner");
    if placed.is_some() && method.least_squares() && a.rows() < a.cols() {
        let name = &chosen_preconditioner.name;
        remarks.push(format!(
            "fewer rows than columns: under {name}, M, the solution is the one of least |M^-1 x|, not of least |x|"
        ));
    }
    let m = placed.as_ref().map(|m| m as &dyn LinOp<T>);
    let operator: &dyn LinOp<T> = if adjoint { &pair } else { &pair.a };
    let mut solver = Solver::new(dev, operator, m, &*method, system.stop)?;
    solver.set_factor(factor);
    solver.set_narrow(narrow);
    stages.end("program");
    let multigrid = [Multigrid::NAME, Amg::NAME].contains(&&*chosen_preconditioner.name);
    let open = Open {
        method: automatic,
        preconditioner: chooses_preconditioner && !multigrid,
        cycle: system.options.restart.is_none(),
        definite,
        grid: on_grid,
    };
    let bytes = solver.program().bytes_per_iteration();
    let structure = (open.method || open.preconditioner).then(|| facts.get());
    let candidates = Candidates::new(&*method, open, &a, structure, bytes, on_host);
    drop(a);
    let mut choices = vec![chosen_method.sentence("method")];
    choices.extend(sentences(&chosen_preconditioner, placed.as_ref()));
    choices.insert(2, format.sentence("format"));
    if system.reorder != "none" || order.changes() {
        choices.push(order.chosen.sentence("order"));
    }
    if !on_host && solver.program().calls_host() {
        let why = "host functions run between operations, and each call transfers two vectors";
        choices.push(format!("execution operation by operation: {why}"));
    }
    Ok(Prepared::new(Parts {
        solver,
        candidates,
        memory,
        options: system.options,
        method: chosen_method,
        definite,
        narrow,
        least_squares: method.least_squares(),
        algorithm: method,
        preconditioner: chosen_preconditioner,
        chooses_preconditioner,
        format,
        given,
        rounding,
        remarks,
        factor,
        lost,
        norm: facts.mirrored_norm(factor.exponent).or(norm_of_stencil),
        refused: None,
        pair,
        adjoint,
        placed,
        columns: None,
        order,
        choices,
        stages: stages.ended(),
        stop: system.stop,
        x0: system.x0,
    }))
}

/// Checks what does not depend on the method.
fn check_shapes<T: Scalar>(system: &LinearSystem<T>) -> Result<()> {
    let (rows, cols) = (system.a.rows(), system.a.cols());
    if let Some(x0) = &system.x0 {
        Error::check_length("solve", "x0", cols, x0.len())?;
    }
    if rows != cols && system.reorder != "none" {
        let expected = "a square matrix for an order of its rows and columns".into();
        return Err(Error::Shape { operation: "solve".into(), expected, got: (rows, cols) });
    }
    Ok(())
}

/// The order by name, or against zeros on the diagonal if the method is chosen too; the matrix in that order.
fn ordered<T: Scalar>(given: &Arc<Csr<T>>, name: &str, automatic: bool) -> Result<(Order, Facts<T>)> {
    let (order, arranged) = Order::new(given.clone(), name)?;
    let facts = Facts::of(arranged);
    if automatic
        && !order.changes()
        && let Some((moved, arranged)) = Order::against_zeros(&facts.a, facts.get())?
    {
        return Ok((moved, Facts::of(arranged)));
    }
    Ok((order, facts))
}

/// The method that was asked for, that is remembered, or that suits the structure.
fn method_for<T: Scalar>(
    asked: MethodChoice<T>,
    remembered: Option<&remembered_method::Pair>,
    facts: &Facts<T>,
    options: &Options,
) -> Result<(Chosen, Box<dyn Method<T>>)> {
    let chosen = match asked {
        MethodChoice::Own(own) => return Ok((Chosen::new(own.name(), ASKED_FOR), own)),
        MethodChoice::Named(name) => Chosen::new(&name, ASKED_FOR),
        MethodChoice::Auto | MethodChoice::Tune => match remembered {
            Some((name, _)) => Chosen::new(name, REMEMBERED),
            None => choose_method(facts.get(), T::KIND.is_complex()),
        },
    };
    let method = method(&chosen.name, options)?;
    Ok((chosen, method))
}

/// What is said of a cycle that was asked for and a method without cycles.
fn without_cycles<T: Scalar>(
    options: &Options,
    method: &dyn Method<T>,
    may_be_gmres: bool,
) -> Option<String> {
    let (cycle, name) = (options.restart?, method.name());
    let info = METHODS.iter().find(|info| info.name == name)?;
    let has_cycles = info.options.iter().any(|option| option.key == "restart");
    let later = if may_be_gmres { "; gmres takes it, should that follow" } else { "" };
    (!has_cycles).then(|| format!("restart {cycle} has no effect on {name}, which has no cycles{later}"))
}

/// The preconditioner that was asked for; `None` if it was left open.
fn asked_for<T: Scalar>(asked: PreconditionerChoice<T>) -> Result<Option<(Chosen, Kind<T>)>> {
    Ok(match asked {
        PreconditionerChoice::Auto => None,
        PreconditionerChoice::Named(name) => Some((Chosen::new(&name, ASKED_FOR), preconditioner(&name)?)),
        PreconditionerChoice::Own(own) => Some((Chosen::new(&own.name(), ASKED_FOR), Some(own))),
    })
}

/// The preconditioner that is remembered, or that suits the structure, with the stencil of the matrix if that was looked for and
/// found.
fn open_preconditioner<T: Scalar>(
    a: &Csr<T>,
    facts: &Facts<T>,
    remembered: Option<&remembered_method::Pair>,
    method: &dyn Method<T>,
    on_host: bool,
) -> Result<(Chosen, Kind<T>, Option<Stencil<T>>)> {
    if let Some((_, name)) = remembered {
        return Ok((Chosen::new(name, REMEMBERED), preconditioner(name)?, None));
    }
    if method.least_squares() {
        let why = match method.info().needs {
            Needs::Range => "the method takes none, which would change the norm that it minimises",
            _ => "least squares; column-scaling evens out columns of different norms",
        };
        return Ok((Chosen::new("none", why), None, None));
    }
    let info = method.info();
    let stencil = info.positive_definite().then(|| Multigrid::stencil(a)).flatten();
    let grid = stencil.as_ref().map(Stencil::size);
    let multigrid =
        info.positive_definite().then(|| choose_multigrid(a, facts.get(), grid, on_host)).flatten();
    let chosen = multigrid.unwrap_or_else(|| choose_preconditioner(a, facts.get(), info.hermitian()));
    let kind = preconditioner(&chosen.name)?;
    Ok((chosen, kind, stencil))
}

/// The choice in place of a preconditioner that was remembered, or chosen by structure, and refused.
fn instead_of(before: &Chosen, refused: &Error, remembered: bool, simple: impl FnOnce() -> Chosen) -> Chosen {
    let how = if remembered { "remembered but " } else { "" };
    let why = format!("{} is {how}not available: {refused}", before.name);
    if remembered {
        return Chosen::new(PRECONDITIONERS[0].name, why);
    }
    let simple = simple();
    Chosen::new(&simple.name, format!("{why}; {}", simple.why))
}

/// A matrix, and its structure once that is asked for.
struct Facts<T: Scalar> {
    a: Arc<Csr<T>>,
    structure: OnceCell<Structure>,
    /// Whether the structure told is that of `−A`.
    negated: bool,
}

impl<T: Scalar> Facts<T> {
    fn of(a: Arc<Csr<T>>) -> Self {
        Facts { a, structure: OnceCell::new(), negated: false }
    }

    fn get(&self) -> &Structure {
        self.structure.get_or_init(|| {
            let structure = Structure::of(&*self.a);
            if self.negated { structure.negated() } else { structure }
        })
    }

    fn negate(&mut self) {
        self.negated = true;
        if let Some(structure) = self.structure.take() {
            self.structure = structure.negated().into();
        }
    }

    /// The norm of the matrix times `2^exponent`, if its structure was asked for and it mirrors itself: column sums then
    /// follow from row sums.
    fn mirrored_norm(&self, exponent: i32) -> Option<f64> {
        let mirrored = |s: &&Structure| s.hermitian || s.symmetric || s.skew_symmetric;
        let mirrored = self.structure.get().filter(mirrored);
        mirrored.map(|s| s.norm_inf.scale_by_power_of_two(exponent))
    }
}

/// The format asked for, or the best one for the matrix beside its preconditioner.
fn chosen_format<T: Scalar, B: Backend>(
    dev: &mut B,
    a: &Arc<Csr<T>>,
    facts: &Facts<T>,
    asked: Option<&str>,
    chosen: &Chosen,
    kind: Option<&dyn Preconditioner<T>>,
) -> Result<Chosen> {
    let on_host = dev.device().memory.is_none();
    Ok(match asked {
        Some("tune") => {
            let tuned = tune_format(dev, a, facts.get())?;
            Chosen::new(tuned.name(), tuned.why())
        }
        Some(name) if rounds(name) => {
            let narrow = T::Narrow::KIND.name();
            Chosen::new(name, format!("asked for; the system solved has its values rounded to {narrow}"))
        }
        Some(name) => Chosen::new(name, ASKED_FOR),
        None if on_host && kind.is_some_and(|kind| kind.outweighs_product()) => {
            Chosen::new("csr", "beside this preconditioner, another format saves less than it costs to make")
        }
        None if name_of(&chosen.name) == Multigrid::NAME => Chosen::new("stencil", FOR_MULTIGRID),
        None => match dev.formats(a.rows(), Format::bytes(&**a)) {
            formats if formats.len() > 1 => {
                let (name, why) = choose_format(a, facts.get(), formats);
                Chosen::new(name, why)
            }
            _ => Chosen::new("csr", "the only format the backend has"),
        },
    })
}

/// The matrix, which may be a known stencil, on the device in a format, with its adjoint if that is needed, and a bound
/// of its norm where the format knows one.
fn stored<T: Scalar, B: Backend>(
    dev: &mut B,
    a: &Arc<Csr<T>>,
    stencil: Option<Stencil<T>>,
    format: &mut Chosen,
    adjoint: bool,
) -> Result<(Pair<T>, Option<f64>)> {
    // If the matrix is no stencil, `multigrid` says why.
    let for_multigrid = format.why == FOR_MULTIGRID;
    let stencil = if for_multigrid { stencil.or_else(|| Stencil::from_csr(a).ok()) } else { stencil };
    if for_multigrid && stencil.is_none() {
        *format = Chosen::new("csr", "the matrix is no stencil");
    }
    if adjoint {
        return Ok((Pair::new(dev, a, &format.name)?, None));
    }
    let stored: Arc<dyn Format<T>> = match stencil.filter(|_| format.name == "stencil") {
        Some(stencil) => Arc::new(stencil),
        None => convert(a, &format.name)?,
    };
    let stencil = (stored.clone() as Arc<dyn Any + Send + Sync>).downcast::<Stencil<T>>();
    let norm = stencil.ok().map(|stencil| stencil.norm_bound());
    let stored = dev.matrix(stored)?;
    Ok((Pair { a: stored, adjoint: stored }, norm))
}

/// Sets up a preconditioner and puts it on the device; nothing stays there if that fails.
fn place<T: Scalar, B: Backend>(
    dev: &mut B,
    kind: Kind<T>,
    a: &Arc<Csr<T>>,
    stored: Matrix<T>,
) -> Result<Option<Placed<T>>> {
    let mark = dev.mark();
    let placed = kind.map(|kind| Placed::new(dev, kind, a, stored)).transpose();
    if placed.is_err() {
        dev.release(mark);
    }
    placed
}
