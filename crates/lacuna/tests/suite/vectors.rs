//! All types accepted as vectors.
use lacuna::ndarray::{ArrayView1, ArrayViewMut1, s};
use lacuna::prelude::*;
use lacuna::{AsVector, AsVectorMut};

/// The address of the first element.
fn address(b: impl AsVector<f64>) -> *const f64 {
    b.as_vector().as_ptr()
}

fn address_mut(mut x: impl AsVectorMut<f64>) -> *const f64 {
    x.as_vector_mut().as_ptr()
}

#[test]
fn nothing_is_copied() {
    let (mut array, mut vec) = (Array1::<f64>::zeros(6), vec![0.0; 6]);
    let first = array.as_ptr();
    assert_eq!(address(&array), first);
    assert_eq!(address(array.view()), first);
    assert_eq!(address(array.slice(s![..;2])), first);
    assert_eq!(address(array.slice(s![..;-1])), first.wrapping_add(5));
    assert_eq!(address_mut(&mut array), first);
    assert_eq!(address_mut(array.slice_mut(s![1..;2])), first.wrapping_add(1));
    let first = vec.as_ptr();
    assert_eq!((address(&vec), address(&vec[..]), address_mut(&mut vec)), (first, first, first));
    assert_eq!(address_mut(&mut vec[2..]), first.wrapping_add(2));
    let mut fixed = [0.0; 3];
    let first = fixed.as_ptr();
    assert_eq!((address(&fixed), address_mut(&mut fixed)), (first, first));
}

#[test]
fn all_of_them_solve_to_the_same_bits() {
    let a = Spec::parse("gen:convection:5x4").unwrap().build::<f64>().unwrap();
    let numbers: [f64; 20] = std::array::from_fn(|i| 1.0 + (i % 3) as f64);
    let vec = numbers.to_vec();
    let array = Array1::from_iter(numbers);
    let wide = Array2::from_shape_fn((20, 2), |(i, _)| numbers[i]);
    let expected = solve(&a, &numbers).unwrap().0;
    assert_eq!(solve(&a, &vec).unwrap().0, expected);
    assert_eq!(solve(&a, &vec[..]).unwrap().0, expected);
    assert_eq!(solve(&a, &array).unwrap().0, expected);
    assert_eq!(solve(&a, array.view()).unwrap().0, expected);
    assert_eq!(solve(&a, wide.column(1)).unwrap().0, expected);

    let mut system = LinearSystem::new(a).x0(&vec![0.0; 20]).prepare().unwrap();
    let mut x = [0.0; 20];
    system.solve_into(&vec, &mut x).unwrap();
    assert_eq!(ArrayView1::from(&x), expected);
    let mut x = vec![0.0; 20];
    system.solve_into(&array, &mut x).unwrap();
    assert_eq!(ArrayView1::from(&x), expected);
    x.fill(0.0);
    system.solve_into(&numbers, &mut x[..]).unwrap();
    assert_eq!(ArrayView1::from(&x), expected);
    x.fill(0.0);
    system.solve_into(&numbers, ArrayViewMut1::from(&mut x)).unwrap();
    assert_eq!(ArrayView1::from(&x), expected);
    let mut x = Array2::zeros((20, 3));
    system.solve_into(wide.column(0), x.column_mut(1)).unwrap();
    assert_eq!(x.column(1), expected);
    let mut x = Array1::zeros(20);
    system.solve_watched(&vec, &mut x, None).unwrap();
    assert_eq!(x, expected);
    assert!(matches!(system.solve(&vec[1..]), Err(Error::Length { .. })));

    let dev = default_device().unwrap();
    let on_device = to_device(&dev, &vec).unwrap();
    assert_eq!(to_host(&dev, *on_device).unwrap(), array);
}
