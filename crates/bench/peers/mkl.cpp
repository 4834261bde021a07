// Intel MKL: its optimised product and its BLAS under textbook loops of our own (MKL has no CG of comparable speed). Products of
// csr as it was handed over, too: what `mkl_sparse_optimize` returns is a copy in a format of MKL's, as `is_copied` sees.
#include "peer.hpp"
#include <mkl.h>
#include <mkl_spblas.h>

template <typename T> struct Blas;
template <> struct Blas<double> {
  static constexpr auto create = mkl_sparse_d_create_csr;
  static constexpr auto mv = mkl_sparse_d_mv;
  static constexpr auto dot = cblas_ddot;
  static constexpr auto axpy = cblas_daxpy;
  static constexpr auto axpby = cblas_daxpby;
  static constexpr auto scal = cblas_dscal;
  static constexpr auto gemv = cblas_dgemv;
};
template <> struct Blas<float> {
  static constexpr auto create = mkl_sparse_s_create_csr;
  static constexpr auto mv = mkl_sparse_s_mv;
  static constexpr auto dot = cblas_sdot;
  static constexpr auto axpy = cblas_saxpy;
  static constexpr auto axpby = cblas_saxpby;
  static constexpr auto scal = cblas_sscal;
  static constexpr auto gemv = cblas_sgemv;
};

template <typename T> struct Solver {
  using B = Blas<T>;
  using V = std::vector<T>;
  sparse_matrix_t a;
  matrix_descr general{SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_FULL, SPARSE_DIAG_NON_UNIT};
  int n;

  Solver(Csr<T> &csr, bool optimized) : n(csr.rows) {
    B::create(&a, SPARSE_INDEX_BASE_ZERO, csr.rows, csr.cols, csr.row_ptr.data(), csr.row_ptr.data() + 1,
              csr.col_idx.data(), csr.values.data());
    if (!optimized) return;
    mkl_sparse_set_mv_hint(a, SPARSE_OPERATION_NON_TRANSPOSE, general, 10000);
    mkl_sparse_optimize(a);
  }
  Solver(const Solver &) = delete;
  ~Solver() { mkl_sparse_destroy(a); }

  void mul(const T *x, T *y) const { B::mv(SPARSE_OPERATION_NON_TRANSPOSE, 1, a, general, x, 0, y); }
  T dot(const V &x, const V &y) const { return B::dot(n, x.data(), 1, y.data(), 1); }
  void axpy(T c, const V &x, V &y) const { B::axpy(n, c, x.data(), 1, y.data(), 1); }
  void axpby(T c, const V &x, T d, V &y) const { B::axpby(n, c, x.data(), 1, d, y.data(), 1); }

  void cg(const V &b, V &x) const {
    V r = b, p = b, q(n);
    std::fill(x.begin(), x.end(), T(0));
    T rr = dot(r, r);
    for (int i = 0; i < ITERATIONS; i++) {
      mul(p.data(), q.data());
      T alpha = rr / dot(p, q);
      axpy(alpha, p, x);
      axpy(-alpha, q, r);
      T next = dot(r, r);
      axpby(1, r, next / rr, p);
      rr = next;
    }
  }
  // With Jacobi's preconditioner until converged; the iterations it took.
  long converge(const V &b, const V &reciprocals, V &x) const {
    V r = b, z(n), p(n), q(n);
    auto precondition = [&] {
      for (int i = 0; i < n; i++) z[i] = reciprocals[i] * r[i];
    };
    std::fill(x.begin(), x.end(), T(0));
    precondition();
    p = z;
    T rz = dot(r, z), goal = TOLERANCE * TOLERANCE * dot(b, b);
    for (long i = 1; i <= MOST_ITERATIONS; i++) {
      mul(p.data(), q.data());
      T alpha = rz / dot(p, q);
      axpy(alpha, p, x);
      axpy(-alpha, q, r);
      if (dot(r, r) <= goal) return i;
      precondition();
      T next = dot(r, z);
      axpby(1, z, next / rz, p);
      rz = next;
    }
    return MOST_ITERATIONS;
  }
  void bicgstab(const V &b, V &x) const {
    V r = b, r0 = b, p = b, v(n), t(n);
    std::fill(x.begin(), x.end(), T(0));
    T rho = dot(r0, r), rr = rho;
    for (int i = 0; i < ITERATIONS && rr > 0; i++) {
      mul(p.data(), v.data());
      T alpha = rho / dot(r0, v);
      axpy(-alpha, v, r);
      mul(r.data(), t.data());
      T omega = dot(t, r) / dot(t, t);
      axpy(alpha, p, x);
      axpy(omega, r, x);
      axpy(-omega, t, r);
      T next = dot(r0, r), beta = next / rho * (alpha / omega);
      rr = dot(r, r);
      axpy(-omega, v, p);
      axpby(1, r, beta, p);
      rho = next;
    }
  }
  // Classical Gram-Schmidt, once.
  void gmres(const V &b, V &x) const {
    const int m = ITERATIONS;
    V v((std::size_t)n * (m + 1)), h((m + 1) * m);
    T beta = std::sqrt(dot(b, b));
    for (int i = 0; i < n; i++) v[i] = b[i] / beta;
    for (int j = 0; j < m; j++) {
      T *w = v.data() + (std::size_t)n * (j + 1), *column = h.data() + (m + 1) * j;
      mul(w - n, w);
      B::gemv(CblasColMajor, CblasTrans, n, j + 1, 1, v.data(), n, w, 1, 0, column, 1);
      B::gemv(CblasColMajor, CblasNoTrans, n, j + 1, -1, v.data(), n, column, 1, 1, w, 1);
      column[j + 1] = std::sqrt(B::dot(n, w, 1, w, 1));
      B::scal(n, 1 / column[j + 1], w, 1);
    }
    V y = least_squares(h, m, beta);
    B::gemv(CblasColMajor, CblasNoTrans, n, m, 1, v.data(), n, y.data(), 1, 0, x.data(), 1);
  }
};

// Whether an optimised matrix is a copy: it does not see the values change that it was made from.
template <typename T> bool is_copied(Csr<T> &csr, const Solver<T> &optimized) {
  std::vector<T> b(csr.cols, T(1)), before(csr.rows), after(csr.rows), values = csr.values;
  optimized.mul(b.data(), before.data());
  std::fill(csr.values.begin(), csr.values.end(), T(0));
  optimized.mul(b.data(), after.data());
  csr.values = values;
  return before == after;
}

template <typename T> void run(const Task &task) {
  Csr<T> csr = read_csr<T>(task.file);
  Solver<T> solver(csr, true), plain(csr, false);
  const char *optimized = is_copied(csr, solver) ? "its own" : "csr";
  std::vector<T> b(csr.cols, T(1)), x(csr.rows);
  for (const std::string &method : task.methods) {
    if (method == CONVERGED) {
      std::vector<T> reciprocals(csr.rows);
      for (int i = 0; i < csr.rows; i++)
        for (int k = csr.row_ptr[i]; k < csr.row_ptr[i + 1]; k++)
          if (csr.col_idx[k] == i) reciprocals[i] = 1 / csr.values[k];
      Result result;
      result.fresh = result.again = median(task.repeats, [&] { result.iterations = solver.converge(b, reciprocals, x); });
      task.print("mkl", mkl_get_max_threads(), method, csr.rows, result);
      continue;
    }
    auto measure = [&](const char *peer, const Solver<T> &solver, const char *format) {
      Result result;
      result.fresh = result.again = median(task.repeats, [&] {
        if (method == "cg") solver.cg(b, x);
        if (method == "bicgstab") solver.bicgstab(b, x);
        if (method == "gmres") solver.gmres(b, x);
        if (method == "spmv") solver.mul(b.data(), x.data());
      });
      result.format = format;
      task.print(peer, mkl_get_max_threads(), method, csr.rows, result);
    };
    measure("mkl", solver, optimized);
    if (method == "spmv") measure("mkl-csr", plain, "csr");
  }
}

int main(int argc, char **argv) {
  Task task(argc, argv);
  task.single ? run<float>(task) : run<double>(task);
}
