//! The numbers of blocks that several operations share.
use lacuna_core::{Backend, Format, Pass, Recorder, Reference, encode};
use lacuna_formats::{Csr, Spec};
use lacuna_generate::{Device, Layout, MatrixFacts, Shelf};
use std::sync::Arc;

/// The layout of a program that multiplies so many columns, one after the other.
fn layout(columns: usize) -> Layout {
    let a: Arc<Csr<f64>> = Arc::new(Spec::parse("gen:poisson2d:30x30").unwrap().build().unwrap());
    let (n, dev) = (a.rows(), &mut Reference::default());
    let m = Backend::matrix(dev, a.clone() as Arc<dyn Format<f64>>).unwrap();
    let [x, y] = [0, 1].map(|_| Backend::basis::<f64>(dev, n, columns).unwrap());
    let rr = Backend::cells::<f64>(dev, 1).unwrap();
    let mut k = Recorder::new(dev, "columns");
    k.each(|k| {
        (0..columns).for_each(|j| k.spmv_dot(&m, x.column(j), y.column(j), Pass::nothing()));
        k.multi_axpy_dot(Pass::new("count").count(rr.at(0)));
    });
    let e = encode::encode(&k.finish().unwrap()).unwrap();
    let facts = MatrixFacts { format: &*a as &dyn Format<f64>, serial: m.serial, stages: true };
    let device = Device {
        nvidia: true,
        cache: 0,
        local: 200 << 10,
        largest: 1024,
        size: 0,
        ways: 0,
        units: 132,
        prelude: None,
    };
    Layout::near(&e, &[facts], device, 4, &mut Shelf::<(), ()>::default()).unwrap().0
}

#[test]
fn what_is_copied_to_local_memory_has_room_there() {
    let layout = layout(6);
    assert!(
        layout.text.contains("= params + op"),
        "products share a block, whose numbers are read where they are"
    );
    assert!(!layout.text.contains("near_params[i] = params[i]"), "there are {} bytes", layout.local[6]);
}
