/* Reservations of addresses: sizes, alignment, hints, freeing. */
#include "harness.h"

#include <signal.h>

#define PAGE ((size_t)2 << 20)

TEST(invalid_sizes_and_alignments_are_refused) {
    static const size_t bad[] = {0, 1, 4096, 65536, PAGE - 1, PAGE + 4096};
    static const size_t alignments[] = {
        0, 1, 4096, PAGE, 4 * PAGE, (size_t)1 << 30, (size_t)1 << 38};
    CUdeviceptr p = 7;
    for (unsigned i = 0; i < COUNT(bad); i++)
        FAILS_CU(INVALID_VALUE, cu.cuMemAddressReserve(&p, bad[i], 0, 0, 0));
    assert_int_equal(p, 7);
    for (unsigned i = 0; i < COUNT(alignments); i++) {
        size_t align = alignments[i] > PAGE ? alignments[i] : PAGE;
        OK_CU(cu.cuMemAddressReserve(&p, 3 * PAGE, alignments[i], 0, 0));
        assert_int_equal(p % align, 0);
        OK_CU(cu.cuMemAddressFree(p, 3 * PAGE));
    }
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressReserve(&p, PAGE, 3 * PAGE, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressReserve(&p, PAGE, 0, 0, 1));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAddressReserve(&p, (size_t)1 << 48, 0, 0, 0));
}

TEST(reservations_do_not_overlap) {
    enum { MANY = 100 };
    CUdeviceptr p[MANY];
    for (unsigned i = 0; i < MANY; i++)
        OK_CU(cu.cuMemAddressReserve(&p[i], (i % 7 + 1) * PAGE, 0, 0, 0));
    for (unsigned i = 0; i < MANY; i++)
        for (unsigned j = 0; j < MANY; j++)
            assert_true(i == j || p[i] + (i % 7 + 1) * PAGE <= p[j] ||
                        p[j] + (j % 7 + 1) * PAGE <= p[i]);
    for (unsigned i = 0; i < MANY; i++)
        OK_CU(cu.cuMemAddressFree(p[i], (i % 7 + 1) * PAGE));
}

TEST(large_reservations_do_not_overlap) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, (size_t)200 << 30, 0, 0, 0);
    CUdeviceptr q = MADE_CU(CUdeviceptr, cuMemAddressReserve, (size_t)70 << 30, 0, 0, 0);
    assert_true(p + ((size_t)200 << 30) <= q || q + ((size_t)70 << 30) <= p);
    OK_CU(cu.cuMemAddressFree(p, (size_t)200 << 30));
    OK_CU(cu.cuMemAddressFree(q, (size_t)70 << 30));
}

TEST(an_address_hint_is_used_where_the_range_is_free) {
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAddressReserve, 8 * PAGE, 0, 0, 0);
    CUdeviceptr b = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE, 0, a, 0);
    assert_true(b != a);
    OK_CU(cu.cuMemAddressFree(b, PAGE));
    OK_CU(cu.cuMemAddressFree(a, 8 * PAGE));
    OK_CU(cu.cuMemAddressReserve(&b, 4 * PAGE, 0, a, 0));
    assert_int_equal(b, a);
    CUdeviceptr c = MADE_CU(CUdeviceptr, cuMemAddressReserve, 4 * PAGE, 0, a + 4 * PAGE, 0);
    assert_int_equal(c, a + 4 * PAGE);
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressReserve(&c, PAGE, 0, a + 4096, 0));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAddressReserve(&c, PAGE, 0, (CUdeviceptr)0xffff8 << 44, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(a, 8 * PAGE));
    OK_CU(cu.cuMemAddressFree(a + 4 * PAGE, 4 * PAGE));
    OK_CU(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(a_reservation_is_freed_only_as_a_whole) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, 4 * PAGE, 0, 0, 0);
    CUdeviceptr d = new_memory(4 * PAGE);
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(p, PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(p, 8 * PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(p + PAGE, 3 * PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(d, 4 * PAGE));
    OK_CU(cu.cuMemAddressFree(p, 4 * PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(p, 4 * PAGE));
}

static sigjmp_buf back;

static void on_fault(int number) {
    siglongjmp(back, number);
}

static bool cpu_faults_at(CUdeviceptr p) {
    struct sigaction act = {.sa_handler = on_fault}, segv, bus;
    sigaction(SIGSEGV, &act, &segv);
    sigaction(SIGBUS, &act, &bus);
    volatile bool faulted = true;
    if (sigsetjmp(back, 1) == 0) {
        (void)*(volatile char *)(uintptr_t)p;
        faulted = false;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return faulted;
}

TEST(the_cpu_cannot_access_device_addresses) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE, 0, 0, 0);
    CUdeviceptr d = new_memory(PAGE);
    OK_CU(cu.cuMemsetD8_v2(d, 1, PAGE));
    assert_true(cpu_faults_at(p));
    assert_true(cpu_faults_at(d));
    OK_CU(cu.cuMemAddressFree(p, PAGE));
}
