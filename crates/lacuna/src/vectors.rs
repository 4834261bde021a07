//! The types accepted as vectors.
use lacuna_engine::Scalar;
use ndarray::{ArrayBase, ArrayView1, ArrayViewMut1, Data, DataMut, Ix1};

/// A vector on the host to read: `&[T]`, `&[T; N]`, `&Vec<T>`, `&Array1<T>` or an `ArrayView1<T>`, which may
/// be strided. Contiguous elements are not copied.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:poisson2d:10x10")?.build::<f64>()?;
/// let (x, _) = solve(&a, &vec![1.0; 100])?;
/// let (y, _) = solve(&a, &Array1::ones(100))?;
/// let (z, _) = solve(&a, Array2::ones((100, 3)).column(1))?;
/// assert!(x == y && y == z);
/// # Ok::<(), lacuna::Error>(())
/// ```
///
/// The trait is sealed.
pub trait AsVector<T: Scalar>: Sealed {
    /// Its elements.
    fn as_vector(&self) -> ArrayView1<'_, T>;
}

/// A vector on the host to write: `&mut [T]`, `&mut [T; N]`, `&mut Vec<T>`, `&mut Array1<T>` or an
/// `ArrayViewMut1<T>`, which may be strided. The trait is sealed.
///
/// ```
/// use lacuna::prelude::*;
///
/// let a = Spec::parse("gen:poisson2d:10x10")?.build::<f64>()?;
/// let (b, mut x) = (vec![1.0; 100], vec![0.0; 100]);
/// let mut system = LinearSystem::new(a).prepare()?;
/// assert!(system.solve_into(&b, &mut x)?.converged());
/// assert!(system.solve_into(&b, &mut x[..])?.iterations == 0);
/// # Ok::<(), lacuna::Error>(())
/// ```
pub trait AsVectorMut<T: Scalar>: Sealed {
    /// Its elements.
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T>;
}

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

impl<T> Sealed for &[T] {}
impl<T: Scalar> AsVector<T> for &[T] {
    fn as_vector(&self) -> ArrayView1<'_, T> {
        ArrayView1::from(*self)
    }
}
impl<T, const N: usize> Sealed for &[T; N] {}
impl<T: Scalar, const N: usize> AsVector<T> for &[T; N] {
    fn as_vector(&self) -> ArrayView1<'_, T> {
        ArrayView1::from(&self[..])
    }
}
impl<T> Sealed for &Vec<T> {}
impl<T: Scalar> AsVector<T> for &Vec<T> {
    fn as_vector(&self) -> ArrayView1<'_, T> {
        ArrayView1::from(&self[..])
    }
}
impl<S: Data> Sealed for &ArrayBase<S, Ix1> {}
impl<T: Scalar, S: Data<Elem = T>> AsVector<T> for &ArrayBase<S, Ix1> {
    fn as_vector(&self) -> ArrayView1<'_, T> {
        self.view()
    }
}
impl<T> Sealed for ArrayView1<'_, T> {}
impl<T: Scalar> AsVector<T> for ArrayView1<'_, T> {
    fn as_vector(&self) -> ArrayView1<'_, T> {
        self.view()
    }
}

impl<T> Sealed for &mut [T] {}
impl<T: Scalar> AsVectorMut<T> for &mut [T] {
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T> {
        ArrayViewMut1::from(&mut **self)
    }
}
impl<T, const N: usize> Sealed for &mut [T; N] {}
impl<T: Scalar, const N: usize> AsVectorMut<T> for &mut [T; N] {
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T> {
        ArrayViewMut1::from(&mut self[..])
    }
}
impl<T> Sealed for &mut Vec<T> {}
impl<T: Scalar> AsVectorMut<T> for &mut Vec<T> {
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T> {
        ArrayViewMut1::from(&mut self[..])
    }
}
impl<S: DataMut> Sealed for &mut ArrayBase<S, Ix1> {}
impl<T: Scalar, S: DataMut<Elem = T>> AsVectorMut<T> for &mut ArrayBase<S, Ix1> {
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T> {
        self.view_mut()
    }
}
impl<T> Sealed for ArrayViewMut1<'_, T> {}
impl<T: Scalar> AsVectorMut<T> for ArrayViewMut1<'_, T> {
    fn as_vector_mut(&mut self) -> ArrayViewMut1<'_, T> {
        self.view_mut()
    }
}
