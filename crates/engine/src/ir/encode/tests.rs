//! Encoding preserves the recorded program.
use super::*;
use crate::expr::cells::{Binary, Unary};
use crate::ir::lower::{Term, Update};
use crate::{Cells, Device, Format, Formula, Hessenberg, Pass, Reason, Recorder, Reference};
use std::sync::Arc;

/// The identity, as a matrix without entries.
struct Unit(usize);
impl Format<f64> for Unit {
    fn shape(&self) -> (usize, usize) {
        (self.0, self.0)
    }
    fn nnz(&self) -> usize {
        self.0
    }
    fn kernel(&self) -> &'static str {
        "unit"
    }
    fn arguments(&self) -> Vec<crate::Argument<'_, f64>> {
        Vec::new()
    }
    fn row(&self, i: usize, x: &[f64]) -> f64 {
        x[i]
    }
}

fn decode_instr(w: &[u32]) -> Instr {
    let at = HessenbergCells { m: w[1], h: w[2], rotations: w[3], g: w[4], y: w[5], used: w[6] };
    let test = |t: u32| {
        [
            Compare::Always,
            Compare::LessEqual,
            Compare::Greater,
            Compare::NotPositive,
            Compare::NotFinite,
            Compare::Zero,
        ][t as usize]
    };
    let unary = |op| Instr::Unary { op, dst: w[1], a: w[2] };
    let binary = |op| Instr::Binary { op, dst: w[1], a: w[2], b: w[3] };
    match w[0] {
        CODE_COPY => unary(Unary::Copy),
        CODE_NEG => unary(Unary::Neg),
        CODE_CONJ => unary(Unary::Conj),
        CODE_SQRT => unary(Unary::Sqrt),
        CODE_ADD => binary(Binary::Add),
        CODE_SUB => binary(Binary::Sub),
        CODE_MUL => binary(Binary::Mul),
        CODE_DIV => binary(Binary::Div),
        CODE_MAX => binary(Binary::Max),
        CODE_STOP => Instr::Stop { test: test(w[1]), a: w[2], b: w[3], reason: w[4], soft: w[5] == 1 },
        CODE_LEAVE => Instr::Leave { test: test(w[1]), a: w[2], b: w[3] },
        CODE_ONLY_IF => Instr::OnlyIf { test: test(w[1]), a: w[2], b: w[3] },
        CODE_COUNT => Instr::Count { rr: w[1] },
        CODE_CONFIRM => Instr::Confirm { rr: w[1], target: w[2], last: w[3], shrink: w[4] },
        CODE_ROTATE => Instr::Rotate { at, j: w[7], rr: w[8] },
        CODE_BACK_SUBSTITUTE => Instr::BackSubstitute { at },
        code => panic!("no instruction {code}"),
    }
}

/// Decodes the operation of a record. Dots are distinguished from copies of them.
fn decode(e: &Encoded, op: u32) -> Op {
    let field = |f: u32| e.op(op, f);
    let list = |at: u32, count: u32, words: u32| {
        assert_eq!(field(at) % ALIGN_WORDS, 0);
        let at = field(at) as usize;
        e.words[at..at + (field(count) * words) as usize].chunks(words.max(1) as usize)
    };
    let vector = |i: u32| e.vectors[i as usize];
    let slots: Vec<Vector> = list(OP_SLOTS, OP_SLOT_COUNT, 1).map(|w| vector(w[0])).collect();
    let slot = |s: u32| slots[s as usize];
    let h = || Cells::of(NumberType::F64, field(OP_H), field(OP_COLUMNS), 0);
    let kind = match field(OP_KIND) {
        KIND_SWEEP => OpKind::Sweep,
        KIND_SPMV => OpKind::Spmv {
            a: e.matrices[field(OP_MATRIX) as usize],
            x: vector(field(OP_X)),
            y: vector(field(OP_Y)),
        },
        KIND_BASIS_DOT => {
            OpKind::BasisDot { v: e.bases[field(OP_BASIS) as usize], w: vector(field(OP_Y)), h: h() }
        }
        KIND_BASIS_GRAM => {
            let [v, w] = [OP_BASIS, OP_Y].map(|of| e.bases[field(of) as usize]);
            assert_eq!(field(OP_X) as usize, v.columns);
            OpKind::BasisGram { v, w, g: h() }
        }
        KIND_BASIS_COMBINE => {
            let [v, x] = [OP_BASIS, OP_Y].map(|of| e.bases[field(of) as usize]);
            assert_eq!([OP_X, OP_COLUMNS].map(|of| field(of) as usize), [v.columns, x.columns]);
            let c = Cells::of(NumberType::F64, field(OP_H), (v.columns * x.columns) as u32, 0);
            OpKind::BasisCombine { v, c, x, add: field(OP_ADD) == 1 }
        }
        _ => OpKind::BasisAxpy {
            v: e.bases[field(OP_BASIS) as usize],
            h: h(),
            w: vector(field(OP_Y)),
            add: field(OP_ADD) == 1,
        },
    };
    let (mut at, mut updates) = (field(OP_UPDATES) as usize, Vec::new());
    for _ in 0..field(OP_UPDATE_COUNT) {
        let (dst, count) = (slot(e.words[at]), e.words[at + 1]);
        at += UPDATE_WORDS as usize;
        let terms = (0..count as usize).map(|t| {
            let w = &e.words[at + t * TERM_WORDS as usize..][..TERM_WORDS as usize];
            let coefficient = match w[0] {
                COEFFICIENT_ONE => Coefficient::One,
                COEFFICIENT_MINUS_ONE => Coefficient::MinusOne,
                _ => Coefficient::Cell(w[1]),
            };
            Term { coefficient, factor: (w[2] != NONE).then(|| slot(w[2])), vector: slot(w[3]) }
        });
        updates.push(Update { dst, terms: terms.collect() });
        at += (count * TERM_WORDS) as usize;
    }
    assert_eq!(at, field(OP_UPDATES_END) as usize);
    let dots = list(OP_DOTS, OP_DOT_COUNT, DOT_WORDS).enumerate();
    let sums = field(OP_DOT_COUNT) - field(OP_MAXIMA);
    let code = |at, count| list(at, count, INSTR_WORDS).map(decode_instr).collect::<Vec<_>>();
    let sweep = Sweep {
        kind: e.kind,
        name: "".into(),
        n: 0,
        before: code(OP_BEFORE, OP_BEFORE_COUNT),
        updates,
        dots: dots
            .map(|(d, w)| Dot {
                cell: w[0],
                a: slot(w[1]),
                b: slot(w[2]),
                factor: (w[3] != NONE).then(|| slot(w[3])),
                largest: d as u32 >= sums,
            })
            .collect(),
        after: code(OP_AFTER, OP_AFTER_COUNT),
        cells: Vec::new(),
    };
    Op { kind, sweep }
}

fn program() -> Program {
    let dev = Device::new(Reference::new());
    let a = dev.matrix(Arc::new(Unit(5))).unwrap();
    let mut k = Recorder::new(&dev, "everything");
    let [x, r, p, q, d] = k.vectors(5);
    let [rr, same, weighted, pq, alpha, target, last, shrink, largest] = k.cells();
    let v = k.basis(5, 4);
    let m = 3;
    let h = Hessenberg {
        m,
        h: k.run_of_cells(m * (m + 1)),
        rotations: k.run_of_cells(2 * m),
        g: k.run_of_cells(m + 1),
        y: k.run_of_cells(m),
        used: k.cells::<1>()[0],
    };
    k.multi_axpy_dot(Pass::new("start").set(x, Formula::value(0.0)).dot(target, x, x));
    k.restart(|k| {
        let confirm = crate::Confirm { rr, target, last, shrink };
        k.multi_axpy_dot(Pass::new("solve").back_substitute(h));
        k.basis_add(v, h.y, x, Pass::nothing());
        k.spmv_dot(&a, x, q, Pass::new("confirm").set(r, x - q).dot(rr, r, r).confirm(confirm));
    });
    k.each(|k| {
        k.spmv_dot(&a, p, q, Pass::new("along").dot(pq, p, q).eval(alpha, (rr / pq).sqrt().conj()));
        k.multi_axpy_dot(
            Pass::new("step")
                .eval(last, alpha.max(rr) - 2.0)
                .set(x, x + alpha * p - d * r)
                .set(r, r - alpha * (d * q))
                .dot(rr, r, r)
                .dot(same, r, r)
                .largest(largest, r)
                .dot(weighted, r, d * r)
                .dot(pq, p, r)
                .dot(pq, p, x)
                .stop_if(pq.not_positive(), Reason::Breakdown("test"))
                .stop_if(pq.not_finite(), Reason::Diverged)
                .count(rr)
                .leave_if(rr.le(target)),
        );
        k.basis_dot(v, x, h.h.take(3));
        k.basis_axpy(v, h.h.take(3), r, Pass::new("norm").dot(rr, r, r).add_cells(h.g.take(3), h.y));
        k.multi_axpy_dot(Pass::new("rotate").rotate(h, 1, rr).leave());
    });
    k.finish().unwrap()
}

#[test]
fn decoding_gives_back_the_program() {
    let program = program();
    let e = encode(&program).unwrap();
    assert_eq!(e.sections, [0..1, 1..4, 4..8]);
    assert_eq!((e.ops(), e.first_section(), e.n), (8, SECTION_SETUP, 5));
    for (i, op) in program.ops().enumerate() {
        let back = decode(&e, i as u32);
        let copies = op.sweep.dots.len() - back.sweep.dots.len();
        let mut dots = back.sweep.dots.clone();
        for copy in &back.sweep.after[..copies] {
            let Instr::Unary { op: Unary::Copy, dst, a } = *copy else { panic!("{copy:?}") };
            let of = *dots.iter().find(|d| d.cell == a).unwrap();
            dots.push(Dot { cell: dst, ..of });
        }
        for dot in &op.sweep.dots {
            assert!(dots.contains(dot), "{}", op.sweep.name);
        }
        let after: Vec<_> = op.sweep.after.iter().flat_map(one_by_one).collect();
        assert_eq!(back.sweep.after[copies..], after);
        let adds = after.iter().filter(|i| matches!(i, Instr::Binary { op: Binary::Add, .. })).count();
        assert_eq!(adds, if op.sweep.name.starts_with("norm") { 3 } else { 0 }, "{}", op.sweep.name);
        assert_eq!(back.sweep.before, op.sweep.before);
        assert_eq!(format!("{:?}", back.sweep.updates), format!("{:?}", op.sweep.updates));
        let kind = format!("{:?}", op.kind);
        let serial = |text: &str| text.split("serial").next().unwrap_or_default().to_owned();
        assert_eq!(serial(&format!("{:?}", back.kind)), serial(&kind));
    }
    let fields = |op, fields: [u32; 3]| fields.map(|f| e.op(op, f));
    assert_eq!(fields(0, [OP_LAST, OP_NEXT, OP_NEXT_LEFT]), [1, SECTION_RESTART, SECTION_RESTART]);
    assert_eq!(fields(3, [OP_LAST, OP_NEXT, OP_NEXT_LEFT]), [1, SECTION_EACH, SECTION_EACH]);
    assert_eq!(fields(7, [OP_LAST, OP_NEXT, OP_NEXT_LEFT]), [1, SECTION_EACH, SECTION_RESTART]);
    assert_eq!(fields(7, [OP_NEXT_OP, OP_NEXT_LEFT_OP, OP_SECTION]), [4, 1, SECTION_EACH]);
    assert!(e.is_scalar(1) && !e.is_scalar(2));
}

#[test]
fn operations_on_blocks_are_decoded() {
    let dev = Device::new(Reference::new());
    let mut k = Recorder::<f64>::new(&dev, "blocks");
    let (v, x, c) = (k.basis(5, 3), k.basis(5, 2), k.run_of_cells(6));
    k.basis_gram(v, x, c);
    k.basis_combine(v, c, x);
    k.basis_combine_add(v, c, x);
    let program = k.finish().unwrap();
    let e = encode(&program).unwrap();
    assert_eq!((e.sums, e.cells.len()), (6, 6));
    for (i, op) in program.ops().enumerate() {
        let serial =
            |kind: &OpKind| format!("{kind:?}").replace(&format!("serial: {}", c.serial), "serial: 0");
        assert_eq!(serial(&decode(&e, i as u32).kind), serial(&op.kind));
    }
}

#[test]
fn a_vector_is_loaded_where_its_old_value_is_read_and_stored_where_it_is_written() {
    let e = encode(&program()).unwrap();
    // confirm: q is computed, x read, r written.
    assert_eq!(e.op(3, OP_SLOT_COUNT), 3);
    assert_eq!((e.op(3, OP_LOAD_COUNT), e.op(3, OP_STORE_COUNT)), (1, 2));
    assert_eq!(e.words[e.op(3, OP_SLOTS) as usize], e.op(3, OP_Y));
    // along: q is computed, p read.
    assert_eq!((e.op(4, OP_LOAD_COUNT), e.op(4, OP_STORE_COUNT)), (1, 1));
    // step: x, p, d, r, q read, x and r written; r·r once.
    assert_eq!((e.op(5, OP_LOAD_COUNT), e.op(5, OP_STORE_COUNT)), (5, 2));
    assert_eq!((e.op(5, OP_DOT_COUNT), e.op(5, OP_MAXIMA)), (4, 1));
}

#[test]
fn the_header_names_every_constant() {
    let header = c_header();
    assert_eq!(header.lines().count(), LAYOUT.len());
    assert!(header.contains("#define LACUNA_OP_WORDS 32u\n"));
    assert!(LAYOUT.iter().all(|(name, value)| *value != NONE || *name == "NONE"));
}
