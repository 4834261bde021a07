// ViennaCL on the host with OpenMP, or on an OpenCL device (-DVIENNACL_WITH_OPENCL -lOpenCL): its pipelined solvers and
// its product.
#ifndef VIENNACL_WITH_OPENCL
#define VIENNACL_WITH_OPENMP
#include <omp.h>
#endif
#include "peer.hpp"
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/bicgstab.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/gmres.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/vector.hpp>

#ifdef VIENNACL_WITH_OPENCL
const char *const PEER = "viennacl-opencl";
int threads() { return 1; }
#else
const char *const PEER = "viennacl";
int threads() { return omp_get_max_threads(); }
#endif

template <typename T, typename Tag>
void solve(const Task &task, const std::string &method, const viennacl::compressed_matrix<T> &a,
           const viennacl::vector<T> &b, const Tag &tag) {
  viennacl::vector<T> x(b.size());
  double time = median(task.repeats, [&] {
    x = viennacl::linalg::solve(a, b, tag);
    viennacl::backend::finish();
  });
  task.check(PEER, method, tag.iters());
  task.print(PEER, threads(), method, b.size(), time, time);
}

template <typename T> void run(const Task &task) {
  Csr<T> csr = read_csr<T>(task.file);
  viennacl::compressed_matrix<T> a;
  a.set(csr.row_ptr.data(), csr.col_idx.data(), csr.values.data(), csr.rows, csr.cols, csr.nnz);
  viennacl::vector<T> b = viennacl::scalar_vector<T>(csr.rows, T(1)), y(csr.rows);
  for (const std::string &method : task.methods) {
    if (method == "cg") solve(task, method, a, b, viennacl::linalg::cg_tag(1e-100, ITERATIONS));
    if (method == "bicgstab")
      solve(task, method, a, b, viennacl::linalg::bicgstab_tag(1e-100, ITERATIONS, ITERATIONS));
    if (method == "gmres") solve(task, method, a, b, viennacl::linalg::gmres_tag(1e-100, ITERATIONS, ITERATIONS));
    if (method == "spmv") {
      double time = median(task.repeats, [&] {
        y = viennacl::linalg::prod(a, b);
        viennacl::backend::finish();
      });
      task.print(PEER, threads(), method, csr.rows, time, time);
    }
  }
}

int main(int argc, char **argv) {
  Task task(argc, argv);
  task.single ? run<float>(task) : run<double>(task);
}
