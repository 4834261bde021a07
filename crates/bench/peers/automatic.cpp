// PETSc as it comes: KSPGMRES with ILU(0), or what the options say, for b in a file or of ones. Prints whether PETSc says that it
// converged, the iterations, the seconds of set-up and of solve and the true relative residual. With -again COUNT it solves up to
// COUNT times more from the x it has, while the true residual is above 1e-8. With -repeat COUNT it does all that so many times and
// tells of the fastest.
//
//   automatic -f A.petsc [-rhs b.petsc] [-again COUNT] [-repeat COUNT] [-ksp_type ...] [-pc_type ...]
#include <cstdio>
#include <petscksp.h>
#include <petsctime.h>

const double TOLERANCE = 1e-8;

int main(int argc, char **argv) {
  PetscInitialize(&argc, &argv, nullptr, nullptr);
  char path[PETSC_MAX_PATH_LEN], rhs[PETSC_MAX_PATH_LEN];
  PetscBool given = PETSC_FALSE;
  PetscInt most_again = 0, repeat = 1;
  PetscOptionsGetString(nullptr, nullptr, "-f", path, sizeof path, nullptr);
  PetscOptionsGetString(nullptr, nullptr, "-rhs", rhs, sizeof rhs, &given);
  PetscOptionsGetInt(nullptr, nullptr, "-again", &most_again, nullptr);
  PetscOptionsGetInt(nullptr, nullptr, "-repeat", &repeat, nullptr);
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
  PetscReal bb, rr = 0, best_rr = 0;
  VecNorm(b, NORM_2, &bb);
  PetscLogDouble setup = 0, solve = 0;
  PetscInt iterations, all, best_all = 0;
  KSPConvergedReason reason, best_reason = KSP_CONVERGED_ITERATING;
  for (PetscInt round = 0; round < repeat; round++) {
    KSP ksp;
    KSPCreate(PETSC_COMM_WORLD, &ksp);
    KSPSetOperators(ksp, a, a);
    KSPSetTolerances(ksp, TOLERANCE, 1e-200, PETSC_DEFAULT, PETSC_DEFAULT);
    KSPSetFromOptions(ksp);
    VecSet(x, 0);
    PetscLogDouble start, ready, end;
    PetscTime(&start);
    KSPSetUp(ksp);
    KSPSetUpOnBlocks(ksp);
    PetscTime(&ready);
    PetscInt again = most_again;
    all = 0;
    do {
      KSPSolve(ksp, b, x);
      KSPSetInitialGuessNonzero(ksp, PETSC_TRUE);
      KSPGetConvergedReason(ksp, &reason);
      KSPGetIterationNumber(ksp, &iterations);
      all += iterations;
      MatResidual(a, b, x, r);
      VecNorm(r, NORM_2, &rr);
    } while (rr > TOLERANCE * bb && again-- > 0);
    PetscTime(&end);
    if (round == 0 || end - start < setup + solve) {
      setup = ready - start, solve = end - ready;
      best_all = all, best_rr = rr, best_reason = reason;
    }
    KSPDestroy(&ksp);
  }
  PetscPrintf(PETSC_COMM_WORLD, "%d %d %.6f %.6f %.3e\n", best_reason > 0, (int)best_all, setup, solve, (double)(best_rr / bb));
  PetscFinalize();
}
