! Lacuna: sparse linear systems. The Fortran 2018 interface, over lacuna.h, which says what each function does.
!
! Every function returns a status, LAC_OK or what went wrong; lac_error_text() is the sentence that says more. Vectors are arrays of
! one dimension of any of the four kinds: lac_matrix_csr, lac_matrix_coo, lac_solve, lac_update_values and lac_product take them all,
! and indices of 32 or 64 bits. Indices are from 1, as Fortran has them, unless base says 0.
module lacuna
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int), parameter, public :: LAC_OK = 0, LAC_BAD_ARGUMENT = 1, LAC_BAD_MATRIX = 2, LAC_UNSUPPORTED = 3, &
    LAC_NO_MEMORY = 4, LAC_DEVICE = 5, LAC_CALLBACK = 6, LAC_BUSY = 7, LAC_PANIC = 8, LAC_FILE = 9, LAC_CANCELLED = 10
  integer(c_int), parameter, public :: LAC_F32 = 0, LAC_F64 = 1, LAC_C32 = 2, LAC_C64 = 3
  integer(c_int), parameter :: I32 = 0, I64 = 1
  integer(c_int32_t), parameter, public :: LAC_CONVERGED = 0, LAC_LIMIT = 1, LAC_STAGNATED = 2, LAC_ACCURACY_ATTAINED = 3

  type, bind(c), public :: lac_stop
    integer(c_size_t) :: size = 32
    real(c_double) :: rtol = 1e-8_c_double, atol = 0
    integer(c_int64_t) :: max_iters = 0
  end type

  type, bind(c), public :: lac_report
    integer(c_size_t) :: size = 64
    integer(c_int32_t) :: reason = 0
    integer(c_int64_t) :: iterations = 0
    real(c_double) :: residual = 0, true_residual = 0, backward_error = 0, seconds = 0, setup_seconds = 0
  end type

  public :: lac_device_open, lac_device_close, lac_matrix_csr, lac_matrix_coo, lac_matrix_read, lac_matrix_free, &
    lac_system_create, lac_system_free, lac_solve, lac_update_values, lac_product, lac_precondition, lac_error_text, &
    lac_reason_text

  ! The functions of lacuna.h that the procedures below call.
  interface
    integer(c_int) function c_device_open(name, device) bind(c, name="lac_device_open")
      import; character(kind=c_char), intent(in) :: name(*); type(c_ptr), intent(out) :: device
    end function
    subroutine lac_device_close(device) bind(c)
      import; type(c_ptr), value :: device
    end subroutine
    integer(c_int) function c_matrix_csr(kind, index, rows, cols, row_ptr, col_idx, values, base, matrix) &
        bind(c, name="lac_matrix_csr")
      import; integer(c_int), value :: kind, index, base; integer(c_int64_t), value :: rows, cols
      type(c_ptr), value :: row_ptr, col_idx, values; type(c_ptr), intent(out) :: matrix
    end function
    integer(c_int) function c_matrix_coo(kind, index, rows, cols, entries, i, j, values, base, matrix) &
        bind(c, name="lac_matrix_coo")
      import; integer(c_int), value :: kind, index, base; integer(c_int64_t), value :: rows, cols, entries
      type(c_ptr), value :: i, j, values; type(c_ptr), intent(out) :: matrix
    end function
    integer(c_int) function c_matrix_read(path, kind, matrix) bind(c, name="lac_matrix_read")
      import; character(kind=c_char), intent(in) :: path(*); integer(c_int), value :: kind
      type(c_ptr), intent(out) :: matrix
    end function
    subroutine lac_matrix_free(matrix) bind(c)
      import; type(c_ptr), value :: matrix
    end subroutine
    integer(c_int) function c_system_create(device, matrix, options, system) bind(c, name="lac_system_create")
      import; type(c_ptr), value :: device, matrix; character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(out) :: system
    end function
    subroutine lac_system_free(system) bind(c)
      import; type(c_ptr), value :: system
    end subroutine
    integer(c_int) function c_system_solve(system, b, x, stop, monitor, user, report) bind(c, name="lac_system_solve")
      import; type(c_ptr), value :: system, b, x, stop, user, report; type(c_funptr), value :: monitor
    end function
    integer(c_int) function c_update_values(system, values, entries) bind(c, name="lac_system_update_values")
      import; type(c_ptr), value :: system, values; integer(c_int64_t), value :: entries
    end function
    integer(c_int) function c_product(system, x, y) bind(c, name="lac_system_product")
      import; type(c_ptr), value :: system, x, y
    end function
    integer(c_int) function c_precondition(system, r, z) bind(c, name="lac_system_precondition")
      import; type(c_ptr), value :: system, r, z
    end function
    integer(c_size_t) function c_last_error(text, capacity) bind(c, name="lac_last_error")
      import; character(kind=c_char), intent(out) :: text(*); integer(c_size_t), value :: capacity
    end function
    function c_reason_name(reason) bind(c, name="lac_reason_name") result(name)
      import; integer(c_int32_t), value :: reason; type(c_ptr) :: name
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import; type(c_ptr), value :: text
    end function
  end interface

contains

  integer(c_int) function lac_device_open(name, device)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(out) :: device
    lac_device_open = c_device_open(trim(name)//c_null_char, device)
  end function

  ! A matrix in a file, in the number type of that name.
  integer(c_int) function lac_matrix_read(path, kind, matrix)
    character(len=*), intent(in) :: path
    integer(c_int), intent(in) :: kind
    type(c_ptr), intent(out) :: matrix
    lac_matrix_read = c_matrix_read(trim(path)//c_null_char, kind, matrix)
  end function

  ! The number type and the address of an array of numbers.
  subroutine numbers(array, kind, address)
    class(*), intent(in), target :: array(:)
    integer(c_int), intent(out) :: kind
    type(c_ptr), intent(out) :: address
    address = c_null_ptr
    kind = -1
    select type (array)
    type is (real(c_float))
      kind = LAC_F32
      if (size(array) > 0) address = c_loc(array)
    type is (real(c_double))
      kind = LAC_F64
      if (size(array) > 0) address = c_loc(array)
    type is (complex(c_float_complex))
      kind = LAC_C32
      if (size(array) > 0) address = c_loc(array)
    type is (complex(c_double_complex))
      kind = LAC_C64
      if (size(array) > 0) address = c_loc(array)
    end select
  end subroutine

  ! The type and the address of an array of indices.
  subroutine indices(array, kind, address)
    class(*), intent(in), target :: array(:)
    integer(c_int), intent(out) :: kind
    type(c_ptr), intent(out) :: address
    address = c_null_ptr
    kind = -1
    select type (array)
    type is (integer(c_int32_t))
      kind = I32
      if (size(array) > 0) address = c_loc(array)
    type is (integer(c_int64_t))
      kind = I64
      if (size(array) > 0) address = c_loc(array)
    end select
  end subroutine

  ! A matrix by compressed rows: row i has its entries at row_ptr(i) to row_ptr(i + 1) - 1.
  integer(c_int) function lac_matrix_csr(rows, cols, row_ptr, col_idx, values, matrix, base)
    integer, intent(in) :: rows, cols
    class(*), intent(in), contiguous :: row_ptr(:), col_idx(:), values(:)
    type(c_ptr), intent(out) :: matrix
    integer, intent(in), optional :: base
    type(c_ptr) :: p, j, v
    integer(c_int) :: kind, index, other, from
    matrix = c_null_ptr
    from = 1
    if (present(base)) from = int(base, c_int)
    call indices(row_ptr, index, p)
    call indices(col_idx, other, j)
    call numbers(values, kind, v)
    lac_matrix_csr = LAC_BAD_ARGUMENT
    if (index /= other .or. size(row_ptr) /= rows + 1) return
    lac_matrix_csr = c_matrix_csr(kind, index, int(rows, c_int64_t), int(cols, c_int64_t), p, j, v, from, matrix)
  end function

  ! A matrix by entries, in any order; repeated ones are summed.
  integer(c_int) function lac_matrix_coo(rows, cols, i, j, values, matrix, base)
    integer, intent(in) :: rows, cols
    class(*), intent(in), contiguous :: i(:), j(:), values(:)
    type(c_ptr), intent(out) :: matrix
    integer, intent(in), optional :: base
    type(c_ptr) :: p, q, v
    integer(c_int) :: kind, index, other, from
    matrix = c_null_ptr
    from = 1
    if (present(base)) from = int(base, c_int)
    call indices(i, index, p)
    call indices(j, other, q)
    call numbers(values, kind, v)
    lac_matrix_coo = LAC_BAD_ARGUMENT
    if (index /= other .or. size(i) /= size(j) .or. size(i) /= size(values)) return
    lac_matrix_coo = c_matrix_coo(kind, index, int(rows, c_int64_t), int(cols, c_int64_t), int(size(i), c_int64_t), &
      p, q, v, from, matrix)
  end function

  ! A system; without a device on the best one there is, without options all is chosen.
  integer(c_int) function lac_system_create(matrix, system, options, device)
    type(c_ptr), intent(in) :: matrix
    type(c_ptr), intent(out) :: system
    character(len=*), intent(in), optional :: options
    type(c_ptr), intent(in), optional :: device
    type(c_ptr) :: on
    on = c_null_ptr
    if (present(device)) on = device
    if (present(options)) then
      lac_system_create = c_system_create(on, matrix, trim(options)//c_null_char, system)
    else
      lac_system_create = c_system_create(on, matrix, c_null_char, system)
    end if
  end function

  ! Solves for b from the guess in x. The lengths and the kind must be those of the matrix.
  integer(c_int) function lac_solve(system, b, x, report, stop)
    type(c_ptr), intent(in) :: system
    class(*), intent(in), contiguous :: b(:)
    class(*), intent(inout), contiguous :: x(:)
    type(lac_report), intent(inout), optional, target :: report
    type(lac_stop), intent(in), optional, target :: stop
    type(c_ptr) :: of_b, of_x, to_report, to_stop
    integer(c_int) :: kind, other
    call numbers(b, kind, of_b)
    call numbers(x, other, of_x)
    to_report = c_null_ptr
    to_stop = c_null_ptr
    if (present(report)) to_report = c_loc(report)
    if (present(stop)) to_stop = c_loc(stop)
    lac_solve = LAC_BAD_ARGUMENT
    if (kind /= other) return
    lac_solve = c_system_solve(system, of_b, of_x, to_stop, c_null_funptr, c_null_ptr, to_report)
  end function

  ! New values on the same pattern.
  integer(c_int) function lac_update_values(system, values)
    type(c_ptr), intent(in) :: system
    class(*), intent(in), contiguous :: values(:)
    type(c_ptr) :: v
    integer(c_int) :: kind
    call numbers(values, kind, v)
    lac_update_values = c_update_values(system, v, int(size(values), c_int64_t))
  end function

  ! y = A x
  integer(c_int) function lac_product(system, x, y)
    type(c_ptr), intent(in) :: system
    class(*), intent(in), contiguous :: x(:)
    class(*), intent(inout), contiguous :: y(:)
    type(c_ptr) :: from, to
    integer(c_int) :: kind
    call numbers(x, kind, from)
    call numbers(y, kind, to)
    lac_product = c_product(system, from, to)
  end function

  ! z = M r
  integer(c_int) function lac_precondition(system, r, z)
    type(c_ptr), intent(in) :: system
    class(*), intent(in), contiguous :: r(:)
    class(*), intent(inout), contiguous :: z(:)
    type(c_ptr) :: from, to
    integer(c_int) :: kind
    call numbers(r, kind, from)
    call numbers(z, kind, to)
    lac_precondition = c_precondition(system, from, to)
  end function

  ! The sentence about the last error of this thread.
  function lac_error_text() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char) :: buffer(1000)
    integer(c_size_t) :: length
    integer :: i
    length = min(c_last_error(buffer, int(size(buffer), c_size_t)), int(size(buffer), c_size_t))
    allocate (character(len=int(length) - 1) :: text)
    do i = 1, int(length) - 1
      text(i:i) = buffer(i)
    end do
  end function

  ! The name of a reason.
  function lac_reason_text(reason) result(text)
    integer(c_int32_t), intent(in) :: reason
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: name(:)
    type(c_ptr) :: address
    integer :: i
    address = c_reason_name(reason)
    call c_f_pointer(address, name, [c_strlen(address)])
    allocate (character(len=size(name)) :: text)
    do i = 1, size(name)
      text(i:i) = name(i)
    end do
  end function

end module
