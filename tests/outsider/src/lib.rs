//! A backend as somebody else would write it: one file, host memory, the primitives and nothing more.
use lacuna_engine::lower::Sweep;
use lacuna_engine::reference::around;
use lacuna_engine::{
    Backend, Basis, Cells, DeviceInfo, Finish, HostStore, Matrix, PlanId, Program, Resource, Result, Run,
    Scalar, State, Vector, not_triangular, step_by_step, sum, with_number,
};

/// One thread, one loop for each primitive.
pub struct Mine {
    store: HostStore,
}

impl Mine {
    /// Opens the device, which is always there.
    ///
    /// # Errors
    /// None here. Other backends may find no device.
    pub fn new() -> Result<Self> {
        Ok(Mine { store: HostStore::new("mine") })
    }
}

/// `y ← A x`
fn product<T: Scalar>(store: &mut HostStore, a: Matrix, x: Vector, y: Vector, name: &str) -> Result<()> {
    let (a, x) = (store.format::<T>(a, name)?, store.slice::<T>(x, name)?);
    let product: Vec<T> = (0..y.len).map(|i| a.row(i, x)).collect();
    store.set(y, &product, name)
}

impl Backend for Mine {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("mine", "one thread", 1)
    }
    lacuna_engine::host_memory!(store);
    fn free(&mut self, what: Resource) {
        self.store.free(what);
    }

    fn multi_axpy_dot(&mut self, pass: &Sweep, state: State<'_>) -> Result<()> {
        with_number!(pass.kind(), T => around::<T>(&mut self.store, pass, state, |_, _| Ok(())))
    }
    fn spmv_dot(&mut self, a: Matrix, x: Vector, y: Vector, pass: &Sweep, state: State<'_>) -> Result<()> {
        with_number!(pass.kind(), T => {
            around::<T>(&mut self.store, pass, state, |store, _| product::<T>(store, a, x, y, pass.name()))
        })
    }
    fn spmm(&mut self, a: Matrix, x: Basis, y: Basis, pass: &Sweep, state: State<'_>) -> Result<()> {
        with_number!(pass.kind(), T => around::<T>(&mut self.store, pass, state, |store, _| {
            (0..x.columns).try_for_each(|j| product::<T>(store, a, x.column(j), y.column(j), pass.name()))
        }))
    }
    fn tri_solve(&mut self, a: Matrix, b: Vector, x: Vector, pass: &Sweep, state: State<'_>) -> Result<()> {
        let name = pass.name();
        with_number!(pass.kind(), T => around::<T>(&mut self.store, pass, state, |store, _| {
            let (a, b) = (store.format::<T>(a, name)?, store.slice::<T>(b, name)?);
            let triangle = a.triangle().ok_or_else(|| not_triangular(name, a.kernel()))?;
            let mut solution = vec![T::from_real(0.0); x.len];
            triangle.solve(b, &mut solution);
            store.set(x, &solution, name)
        }))
    }
    fn basis_dot(&mut self, v: Basis, w: Vector, h: Cells, pass: &Sweep, state: State<'_>) -> Result<()> {
        with_number!(pass.kind(), T => around::<T>(&mut self.store, pass, state, |store, machine| {
            let w = store.slice::<T>(w, pass.name())?;
            for j in 0..h.count {
                let column = store.slice::<T>(v.column(j as usize), pass.name())?;
                let terms: Vec<T> = column.iter().zip(w).map(|(v, w)| v.dot_term(*w)).collect();
                machine.cells[(h.first + j) as usize] = sum::pairwise(&terms);
            }
            Ok(())
        }))
    }
    fn basis_axpy(
        &mut self,
        v: Basis,
        h: Cells,
        add: bool,
        w: Vector,
        pass: &Sweep,
        state: State<'_>,
    ) -> Result<()> {
        with_number!(pass.kind(), T => around::<T>(&mut self.store, pass, state, |store, machine| {
            let mut sum = store.slice::<T>(w, pass.name())?.to_vec();
            for (j, h) in (h.first..h.first + h.count).map(|h| machine.cells[h as usize]).enumerate() {
                let h = if add { h } else { -h };
                if h != T::from_real(0.0) {
                    let column = store.slice::<T>(v.column(j), pass.name())?;
                    sum.iter_mut().zip(column).for_each(|(sum, v)| *sum = h.fma(*v, *sum));
                }
            }
            store.set(w, &sum, pass.name())
        }))
    }

    fn plan(&mut self, program: &Program) -> Result<PlanId> {
        self.store.check(program)?;
        Ok(PlanId { index: 0, serial: program.serial() })
    }
    fn execute(&mut self, program: &Program, plan: PlanId, run: Run<'_>) -> Result<Finish> {
        program.check_plan(plan.serial)?;
        self.store.check(program)?;
        step_by_step(self, program, run)
    }
}

#[cfg(test)]
mod tests {
    use crate::Mine;
    use lacuna_engine::Complex32;

    lacuna_tests::conformance!(mine, "mine", Mine::new, [f64, Complex32]);
}
