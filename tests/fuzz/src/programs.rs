//! Programs out of bytes, on the CPU and by the serial reference: the same bits or the same error.
use crate::bytes::Bytes;
use crate::conversions::cpu;
use lacuna::backend::{History, Run};
use lacuna::{
    Basis, Cell, Cells, Complex32, Complex64, Expr, Formula, Matrix, Pass, Reason, Recorder, Result, Scalar,
    Scope, Triplets, Vector,
};
use lacuna_tests::bits::{Trace, cells_of, upload};
use lacuna_tests::reference;
use std::sync::Arc;

const VECTORS: usize = 5;
const CELLS: usize = 9;
const COLUMNS: usize = 3;
/// Lengths around what is summed at a time.
const LENGTHS: [usize; 16] = [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 513, 1000, 1023, 1025, 2049];

/// Runs what the bytes say.
pub fn programs(data: &[u8]) {
    match data.first().copied().unwrap_or(0) % 4 {
        0 => both::<f64>(&data[1.min(data.len())..]),
        1 => both::<f32>(&data[1..]),
        2 => both::<Complex64>(&data[1..]),
        _ => both::<Complex32>(&data[1..]),
    }
}

fn both<T: Scalar>(data: &[u8]) {
    let threads = Bytes::new(data).below(3) + 1;
    let got = run::<T>(&cpu(threads).scope(), data);
    let want = run::<T>(&reference(), data);
    match (got, want) {
        (Ok(got), Ok(want)) => got.agrees_with(&want, "the CPU and the reference"),
        (Err(got), Err(want)) => assert_eq!(got.to_string(), want.to_string()),
        (got, want) => panic!("the CPU: {:?}, the reference: {:?}", got.err(), want.err()),
    }
}

/// What a program is about.
struct Things<T: Scalar> {
    c: Vec<Cell<T>>,
    v: Vec<Vector<T>>,
    basis: Basis<T>,
    h: Cells<T>,
    a: Matrix<T>,
}

fn run<T: Scalar>(dev: &Scope, data: &[u8]) -> Result<Trace<T>> {
    let data = &mut Bytes::new(data);
    let (_, n, limit) = (data.byte(), data.pick(&LENGTHS), u64::from(data.byte() % 6));
    let (without_fusion, special) = (data.coin(), data.coin());
    let number = |data: &mut Bytes<'_>| if special { data.any::<T>() } else { data.number::<T>() };
    let numbers = |data: &mut Bytes<'_>, n: usize| -> Vec<T> {
        let few: Vec<T> = (0..7).map(|_| number(data)).collect();
        (0..n).map(|i| few[i % 7] + T::from_real((i % 5) as f64 / 4.0)).collect()
    };
    let basis = dev.basis::<T>(n, COLUMNS)?;
    for j in 0..COLUMNS {
        dev.upload(&numbers(data, n), basis.column(j))?;
    }
    let h = dev.run_of_cells::<T>(COLUMNS)?;
    let mut c = cells_of(dev, &numbers(data, CELLS));
    (0..COLUMNS).for_each(|j| c[j] = h.at(j));
    let v = (0..VECTORS).map(|_| upload(dev, &numbers(data, n))).collect();
    let mut entries = Triplets::new(n, n);
    for i in 0..n {
        entries.push(i, i, T::from_real(2.0 + (i % 3) as f64));
        entries.push(i, (i * 7 + 3) % n, T::from_real(-1.0));
    }
    let a = dev.matrix(Arc::new(entries.to_csr()?))?;
    let things = Things { c, v, basis, h, a };
    let mut k = Recorder::new(dev, "fuzzed");
    if without_fusion {
        k.without_fusion();
    }
    ops(&mut k, data, &things, 3);
    if data.coin() {
        k.restart(|k| ops(k, data, &things, 2));
    }
    if limit > 0 {
        k.each(|k| {
            if data.coin() {
                let bytes = data.take(12);
                k.steps(5, |k, j| {
                    let data = &mut Bytes::new(bytes);
                    let column = things.basis.column(j % COLUMNS);
                    k.multi_axpy_dot(pass(data, &things).dot(things.c[0], column, things.v[1]));
                });
            }
            ops(k, data, &things, 4);
            let mut count = Pass::new("count").count(things.c[4]);
            if data.coin() {
                let test = data.pick(&things.c).le(data.pick(&things.c));
                count = if data.coin() {
                    count.leave_if(test)
                } else {
                    count.stop_if(test, Reason::Custom("fuzzed"))
                };
            }
            k.multi_axpy_dot(count);
        });
    }
    let mut plan = k.finish().and_then(|program| dev.plan(program))?;
    let mut trace = Trace::new();
    for _ in 0..2 {
        let mut history = History::default();
        let finish = dev.execute(&mut plan, Run { limit, history: &mut history, watch: None })?;
        trace.finish("finish", &finish, &history);
    }
    trace.cells(dev, "cells", &things.c);
    for (i, v) in things.v.iter().enumerate() {
        trace.vector(dev, format!("vector {i}"), *v);
    }
    Ok(trace)
}

fn ops<T: Scalar>(k: &mut Recorder<'_, T>, data: &mut Bytes<'_>, on: &Things<T>, most: usize) {
    for _ in 0..data.below(most + 1) {
        let guard = data.below(8);
        let mut op = |k: &mut Recorder<'_, T>| one(k, data, on);
        match guard {
            0 => k.when(on.c[5].gt(on.c[6]), op),
            1 => k.when(on.c[7].is_zero(), op),
            _ => op(k),
        }
    }
}

fn one<T: Scalar>(k: &mut Recorder<'_, T>, data: &mut Bytes<'_>, on: &Things<T>) {
    let (kind, x, y) = (data.below(7), data.pick(&on.v), data.pick(&on.v));
    match kind {
        0..3 => k.multi_axpy_dot(pass(data, on)),
        3 => k.spmv_dot(&on.a, x, y, pass(data, on)),
        4 => k.basis_dot(on.basis, x, on.h),
        5 => k.basis_axpy(on.basis, on.h, x, pass(data, on)),
        _ => k.basis_add(on.basis, on.h, x, pass(data, on)),
    }
}

fn pass<T: Scalar>(data: &mut Bytes<'_>, on: &Things<T>) -> Pass<T> {
    let mut pass = Pass::new("fuzzed");
    for _ in 0..data.below(3) {
        pass = pass.eval(data.pick(&on.c), formula(data, on));
    }
    for _ in 0..data.below(4) {
        let dst = data.pick(&on.v);
        let mut sum: Option<Expr<T>> = None;
        for _ in 0..data.below(4) {
            let shape = data.byte();
            let mut term = Expr::from(data.pick(&on.v));
            if shape & 3 == 3 {
                term = data.pick(&on.v) * term;
            }
            if shape & 4 == 4 {
                term = formula(data, on) * term;
            }
            sum = Some(match (sum, shape & 8 == 8) {
                (None, false) => term,
                (None, true) => -term,
                (Some(sum), false) => sum + term,
                (Some(sum), true) => sum - term,
            });
        }
        pass = pass.set(dst, sum.unwrap_or(Expr::value(T::zero())));
    }
    for _ in 0..data.below(4) {
        pass = pass.dot(data.pick(&on.c), data.pick(&on.v), data.pick(&on.v));
    }
    for _ in 0..data.below(3) {
        pass = pass.eval(data.pick(&on.c), formula(data, on));
    }
    pass
}

fn formula<T: Scalar>(data: &mut Bytes<'_>, on: &Things<T>) -> Formula<T> {
    let (kind, a, b) = (data.below(10), data.pick(&on.c), data.pick(&on.c));
    match kind {
        0 => Formula::from(f64::from(data.byte() as i8) / 4.0),
        1 => a.into(),
        2 => -a,
        3 => a.conj(),
        4 => a.sqrt(),
        5 => a + b,
        6 => a - b,
        7 => a * b,
        8 => a / b,
        _ => a.max(b),
    }
}
