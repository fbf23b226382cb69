/* UUIDs that are set for softgpu's devices: every answer that has one, and every check by one. */
#include "harness.h"
#include "temporary.h"

#define FIRST  "6d657361-3232-2e33-2e36-000000000000"
#define SECOND "00000001-0000-0000-0000-000000000000"
#define THIRD  "00000000-0000-0000-0000-000000000001"

static void format_uuid(const CUuuid *uuid, char text[37]) {
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        text += sprintf(text, "%s%02x", dash ? "-" : "", (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

/* is TEXT... : the devices' UUIDs, by both versions of the call. */
CHILD(is) {
    int count = 0;
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDeviceGetCount(&count));
    if (count != argc - 1)
        return 1;
    for (int i = 0; i < count; i++) {
        char text[37];
        CUuuid old = MADE_CU(CUuuid, cuDeviceGetUuid, i);
        CUuuid new = MADE_CU(CUuuid, cuDeviceGetUuid_v2, i);
        format_uuid(&new, text);
        if (memcmp(&old, &new, sizeof old) != 0 || strcmp(text, argv[i + 1]) != 0)
            return 2;
    }
    return 0;
}

CHILD(refused) {
    return cu.cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY ? 0 : 1;
}

/* opens HANDLE ORDINAL: what the handle of legacy IPC names is on that device. */
CHILD(opens) {
    CUipcMemHandle handle;
    CUdeviceptr address;
    int ordinal = -1;
    init_driver();
    if (argc != 3 || strlen(argv[1]) != 2 * sizeof handle)
        return 1;
    for (size_t i = 0; i < sizeof handle; i++) {
        char byte[3] = {argv[1][2 * i], argv[1][2 * i + 1], 0};
        handle.reserved[i] = (char)strtoul(byte, NULL, 16);
    }
    OK_CU(cu.cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK_CU(cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    OK_CU(cu.cuIpcCloseMemHandle(address));
    return ordinal == atoi(argv[2]) ? 0 : 2;
}

/* shares: memory of each device, handed to another process. */
CHILD(shares) {
    int count = 0;
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDeviceGetCount(&count));
    for (int i = 0; i < count; i++) {
        CUipcMemHandle handle;
        char text[2 * sizeof handle + 1], ordinal[12];
        CUcontext context = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, i);
        OK_CU(cu.cuCtxSetCurrent(context));
        CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
        OK_CU(cu.cuIpcGetMemHandle(&handle, memory));
        for (size_t j = 0; j < sizeof handle; j++)
            snprintf(text + 2 * j, 3, "%02x", (unsigned)(unsigned char)handle.reserved[j]);
        snprintf(ordinal, sizeof ordinal, "%d", i);
        int status = run_child("opens", text, ordinal, NULL);
        OK_CU(cu.cuMemFree_v2(memory));
        if (status != 0)
            return 10 + status;
    }
    return 0;
}

static void set(const char *devices, const char *uuids, const char *visible) {
    setenv("SOFTGPU_DEVICES", devices, 1);
    setenv("SOFTGPU_UUID", uuids, 1);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
}

/* What the environment was before a test. */
struct kept {
    char *devices, *visible, *profile;
};

static char *copy_of(const char *variable) {
    const char *value = getenv(variable);
    return value ? strdup(value) : NULL;
}

static void put_back(const char *variable, char *value) {
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
    free(value);
}

static struct kept keep(void) {
    return (struct kept){.devices = copy_of("SOFTGPU_DEVICES"),
                         .visible = copy_of("CUDA_VISIBLE_DEVICES"),
                         .profile = copy_of("SOFTGPU_PROFILE")};
}

static void restore(struct kept kept) {
    unsetenv("SOFTGPU_UUID");
    put_back("SOFTGPU_DEVICES", kept.devices);
    put_back("CUDA_VISIBLE_DEVICES", kept.visible);
    put_back("SOFTGPU_PROFILE", kept.profile);
}

TEST_WHERE(every_query_returns_the_configured_uuid, NEEDS_SOFTGPU("its UUIDs are chosen")) {
    struct kept kept = keep();
    set("1", FIRST, NULL);
    assert_int_equal(run_child("is", FIRST, NULL), 0);
    set("2", "GPU-" FIRST, NULL);
    assert_int_equal(run_child("is", FIRST, "736f6674-6770-8075-8000-000000000001", NULL), 0);
    set("3", FIRST "," SECOND "," THIRD, NULL);
    assert_int_equal(run_child("is", FIRST, SECOND, THIRD, NULL), 0);
    /* They belong to the machine's devices, whichever of them are seen. */
    set("3", FIRST "," SECOND "," THIRD, "2,0");
    assert_int_equal(run_child("is", THIRD, FIRST, NULL), 0);
    set("3", FIRST "," SECOND "," THIRD, "GPU-" SECOND);
    assert_int_equal(run_child("is", SECOND, NULL), 0);
    set("3", FIRST "," SECOND "," THIRD, "GPU-6d");
    assert_int_equal(run_child("is", FIRST, NULL), 0);
    restore(kept);
}

#define SETTINGS_STATUS 2 /* docs/softgpu.md: instead of 0 */

TEST_WHERE(invalid_uuids_are_refused, NEEDS_SOFTGPU("its UUIDs are chosen")) {
    struct kept kept = keep();
    static const char *const bad[] = {"mesa22.3.6", FIRST "," FIRST,
                                      "00000000-0000-0000-0000-000000000000",
                                      FIRST "," SECOND "," THIRD, FIRST ","};
    for (size_t i = 0; i < COUNT(bad); i++) {
        set("2", bad[i], NULL);
        assert_int_equal(run_child("refused", NULL), SETTINGS_STATUS);
    }
    restore(kept);
}

/* Where only the place of a number differs, too. */
TEST(shared_memory_is_opened_on_the_device_of_its_uuid) {
    NEEDS_SOFTGPU("its UUIDs are chosen");
    struct kept kept = keep();
    set("2", SECOND "," THIRD, NULL);
    assert_int_equal(run_child("shares", NULL), 0);
    restore(kept);
}

TEST_WHERE(the_uuid_variable_overrides_the_profile, NEEDS_SOFTGPU("profiles")) {
    struct kept kept = keep();
    static const char text[] = "[device]\nlike = h200\nuuid = " SECOND ", " THIRD "\n";
    static const char wrong[] = "[device]\nlike = h200\nuuid = " SECOND ", x\n";
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-uuid");
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    setenv("SOFTGPU_PROFILE", path, 1);
    set("1", "", NULL);
    assert_int_equal(run_child("is", SECOND, NULL), 0);
    set("2", "", NULL);
    assert_int_equal(run_child("is", SECOND, THIRD, NULL), 0);
    set("1", FIRST, NULL);
    assert_int_equal(run_child("is", FIRST, NULL), 0);
    set("1", "", NULL);
    assert_int_equal(pwrite(fd, wrong, sizeof wrong - 1, 0), sizeof wrong - 1);
    assert_int_equal(ftruncate(fd, sizeof wrong - 1), 0);
    assert_int_equal(run_child("refused", NULL), SETTINGS_STATUS);
    close(fd);
    unlink(path);
    restore(kept);
}
