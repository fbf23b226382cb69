/* The environment of softgpu: what is understood, and that the rest leaves the default. */
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"

#include "test.h"

static struct sg_complaints complaints; /* of the last read_with */

static struct sg_config read_with(const char *variable, const char *value) {
    struct sg_config config;
    setenv(variable, value, 1);
    sg_config_examine(&config, &complaints);
    unsetenv(variable);
    return config;
}

TEST(a_size_may_have_a_suffix) {
    uint64_t bytes;
    assert_true(sg_config_size("0", &bytes) && bytes == 0);
    assert_true(sg_config_size("4096", &bytes) && bytes == 4096);
    assert_true(sg_config_size("64K", &bytes) && bytes == 65536);
    assert_true(sg_config_size("64k", &bytes) && bytes == 65536);
    assert_true(sg_config_size("3M", &bytes) && bytes == 3145728);
    assert_true(sg_config_size("140G", &bytes) && bytes == (uint64_t)140 << 30);
    assert_true(sg_config_size("16T", &bytes) && bytes == (uint64_t)16 << 40);
    assert_true(sg_config_size("8388607T", &bytes));
}

TEST(malformed_sizes_are_refused) {
    static const char *const bad[] = {"",
                                      "M",
                                      "-1",
                                      "+1",
                                      "1 G",
                                      "1GB",
                                      "1.5G",
                                      "0x10",
                                      "12Q",
                                      "8388608T",
                                      " 1",
                                      "G1",
                                      "99999999999999999999"};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (sg_config_size(bad[i], &bytes))
            fail_msg("'%s' was taken for %llu", bad[i], (unsigned long long)bytes);
    }
    assert_int_equal(bytes, 7);
}

TEST(the_driver_version_must_be_a_cuda_version) {
    static const char *const bad[] = {"12.9",  "13",    "13.",   "13.10", "1330",
                                      "13030", "13.3 ", "+13.0", "v13.0", "x"};
    assert_int_equal(read_with("SOFTGPU_DRIVER_VERSION", "13.0").driver_version, 13000);
    assert_int_equal(read_with("SOFTGPU_DRIVER_VERSION", "13.3").driver_version, 13030);
    assert_int_equal(complaints.count, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_with("SOFTGPU_DRIVER_VERSION", bad[i]).driver_version, 0);
        if (complaints.count != 1 || !strstr(complaints.text[0], "a version of CUDA from 13.0 on"))
            fail_msg("'%s': %s", bad[i], complaints.count ? complaints.text[0] : "taken");
    }
}

TEST(the_newest_ptx_is_the_readers_or_the_drivers) {
    assert_false(read_with("SOFTGPU_PTX", "newest").ptx_of_driver);
    assert_true(read_with("SOFTGPU_PTX", "driver").ptx_of_driver);
    assert_int_equal(complaints.count, 0);
    assert_false(read_with("SOFTGPU_PTX", "9.5").ptx_of_driver);
    assert_int_equal(complaints.count, 1);
}

TEST(an_empty_environment_gives_the_defaults) {
    struct sg_config config;
    sg_config_examine(&config, &complaints);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(config.devices, 1);
    assert_string_equal(config.profile, "h200");
    MEMBERS(config, (memory, 0), (schedule, SG_SCHEDULE_EAGER), (workers, 2));
    assert_in_range(config.kernel_workers, 1, 8);
    assert_int_equal(config.log_level, SG_LOG_WARNING);
    assert_null(config.fault);
    assert_null(config.trace);
    assert_false(config.leaks || config.poison || config.abort_on_error);
    assert_int_equal(read_with("SOFTGPU_DEVICES", "").devices, 1);
}

TEST(each_variable_sets_its_value) {
    assert_int_equal(read_with("SOFTGPU_DEVICES", "8").devices, 8);
    assert_int_equal(read_with("SOFTGPU_DEVICES", "0").devices, 0);
    assert_int_equal(read_with("SOFTGPU_MEMORY", "2G").memory, (uint64_t)2 << 30);
    assert_int_equal(read_with("SOFTGPU_ADDRESS_SPACE", "1T").address_space, (uint64_t)1 << 40);
    assert_int_equal(read_with("SOFTGPU_SCHEDULE", "late").schedule, SG_SCHEDULE_LATE);
    assert_int_equal(read_with("SOFTGPU_SEED", "0x10").seed, 16);
    assert_int_equal(read_with("SOFTGPU_WORKERS", "1").workers, 1);
    assert_int_equal(read_with("SOFTGPU_KERNEL_WORKERS", "64").kernel_workers, 64);
    assert_int_equal(read_with("SOFTGPU_LOG", "off").log_level, SG_LOG_OFF);
    assert_int_equal(read_with("SOFTGPU_LOG", "error").log_level, SG_LOG_ERROR);
    assert_int_equal(read_with("SOFTGPU_LOG", "info").log_level, SG_LOG_INFO);
    assert_int_equal(read_with("SOFTGPU_LOG", "debug").log_level, SG_LOG_DEBUG);
    assert_true(read_with("SOFTGPU_LEAKS", "1").leaks);
    assert_true(read_with("SOFTGPU_POISON", "1").poison);
    assert_true(read_with("SOFTGPU_ABORT", "1").abort_on_error);
    assert_true(read_with("SOFTGPU_BOUNDS", "exact").exact_bounds);
    assert_false(read_with("SOFTGPU_BOUNDS", "rounded").exact_bounds);
    assert_true(read_with("SOFTGPU_CHECK", "memory").exact_bounds);
    assert_false(read_with("SOFTGPU_CHECK", "race").exact_bounds);
    assert_int_equal(read_with("SOFTGPU_KERNEL_LIMIT", "5").kernel_limit, 5);
    assert_int_equal(read_with("SOFTGPU_CHECK", "init,memory").checks,
                     SG_CHECK_INIT | SG_CHECK_MEMORY);
    assert_int_equal(read_with("SOFTGPU_CHECK", "race,sync").checks, SG_CHECK_RACE | SG_CHECK_SYNC);
    assert_true(read_with("SOFTGPU_CHECK_FORMAT", "json").check_json);
    assert_string_equal(read_with("SOFTGPU_CHECK_KERNELS", "a*,b").check_kernels, "a*,b");
    assert_true(read_with("SOFTGPU_CHECK_PLAIN_VOLATILE", "1").check_plain_volatile);
    assert_int_equal(read_with("SOFTGPU_CHECK_ERROR_EXIT", "255").check_error_exit, 255);
    assert_string_equal(read_with("SOFTGPU_TRACE", "-").trace, "-");
    assert_string_equal(read_with("SOFTGPU_PROFILE", "other").profile, "other");
}

/* One complaint that names the variable and the value, and says what is taken. */
static void complains(const char *variable, const char *value, const char *takes) {
    (void)read_with(variable, value);
    assert_int_equal(complaints.count, 1);
    if (!strstr(complaints.text[0], variable) || !strstr(complaints.text[0], takes))
        fail_msg("'%s' does not say '%s' of %s", complaints.text[0], takes, variable);
}

TEST(bad_values_and_unknown_names_are_reported) {
    complains("SOFTGPU_DEVICES", "9", "'9' is not understood: it takes a number from 0 to 8");
    complains("SOFTGPU_MEMORY", "lots", "a number of bytes");
    complains("SOFTGPU_SCHEDULE", "EAGER", "one of eager, late, random");
    complains("SOFTGPU_LANES", "apart", "one of joined, independent");
    complains("SOFTGPU_LANES", "independent", "only with SOFTGPU_SCHEDULE=random");
    complains("SOFTGPU_SEED", "x", "a number below 2^64");
    complains("SOFTGPU_LEAKS", "yes", "0 or 1");
    complains("SOFTGPU_FAIL_ON", "leeks", "fault, leaks, or leaks of a kind");
    complains("SOFTGPU_FAIL_ON", "leaks:", "leaks:memory");
    complains("SOFTGPU_FAIL_ON", "leaks,leaks:all", "leaks:other");
    complains("SOFTGPU_FAIL_ON", "fault", "only with SOFTGPU_FAULT");
    complains("SOFTGPU_FALUT", "x", "is no variable of softgpu");
    (void)read_with("SOFTGPU_FALUT", ""); /* as good as not set */
    assert_int_equal(complaints.count, 0);
}

TEST(fail_on_accepts_leaks_and_faults) {
    struct sg_config config = read_with("SOFTGPU_FAIL_ON", "leaks");
    assert_true(config.leaks && config.fail_on_leaks && !config.fail_on_fault);
    setenv("SOFTGPU_FAULT", "cuInit:1:UNKNOWN:before", 1);
    config = read_with("SOFTGPU_FAIL_ON", "fault,leaks");
    unsetenv("SOFTGPU_FAULT");
    assert_true(config.leaks && config.fail_on_leaks && config.fail_on_fault);
    config = read_with("SOFTGPU_FAIL_ON", "leaks:memory,leaks:graphs");
    assert_true(config.leaks);
    assert_int_equal(config.fail_on_leaks, 1u << SG_LEAK_MEMORY | 1u << SG_LEAK_GRAPHS);
    assert_int_equal(config.leak_kinds, config.fail_on_leaks);
    setenv("SOFTGPU_LEAKS", "1", 1);
    assert_int_equal(read_with("SOFTGPU_FAIL_ON", "leaks:other").leak_kinds, SG_LEAKS_ALL);
    unsetenv("SOFTGPU_LEAKS");
    assert_int_equal(complaints.count, 0);
}

TEST(bad_values_keep_the_default) {
    assert_int_equal(read_with("SOFTGPU_DEVICES", "9").devices, 1);
    assert_int_equal(read_with("SOFTGPU_DEVICES", "two").devices, 1);
    assert_int_equal(read_with("SOFTGPU_DEVICES", "-1").devices, 1);
    assert_int_equal(read_with("SOFTGPU_WORKERS", "0").workers, 2);
    assert_in_range(read_with("SOFTGPU_KERNEL_WORKERS", "0").kernel_workers, 1, 8);
    assert_int_equal(read_with("SOFTGPU_MEMORY", "lots").memory, 0);
    assert_int_equal(read_with("SOFTGPU_SCHEDULE", "EAGER").schedule, SG_SCHEDULE_EAGER);
    assert_int_equal(read_with("SOFTGPU_LOG", "loud").log_level, SG_LOG_WARNING);
    assert_false(read_with("SOFTGPU_LEAKS", "yes").leaks);
}

TEST(a_random_schedule_without_a_seed_draws_one) {
    setenv("SOFTGPU_SEED", "77", 1);
    assert_int_equal(read_with("SOFTGPU_SCHEDULE", "random").seed, 77);
    unsetenv("SOFTGPU_SEED");
    uint64_t first = read_with("SOFTGPU_SCHEDULE", "random").seed;
    bool differs = false;
    for (int i = 0; i < 8 && !differs; i++)
        differs = read_with("SOFTGPU_SCHEDULE", "random").seed != first;
    assert_true(differs);
}
