// ViennaCL: conjugate gradients with its smoothed aggregation, on a matrix in PETSc's binary format, to |b - A x| <= 1e-8 |b| for
// ones. Prints iterations, seconds of the set-up and of the solve, and the true residual: the least of three runs.
//
//     multigrid_viennacl A.petsc [mis2]
//
// Built for the host with OpenMP (-DVIENNACL_WITH_OPENMP -fopenmp), or for CUDA (nvcc -x cu -DVIENNACL_WITH_CUDA). Aggregates are
// made one after another, on the host; `mis2` makes them in parallel, by independent sets, where the solve runs. ViennaCL's own
// test is of the preconditioned residual: an untimed solve finds how many iterations the true one needs, the timed one makes as many.
#include "peer.hpp"
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/amg.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/norm_2.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/vector.hpp>

using Matrix = viennacl::compressed_matrix<double>;
using Vector = viennacl::vector<double>;
using namespace viennacl::linalg;

#ifdef VIENNACL_WITH_CUDA
const int DIGITS = 5;
#else
const int DIGITS = 3;
#endif

struct System {
  const Matrix &a;
  const Vector &b;
};

bool converged(const Vector &x, double, void *data) {
  auto &[a, b] = *static_cast<System *>(data);
  Vector r = prod(a, x);
  r = b - r;
  return norm_2(r) <= TOLERANCE * norm_2(b);
}

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s A.petsc [mis2]\n", argv[0]), 2;
  Csr<double> csr = read_csr<double>(argv[1]);
  Matrix a;
  a.set(csr.row_ptr.data(), csr.col_idx.data(), csr.values.data(), csr.rows, csr.cols, csr.nnz);
  Vector b = viennacl::scalar_vector<double>(csr.rows, 1.0), x(csr.rows);
  System system{a, b};
  amg_tag options;
  if (argc > 2) {
    options.set_coarsening_method(AMG_COARSENING_METHOD_MIS2_AGGREGATION);
  } else {
    options.set_coarsening_method(AMG_COARSENING_METHOD_AGGREGATION);
    options.set_setup_context(viennacl::context(viennacl::MAIN_MEMORY));
  }
  options.set_interpolation_method(AMG_INTERPOLATION_METHOD_SMOOTHED_AGGREGATION);
  // The other weight that ViennaCL's documentation names, 1, takes 243 iterations instead of 34 on gen:poisson2d:500x500 with `mis2`.
  options.set_jacobi_weight(0.67);
  double setup = 1e300, solve = 1e300;
  unsigned iterations = 0;
  for (int round = 0; round < 3; round++) {
    viennacl::backend::finish();
    double start = now();
    amg_precond<Matrix> amg(a, options);
    amg.setup();
    viennacl::backend::finish();
    setup = std::min(setup, now() - start);
    cg_solver<Vector> watched(cg_tag(1e-300, MOST_ITERATIONS));
    watched.set_monitor(converged, &system);
    watched(a, b, amg);
    iterations = watched.tag().iters();
    start = now();
    x = viennacl::linalg::solve(a, b, cg_tag(1e-300, iterations), amg);
    viennacl::backend::finish();
    solve = std::min(solve, now() - start);
  }
  std::vector<double> host_x(csr.rows);
  viennacl::fast_copy(x, host_x);
  std::printf("%u %.*f %.*f %.1e\n", iterations, DIGITS, setup, DIGITS, solve, residual(csr, host_x));
}
