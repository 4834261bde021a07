// Eigen's incomplete factors: conjugate gradients with its incomplete Cholesky, or BiCGSTAB with its ILUT (1e-3, 10), to a true
// residual of 1e-8. Prints the iterations, the seconds of set-up and of solve and the true relative residual, of the fastest of three
// rounds.
//
//   factors ic|ilut A.petsc b.petsc MOST_ITERATIONS
#include "peer.hpp"
#include <Eigen/Sparse>

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor, int>;
using Vector = Eigen::VectorXd;

const int AGAIN = 3; // solves more from the x there is, while the true residual is above the tolerance

// A vector in PETSc's binary form: big-endian.
Vector read_vector(const char *path, std::int64_t n) {
  Vector b(n);
  FILE *file = std::fopen(path, "rb");
  if (!file || std::fseek(file, 8, SEEK_SET) || std::fread(b.data(), 8, n, file) != std::size_t(n)) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(2);
  }
  std::fclose(file);
  for (double &value : b) {
    std::uint64_t word;
    std::memcpy(&word, &value, 8);
    word = __builtin_bswap64(word);
    std::memcpy(&value, &word, 8);
  }
  return b;
}

const int ROUNDS = 3;

template <typename Solver> void solve(Solver &solver, const Matrix &a, const Vector &b, int most) {
  long iterations = 0;
  double setup = 0, solved = 0, residual = 0;
  for (int round = 0; round < ROUNDS; round++) {
    Vector x = Vector::Zero(b.size());
    double start = now();
    solver.compute(a);
    double ready = now();
    if (solver.info() != Eigen::Success) std::exit(1);
    solver.setTolerance(TOLERANCE);
    solver.setMaxIterations(most);
    long count = 0;
    double left;
    int again = AGAIN;
    do {
      x = solver.solveWithGuess(b, x);
      count += solver.iterations();
      left = (b - a * x).norm() / b.norm();
    } while (left > TOLERANCE && again-- > 0);
    double end = now();
    if (round == 0 || end - start < setup + solved) {
      setup = ready - start, solved = end - ready;
      iterations = count, residual = left;
    }
  }
  std::printf("%ld %.6f %.6f %.3e\n", iterations, setup, solved, residual);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  Csr<double> csr = read_csr<double>(argv[2]);
  Matrix a = Eigen::Map<const Matrix>(csr.rows, csr.cols, csr.nnz, csr.row_ptr.data(), csr.col_idx.data(), csr.values.data());
  Vector b = read_vector(argv[3], csr.rows);
  if (!std::strcmp(argv[1], "ic")) {
    Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper, Eigen::IncompleteCholesky<double>> cg;
    solve(cg, a, b, std::atoi(argv[4]));
  } else {
    Eigen::BiCGSTAB<Matrix, Eigen::IncompleteLUT<double>> bicgstab;
    bicgstab.preconditioner().setDroptol(1e-3);
    bicgstab.preconditioner().setFillfactor(10);
    solve(bicgstab, a, b, std::atoi(argv[4]));
  }
}
