/* Each capability is answered, a "no" with its reason, and asking leaves nothing behind. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

TEST(every_missing_capability_has_a_reason) {
    char *before = soft->state_dump();
    int yes = 0, no = 0;
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT; i++) {
        gpumem_capability_report report = capability_of((gpumem_capability)i);
        assert_true(strlen(gpumem_capability_name((gpumem_capability)i)) > 0);
        print_message("%-32s %s %d %s\n", gpumem_capability_name((gpumem_capability)i),
                      report.supported ? "yes" : "no ", report.value, report.reason);
        if (report.supported)
            assert_string_equal(report.reason, "");
        else
            assert_true(strlen(report.reason) > 0);
        yes += report.supported;
        no += !report.supported;
    }
    assert_true(yes > 0 && no > 0);
    SAME_STATE(before);
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.chunks + stats.quarantined, 0);
}

TEST(capabilities_match_the_profile) {
    assert_true(capability_of(GPUMEM_CAPABILITY_VIRTUAL_MEMORY).supported);
    assert_true(capability_of(GPUMEM_CAPABILITY_HANDLE_POSIX_FD).supported);
    assert_true(capability_of(GPUMEM_CAPABILITY_DEVICE_POOL).supported);
    assert_true(capability_of(GPUMEM_CAPABILITY_HOST_REGISTER).supported);
    assert_true(capability_of(GPUMEM_CAPABILITY_HOST_POOL).supported);
    /* The attribute is 1, and the driver refuses, as on an H200: only trying tells. */
    gpumem_capability_report pool = capability_of(GPUMEM_CAPABILITY_HOST_POOL_POSIX_FD);
    assert_false(pool.supported);
    assert_int_equal(pool.value, 1);
    assert_non_null(strstr(pool.reason, "cuMemPoolCreate answered CUDA_ERROR_INVALID_VALUE"));
    assert_true(capability_of(GPUMEM_CAPABILITY_HOST_NUMA_POOL_POSIX_FD).supported);
}

TEST(capability_answers_are_cached) {
    gpumem_capability_report first = capability_of(GPUMEM_CAPABILITY_HOST_POOL_POSIX_FD);
    uint64_t pools = soft->call_count("cuMemPoolCreate");
    gpumem_capability_report second = capability_of(GPUMEM_CAPABILITY_HOST_POOL_POSIX_FD);
    assert_int_equal(soft->call_count("cuMemPoolCreate"), pools);
    assert_memory_equal(&first, &second, sizeof first);
    FAILS(INVALID_ARGUMENT, gpumem_device_get_capability(device, GPUMEM_CAPABILITY_COUNT, &first));
    FAILS(INVALID_ARGUMENT, gpumem_device_get_capability(device, (gpumem_capability)-1, &first));
    assert_string_equal(gpumem_capability_name((gpumem_capability)-1), "");
}
