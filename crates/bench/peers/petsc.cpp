// PETSc: KSPCG, KSPBCGS and KSPGMRES (classical Gram-Schmidt) without preconditioner, KSPCG with Jacobi's until converged, MatMult;
// in double precision.
// A name that begins with gen:elasticity is stored in 3x3 blocks too, as peer `petsc-baij`.
#include "peer.hpp"
#include <petscksp.h>

static const char *peer = "petsc", *format = nullptr;
static int ranks, rank;

static bool agree(bool more) {
  int all = more;
  MPI_Bcast(&all, 1, MPI_INT, 0, PETSC_COMM_WORLD);
  return all;
}

static void print(const Task &task, const std::string &method, std::int64_t n, double fresh, double again) {
  Result result{fresh, again};
  result.format = format;
  if (rank == 0) task.print(peer, ranks, method, n, result);
}

static KSP make(Mat a, KSPType type) {
  KSP ksp;
  PC pc;
  KSPCreate(PETSC_COMM_WORLD, &ksp);
  KSPSetOperators(ksp, a, a);
  KSPSetType(ksp, type);
  KSPGetPC(ksp, &pc);
  PCSetType(pc, PCNONE);
  KSPSetTolerances(ksp, 1e-100, 1e-200, 1e100, ITERATIONS);
  KSPSetUp(ksp);
  return ksp;
}

static void converge(const Task &task, Mat a, Vec b, Vec x) {
  PetscInt n, iterations = 0;
  MatGetSize(a, &n, nullptr);
  double time = median(
      task.repeats,
      [&] {
        KSP ksp = make(a, KSPCG);
        PC pc;
        KSPGetPC(ksp, &pc);
        PCSetType(pc, PCJACOBI);
        KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED);
        KSPSetTolerances(ksp, TOLERANCE, 1e-200, 1e100, MOST_ITERATIONS);
        KSPSolve(ksp, b, x);
        KSPGetIterationNumber(ksp, &iterations);
        KSPDestroy(&ksp);
      },
      agree);
  Result result{time, time};
  result.iterations = iterations, result.format = format;
  if (rank == 0) task.print(peer, ranks, CONVERGED, n, result);
}

static void solve(const Task &task, const std::string &method, Mat a, Vec b, Vec x, KSPType type) {
  PetscInt n, iterations = 0;
  MatGetSize(a, &n, nullptr);
  double fresh = median(
      task.repeats,
      [&] {
        KSP ksp = make(a, type);
        KSPSolve(ksp, b, x);
        KSPGetIterationNumber(ksp, &iterations);
        KSPDestroy(&ksp);
      },
      agree);
  task.check(peer, method, iterations);
  KSP ksp = make(a, type);
  double again = median(task.repeats, [&] { KSPSolve(ksp, b, x); }, agree);
  KSPDestroy(&ksp);
  print(task, method, n, fresh, again);
}

static void run(const Task &task, Mat a) {
  Vec b, x;
  MatCreateVecs(a, &x, &b);
  VecSet(b, 1.0);
  PetscInt n;
  MatGetSize(a, &n, nullptr);
  for (const std::string &method : task.methods) {
    if (method == "cg") solve(task, method, a, b, x, KSPCG);
    if (method == "bicgstab") solve(task, method, a, b, x, KSPBCGS);
    if (method == "gmres") solve(task, method, a, b, x, KSPGMRES);
    if (method == CONVERGED) converge(task, a, b, x);
    if (method == "spmv") {
      double time = median(task.repeats, [&] { MatMult(a, b, x); }, agree);
      print(task, method, n, time, time);
    }
  }
  VecDestroy(&b);
  VecDestroy(&x);
}

int main(int argc, char **argv) {
  PetscInitialize(&argc, &argv, nullptr, nullptr);
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  Task task(argc, argv);
  Csr<double> csr = read_csr<double>(task.file);
  // Rows are shared out in multiples of 3, so that blocks stay whole.
  std::int64_t units = (csr.rows + 2) / 3;
  auto border = [&](std::int64_t r) { return std::min<std::int64_t>(csr.rows, 3 * (units * r / ranks)); };
  std::int64_t first = border(rank), last = border(rank + 1);
  std::vector<PetscInt> row_ptr, col_idx;
  for (std::int64_t i = first; i <= last; i++) row_ptr.push_back(csr.row_ptr[i] - csr.row_ptr[first]);
  col_idx.assign(csr.col_idx.begin() + csr.row_ptr[first], csr.col_idx.begin() + csr.row_ptr[last]);
  double *values = csr.values.data() + csr.row_ptr[first];
  Mat a;
  if (ranks == 1)
    MatCreateSeqAIJWithArrays(PETSC_COMM_WORLD, csr.rows, csr.cols, row_ptr.data(), col_idx.data(), values, &a);
  else
    MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, last - first, last - first, csr.rows, csr.cols, row_ptr.data(),
                              col_idx.data(), values, &a);
  run(task, a);
  if (!std::strncmp(task.name, "gen:elasticity", 14)) {
    Mat blocks;
    MatSetBlockSize(a, 3);
    MatConvert(a, ranks == 1 ? MATSEQBAIJ : MATMPIBAIJ, MAT_INITIAL_MATRIX, &blocks);
    peer = "petsc-baij", format = "bcsr3";
    run(task, blocks);
    MatDestroy(&blocks);
  }
  MatDestroy(&a);
  PetscFinalize();
}
