//! Systems assembled from coefficients, rows, parts and elements, with unknowns fixed and freed, again and again: what comes out is what
//! the same calls add up to one by one, or an error that leaves everything as it was.
use crate::bytes::Bytes;
use lacuna::formats::{Assembly, Elements, FIXED};
use lacuna::{Complex64, Csr, Scalar, Triplets};
use std::collections::BTreeMap;

/// Assembles what the bytes say.
pub fn assembly(data: &[u8]) {
    let mut data = Bytes::new(data);
    match data.byte() % 4 {
        0 | 1 => coefficients::<f64>(&mut data),
        2 => coefficients::<Complex64>(&mut data),
        _ => elements::<f64>(&mut data),
    }
}

/// What was added, as it was.
struct Added<T> {
    square: bool,
    unknowns: usize,
    /// Equations that `row` appended, and one more than the last that anything names.
    rows: usize,
    equations: usize,
    places: Vec<(usize, usize, T)>,
    b: Vec<(usize, T)>,
    fixed: BTreeMap<usize, T>,
    /// Whether unknowns were fixed or freed since a system was assembled.
    refixed: bool,
    outside: bool,
}

impl<T: Scalar> Added<T> {
    fn most(&self) -> usize {
        if self.square { self.unknowns } else { usize::MAX }
    }
    fn add(&mut self, i: usize, j: usize, v: T) {
        if i < self.most() && j < self.unknowns {
            self.equations = self.equations.max(i + 1);
            self.places.push((i, j, v));
        } else {
            self.outside = true;
        }
    }
    fn add_b(&mut self, i: usize, v: T) {
        if i < self.most() {
            self.equations = self.equations.max(i + 1);
            self.b.push((i, v));
        } else {
            self.outside = true;
        }
    }
    fn begin(&mut self) {
        self.places.clear();
        self.b.clear();
        (self.rows, self.equations, self.outside) = (0, 0, false);
    }
    /// The matrix and the right-hand side of the free unknowns, unless a number is not finite or a place is outside.
    fn system(&self) -> Option<(Csr<T>, Vec<T>)> {
        if self.outside || self.fixed.values().any(|v| !v.finite()) {
            return None;
        }
        let equations = if self.square { self.unknowns } else { self.equations };
        let stays = |i: &usize| !self.square || !self.fixed.contains_key(i);
        let rows: BTreeMap<usize, usize> = (0..equations).filter(stays).zip(0..).collect();
        let is_free = |j: &usize| !self.fixed.contains_key(j);
        let columns: BTreeMap<usize, usize> = (0..self.unknowns).filter(is_free).zip(0..).collect();
        let mut entries = Triplets::new(rows.len(), columns.len());
        let mut b = vec![T::zero(); rows.len()];
        for (i, v) in &self.b {
            rows.get(i).into_iter().for_each(|&i| b[i] += *v);
        }
        for (i, j, v) in &self.places {
            let Some(&row) = rows.get(i) else { continue };
            match columns.get(j) {
                Some(&column) => entries.push(row, column, *v),
                None => b[row] -= *v * self.fixed[j],
            }
        }
        let a = entries.to_csr().ok()?;
        b.iter().all(|v| v.finite()).then_some((a, b))
    }
}

/// A number below `n`, seldom `n`.
fn below(data: &mut Bytes<'_>, n: usize) -> usize {
    match data.byte() {
        255 => n,
        byte => usize::from(byte) % n.max(1),
    }
}

/// A number, seldom one that is not finite.
fn value<T: Scalar>(data: &mut Bytes<'_>, times: f64) -> T {
    let value = if data.byte() == 255 { data.any() } else { data.number::<T>() };
    value * T::from_real(times)
}

/// One call; the same one with numbers so many times as large if `data` says the same.
fn call<T: Scalar>(data: &mut Bytes<'_>, times: f64, assembly: &mut Assembly<T>, added: &mut Added<T>) {
    let n = added.unknowns;
    let beyond = if added.square { n } else { 2 * n };
    match data.below(16) {
        0..=6 => {
            let (i, j, v) = (below(data, beyond), below(data, n), value(data, times));
            assembly.add(i, j, v);
            added.add(i, j, v);
        }
        7 | 8 => {
            let (i, v) = (below(data, beyond), value(data, times));
            assembly.add_b(i, v);
            added.add_b(i, v);
        }
        9..=11 => {
            let (i, j, w) = (below(data, n), below(data, n), value::<T>(data, times));
            assembly.couple(i, j, w);
            [(i, i, w), (j, j, w), (i, j, -w), (j, i, -w)]
                .into_iter()
                .for_each(|(i, j, v)| added.add(i, j, v));
        }
        12 | 13 => {
            let row: Vec<(usize, T)> =
                (0..data.below(4)).map(|_| (below(data, n), value(data, times))).collect();
            let b = value(data, times);
            let i = if added.square { added.rows } else { added.equations };
            assert_eq!(assembly.row(row.clone(), b), i, "the number of an appended row");
            added.rows += 1;
            row.into_iter().for_each(|(j, v)| added.add(i, j, v));
            added.add_b(i, b);
        }
        14 => {
            let (j, v) = (below(data, n), value(data, times));
            assembly.fix(j, v);
            match j < added.unknowns {
                true => added.refixed |= added.fixed.insert(j, v).is_none(),
                false => added.outside = true,
            }
        }
        _ => {
            let j = below(data, n);
            assembly.free(j);
            added.refixed |= added.fixed.remove(&j).is_some();
        }
    }
}

fn coefficients<T: Scalar>(data: &mut Bytes<'_>) {
    let (unknowns, square) = (data.below(9), data.coin());
    let mut assembly =
        if square { Assembly::<T>::square(unknowns) } else { Assembly::least_squares(unknowns) };
    let mut added = Added {
        square,
        unknowns,
        rows: 0,
        equations: 0,
        places: Vec::new(),
        b: Vec::new(),
        fixed: BTreeMap::new(),
        refixed: false,
        outside: false,
    };
    let mut assembled = None;
    // The places of that system and its equations, as long as no other calls came between.
    let mut sequence = None;
    let length = data.below(200);
    let calls = data.take(length);
    for round in 0..4u8 {
        // The first calls again, with other numbers, or other calls.
        let mut again = Bytes::new(if data.coin() || round == 0 { calls } else { data.take(64) });
        while !again.is_empty() {
            call(&mut again, f64::from(round + 1), &mut assembly, &mut added);
        }
        let wanted = added.system();
        let places: Vec<_> = added.places.iter().map(|&(i, j, _)| (i, j)).collect();
        let now = Some((places, added.equations));
        if added.refixed || sequence != now {
            sequence = None;
        }
        match (&mut assembled, data.coin()) {
            (Some((system, before)), true) => {
                let updated = lacuna::formats::Assembled::update(system, &assembly);
                match (updated, wanted) {
                    (Ok(()), Some((a, b))) => {
                        assert!(**system.matrix() == a && system.b() == b, "updated");
                        *before = (a, b, added.fixed.clone());
                    }
                    (Ok(()), None) => panic!("an update took what is not finite, or outside"),
                    (Err(error), Some(_)) if sequence.is_some() => panic!("refused: {error}"),
                    (Err(_), _) => assert!(
                        **system.matrix() == before.0 && system.b() == before.1,
                        "changed by a failed update"
                    ),
                }
                let (a, _, fixed) = &*before;
                let full = system.full(&vec![T::one(); a.cols()]).expect("one element for each column");
                for (j, x) in full.iter().enumerate() {
                    assert!(*x == fixed.get(&j).copied().unwrap_or(T::one()), "unknown {j}");
                }
            }
            _ => match (assembly.assemble(), wanted) {
                (Ok(system), Some((a, b))) => {
                    assert!(**system.matrix() == a && system.b() == b, "assembled");
                    assembled = Some((system, (a, b, added.fixed.clone())));
                    (sequence, added.refixed) = (now, false);
                }
                (Err(_), None) => {}
                (Ok(_), None) => panic!("took what is not finite, or outside"),
                (Err(error), Some(_)) => panic!("refused: {error}"),
            },
        }
        assembly.begin();
        added.begin();
    }
}

fn elements<T: Scalar>(data: &mut Bytes<'_>) {
    let (unknowns, per_element) = (data.below(12), data.below(5));
    let node = |data: &mut Bytes<'_>| match data.below(unknowns + 2) {
        j if j == unknowns + 1 => FIXED,
        j => j as u32,
    };
    let nodes: Vec<u32> = (0..data.below(40)).map(|_| node(data)).collect();
    let valid = per_element > 0 && nodes.len().is_multiple_of(per_element);
    let inside = nodes.iter().all(|&j| j == FIXED || (j as usize) < unknowns);
    let made = Elements::new(unknowns, per_element, nodes.clone());
    assert_eq!(made.is_ok(), valid && inside, "{unknowns} unknowns, {per_element} of {nodes:?}: {made:?}");
    let Ok(elements) = made else { return };
    let matrices: Vec<T> = (0..nodes.len() * per_element).map(|_| value(data, 1.0)).collect();
    let mut entries = Triplets::new(unknowns, unknowns);
    for (of, matrix) in nodes.chunks(per_element).zip(matrices.chunks(per_element * per_element)) {
        for (k, &value) in matrix.iter().enumerate() {
            let (i, j) = (of[k / per_element], of[k % per_element]);
            if i != FIXED && j != FIXED {
                entries.push(i as usize, j as usize, value);
            }
        }
    }
    let wanted = entries.to_csr().ok();
    let plan = elements.plan().expect("a few elements");
    assert!(elements.assemble(&matrices).ok() == wanted, "elements");
    assert!(plan.matrix(&matrices).ok() == wanted, "their plan");
}
