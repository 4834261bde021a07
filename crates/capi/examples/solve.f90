! Real, single and complex systems from Fortran, with indices of 32 and of 64 bits.
program solve
  use, intrinsic :: iso_c_binding
  use lacuna
  implicit none
  integer, parameter :: n = 400
  integer(c_int32_t) :: row_ptr(n + 1), col_idx(3 * n)
  integer(c_int64_t) :: i8(3 * n), j8(3 * n)
  real(c_double) :: values(3 * n), b(n), x(n), y(n)
  complex(c_double_complex) :: zvalues(3 * n), zb(n), zx(n)
  real(c_float) :: svalues(3 * n), sb(n), sx(n)
  type(c_ptr) :: matrix, system, device
  type(lac_report) :: report
  type(lac_stop) :: stop
  integer :: i, k

  k = 0
  row_ptr(1) = 1
  do i = 1, n
    if (i > 1) call add(i - 1, -1d0)
    call add(i, 2.2d0)
    if (i < n) call add(i + 1, -1d0)
    row_ptr(i + 1) = k + 1
  end do
  b = 1
  x = 0

  call check(lac_device_open("cpu", device))
  call check(lac_matrix_csr(n, n, row_ptr, col_idx(1:k), values(1:k), matrix))
  call check(lac_system_create(matrix, system, "method=cg; preconditioner=jacobi", device))
  call lac_matrix_free(matrix)
  call lac_device_close(device)
  stop%rtol = 1e-12_c_double
  call check(lac_solve(system, b, x, report, stop))
  call check(lac_product(system, x, y))
  call expect(report%reason == LAC_CONVERGED .and. maxval(abs(y - b)) < 1e-9, "a solution")
  print "(a, a, i0, a)", lac_reason_text(report%reason), " after ", report%iterations, " iterations"
  call check(lac_update_values(system, 3 * values(1:k)))
  x = 0
  call check(lac_solve(system, b, x, report))
  call expect(maxval(abs(3 * x * 2.2d0 - 1 - 3 * neighbours(x))) < 1e-6, "a solution with other values")
  call lac_system_free(system)

  zvalues = cmplx(values, 0.1d0, c_double_complex)
  zb = (1, -1)
  zx = 0
  call check(lac_matrix_coo(n, n, i8(1:k), j8(1:k), zvalues(1:k), matrix))
  call check(lac_system_create(matrix, system, "method=gmres:restart=60; preconditioner=ilu0"))
  call check(lac_solve(system, zb, zx, report))
  call expect(report%reason == LAC_CONVERGED, "a complex solution")
  ! Another kind than that of the system would be read past its end: lac_solve cannot tell, so the caller must.
  call expect(lac_solve(system, zb, x, report) == LAC_BAD_ARGUMENT, "two kinds refused")
  call lac_system_free(system)
  call lac_matrix_free(matrix)

  svalues = real(values, c_float)
  sb = 1
  sx = 0
  call check(lac_matrix_csr(n, n, row_ptr, col_idx(1:k), svalues(1:k), matrix))
  call check(lac_system_create(matrix, system))
  call check(lac_solve(system, sb, sx, report))
  call expect(report%reason == LAC_CONVERGED .and. report%true_residual <= 1e-5, "a solution in single precision")
  call lac_system_free(system)
  call lac_matrix_free(matrix)

  call expect(lac_matrix_read("nothing.mtx", LAC_F64, matrix) == LAC_FILE, "no file")
  print "(a)", lac_error_text()

contains

  subroutine add(j, v)
    integer, intent(in) :: j
    real(c_double), intent(in) :: v
    k = k + 1
    col_idx(k) = int(j, c_int32_t)
    i8(k) = int(i, c_int64_t)
    j8(k) = int(j, c_int64_t)
    values(k) = v
  end subroutine

  function neighbours(v) result(sums)
    real(c_double), intent(in) :: v(:)
    real(c_double) :: sums(size(v))
    sums = eoshift(v, 1) + eoshift(v, -1)
  end function

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == LAC_OK) return
    print "(a, i0, 2a)", "status ", status, ": ", lac_error_text()
    error stop
  end subroutine

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print "(2a)", "expected ", what
    error stop
  end subroutine

end program
