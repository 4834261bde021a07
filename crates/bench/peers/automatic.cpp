// PETSc as it comes: KSPGMRES with ILU(0), or what the options say, for b in a file or of ones. Prints whether PETSc says that it
// converged, the iterations, the seconds of set-up and solve and the true relative residual.
//
//   automatic -f A.petsc [-rhs b.petsc] [-ksp_type ...] [-pc_type ...]
#include <cstdio>
#include <petscksp.h>
#include <petsctime.h>

int main(int argc, char **argv) {
  PetscInitialize(&argc, &argv, nullptr, nullptr);
  char path[PETSC_MAX_PATH_LEN], rhs[PETSC_MAX_PATH_LEN];
  PetscBool given = PETSC_FALSE;
  PetscOptionsGetString(nullptr, nullptr, "-f", path, sizeof path, nullptr);
  PetscOptionsGetString(nullptr, nullptr, "-rhs", rhs, sizeof rhs, &given);
  PetscViewer file;
  Mat a;
  Vec x, b, r;
  PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &file);
  MatCreate(PETSC_COMM_WORLD, &a);
  MatSetType(a, MATAIJ);
  MatLoad(a, file);
  PetscViewerDestroy(&file);
  MatCreateVecs(a, &x, &b);
  VecDuplicate(b, &r);
  VecSet(b, 1);
  if (given) {
    PetscViewerBinaryOpen(PETSC_COMM_WORLD, rhs, FILE_MODE_READ, &file);
    VecLoad(b, file);
  }
  KSP ksp;
  KSPCreate(PETSC_COMM_WORLD, &ksp);
  KSPSetOperators(ksp, a, a);
  KSPSetTolerances(ksp, 1e-8, 1e-200, PETSC_DEFAULT, PETSC_DEFAULT);
  KSPSetFromOptions(ksp);
  PetscLogDouble start, end;
  PetscTime(&start);
  KSPSolve(ksp, b, x);
  PetscTime(&end);
  KSPConvergedReason reason;
  PetscInt iterations;
  PetscReal rr, bb;
  KSPGetConvergedReason(ksp, &reason);
  KSPGetIterationNumber(ksp, &iterations);
  MatResidual(a, b, x, r);
  VecNorm(r, NORM_2, &rr);
  VecNorm(b, NORM_2, &bb);
  PetscPrintf(PETSC_COMM_WORLD, "%d %d %.6f %.3e\n", reason > 0, (int)iterations, end - start, (double)(rr / bb));
  PetscFinalize();
}
