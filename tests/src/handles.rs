//! Handles of released objects, or of another backend's: errors that name the object.
use crate::bits::{cells_of, download, same, upload};
use crate::cells::hessenberg;
use crate::hostile::fails;
use lacuna_engine::{Confirm, Device, Error, History, Matrix, Pass, Reason, Recorder, Run, Scalar, Vector};
use lacuna_formats::Csr;
use std::sync::Arc;

/// Fails unless the result is an error about a stale handle that names the kind of object.
#[track_caller]
fn stale<R>(result: Result<R, Error>, what: &str) {
    let error = fails(result, &[what]);
    assert!(matches!(error, Error::Stale { .. }), "expected a stale handle, got: {error}");
}

/// Vectors, bases and matrices that were dropped, also when a new object has taken their place.
pub fn stale_handles<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let n = 40;
    let live = upload(dev, &vec![T::one(); n]);
    let c = cells_of(dev, &[T::one(); 2]);
    let h = dev.run_of_cells::<T>(2).unwrap();
    let (held, inner) = (dev.in_use(), dev.scope());
    let old = upload(&inner, &vec![T::one(); n]);
    let basis = inner.basis::<T>(n, 2).unwrap();
    let a = Csr::<T>::identity(n).unwrap();
    let matrix = inner.matrix(Arc::new(a.clone())).unwrap();
    drop(inner);
    assert_eq!(dev.in_use(), held);
    for replaced in [false, true] {
        if replaced {
            let _new = upload(dev, &vec![T::one(); n]);
            let _basis = dev.basis::<T>(n, 2).unwrap();
            let _matrix = dev.matrix(Arc::new(a.clone())).unwrap();
        }
        stale(dev.upload(&vec![T::one(); n], old), "vector");
        stale(dev.download(old, &mut vec![T::one(); n]), "vector");
        stale(dev.multi_axpy_dot(Pass::new("mine").set(live, live + old)), "vector");
        stale(dev.multi_axpy_dot(Pass::new("mine").set(old, live)), "vector");
        stale(dev.multi_axpy_dot(Pass::new("mine").set(live, old * live)), "vector");
        stale(dev.multi_axpy_dot(Pass::new("mine").dot(c[0], live, old)), "vector");
        stale(dev.spmv_dot(&matrix, live, old, Pass::nothing()), "");
        let other = upload(dev, &vec![T::one(); n]);
        stale(dev.spmv_dot(&matrix, live, other, Pass::nothing()), "matrix");
        stale(dev.basis_dot(basis, live, h), "vector");
        stale(dev.basis_axpy(basis, h, live, Pass::nothing()), "vector");
        same("a live vector", &download(dev, live), &vec![T::one(); n]);
    }
    // A plan outlives its vectors: running it is an error, and so is planning a program that uses them.
    let inner = dev.scope();
    let old = upload(&inner, &vec![T::one(); n]);
    let mut k = Recorder::new(dev, "program");
    k.multi_axpy_dot(Pass::new("mine").set(live, live + old));
    let program = k.finish().unwrap();
    let mut plan = dev.plan(program.clone()).unwrap();
    drop(inner);
    let run = Run { limit: 1, history: &mut History::default(), watch: None };
    stale(dev.execute(&mut plan, run), "vector");
    stale(dev.plan(program).map(drop), "vector");
    same("a live vector", &download(dev, live), &vec![T::one(); n]);
}

/// A stale handle in a pass is an error that names the pass, and so is a cell of another backend. Cells
/// that were dropped fail in reads, writes, and every part of a pass that names one.
pub fn stale_cells<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let x = upload(dev, &[T::one(); 9]);
    let abroad = &make().scope();
    let (foreign, y) = (cells_of(abroad, &[T::one()])[0], upload(abroad, &[T::one(); 9]));
    let _home = cells_of(dev, &[T::one(); 3]);
    stale(dev.multi_axpy_dot(Pass::new("mine").set(x, foreign * x)), "mine");
    stale(dev.multi_axpy_dot(Pass::new("mine").set(x, x + y)), "mine");
    let live = cells_of(dev, &[T::one(); 2])[0];
    let basis = dev.basis::<T>(9, 2).unwrap();
    let inner = dev.scope();
    let old = cells_of(&inner, &[T::one(); 3])[2];
    let run = inner.run_of_cells::<T>(2).unwrap();
    let small = hessenberg::<T>(&inner, 2);
    drop(inner);
    for replaced in [false, true] {
        if replaced {
            let _new = cells_of(dev, &[T::one(); 50]);
        }
        stale(dev.read(&[live, old]), "cell");
        stale(dev.write(old, T::one()), "cell");
        let mine = || Pass::new("mine");
        stale(dev.multi_axpy_dot(mine().eval(old, live + 1.0)), "mine");
        stale(dev.multi_axpy_dot(mine().eval(live, live * (old / 2.0))), "mine");
        stale(dev.multi_axpy_dot(mine().set(x, x + old * x)), "mine");
        stale(dev.multi_axpy_dot(mine().dot(old, x, x)), "mine");
        stale(dev.multi_axpy_dot(mine().stop_if(old.gt(live), Reason::Diverged)), "mine");
        stale(dev.multi_axpy_dot(mine().leave_if(live.le(old))), "mine");
        stale(dev.multi_axpy_dot(mine().count(old)), "mine");
        let confirm = Confirm { rr: live, target: live, last: old, shrink: live };
        stale(dev.multi_axpy_dot(mine().confirm(confirm)), "mine");
        stale(dev.multi_axpy_dot(mine().rotate(small, 0, live)), "mine");
        stale(dev.multi_axpy_dot(mine().back_substitute(small)), "mine");
        stale(dev.basis_dot(basis, x, run), "cell");
        stale(dev.basis_axpy(basis, run, x, Pass::nothing()), "cell");
    }
    assert_eq!(dev.read(&[live]).unwrap(), [T::one()]);
    let inner = dev.scope();
    let old = cells_of(&inner, &[T::one(); 300])[299];
    let mut k = Recorder::new(dev, "program");
    k.multi_axpy_dot(Pass::new("mine").eval(live, live + old));
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    drop(inner);
    let run = Run { limit: 1, history: &mut History::default(), watch: None };
    stale(dev.execute(&mut plan, run), "mine");
}

/// Handles of another backend, though this one has an object in the same place.
pub fn foreign_handles<T: Scalar>(make: fn() -> Device) {
    let (home, abroad) = (&make().scope(), &make().scope());
    let n = 12;
    let (mine, other) = (upload(home, &vec![T::one(); n]), upload(abroad, &vec![T::one(); n]));
    let a = Csr::<T>::identity(n).unwrap();
    let here = home.matrix(Arc::new(a.clone())).unwrap();
    let there = abroad.matrix(Arc::new(a)).unwrap();
    let (cell, foreign) = (cells_of(home, &[T::one()])[0], cells_of(abroad, &[T::one()])[0]);
    let y = upload(home, &vec![T::zero(); n]);
    stale(home.download(other, &mut vec![T::zero(); n]), "vector");
    stale(home.upload(&vec![T::zero(); n], other), "vector");
    stale(home.multi_axpy_dot(Pass::new("mine").set(mine, mine + other)), "vector");
    stale(home.spmv_dot(&there, mine, y, Pass::nothing()), "matrix");
    // A handle that says more than there is.
    let long = upload(home, &vec![T::one(); n + 5]);
    stale(home.spmv_dot(&Matrix { cols: n + 5, ..here }, long, y, Pass::nothing()), "matrix");
    stale(home.spmv_dot(&Matrix { rows: n + 5, ..here }, mine, long, Pass::nothing()), "matrix");
    stale(home.download(Vector { len: n + 5, ..mine }, &mut vec![T::zero(); n + 5]), "vector");
    stale(home.read(&[cell, foreign]), "cell");
    stale(home.write(foreign, T::zero()), "cell");
}
