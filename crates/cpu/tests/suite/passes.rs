//! Passes on the CPU give the bits of the serial reference, whatever loop runs them.
use lacuna_cpu::{Cpu, CpuOptions, Simd};
use lacuna_engine::{
    Cells, Complex32, Complex64, Device, Formula, History, Pass, Recorder, Reference, Run, Scalar, Scope,
    Vector,
};

/// Passes of many shapes: streams, updates, terms, factors and dot products, both of methods and of none.
fn passes<T: Scalar>(v: [Vector<T>; 7], c: Cells<T>, sums: Cells<T>) -> Vec<Pass<T>> {
    let [x, p, r, q, z, d, w] = v;
    let [a, b] = [c.at(0), c.at(1)];
    let pass = || Pass::new("shape");
    vec![
        pass().dot(sums.at(0), x, p),
        pass().dot(sums.at(0), r, q).dot(sums.at(1), q, q).dot(sums.at(2), z, q),
        pass().dot(sums.at(0), x, d * p).dot(sums.at(1), r, p).dot(sums.at(2), x, p),
        pass().set(r, r - a * q).dot(sums.at(0), r, r).dot(sums.at(1), r, d * r).dot(sums.at(2), r, d * r),
        pass().set(x, a * x),
        pass().set(x, Formula::value(T::zero())).dot(sums.at(0), x, r),
        pass().set(x, x + a * p).set(r, r - a * q).set(p, r + b * p).dot(sums.at(0), r, r),
        pass().set(x, x + a * p + b * z).set(r, z - a * q).set(p, r + b * (p - a * w)).dot(sums.at(0), d, r),
        // A vector just set is used as a factor, multiplied, used as both, and set again.
        pass().set(z, -r).set(w, a * (z * q)).set(x, d * w - w).set(p, p - x * x).dot(sums.at(1), p, w),
        pass().set(x, r - d * q).set(x, b * x - x).set(x, -(x * x)).dot(sums.at(2), x, x),
        pass().set(w, x + a * p + b * r + a * q - z + b * (d * p)).dot(sums.at(0), w, x).dot(
            sums.at(1),
            x,
            w,
        ),
    ]
}

/// The contents of vectors and sums after each pass, then after operations on a basis.
fn results<T: Scalar>(dev: &Scope, n: usize) -> Vec<T> {
    let number = |k: usize| (k as f64 * 0.618_034).fract() - 0.4;
    let basis = dev.basis(n, 7).unwrap();
    let vectors = std::array::from_fn(|v| {
        let vector = basis.column(v);
        let numbers: Vec<_> = (0..n).map(|i| T::from_parts(number(i * 7 + v), number(i * 5 + v))).collect();
        dev.upload(&numbers, vector).unwrap();
        vector
    });
    let (c, sums) = (dev.run_of_cells(2).unwrap(), dev.run_of_cells(3).unwrap());
    (0..2).for_each(|k| dev.write(c.at(k), T::from_parts(number(k + 3), number(k))).unwrap());
    let mut results = Vec::new();
    for pass in passes(vectors, c, sums) {
        dev.multi_axpy_dot(pass).unwrap();
        results.extend(dev.read(&[sums.at(0), sums.at(1), sums.at(2)]).unwrap());
        for v in vectors {
            let mut values = vec![T::zero(); n];
            dev.download(v, &mut values).unwrap();
            results.extend(values);
        }
    }
    // Six columns projected on the seventh, then a pass.
    let (w, h) = (vectors[6], dev.run_of_cells(6).unwrap());
    dev.basis_dot(basis, w, h).unwrap();
    let pass = Pass::new("behind").set(w, c.at(0) * w).dot(sums.at(0), w, w);
    dev.basis_axpy(basis, h, w, pass).unwrap();
    results.extend(dev.read(&std::array::from_fn::<_, 6, _>(|k| h.at(k))).unwrap());
    results.extend(dev.read(&[sums.at(0)]).unwrap());
    let mut values = vec![T::zero(); n];
    dev.download(w, &mut values).unwrap();
    results.extend(values);
    results
}

fn passes_give_the_bits_of_the_reference<T: Scalar>() {
    // Less than a register, a block and a segment; whole ones; and with remainders.
    for n in [1, 33, 225, 256, 511, 1003, 20_003] {
        let expected = results::<T>(&Device::new(Reference::new()).scope(), n);
        for simd in [Simd::Best, Simd::Avx2, Simd::Baseline] {
            let options = CpuOptions::default().threads(2).simd(simd).parallel_from(0);
            let got = results::<T>(&Device::new(Cpu::with(options).unwrap()).scope(), n);
            for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let (pass, place) = (i / (7 * n + 3), i % (7 * n + 3));
                assert!(
                    bytemuck::bytes_of(got) == bytemuck::bytes_of(expected),
                    "{n} elements, {simd:?}, pass {pass}, number {place}: {got}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn passes_give_the_bits_of_the_reference_in_every_type() {
    passes_give_the_bits_of_the_reference::<f32>();
    passes_give_the_bits_of_the_reference::<f64>();
    passes_give_the_bits_of_the_reference::<Complex32>();
    passes_give_the_bits_of_the_reference::<Complex64>();
}

/// The contents of vectors and sums after each pass that has a loop of its own, from the same numbers.
fn of_forms<T: Scalar>(dev: &Scope, n: usize) -> Vec<(String, Vec<T>)> {
    let number = |k: usize| T::from_real((k as f64 * 0.618_034).fract() - 0.4);
    let (v, c) = (dev.basis(n, 9).unwrap(), dev.run_of_cells(15).unwrap());
    let mut all = Vec::new();
    for (name, pass) in Cpu::forms(v, c) {
        for j in 0..9 {
            dev.upload(&(0..n).map(|i| number(i * 7 + j)).collect::<Vec<_>>(), v.column(j)).unwrap();
        }
        (0..15).for_each(|k| dev.write(c.at(k), number(k)).unwrap());
        dev.multi_axpy_dot(pass).unwrap();
        let mut results = dev.read(&[c.at(0), c.at(1), c.at(2)]).unwrap();
        for j in 0..9 {
            let mut values = vec![T::zero(); n];
            dev.download(v.column(j), &mut values).unwrap();
            results.extend(values);
        }
        all.push((name, results));
    }
    all
}

fn loops_give_the_bits_of_the_reference<T: Scalar>() {
    // One segment, less than one, several with a remainder, and more than a core's cache holds.
    for n in [255, 256, 1003, 70_003] {
        let expected = of_forms::<T>(&Device::new(Reference::new()).scope(), n);
        for simd in [Simd::Best, Simd::Avx2] {
            let options = CpuOptions::default().threads(2).simd(simd).parallel_from(0);
            let got = of_forms::<T>(&Device::new(Cpu::with(options).unwrap()).scope(), n);
            for ((name, got), (_, expected)) in got.iter().zip(&expected) {
                let same = bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(expected);
                assert!(same, "{name}, {n}, {simd:?}");
            }
        }
    }
}

#[test]
fn loops_give_the_bits_of_the_reference_in_f64() {
    loops_give_the_bits_of_the_reference::<f64>();
}

#[test]
fn loops_give_the_bits_of_the_reference_in_f32() {
    loops_give_the_bits_of_the_reference::<f32>();
}

/// Sums of vectors that no cache holds, on all threads.
#[test]
fn dots_of_long_vectors_give_the_bits_of_the_reference() {
    fn sums(dev: &Scope) -> Vec<f64> {
        let n = 1_100_003;
        let v = dev.basis::<f64>(n, 3).unwrap();
        let c = dev.run_of_cells(3).unwrap();
        for j in 0..3 {
            let number = |i: usize| ((i * 7 + j) as f64 * 0.618_034).fract() - 0.4;
            dev.upload(&(0..n).map(number).collect::<Vec<_>>(), v.column(j)).unwrap();
        }
        let [x, y, z] = [0, 1, 2].map(|j| v.column(j));
        let mut all = Vec::new();
        for pass in [
            Pass::new("one").dot(c.at(0), x, y),
            Pass::new("two").dot(c.at(0), x, y).dot(c.at(1), y, y),
            Pass::new("three").dot(c.at(0), x, y).dot(c.at(1), y, y).dot(c.at(2), z, y),
        ] {
            dev.multi_axpy_dot(pass).unwrap();
            all.extend(dev.read(&[c.at(0), c.at(1), c.at(2)]).unwrap());
        }
        all
    }
    let options = CpuOptions::default().threads(2);
    assert_eq!(
        sums(&Device::new(Cpu::with(options).unwrap()).scope()),
        sums(&Device::new(Reference::new()).scope())
    );
}

#[test]
fn complex_passes_have_no_loops() {
    fn loops<T: Scalar>() -> (usize, usize) {
        let dev = &Device::new(Cpu::new().unwrap()).scope();
        let [x, p, r, q] = std::array::from_fn(|_| dev.vector::<T>(9).unwrap());
        let c = dev.run_of_cells(2).unwrap();
        let pass = Pass::new("descend").set(x, x + c.at(0) * p).set(r, r - c.at(0) * q).dot(c.at(1), r, r);
        let mut k = Recorder::new(dev, "form");
        k.each(|k| k.multi_axpy_dot(pass.count(c.at(1))));
        let program = k.finish().unwrap();
        let plan = dev.plan(program).unwrap();
        dev.with(|cpu: &mut Cpu| cpu.loops(plan.id())).unwrap().unwrap()
    }
    assert_eq!((loops::<f32>(), loops::<Complex32>()), ((1, 1), (1, 0)));
}

/// A pass with its own loop advances to the next vectors, which stay distinct.
#[test]
fn loops_turn_too() {
    fn run(dev: &Scope) -> Vec<f64> {
        let n = 300;
        let p = dev.basis::<f64>(n, 9).unwrap();
        let [x, r, q] = std::array::from_fn(|_| dev.vector::<f64>(n).unwrap());
        let c = dev.run_of_cells::<f64>(2).unwrap();
        dev.write(c.at(1), 0.5).unwrap();
        for (k, v) in [x, r, q].into_iter().chain((0..9).map(|j| p.column(j))).enumerate() {
            let numbers: Vec<_> = (0..n).map(|i| ((i + k) % 7) as f64).collect();
            dev.upload(&numbers, v).unwrap();
        }
        let mut k = Recorder::new(dev, "rolled");
        k.each(|k| {
            k.steps(9, |k, j| {
                let p = p.column(j);
                let step = Pass::new("step").set(x, x + c.at(1) * p).set(r, r - c.at(1) * q);
                k.multi_axpy_dot(step.set(p, r + c.at(1) * p).dot(c.at(0), r, r));
            });
            k.multi_axpy_dot(Pass::new("count").count(c.at(0)).leave());
        });
        let program = k.finish().unwrap();
        assert!(program.steps().is_some());
        let mut plan = dev.plan(program).unwrap();
        let history = &mut History::off();
        dev.execute(&mut plan, Run { limit: 2, history, watch: None }).unwrap();
        let mut numbers = vec![0.0; n];
        dev.download(p.column(8), &mut numbers).unwrap();
        numbers
    }
    let cpu = Device::new(Cpu::new().unwrap()).scope();
    assert_eq!(run(&cpu), run(&Device::new(Reference::new()).scope()));
}
