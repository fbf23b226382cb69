! Loops that OpenACC runs on a device. Each line of the output is the same wherever they run, but the first.
program openacc_loops
    use openacc
    implicit none
    integer, parameter :: n = 2000
    integer :: values(n), bins(0:4), i, total
    complex(8) :: z(n), z0
    real(8), allocatable :: x(:), y(:)
    logical :: host

    host = .true.
    !$acc parallel copyout(host)
    host = acc_on_device(acc_device_host)
    !$acc end parallel
    print '(2a)', 'ran on the ', trim(merge('host  ', 'device', host))

    total = 0
    !$acc parallel loop copyout(values)
    do i = 1, n
        values(i) = ieor(i, ishft(i, 3))
    end do
    !$acc parallel loop copyin(values) reduction(max: total)
    do i = 1, n
        total = max(total, values(i))
    end do
    print '(a, 2i8)', 'loops', values(n), total

    bins = 0
    !$acc parallel loop copy(bins)
    do i = 1, n
        !$acc atomic update
        bins(mod(i, 5)) = bins(mod(i, 5)) + i
    end do
    print '(a, 5i8)', 'counted', bins

    z0 = (0.5d0, -0.25d0)
    !$acc kernels loop copyout(z)
    do i = 1, n
        z(i) = z0 * cmplx(i, -i, 8) + conjg(z0)
    end do
    print '(a, 4f12.4)', 'complex', z(1), z(n)

    allocate(x(n), y(n))
    !$acc data create(x) copyout(y)
    !$acc parallel loop
    do i = 1, n
        x(i) = i / 8.0d0
    end do
    !$acc parallel loop
    do i = 1, n
        y(i) = 2 * x(n + 1 - i) + 1
    end do
    !$acc end data
    print '(a, 2f12.4)', 'data', y(1), y(n)
end program
