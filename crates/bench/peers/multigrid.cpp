// PETSc: conjugate gradients with the preconditioner of the options (-pc_type gamg, hypre, …) on a matrix in PETSc's binary format, to
// |b - A x| <= 1e-8 |b| for ones. Prints iterations, seconds of the set-up and of the solve, and the true residual: the least of three runs.
#include <petscksp.h>
#include <algorithm>

int main(int argc, char** argv) {
  PetscInitialize(&argc, &argv, nullptr, nullptr);
  char path[PETSC_MAX_PATH_LEN];
  PetscOptionsGetString(nullptr, nullptr, "-f", path, sizeof path, nullptr);
  PetscViewer viewer;
  PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &viewer);
  Mat a;
  MatCreate(PETSC_COMM_WORLD, &a);
  MatSetType(a, MATAIJ);
  MatLoad(a, viewer);
  MatSetOption(a, MAT_SPD, PETSC_TRUE);
  Vec x, b, r;
  MatCreateVecs(a, &x, &b);
  VecDuplicate(b, &r);
  VecSet(b, 1.0);
  double setup = 1e300, solve = 1e300, norm, of_b;
  PetscInt iterations = 0;
  for (int round = 0; round < 3; round++) {
    KSP ksp;
    KSPCreate(PETSC_COMM_WORLD, &ksp);
    KSPSetOperators(ksp, a, a);
    KSPSetType(ksp, KSPCG);
    KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED);
    KSPSetTolerances(ksp, 1e-8, 1e-300, PETSC_DEFAULT, 10000);
    KSPSetFromOptions(ksp);
    VecSet(x, 0.0);
    double start = MPI_Wtime();
    KSPSetUp(ksp);
    double ready = MPI_Wtime();
    KSPSolve(ksp, b, x);
    double end = MPI_Wtime();
    setup = std::min(setup, ready - start);
    solve = std::min(solve, end - ready);
    KSPGetIterationNumber(ksp, &iterations);
    KSPDestroy(&ksp);
  }
  MatMult(a, x, r);
  VecAYPX(r, -1.0, b);
  VecNorm(r, NORM_2, &norm);
  VecNorm(b, NORM_2, &of_b);
  PetscPrintf(PETSC_COMM_WORLD, "%d %.3f %.3f %.1e\n", (int)iterations, setup, solve, norm / of_b);
  PetscFinalize();
}
