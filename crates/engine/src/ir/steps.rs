//! Operations that repeat on the next vectors of a basis and the next cells of a run, stored once.
use crate::Vector;
use crate::expr::cells::Instr;
use crate::ir::lower::{Coefficient, Sweep};
use crate::ir::operands::Operand;
use crate::ir::operation::Op;

/// Has operands: numbers that refer to vectors and cells.
pub trait Operands {
    /// Calls `each` with every slot, cell, count and column, in an order that depends only on the shape.
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32));
}

/// Initial capacity for numbers.
const NUMBERS: usize = 128;

/// The increment of each operand from one step to the next.
#[derive(Clone, Debug)]
pub struct Stride(Vec<u32>);

impl Stride {
    /// The stride between two consecutive steps; `None` if they differ in the number of operands.
    pub fn between<N: Operands + ?Sized>(first: &mut N, second: &mut N) -> Option<Self> {
        let (mut stride, mut count) = (Vec::with_capacity(NUMBERS), 0);
        first.numbers(&mut |number| stride.push(*number));
        second.numbers(&mut |number| {
            if let Some(stride) = stride.get_mut(count) {
                *stride = number.wrapping_sub(*stride);
            }
            count += 1;
        });
        (stride.len() == count).then_some(Stride(stride))
    }
    /// Advances operands by `steps` steps; a wrapped negative number moves them back.
    #[inline]
    pub fn add(&self, to: &mut (impl Operands + ?Sized), steps: u32) {
        let mut stride = self.0.iter();
        to.numbers(&mut |number| {
            let stride = stride.next().copied().unwrap_or(0);
            *number = number.wrapping_add(stride.wrapping_mul(steps));
        });
    }
    /// Whether no operand of `first` wraps around on its way to `later`, `steps` steps on: each of them then lies
    /// between the two at every step.
    fn is_straight<N: Operands + ?Sized>(&self, first: &mut N, steps: u32, later: &mut N) -> bool {
        let (mut from, mut to) = (Vec::with_capacity(NUMBERS), Vec::with_capacity(NUMBERS));
        first.numbers(&mut |number| from.push(i64::from(*number)));
        later.numbers(&mut |number| to.push(i64::from(*number)));
        let way = |stride: u32| i64::from(stride.cast_signed()).saturating_mul(i64::from(steps));
        from.iter().zip(&to).zip(&self.0).all(|((from, to), stride)| to - from == way(*stride))
    }
    /// Whether `later` equals `first` advanced by `steps` steps.
    pub fn leads<N: Operands + PartialEq + ?Sized>(&self, first: &N, steps: u32, later: &mut N) -> bool {
        self.add(later, steps.wrapping_neg());
        let same = later == first;
        self.add(later, steps);
        same
    }
}

/// The operations of one step, which run `count` times with operands that grow by a constant stride.
#[derive(Clone, Debug)]
pub struct Steps {
    count: usize,
    first: Vec<Op>,
    second: Vec<Op>,
    last: Vec<Op>,
    stride: Stride,
}

impl Steps {
    /// From the operations of steps 0, 1 and `count − 1`; `None` if these do not determine the steps between.
    pub(crate) fn new(count: usize, steps: [Vec<Op>; 3]) -> Option<Self> {
        let [mut first, mut second, mut last] = steps;
        let stride = Stride::between(&mut *first, &mut *second)?;
        let behind = u32::try_from(count).ok()?.checked_sub(1)?;
        let even = stride.leads(&*first, 1, &mut *second)
            && stride.leads(&*first, behind, &mut *last)
            && stride.is_straight(&mut *first, behind, &mut *last)
            && in_like_order(&first, &last);
        even.then_some(Steps { count, first, second, last, stride })
    }

    /// Number of steps.
    pub fn count(&self) -> usize {
        self.count
    }
    /// The operations of a step.
    pub fn at(&self, step: usize) -> Vec<Op> {
        let mut ops = self.first.clone();
        self.stride.add(&mut *ops, step as u32);
        ops
    }
    /// The operations of the first step.
    pub fn first(&self) -> &[Op] {
        &self.first
    }
    /// The operations of the second step.
    pub fn second(&self) -> &[Op] {
        &self.second
    }
    /// The operations of the last step. What is live at the first and the last step is live at all steps
    /// between.
    pub fn last(&self) -> &[Op] {
        &self.last
    }
}

/// Whether the vectors and cells within each operation of `first` have the same order relations (equal,
/// before, after) as those of `last`. Operands grow by constant strides, so relations that hold at the first
/// and the last step hold at every step between, and so does the validity of the operations.
fn in_like_order(first: &[Op], last: &[Op]) -> bool {
    let (mut of_first, mut of_last) = (Names::default(), Names::default());
    first.iter().zip(last).all(|(first, last)| {
        of_first.list(first);
        of_last.list(last);
        same_order(&of_first.vectors, &of_last.vectors) && same_order(&of_first.cells, &of_last.cells)
    })
}

/// Whether each pair of numbers compares like the pair at the same positions in the other list.
fn same_order(first: &[u32], last: &[u32]) -> bool {
    let alike = |i: usize, j: usize| first[i].cmp(&first[j]) == last[i].cmp(&last[j]);
    first.len() == last.len() && (0..first.len()).all(|i| (0..i).all(|j| alike(i, j)))
}

/// The vectors and cells that an operation uses.
#[derive(Default)]
struct Names {
    vectors: Vec<u32>,
    cells: Vec<u32>,
}

impl Names {
    fn list(&mut self, op: &Op) {
        let Names { vectors, cells } = self;
        vectors.clear();
        cells.clear();
        for operand in op.kind.operands() {
            match operand {
                Operand::Matrix(_) => {}
                Operand::Vector(v, _) => vectors.push(v.slot),
                Operand::Basis(v, _) => vectors.extend([v.first, v.first.wrapping_add(v.columns as u32)]),
                Operand::Cells(h, _) => cells.extend([h.first, h.first.wrapping_add(h.count)]),
            }
        }
        let Sweep { before, updates, dots, after, .. } = &op.sweep;
        vectors.extend(op.sweep.mentions().map(|(v, _)| v.slot));
        cells.extend(dots.iter().map(|dot| dot.cell));
        cells.extend(updates.iter().flat_map(|u| &u.terms).filter_map(|term| match term.coefficient {
            Coefficient::Cell(cell) => Some(cell),
            Coefficient::One | Coefficient::MinusOne => None,
        }));
        for instr in before.iter().chain(after) {
            match *instr {
                Instr::AddCells { dst, a, count } => {
                    cells.extend([dst, dst.wrapping_add(count), a, a.wrapping_add(count)])
                }
                _ => cells.extend(instr.reads().chain(instr.writes())),
            }
        }
    }
}

impl<N: Operands> Operands for [N] {
    #[inline]
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        self.iter_mut().for_each(|one| one.numbers(each));
    }
}

impl Operands for Instr {
    #[inline]
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        match self {
            Instr::Unary { dst, a, .. } => [dst, a].into_iter().for_each(each),
            Instr::Binary { dst, a, b, .. } => [dst, a, b].into_iter().for_each(each),
            Instr::AddCells { dst, a, count } => [dst, a, count].into_iter().for_each(each),
            Instr::Stop { a, b, .. } | Instr::Leave { a, b, .. } | Instr::OnlyIf { a, b, .. } => {
                [a, b].into_iter().for_each(each);
            }
            Instr::Count { rr } => each(rr),
            Instr::Confirm { rr, target, last, shrink } => {
                [rr, target, last, shrink].into_iter().for_each(each);
            }
            Instr::Rotate { j, rr, .. } => [j, rr].into_iter().for_each(each),
            Instr::BackSubstitute { .. } => {}
        }
    }
}

impl Operands for Op {
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        self.kind.numbers(each);
        let Sweep { before, updates, dots, after, cells, .. } = &mut self.sweep;
        before.iter_mut().for_each(|instr| instr.numbers(each));
        for update in updates {
            for term in &mut update.terms {
                if let Coefficient::Cell(cell) = &mut term.coefficient {
                    each(cell);
                }
                let slots = |v: &mut Vector| each(&mut v.slot);
                term.factor.iter_mut().chain([&mut term.vector]).for_each(slots);
            }
            each(&mut update.dst.slot);
        }
        for dot in dots {
            let vectors = [&mut dot.a, &mut dot.b].into_iter().chain(&mut dot.factor);
            let slots = vectors.map(|v| &mut v.slot);
            [&mut dot.cell].into_iter().chain(slots).for_each(&mut *each);
        }
        after.iter_mut().for_each(|instr| instr.numbers(each));
        cells.iter_mut().for_each(|cell| each(&mut cell.index));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Basis, Cells, Device, Op, Pass, Program, Reason, Recorder, Reference, Section};

    type Body = fn(&mut Recorder<'_, f64>, Basis<f64>, Cells<f64>, usize);

    /// A program of `count` steps, rolled and unrolled.
    fn both(count: usize, body: Body) -> [Program; 2] {
        let dev = Device::new(Reference::new()).scope();
        let v = dev.basis::<f64>(5, 9).unwrap();
        let c = dev.run_of_cells::<f64>(100).unwrap();
        [true, false].map(|steps| {
            let mut k = Recorder::new(&dev, "steps");
            k.each(|k| {
                match steps {
                    true => k.steps(count, |k, j| body(k, v, c, j)),
                    false => (0..count).for_each(|j| body(k, v, c, j)),
                }
                k.multi_axpy_dot(
                    Pass::new("end").count(c.at(0)).stop_if(c.at(0).not_positive(), Reason::Stagnated),
                );
            });
            k.finish().unwrap()
        })
    }

    fn ops(program: &Program) -> &[Op] {
        program.section(Section::Each)
    }

    /// Projects the next column on the previous ones.
    fn even(k: &mut Recorder<'_, f64>, v: Basis<f64>, c: Cells<f64>, j: usize) {
        let h = Cells::new(c.first + 1 + 9 * j as u32, j as u32 + 1, c.serial);
        let (of, next) = (v.column(j), v.column(j + 1));
        k.multi_axpy_dot(Pass::new("scale").set(next, c.at(0) * of));
        k.basis_dot(v, next, h);
        k.basis_axpy(v, h, next, Pass::new("norm").dot(c.at(90 + j), next, next).add_cells(h, h));
        k.multi_axpy_dot(Pass::new("leave").leave_if(c.at(90 + j).le(c.at(0))));
    }

    #[test]
    fn steps_unroll_to_what_was_recorded() {
        for count in [1, 3, 4, 8] {
            let [rolled, plain] = both(count, even);
            assert_eq!(rolled.steps().is_some(), count > 3, "{count}");
            assert_eq!(ops(&rolled), ops(&plain), "{count}");
            assert_eq!(rolled.bytes_of(1), plain.bytes_of(1));
        }
    }

    /// A program whose steps are not regular must not be rolled.
    fn stays_as_it_was(body: Body) {
        let [rolled, plain] = both(8, body);
        assert!(rolled.steps().is_none());
        assert_eq!(ops(&rolled), ops(&plain));
    }

    #[test]
    fn steps_of_another_shape_are_kept_one_by_one() {
        stays_as_it_was(|k, v, c, j| {
            (0..=j)
                .for_each(|i| k.multi_axpy_dot(Pass::new("each").dot(c.at(i + 1), v.column(i), v.column(8))));
        });
        stays_as_it_was(|k, v, c, j| {
            k.multi_axpy_dot(Pass::new("square").set(v.column(8), c.at(j * j) * v.column(0)));
        });
    }

    #[test]
    fn a_step_that_meets_a_vector_or_cell_of_its_own_on_the_way_is_no_pattern() {
        stays_as_it_was(|k, v, c, j| {
            k.multi_axpy_dot(Pass::new("meets").set(v.column(4), v.column(j)).dot(
                c.at(1),
                v.column(4),
                v.column(j),
            ));
        });
        stays_as_it_was(|k, v, c, j| {
            let sum = Pass::new("sum").dot(c.at(j + 10), v.column(0), v.column(0));
            k.multi_axpy_dot(sum);
            k.multi_axpy_dot(Pass::new("uses").set(v.column(1), c.at(14) * v.column(0)).dot(
                c.at(j + 10),
                v.column(1),
                v.column(0),
            ));
        });
    }

    #[test]
    fn steps_elsewhere_than_at_the_beginning_are_kept_one_by_one() {
        let dev = Device::new(Reference::new()).scope();
        let v = dev.basis::<f64>(5, 9).unwrap();
        let c = dev.run_of_cells::<f64>(100).unwrap();
        let mut k = Recorder::new(&dev, "late");
        k.restart(|k| k.steps(8, |k, j| even(k, v, c, j)));
        k.each(|k| {
            k.multi_axpy_dot(Pass::new("begin").count(c.at(0)));
            k.steps(8, |k, j| even(k, v, c, j));
        });
        let program = k.finish().unwrap();
        assert!(program.steps().is_none());
        assert_eq!(program.restart[1..], ops(&program)[1..]);
    }
}
