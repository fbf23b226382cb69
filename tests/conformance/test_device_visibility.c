/* Which devices a process sees: SOFTGPU_DEVICES, SOFTGPU_MEMORY, SOFTGPU_PROFILE and NVIDIA's own
 * CUDA_VISIBLE_DEVICES. */
#include "harness.h"
#include "temporary.h"

/* show ANSWER COUNT: cuInit's answer and the number of devices are these. */
CHILD(show) {
    int count = 0;
    if (argc != 3 || cu.cuInit(0) != (CUresult)atoi(argv[1]))
        return 1;
    if (atoi(argv[1]) != CUDA_SUCCESS)
        return cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2;
    OK_CU(cu.cuDeviceGetCount(&count));
    return count == atoi(argv[2]) ? 0 : 3;
}

/* last-byte DEVICE BYTE: the UUID of the device ends so. */
CHILD(last_byte) {
    OK_CU(cu.cuInit(0));
    CUuuid uuid = MADE_CU(CUuuid, cuDeviceGetUuid_v2, atoi(argv[1]));
    return argc == 3 && uuid.bytes[15] == atoi(argv[2]) ? 0 : 1;
}

/* memory BYTES: all of it is told, by every call that tells it. */
CHILD(memory) {
    size_t total = 0, free_bytes = 0, told = 0;
    init_driver();
    OK_CU(cu.cuDeviceTotalMem_v2(&total, 0));
    OK_CU(cu.cuMemGetInfo_v2(&free_bytes, &told));
    return argc == 2 && total == strtoull(argv[1], NULL, 10) && told == total ? 0 : 1;
}

/* name TEXT */
CHILD(name) {
    char text[64] = "";
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDeviceGetName(text, sizeof text, 0));
    return argc == 2 && strcmp(text, argv[1]) == 0 ? 0 : 1;
}

static int with(const char *variable, const char *value, const char *child, const char *first,
                const char *second) {
    char *old = getenv(variable) ? strdup(getenv(variable)) : NULL;
    setenv(variable, value, 1);
    int status = run_child(child, first, second, NULL);
    if (old)
        setenv(variable, old, 1);
    else
        unsetenv(variable);
    free(old);
    return status;
}

TEST(the_number_of_devices_is_configurable) {
    NEEDS_SOFTGPU("the number of its devices is chosen");
    assert_int_equal(with("SOFTGPU_DEVICES", "1", "show", "0", "1"), 0);
    assert_int_equal(with("SOFTGPU_DEVICES", "8", "show", "0", "8"), 0);
    assert_int_equal(with("SOFTGPU_DEVICES", "0", "show", "100", "0"), 0); /* NO_DEVICE */
}

TEST_WHERE(visible_devices_are_honoured, NEEDS_DEVICES(2)) {
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "0,1", "show", "0", "2"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "1", "show", "0", "1"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "0,-1,1", "show", "0", "1"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "", "show", "100", "0"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "-1", "show", "100", "0"), 0);
}

TEST_WHERE(visible_devices_are_reordered, NEEDS_UUID()) {
    NEEDS_SOFTGPU("its devices are numbered in their UUIDs");
    NEEDS_DEVICES(2);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "1,0", "last_byte", "0", "1"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "1,0", "last_byte", "1", "0"), 0);
    assert_int_equal(with("CUDA_VISIBLE_DEVICES", "GPU-736f6674-6770-8075-8000-000000000001",
                          "last_byte", "0", "1"),
                     0);
}

TEST_WHERE(the_device_memory_is_configurable, NEEDS_SOFTGPU("its memory is chosen")) {
    assert_int_equal(with("SOFTGPU_MEMORY", "64M", "memory", "67108864", NULL), 0);
}

TEST_WHERE(profiles_are_found_by_name, NEEDS_SOFTGPU("profiles")) {
    assert_int_equal(with("SOFTGPU_PROFILE", "h200", "name", "NVIDIA H200", NULL), 0);
    assert_int_equal(with("SOFTGPU_PROFILE", "tiny", "name", "softgpu tiny", NULL), 0);
}

#define SETTINGS_STATUS 2 /* docs/softgpu.md: instead of 0 */

/* cuInit answers SYSTEM_NOT_READY, the log has said why, and no job is green that found no driver
 * for that reason. */
TEST_WHERE(an_invalid_profile_is_refused, NEEDS_SOFTGPU("profiles")) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-visibility");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "[device]\nname = x\nmemory = lots\n", 31), 31);
    close(fd);
    int status = with("SOFTGPU_PROFILE", path, "show", "802", "0");
    unlink(path);
    assert_int_equal(status, SETTINGS_STATUS);
    assert_int_equal(with("SOFTGPU_PROFILE", "nobody", "show", "802", "0"), SETTINGS_STATUS);
}
