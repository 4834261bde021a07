// ViennaCL's pipelined solvers and its product: on the host with OpenMP, on an OpenCL device (-DVIENNACL_WITH_OPENCL
// -lOpenCL) or with CUDA (nvcc -x cu -DVIENNACL_WITH_CUDA); in each row with the fastest of its formats.
#if !defined(VIENNACL_WITH_OPENCL) && !defined(VIENNACL_WITH_CUDA)
#define VIENNACL_WITH_OPENMP
#include <omp.h>
#endif
#include "peer.hpp"
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/ell_matrix.hpp>
#include <viennacl/hyb_matrix.hpp>
#include <viennacl/linalg/bicgstab.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/gmres.hpp>
#include <viennacl/linalg/jacobi_precond.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/sliced_ell_matrix.hpp>
#include <viennacl/vector.hpp>

#if defined(VIENNACL_WITH_CUDA)
const char *const PEER = "viennacl-cuda";
#elif defined(VIENNACL_WITH_OPENCL)
const char *const PEER = "viennacl-opencl";
#else
const char *const PEER = "viennacl";
#endif
#ifdef VIENNACL_WITH_OPENMP
const bool DEVICE = false;
int threads() { return omp_get_max_threads(); }
#else
const bool DEVICE = true;
int threads() { return 0; }
#endif

// Rows of a matrix as viennacl::copy wants to see them.
template <typename T> struct Rows {
  using size_type = std::size_t;
  const Csr<T> &a;
  struct const_iterator2 {
    const Csr<T> *a;
    std::size_t row, at;
    const_iterator2 &operator++() { return at++, *this; }
    bool operator!=(const const_iterator2 &other) const { return at != other.at; }
    T operator*() const { return a->values[at]; }
    std::size_t index1() const { return row; }
    std::size_t index2() const { return a->col_idx[at]; }
  };
  struct const_iterator1 {
    const Csr<T> *a;
    std::size_t row;
    const_iterator1 &operator++() { return row++, *this; }
    bool operator!=(const const_iterator1 &other) const { return row != other.row; }
    std::size_t index1() const { return row; }
    const_iterator2 begin() const { return {a, row, std::size_t(a->row_ptr[row])}; }
    const_iterator2 end() const { return {a, row, std::size_t(a->row_ptr[row + 1])}; }
  };
  std::size_t size1() const { return a.rows; }
  std::size_t size2() const { return a.cols; }
  const_iterator1 begin1() const { return {&a, 0}; }
  const_iterator1 end1() const { return {&a, size1()}; }
};

// The matrix in every format; in ELL where filling rows up does not triple it.
template <typename T> struct Formats {
  viennacl::compressed_matrix<T> csr;
  viennacl::ell_matrix<T> ell;
  viennacl::sliced_ell_matrix<T> sell;
  viennacl::hyb_matrix<T> hyb;

  explicit Formats(Csr<T> &a) {
    csr.set(a.row_ptr.data(), a.col_idx.data(), a.values.data(), a.rows, a.cols, a.nnz);
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < a.rows; i++) longest = std::max<std::int64_t>(longest, a.row_ptr[i + 1] - a.row_ptr[i]);
    Rows<T> rows{a};
    if (longest * a.rows <= 3 * a.nnz) viennacl::copy(rows, ell);
    viennacl::copy(rows, sell);
    viennacl::copy(rows, hyb);
  }
  template <typename Work> void each(Work work) const {
    auto guarded = [&](const char *name, const auto &matrix) {
      try {
        work(name, matrix);
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s %s: %s\n", PEER, name, error.what());
      }
    };
    guarded("csr", csr);
    if (ell.size1()) guarded("ell", ell);
    guarded("sell", sell);
    guarded("hyb", hyb);
  }
  // The format in which `once` takes the least time, by the best of three after one.
  template <typename Once> std::string fastest(Once once) const {
    std::string best;
    double least = 1e300;
    each([&](const char *name, const auto &matrix) {
      once(matrix);
      for (int i = 0; i < 3; i++) {
        double start = now();
        once(matrix);
        if (now() - start < least) least = now() - start, best = name;
      }
    });
    return best;
  }
};

template <typename T, typename Tag>
void solve(const Task &task, const std::string &method, const Csr<T> &csr, const Formats<T> &a, const Tag &few, const Tag &tag) {
  std::vector<T> host_b(csr.rows, T(1)), host_x(csr.rows);
  viennacl::vector<T> b(csr.rows), x(csr.rows);
  viennacl::fast_copy(host_b, b);
  auto run = [&](const auto &matrix, const Tag &tag) {
    x = viennacl::linalg::solve(matrix, b, tag);
    viennacl::backend::finish();
  };
  std::string best = a.fastest([&](const auto &matrix) { run(matrix, few); });
  a.each([&](const char *format, const auto &matrix) {
    if (best != format) return;
    Result result;
    double time = median(task.repeats, [&] { run(matrix, tag); });
    task.check(PEER, method, tag.iters());
    result.fresh = result.again = time;
    if (DEVICE) {
      result.on_device = time;
      result.fresh = result.again = median(task.repeats, [&] {
        viennacl::fast_copy(host_b, b);
        run(matrix, tag);
        viennacl::fast_copy(x, host_x);
      });
    }
    viennacl::fast_copy(x, host_x);
    result.residual = residual(csr, host_x);
    result.format = format;
    task.print(PEER, threads(), method, csr.rows, result);
  });
}

#ifdef VIENNACL_WITH_OPENMP
// With Jacobi's preconditioner until converged, in csr, the format that it takes.
template <typename T> void converge(const Task &task, const Formats<T> &a, std::int64_t n) {
  using namespace viennacl::linalg;
  viennacl::vector<T> b = viennacl::scalar_vector<T>(n, T(1)), x(n);
  cg_tag tag(TOLERANCE, MOST_ITERATIONS);
  Result result;
  result.fresh = result.again = median(task.repeats, [&] {
    jacobi_precond<viennacl::compressed_matrix<T>> jacobi(a.csr, jacobi_tag());
    x = viennacl::linalg::solve(a.csr, b, tag, jacobi);
    viennacl::backend::finish();
  });
  result.iterations = tag.iters(), result.format = "csr";
  task.print(PEER, threads(), CONVERGED, n, result);
}
#endif

template <typename T> void run(const Task &task) {
  Csr<T> csr = read_csr<T>(task.file);
  const Formats<T> a(csr);
  const int few = 5, all = ITERATIONS, count = DEVICE ? PRODUCTS : 1;
  using namespace viennacl::linalg;
  for (const std::string &method : task.methods) {
    if (method == "cg") solve(task, method, csr, a, cg_tag(1e-100, few), cg_tag(1e-100, all));
    if (method == "bicgstab") solve(task, method, csr, a, bicgstab_tag(1e-100, few, few), bicgstab_tag(1e-100, all, all));
    if (method == "gmres") solve(task, method, csr, a, gmres_tag(1e-100, few, few), gmres_tag(1e-100, all, all));
#ifdef VIENNACL_WITH_OPENMP
    if (method == CONVERGED) converge(task, a, csr.rows);
#endif
    if (method != "spmv") continue;
    viennacl::vector<T> x = viennacl::scalar_vector<T>(csr.cols, T(1)), y(csr.rows);
    auto products = [&](const auto &matrix) {
      for (int i = 0; i < count; i++) y = prod(matrix, x);
      viennacl::backend::finish();
    };
    std::string best = a.fastest(products);
    a.each([&](const char *format, const auto &matrix) {
      if (best != format) return;
      Result result;
      result.fresh = result.again = median(task.repeats, [&] { products(matrix); }) / count;
      result.format = format;
      task.print(PEER, threads(), method, csr.rows, result);
    });
  }
}

int main(int argc, char **argv) {
  for (const Task &task : tasks(argc, argv)) task.single ? run<float>(task) : run<double>(task);
}
