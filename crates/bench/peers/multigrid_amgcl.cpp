// AMGCL: conjugate gradients with its smoothed aggregation and SPAI-0, on a matrix in PETSc's binary format, to |b - A x| <= 1e-8 |b|
// for ones. Prints iterations, seconds of the set-up and of the solve, and the true residual: the least of three runs.
//
//     multigrid_amgcl A.petsc [narrow]
//
// `narrow` keeps the hierarchy in single precision.
#include "peer.hpp"
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>
#include <optional>

template <class Real> void run(const Csr<double> &csr) {
  using Full = amgcl::backend::builtin<double>;
  using Multigrid =
      amgcl::amg<amgcl::backend::builtin<Real>, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>;
  using Solver = amgcl::make_solver<Multigrid, amgcl::solver::cg<Full>>;
  std::vector<ptrdiff_t> row_ptr(csr.row_ptr.begin(), csr.row_ptr.end()), columns(csr.col_idx.begin(), csr.col_idx.end());
  auto a = std::tie(csr.rows, row_ptr, columns, csr.values);
  typename Solver::params params;
  params.solver.tol = TOLERANCE;
  params.solver.maxiter = MOST_ITERATIONS;
  std::vector<double> b(csr.rows, 1.0), x;
  double setup = 1e300, solve = 1e300;
  size_t iterations = 0;
  for (int round = 0; round < 3; round++) {
    double start = now();
    std::optional<Solver> solver(std::in_place, a, params);
    setup = std::min(setup, now() - start);
    x.assign(csr.rows, 0.0);
    start = now();
    iterations = std::get<0>((*solver)(b, x));
    solve = std::min(solve, now() - start);
  }
  std::printf("%zu %.3f %.3f %.1e\n", iterations, setup, solve, residual(csr, x));
}

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s A.petsc [narrow]\n", argv[0]), 2;
  Csr<double> csr = read_csr<double>(argv[1]);
  argc > 2 ? run<float>(csr) : run<double>(csr);
}
