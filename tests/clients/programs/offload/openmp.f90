! Loops that OpenMP runs on a device. Each line of the output is the same wherever they run, but the first.
program openmp
    use omp_lib
    implicit none
    integer, parameter :: n = 1000, side = 24
    integer :: values(n), i, j, k, total
    real(8) :: a(side, side), b(side, side), c(side, side), s
    logical :: host

    host = .true.
    !$omp target map(from: host)
    host = omp_is_initial_device()
    !$omp end target
    print '(2a)', 'ran on the ', trim(merge('host  ', 'device', host))

    total = 0
    !$omp target teams distribute parallel do map(from: values)
    do i = 1, n
        values(i) = mod(i * 37, 101)
    end do
    !$omp target teams distribute parallel do map(to: values) reduction(+: total)
    do i = 1, n
        total = total + values(i)
    end do
    print '(a, 2i8)', 'loops', values(500), total

    do j = 1, side
        do i = 1, side
            a(i, j) = i * 0.25d0 + j
            b(i, j) = i - j
        end do
    end do
    !$omp target teams distribute parallel do collapse(2) private(s) map(to: a, b) map(from: c)
    do j = 1, side
        do i = 1, side
            s = 0
            do k = 1, side
                s = s + a(i, k) * b(k, j)
            end do
            c(i, j) = s
        end do
    end do
    print '(a, 2f12.3)', 'product', c(1, 1), maxval(abs(c - matmul(a, b)))
end program
