/* Core dump settings, and what a fault leaves behind. Settings last as long as the process: each
 * test has its own. */
#include "harness.h"
#include "temporary.h"

static bool read_byte(CUcoredumpSettings setting, bool process) {
    unsigned char value = 0xa5;
    size_t size = 1;
    OK_CU(process ? cu.cuCoredumpGetAttributeGlobal(setting, &value, &size)
                  : cu.cuCoredumpGetAttribute(setting, &value, &size));
    assert_true(value == 0 || value == 1);
    return value;
}

static void write_byte(CUcoredumpSettings setting, bool process, unsigned char value) {
    size_t size = 1;
    OK_CU(process ? cu.cuCoredumpSetAttributeGlobal(setting, &value, &size)
                  : cu.cuCoredumpSetAttribute(setting, &value, &size));
}

CHILD_TEST(global_and_context_core_dump_settings_are_separate) {
    init_driver();
    assert_false(read_byte(CU_COREDUMP_LIGHTWEIGHT, false));
    assert_true(read_byte(CU_COREDUMP_TRIGGER_HOST, false));
    write_byte(CU_COREDUMP_LIGHTWEIGHT, false, 1);
    write_byte(CU_COREDUMP_TRIGGER_HOST, true, 0);
    assert_true(read_byte(CU_COREDUMP_LIGHTWEIGHT, false));
    assert_false(read_byte(CU_COREDUMP_LIGHTWEIGHT, true));
    assert_true(read_byte(CU_COREDUMP_TRIGGER_HOST, false));
    assert_false(read_byte(CU_COREDUMP_TRIGGER_HOST, true));
    if (!soft)
        return 0;
    /* One that begins later takes what the process has then. */
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, CU_CTX_COREDUMP_ENABLE, dev);
    assert_false(read_byte(CU_COREDUMP_LIGHTWEIGHT, false));
    assert_false(read_byte(CU_COREDUMP_TRIGGER_HOST, false));
    assert_true(read_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, false));
    assert_false(read_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, true));
    OK_CU(cu.cuCtxDestroy_v2(other));
    return 0;
}

CHILD_TEST(core_dump_settings_need_their_exact_size) {
    init_driver();
    static const size_t wanted[] = {0, 1, 1, 1, 1, 1024, 1024, 4};
    for (int which = 1; which < (int)COUNT(wanted); which++) {
        size_t size = 7;
        OK_CU(cu.cuCoredumpGetAttributeGlobal((CUcoredumpSettings)which, NULL, &size));
        assert_int_equal(size, wanted[which]);
        size = 7;
        OK_CU(cu.cuCoredumpSetAttributeGlobal((CUcoredumpSettings)which, NULL, &size));
        assert_int_equal(size, wanted[which]);
    }
    unsigned flags = 0x2f, got = 0;
    size_t size = sizeof flags;
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
    OK_CU(cu.cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
    assert_int_equal(got, 0x2f);
    size = 1;
    FAILS_CU(INVALID_VALUE, cu.cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
    FAILS_CU(INVALID_VALUE,
             cu.cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, &got, &size));
    FAILS_CU(INVALID_VALUE, cu.cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, &got, &size));
    FAILS_CU(INVALID_VALUE, cu.cuCoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &got, NULL));
    return 0;
}

CHILD_TEST(core_dump_file_names_are_kept) {
    init_driver();
    char name[] = "somewhere", got[1024];
    size_t size = sizeof name, room = sizeof got;
    OK_CU(cu.cuCoredumpSetAttributeGlobal(CU_COREDUMP_PIPE, name, &size));
    OK_CU(cu.cuCoredumpGetAttributeGlobal(CU_COREDUMP_PIPE, got, &room));
    assert_string_equal(got, name);
    write_byte(CU_COREDUMP_ENABLE_USER_TRIGGER, true, 1);
    FAILS_CU(NOT_SUPPORTED, cu.cuCoredumpSetAttributeGlobal(CU_COREDUMP_PIPE, name, &size));
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &size));
    OK_CU(cu.cuCoredumpGetAttribute(CU_COREDUMP_FILE, got, &room));
    assert_string_equal(got, name);
    if (!soft)
        return 0;
    char wanted[512], host[256];
    gethostname(host, sizeof host);
    snprintf(wanted, sizeof wanted, "core.cuda.%s.%d", host, (int)getpid());
    OK_CU(cu.cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, got, &room));
    assert_string_equal(got, wanted);
    static char long_name[1025];
    memset(long_name, 'n', sizeof long_name - 1);
    size = sizeof long_name;
    FAILS_CU(INVALID_VALUE, cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, long_name, &size));
    return 0;
}

CHILD_TEST(core_dump_settings_without_a_context_are_refused) {
    init_driver();
    OK_CU(cu.cuCtxSetCurrent(NULL));
    unsigned char value = 1;
    size_t size = 1;
    FAILS_CU(INVALID_CONTEXT, cu.cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
    FAILS_CU(INVALID_CONTEXT, cu.cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
    return 0;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void set_file(const char *folder) {
    char pattern[1024];
    size_t size = (size_t)snprintf(pattern, sizeof pattern, "%s/%%p-100%%%%", folder) + 1;
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, pattern, &size));
}

static char *read_file(const char *folder, char *text, size_t room) {
    char name[1024];
    snprintf(name, sizeof name, "%s/%d-100%%", folder, (int)getpid());
    FILE *file = fopen(name, "r");
    if (!file)
        return NULL;
    size_t size = fread(text, 1, room - 1, file);
    text[size] = '\0';
    fclose(file);
    unlink(name);
    return text;
}

/* The text is there when a call has told the fault. */
CHILD(fault) {
    const char *folder = argv[1];
    static char text[4096];
    bool enabled = strcmp(argv[2], "enabled") == 0;
    init_driver();
    set_file(folder);
    write_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, false, enabled);
    (void)MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    char *found = read_file(folder, text, sizeof text);
    if (!enabled)
        return found != NULL;
    assert_non_null(found);
    assert_non_null(strstr(text, "softgpu fault report 1\n"));
    assert_non_null(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_non_null(strstr(text, "device 0 "));
    /* The first fault only. */
    assert_int_equal(soft->context_poison(CUDA_ERROR_HARDWARE_STACK_ERROR), 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    assert_null(read_file(folder, text, sizeof text));
    /* Settings are still answered. */
    assert_true(read_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, false));
    return 0;
}

/* Queues a set behind a gate and takes its memory away: the fault is that of another thread. */
CHILD_THAT_ENDS(fault_of_work) {
    const size_t page = (size_t)2 << 20;
    static char text[4096];
    struct gate gate;
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    init_driver();
    set_file(argv[1]);
    write_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, false, 1);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, page, 0, 0, 0);
    OK_CU(cu.cuMemCreate(&memory, page, &prop, 0));
    OK_CU(cu.cuMemMap(p, page, 0, memory, 0));
    OK_CU(cu.cuMemSetAccess(p, page, &access, 1));
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_make(&gate);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(p, 1, page, stream));
    OK_CU(cu.cuMemUnmap(p, page));
    gate_release(&gate);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    assert_non_null(read_file(argv[1], text, sizeof text));
    assert_non_null(strstr(text, "\nstream "));
}

/* A file that cannot be written is said on the log; the fault is answered as ever. */
DRIVER_CHILD(nowhere) {
    set_file("/nonexistent");
    write_byte(CU_COREDUMP_ENABLE_ON_EXCEPTION, false, 1);
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
}

TEST_WHERE(a_fault_writes_a_core_dump_text, NEEDS_SOFTGPU("provokes faults, and writes text")) {
    char folder[TEMPORARY_ROOM];
    assert_non_null(temporary_folder(folder, "gpumem-test-fault"));
    assert_int_equal(run_child("fault", folder, "enabled", NULL), 0);
    assert_int_equal(run_child("fault", folder, "disabled", NULL), 0);
    assert_int_equal(run_child("fault_of_work", folder, NULL), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(run_child("nowhere", NULL), 0);
}
