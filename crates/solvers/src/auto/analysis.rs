//! Analyses a system: the order, the method, the preconditioner and the format, before anything is on a device.
use super::factor::{round, rounds};
use super::order::Order;
use super::plan::{ASKED_FOR, Asked, Plan, plan};
use super::request::combined;
use super::sides::scaled;
use super::stages::Stages;
use super::{Chosen, Facts, MethodChoice, PreconditionerChoice, Request};
use crate::{METHODS, Method, Multigrid, Observer, Options, Preconditioner, Stop};
use crate::{method, name_of, preconditioner};
use lacuna_engine::{Cost, Error, Result, Scalar};
use lacuna_formats::algebra::lost_symmetry;
use lacuna_formats::{Csr, Stencil, Structure, choose_format, choose_stencil, interrupt};
use std::sync::Arc;

/// Why `stencil` is chosen beside `multigrid`.
const FOR_MULTIGRID: &str = "multigrid needs a stencil, of which nothing is stored";

/// Entries below which a solve or two take less time than to choose another format: with 4400, a product of a grid in `csr` takes 1.4
/// microseconds more than as a stencil, and the choice 150 (Intel Xeon, one thread).
const QUICK: usize = 6000;

/// A preconditioner that was asked for or chosen; no implementation for the identity.
pub(super) type Made<T> = Option<Box<dyn Preconditioner<T>>>;

/// A system whose method, preconditioner and order are chosen, and which is not on a device yet.
pub struct Analysis<T: Scalar> {
    pub(super) facts: Facts<T>,
    pub(super) order: Order,
    pub(super) plan: Plan,
    pub(super) method: Box<dyn Method<T>>,
    pub(super) chosen_method: Chosen,
    pub(super) preconditioner: Made<T>,
    pub(super) chosen_preconditioner: Chosen,
    /// Whether the preconditioner was left open.
    pub(super) open_preconditioner: bool,
    /// The preconditioner that was asked for by name.
    pub(super) asked_preconditioner: Option<String>,
    /// Complete factors that were counted and do not come first.
    pub(super) counted: Made<T>,
    /// The format, if it is settled.
    pub(super) format: Option<Chosen>,
    /// The matrix as a stencil, once that is chosen.
    pub(super) stencil: Option<Stencil<T>>,
    pub(super) adjoint: bool,
    pub(super) options: Options,
    pub(super) stop: Stop,
    pub(super) strict: bool,
    /// Whether an open format of a small matrix is `csr` without a look at others.
    quick: bool,
    pub(super) observer: Option<Observer<T>>,
    /// What is said of the matrix if its format rounds values.
    pub(super) rounding: Option<String>,
    /// What every outcome notes, besides.
    pub(super) remarks: Vec<String>,
    /// Whether the order is reported.
    pub(super) reports_order: bool,
    pub(super) stages: Stages,
}

impl<T: Scalar> Analysis<T> {
    /// Chooses what a request leaves open, for a solve on the host or on a device with memory of its own.
    ///
    /// # Errors
    /// [`Error::Shape`] for an order of a matrix that is not square; [`Error::Argument`] for an unknown name or
    /// option; [`Error::Entry`] for a value that is not finite in a format that rounds; those of [`interrupt::check`].
    pub fn new(request: Request<T>, on_host: bool) -> Result<Self> {
        let stages = Stages::start();
        check_shape(&request)?;
        let Request { a, format, reorder, scale, adjoint, options, stop, remembered, .. } = request;
        let (strict, quick, observer) = (request.strict, request.quick, request.observer);
        let (asked_method, asked_preconditioner, asked_as) =
            combined(request.method, request.preconditioner)?;
        let (a, rounding) = as_stored(a, format.as_deref())?;
        let automatic = asked_method.is_open();
        // An operator as preconditioner is that of the matrix as it is given.
        let by_operator = asked_preconditioner.is_operator();
        let asked_by_name = match &asked_preconditioner {
            PreconditionerChoice::Named(name) => Some(name.clone()),
            _ => None,
        };
        interrupt::check()?;
        let (mut order, mut facts) = ordered(a, &reorder, &scale, on_host)?;
        interrupt::check()?;
        let (method_name, own_method) = named_method(asked_method, &options)?;
        let (preconditioner_name, own) = named_preconditioner(asked_preconditioner)?;
        let asked = Asked {
            method: method_name.as_deref().zip(own_method.as_deref()),
            preconditioner: preconditioner_name.as_deref(),
            narrow: own.as_ref().is_some_and(|kind| kind.is_narrow()),
            remembered: remembered.as_ref(),
            options: &options,
        };
        let given = facts.matrix().clone();
        let mut plan = plan(&mut facts, &asked)?;
        interrupt::check()?;
        // Complete factors find an order of their own.
        if automatic
            && !by_operator
            && !plan.first.is_direct()
            && !order.moves()
            && let Some((moved, arranged)) = Order::against_zeros(&given, facts.structure())?
        {
            order = moved.with_scales_of(order);
            facts = Facts::of_moved(arranged, &facts);
            interrupt::check()?;
            plan = super::plan(&mut facts, &asked)?;
            interrupt::check()?;
        }
        if by_operator && (order.changes() || !facts.factor().is_one()) {
            let operation = "an operator as preconditioner".into();
            let message =
                "the matrix is solved in another order or times factors, which the operator does not follow"
                    .into();
            return Err(Error::Unsupported { operation, message });
        }
        let (mut chosen_method, mut chosen_preconditioner) = plan.first.chosen();
        let method = own_method.map_or_else(|| method(&chosen_method.name, &options), Ok)?;
        let open_preconditioner = preconditioner_name.is_none();
        let mut counted = facts.take_factors().map(|counted| counted.made);
        let preconditioner = match counted.take_if(|_| plan.first.is_direct()) {
            None if open_preconditioner => preconditioner(&chosen_preconditioner.name)?,
            None => own,
            direct => direct,
        };
        if let Some(name) = asked_as {
            for chosen in [&mut chosen_method, &mut chosen_preconditioner] {
                chosen.stands_for(name);
            }
        }
        if let (Some(lost), true) = (facts.lost(), open_preconditioner && preconditioner.is_none()) {
            chosen_preconditioner.why.clone_from(lost);
        }
        let may_be_gmres = automatic && facts.matrix().rows() == facts.matrix().cols();
        let unsymmetric = if automatic { by_rounding(&facts) } else { None };
        let remarks =
            without_cycles(&options, &*method, may_be_gmres).into_iter().chain(unsymmetric).collect();
        Ok(Analysis {
            format: format.map(|name| asked_format::<T>(&name)),
            stencil: None,
            adjoint: adjoint || method.needs_adjoint(),
            reports_order: reorder != "none" || order.moves(),
            facts,
            order,
            plan,
            method,
            chosen_method,
            preconditioner,
            chosen_preconditioner,
            open_preconditioner,
            asked_preconditioner: asked_by_name,
            counted,
            options,
            stop,
            strict,
            quick,
            observer,
            rounding,
            remarks,
            stages,
        })
    }

    /// The matrix as it will be solved: in its order, times its factor.
    pub fn matrix(&self) -> &Arc<Csr<T>> {
        self.facts.matrix()
    }

    /// The structure of that matrix.
    pub fn structure(&self) -> &Structure {
        self.facts.structure()
    }

    /// Settles the format.
    pub fn set_format(&mut self, format: Chosen) {
        self.format = Some(format);
    }

    /// The format that is settled, or the best one for the matrix beside its preconditioner, by what products cost in each format.
    pub(super) fn choose_format(&mut self, formats: &[Cost]) -> Chosen {
        let outweighs = self.preconditioner.as_ref().is_some_and(|kind| kind.outweighs_product());
        match &self.format {
            Some(format) => format.clone(),
            None if self.facts.on_host() && outweighs => Chosen::new(
                "csr",
                "with this preconditioner, another format would save less time than it takes to make",
            ),
            None if self.is_for_multigrid() => Chosen::new("stencil", FOR_MULTIGRID),
            None if self.quick && self.facts.on_host() && self.matrix().nnz() < QUICK => Chosen::new(
                "csr",
                "for so small a matrix, another format would save less time than it takes to choose",
            ),
            None if formats.len() > 1 => {
                if let Some((stencil, why)) = choose_stencil(self.matrix(), formats) {
                    self.stencil = Some(stencil);
                    return Chosen::new("stencil", why);
                }
                let (name, why) = choose_format(self.matrix(), self.structure(), formats);
                Chosen::new(name, why)
            }
            None => Chosen::new("csr", "the only format the backend has"),
        }
    }

    /// Whether the format is open, and `stencil` is for the preconditioner.
    pub(super) fn is_for_multigrid(&self) -> bool {
        self.format.is_none() && name_of(&self.chosen_preconditioner.name) == Multigrid::NAME
    }
}

/// Checks what does not depend on the method.
fn check_shape<T: Scalar>(request: &Request<T>) -> Result<()> {
    let got @ (rows, cols) = (request.a.rows(), request.a.cols());
    if rows != cols && request.reorder != "none" {
        let expected = "a square matrix for an order of its rows and columns".into();
        return Err(Error::Shape { operation: "solve".into(), expected, got });
    }
    Ok(())
}

/// The matrix with the values that its format stores, and what is said of it if these are others.
fn as_stored<T: Scalar>(a: Arc<Csr<T>>, format: Option<&str>) -> Result<(Arc<Csr<T>>, Option<String>)> {
    if !format.is_some_and(rounds) {
        return Ok((a, None));
    }
    let mut values = a.values().to_vec();
    let rounding = round(&mut values);
    Ok((Arc::new(a.with_values(values)?), rounding))
}

/// The scales and the order by name; the matrix with both.
fn ordered<T: Scalar>(
    given: Arc<Csr<T>>,
    name: &str,
    scale: &str,
    on_host: bool,
) -> Result<(Order, Facts<T>)> {
    let (scaled, given) = scaled(given, scale)?;
    interrupt::check()?;
    let (order, arranged) = Order::new(given, name)?;
    Ok((order.of_scaled(scaled), Facts::of(arranged, on_host)))
}

/// The method that was asked for, with its name.
#[expect(clippy::type_complexity, reason = "a name and what it names")]
pub(super) fn named_method<T: Scalar>(
    asked: MethodChoice<T>,
    options: &Options,
) -> Result<(Option<String>, Option<Box<dyn Method<T>>>)> {
    Ok(match asked {
        MethodChoice::Auto | MethodChoice::Tune => (None, None),
        MethodChoice::Named(name) => {
            let made = method(&name, options)?;
            (Some(name), Some(made))
        }
        MethodChoice::Own(own) => (Some(own.name().into()), Some(own)),
    })
}

/// The preconditioner that was asked for, with its name.
fn named_preconditioner<T: Scalar>(asked: PreconditionerChoice<T>) -> Result<(Option<String>, Made<T>)> {
    Ok(match asked {
        PreconditionerChoice::Auto => (None, None),
        PreconditionerChoice::Named(name) => {
            let made = preconditioner(&name)?;
            (Some(name), made)
        }
        PreconditionerChoice::Own(own) => (Some(own.name().into()), Some(own)),
    })
}

/// A format that was asked for.
fn asked_format<T: Scalar>(name: &str) -> Chosen {
    let narrow = T::Narrow::KIND.name();
    match rounds(name) {
        true => Chosen::new(name, format!("asked for; the system solved has its values rounded to {narrow}")),
        false => Chosen::new(name, ASKED_FOR),
    }
}

/// What is said of a matrix that is not Hermitian by rounding alone.
fn by_rounding<T: Scalar>(facts: &Facts<T>) -> Option<String> {
    let s = facts.structure();
    let off =
        if s.pattern_symmetric && !s.hermitian { lost_symmetry(&**facts.matrix())? } else { return None };
    let kind = if T::KIND.is_complex() { "Hermitian" } else { "symmetric" };
    let method = if s.diagonal_positive { "cg" } else { "minres" };
    Some(format!(
        "the matrix is not {kind} by rounding alone: entries differ from their mirror images by {off:.1e} of themselves at most; its \
         {kind} part (`Csr::hermitian_part`) is, and {method} solves either"
    ))
}

/// What is said of a cycle that was asked for and a method without cycles.
pub(super) fn without_cycles<T: Scalar>(
    options: &Options,
    method: &dyn Method<T>,
    may_be_gmres: bool,
) -> Option<String> {
    let (cycle, name) = (options.restart?, method.name());
    let info = METHODS.iter().find(|info| info.name == name)?;
    let has_cycles = info.options.iter().any(|option| option.key == "restart");
    let later = if may_be_gmres { "; gmres uses it if it follows" } else { "" };
    (!has_cycles).then(|| format!("restart {cycle} has no effect on {name}, which has no cycles{later}"))
}
