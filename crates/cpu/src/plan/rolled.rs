//! A rolled loop: one step, and the stride of its operands from step to step.
use crate::plan::compile::work;
use crate::plan::step::Step;
use lacuna_engine::lower::Coefficient;
use lacuna_engine::{Operands, Stride};

/// A rolled loop, with its operands at one of its steps.
#[derive(Clone)]
pub(crate) struct Rolled {
    pub(crate) count: u32,
    /// Entries and elements touched by the last step.
    pub(crate) work: usize,
    steps: Vec<Step>,
    stride: Stride,
    at: u32,
}

impl Rolled {
    /// From the first and second of `count` steps; `None` if they differ in shape.
    pub(crate) fn new(count: usize, [mut first, mut second]: [Vec<Step>; 2]) -> Option<Self> {
        let count = u32::try_from(count).ok()?;
        let stride = Stride::between(&mut *first, &mut *second)?;
        let mut rolled = Rolled { count, work: 0, steps: first, stride, at: 0 };
        rolled.at(count - 1);
        rolled.work = work(&rolled.steps);
        Some(rolled)
    }
    /// The operations of the step.
    pub(crate) fn at(&mut self, step: u32) -> &[Step] {
        if step != self.at {
            self.stride.add(&mut *self.steps, step.wrapping_sub(self.at)); // advance all of them now: the loop may end early
            self.at = step;
        }
        &self.steps
    }
}

impl Operands for Step {
    #[inline]
    fn numbers(&mut self, each: &mut impl FnMut(&mut u32)) {
        self.kind.numbers(each);
        self.before.iter_mut().for_each(|instr| instr.numbers(each));
        for update in &mut self.updates {
            for term in &mut update.terms {
                if let Coefficient::Cell(cell) = &mut term.coefficient {
                    each(cell);
                }
                term.factor.iter_mut().chain([&mut term.vector]).for_each(&mut *each);
            }
            each(&mut update.dst);
        }
        for dot in &mut self.dots {
            [&mut dot.cell, &mut dot.a, &mut dot.b].into_iter().chain(&mut dot.factor).for_each(&mut *each);
        }
        self.fused.iter_mut().for_each(|fused| fused.numbers(each));
        self.after.iter_mut().for_each(|instr| instr.numbers(each));
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::compile::Compiled;
    use crate::plan::step::StepKind;
    use lacuna_engine::{Cells, Device, Operands, Pass, Recorder, Reference};

    #[test]
    fn steps_do_not_depend_on_the_step_before() {
        let dev = Device::new(Reference::new()).scope();
        let v = dev.basis::<f64>(5, 9).unwrap();
        let c = dev.run_of_cells::<f64>(99).unwrap();
        let mut k = Recorder::new(&dev, "rolled");
        k.each(|k| {
            k.steps(8, |k, j| {
                let h = Cells::new(c.first + 9 * j as u32, j as u32 + 1, c.serial);
                k.basis_dot(v, v.column(j + 1), h);
                k.basis_axpy(
                    v,
                    h,
                    v.column(j + 1),
                    Pass::new("norm").dot(c.at(90 + j), v.column(j + 1), v.column(j + 1)),
                );
                k.multi_axpy_dot(Pass::new("count").count(c.at(90 + j)));
            });
        });
        let program = k.finish().unwrap();
        let store = lacuna_engine::HostStore::new("none");
        let mut rolled = Compiled::new(&program, &store, 2).unwrap().rolled.unwrap();
        for step in [0, 1, 2, 7, 0, 5, 3] {
            let [dot, axpy] = rolled.at(step) else { panic!("not two steps") };
            for each in [dot, axpy] {
                let (StepKind::BasisDot { first, columns, w, h }
                | StepKind::BasisAxpy { first, columns, w, h, .. }) = each.kind
                else {
                    panic!("no basis")
                };
                assert_eq!(
                    (first, columns, w, h),
                    (v.first, step + 1, v.first + step + 1, c.first + 9 * step)
                );
            }
            assert_eq!((axpy.dots[0].cell, axpy.dots[0].b), (c.first + 90 + step, v.first + step + 1));
            assert!(dot.meet && axpy.meet);
        }
    }

    /// Dots that share operands or repeat are grouped and copied in the same way at every step.
    #[test]
    fn steps_equal_those_of_the_unrolled_loop() {
        let compiled = [true, false].map(|rolled| {
            let dev = Device::new(Reference::new()).scope();
            let [u, v] = [8, 9].map(|columns| dev.basis::<f64>(5, columns).unwrap());
            let c = dev.run_of_cells::<f64>(99).unwrap();
            let mut k = Recorder::new(&dev, "rolled");
            let body = |k: &mut Recorder<'_, f64>, j: usize| {
                let (of, next) = (u.column(j), v.column(j + 1));
                let h = Cells::new(c.first, j as u32 + 1, c.serial);
                let dots = Pass::new("dots").dot(c.at(20 + j), of, of).dot(c.at(30 + j), next, next);
                k.basis_dot(v, next, h);
                k.basis_axpy(v, h, next, dots.dot(c.at(40 + j), next, of).dot(c.at(50 + j), of, of));
                k.multi_axpy_dot(Pass::new("count").count(c.at(30 + j)));
            };
            k.each(|k| match rolled {
                true => k.steps(8, body),
                false => (0..8).for_each(|j| body(k, j)),
            });
            Compiled::new(&k.finish().unwrap(), &lacuna_engine::HostStore::new("none"), 2).unwrap()
        });
        let [mut rolled, mut plain] = compiled;
        assert_eq!((rolled.sums, rolled.work), (plain.sums, plain.work));
        let rolled = rolled.rolled.as_mut().unwrap();
        for (step, alone) in plain.sections[2].chunks_mut(2).enumerate() {
            let mut steps = rolled.at(step as u32).to_vec();
            let [mut numbers, mut expected] = [Vec::new(), Vec::new()];
            steps.numbers(&mut |number| numbers.push(*number));
            alone.numbers(&mut |number| expected.push(*number));
            assert_eq!(numbers, expected, "{step}");
            assert!(
                steps.iter().zip(&*alone).all(|(a, b)| a.work() == b.work() && a.meet == b.meet),
                "{step}"
            );
        }
        assert_eq!(plain.sections[2].len(), 16);
    }
}
