// Eigen: its conjugate gradients, BiCGSTAB and GMRES without preconditioner, conjugate gradients with Jacobi's until converged,
// its product, its reading of Matrix Market files and its assembly from triplets.
#include "peer.hpp"
#include <Eigen/Sparse>
#include <omp.h>
#include <unsupported/Eigen/IterativeSolvers>
#include <unsupported/Eigen/SparseExtra>

template <typename T> using Matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, int>;
template <typename T> using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

template <typename Solver> void settings(Solver &solver) {
  solver.setMaxIterations(ITERATIONS);
  solver.setTolerance(std::numeric_limits<typename Solver::RealScalar>::min());
}
template <typename M> void settings(Eigen::GMRES<M, Eigen::IdentityPreconditioner> &solver) {
  solver.setMaxIterations(ITERATIONS);
  solver.setTolerance(std::numeric_limits<typename M::RealScalar>::min());
  solver.set_restart(ITERATIONS);
}

template <typename Solver, typename T>
void solve(const Task &task, const std::string &method, const Matrix<T> &a, const Vector<T> &b) {
  Vector<T> x(b.size());
  long iterations = 0;
  double fresh = median(task.repeats, [&] {
    Solver solver;
    settings(solver);
    solver.compute(a);
    x = solver.solve(b);
    iterations = solver.iterations();
  });
  task.check("eigen", method, iterations);
  Solver solver;
  settings(solver);
  solver.compute(a);
  double again = median(task.repeats, [&] { x = solver.solve(b); });
  task.print("eigen", omp_get_max_threads(), method, b.size(), {fresh, again});
}

template <typename T> void converge(const Task &task, const Matrix<T> &a, const Vector<T> &b) {
  Vector<T> x(b.size());
  Eigen::ConjugateGradient<Matrix<T>, Eigen::Lower | Eigen::Upper> solver;
  solver.setMaxIterations(MOST_ITERATIONS);
  solver.setTolerance(TOLERANCE);
  double time = median(task.repeats, [&] {
    solver.compute(a);
    x = solver.solve(b);
  });
  Result result{time, time};
  result.iterations = solver.iterations();
  task.print("eigen", omp_get_max_threads(), CONVERGED, b.size(), result);
}

template <typename T> void run(const Task &task) {
  Csr<T> csr = read_csr<T>(task.file);
  Matrix<T> a = Eigen::Map<const Matrix<T>>(csr.rows, csr.cols, csr.nnz, csr.row_ptr.data(), csr.col_idx.data(),
                                            csr.values.data());
  Vector<T> b = Vector<T>::Ones(csr.rows), y(csr.rows);
  using I = Eigen::IdentityPreconditioner;
  for (const std::string &method : task.methods) {
    if (method == "cg") solve<Eigen::ConjugateGradient<Matrix<T>, Eigen::Lower | Eigen::Upper, I>>(task, method, a, b);
    if (method == "bicgstab") solve<Eigen::BiCGSTAB<Matrix<T>, I>>(task, method, a, b);
    if (method == "gmres") solve<Eigen::GMRES<Matrix<T>, I>>(task, method, a, b);
    if (method == CONVERGED) converge(task, a, b);
    if (method == "read" || method == "assemble") {
      std::vector<Eigen::Triplet<T>> triplets;
      if (method == "assemble") shuffled(csr, [&](int i, int j, T v) { triplets.emplace_back(i, j, v); });
      Matrix<T> made(csr.rows, csr.cols);
      double time = median(task.repeats, [&] {
        if (method == "read") Eigen::loadMarket(made, task.market());
        else made.setFromTriplets(triplets.begin(), triplets.end());
      });
      task.print("eigen", omp_get_max_threads(), method, csr.rows, {time, time});
    }
    if (method == "spmv") {
      double time = median(task.repeats, [&] { y.noalias() = a * b; });
      task.print("eigen", omp_get_max_threads(), method, csr.rows, {time, time});
    }
  }
}

int main(int argc, char **argv) {
  Task task(argc, argv);
  task.single ? run<float>(task) : run<double>(task);
}
