/* NVIDIA's environment variables, each in a process of its own: they are looked at once. */
#include "harness.h"
#include "temporary.h"

#include <fcntl.h>

static char folder[TEMPORARY_ROOM];

static bool get_switch(CUcoredumpSettings setting, bool process) {
    unsigned char value = 0xa5;
    size_t size = 1;
    OK_CU(process ? cu.cuCoredumpGetAttributeGlobal(setting, &value, &size)
                  : cu.cuCoredumpGetAttribute(setting, &value, &size));
    return value == 1;
}

static void set_switch(CUcoredumpSettings setting, bool process, unsigned char value) {
    size_t size = 1;
    OK_CU(process ? cu.cuCoredumpSetAttributeGlobal(setting, &value, &size)
                  : cu.cuCoredumpSetAttribute(setting, &value, &size));
}

static bool is_name(CUcoredumpSettings setting, bool process, const char *wanted) {
    char name[1024] = "";
    size_t size = sizeof name;
    OK_CU(process ? cu.cuCoredumpGetAttributeGlobal(setting, name, &size)
                  : cu.cuCoredumpGetAttribute(setting, name, &size));
    return strcmp(name, wanted) == 0;
}

static void set_name(CUcoredumpSettings setting, bool process, const char *name) {
    char copy[64];
    size_t size = (size_t)snprintf(copy, sizeof copy, "%s", name) + 1;
    OK_CU(process ? cu.cuCoredumpSetAttributeGlobal(setting, copy, &size)
                  : cu.cuCoredumpSetAttribute(setting, copy, &size));
}

static unsigned get_flags(void) {
    unsigned flags = 77;
    size_t size = sizeof flags;
    OK_CU(cu.cuCoredumpGetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
    return flags;
}

static void set_flags(unsigned flags) {
    size_t size = sizeof flags;
    OK_CU(cu.cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
}

/* ---- Children -------------------------------------------------------------------------------- */

/* What a switch is for the process and its context, and that neither changes. */
CHILD(a_switch) {
    if (argc != 3)
        return 2;
    CUcoredumpSettings setting = (CUcoredumpSettings)atoi(argv[1]);
    unsigned char wanted = (unsigned char)(argv[2][0] - '0');
    bool of_contexts = setting != CU_COREDUMP_ENABLE_USER_TRIGGER;
    init_driver();
    for (int process = of_contexts ? 0 : 1; process <= 1; process++) {
        assert_int_equal(get_switch(setting, process), wanted);
        set_switch(setting, process, !wanted);
        assert_int_equal(get_switch(setting, process), wanted);
    }
    /* The others are free. */
    CUcoredumpSettings other = setting == CU_COREDUMP_LIGHTWEIGHT ? CU_COREDUMP_ENABLE_ON_EXCEPTION
                                                                  : CU_COREDUMP_LIGHTWEIGHT;
    bool before = get_switch(other, true);
    set_switch(other, true, !before);
    assert_int_equal(get_switch(other, true), !before);
    return 0;
}

/* A switch whose variable is not understood is as if there were none. */
DRIVER_CHILD(no_switch) {
    assert_false(get_switch(CU_COREDUMP_ENABLE_ON_EXCEPTION, true));
    set_switch(CU_COREDUMP_ENABLE_ON_EXCEPTION, true, 1);
    assert_true(get_switch(CU_COREDUMP_ENABLE_ON_EXCEPTION, true));
}

DRIVER_CHILD(pipe_name) {
    assert_true(is_name(CU_COREDUMP_PIPE, true, argv[1]));
    set_name(CU_COREDUMP_PIPE, true, "another");
    assert_true(is_name(CU_COREDUMP_PIPE, true, argv[1]));
}

DRIVER_CHILD(generation_flags) {
    const unsigned wanted = (unsigned)strtoul(argv[1], NULL, 0);
    const bool fixed = argv[2][0] == 'f';
    assert_int_equal(get_flags(), wanted);
    set_flags(0x10);
    assert_int_equal(get_flags(), fixed ? wanted : 0x10);
}

/* The file of the variable gets the report of a fault, and no other one. */
DRIVER_CHILD(fault) {
    assert_true(is_name(CU_COREDUMP_FILE, false, argv[1]));
    set_name(CU_COREDUMP_FILE, false, "/nonexistent/file");
    set_name(CU_COREDUMP_FILE, true, "/nonexistent/file");
    assert_true(is_name(CU_COREDUMP_FILE, false, argv[1]));
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
}

/* Two refused calls, of which the log has the names. */
DRIVER_CHILD(refusals) {
    CUdeviceptr p;
    FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&p, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(4711));
}

DRIVER_CHILD(bus_order) {
    long last = -1;
    for (int i = 0; i < device_count; i++) {
        int domain = MADE_CU(int, cuDeviceGetAttribute, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, i);
        int bus = MADE_CU(int, cuDeviceGetAttribute, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i);
        int slot = MADE_CU(int, cuDeviceGetAttribute, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, i);
        /* A virtual machine may have its devices in the slots of one bus. */
        long place = ((long)domain * 256 + bus) * 32 + slot;
        print_message("# device %d: %04x:%02x:%02x\n", i, (unsigned)domain, (unsigned)bus,
                      (unsigned)slot);
        assert_true(place > last);
        last = place;
    }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static const char *in_folder(const char *name) {
    static char path[TEMPORARY_ROOM + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *read_file(const char *path) {
    static char text[16384];
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(variables_enable_core_dumps_and_lock_the_setting) {
    NEEDS_SOFTGPU("documented, but what a set answers then was not recorded");
    static const struct {
        const char *variable, *setting;
    } switches[] = {
        {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"},
        {"CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "2"},
        {"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "3"},
        {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "4"},
    };
    for (size_t i = 0; i < COUNT(switches); i++)
        for (int on = 0; on <= 1; on++) {
            setenv(switches[i].variable, on ? "1" : "0", 1);
            int status = run_child("a_switch", switches[i].setting, on ? "1" : "0", NULL);
            unsetenv(switches[i].variable);
            assert_int_equal(status, 0);
        }
    setenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "yes", 1);
    assert_int_equal(run_child("no_switch", NULL), 0);
    setenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "", 1);
    assert_int_equal(run_child("no_switch", NULL), 0);
    unsetenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION");
}

TEST(a_variable_sets_core_dump_flags_and_locks_them) {
    NEEDS_SOFTGPU("documented, but what a set answers then was not recorded");
    static const struct {
        const char *text, *flags, *kept;
    } cases[] = {
        {"skip_nonrelocated_elf_images", "1", "fixed"},
        {"skip_global_memory,skip_shared_memory", "6", "fixed"},
        {"skip_local_memory,skip_constbank_memory", "0x28", "fixed"},
        {"skip_abort,", "0x10", "fixed"},
        {"skip_everything", "0", "open"},
        {"skip_global", "0", "open"},
        {"", "0", "open"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        setenv("CUDA_COREDUMP_GENERATION_FLAGS", cases[i].text, 1);
        int status = run_child("generation_flags", cases[i].flags, cases[i].kept, NULL);
        unsetenv("CUDA_COREDUMP_GENERATION_FLAGS");
        assert_int_equal(status, 0);
    }
}

TEST(a_variable_names_the_core_dump_without_enabling_it) {
    NEEDS_SOFTGPU("provokes a fault, and reads the text that is written");
    assert_non_null(temporary_folder(folder, "gpumem-test-environment"));
    const char *file = in_folder("fault");
    setenv("CUDA_COREDUMP_FILE", file, 1);
    assert_int_equal(run_child("fault", file, NULL), 0);
    assert_null(read_file(file)); /* a name alone enables nothing */
    setenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", 1);
    int status = run_child("fault", file, NULL);
    unsetenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION");
    unsetenv("CUDA_COREDUMP_FILE");
    assert_int_equal(status, 0);
    const char *text = read_file(file);
    assert_non_null(text);
    assert_non_null(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    unlink(file);
    assert_int_equal(rmdir(folder), 0);

    setenv("CUDA_COREDUMP_PIPE", "the-pipe", 1);
    status = run_child("pipe_name", "the-pipe", NULL);
    unsetenv("CUDA_COREDUMP_PIPE");
    assert_int_equal(status, 0);
}

/* Documented: as they occur. */
TEST(refused_calls_are_written_to_a_file) {
    NEEDS_SOFTGPU("hardware has messages for some calls only");
    char own[TEMPORARY_ROOM];
    int fd = temporary_file(own, "gpumem-test-log");
    assert_true(fd >= 0);
    close(fd);
    setenv("CUDA_LOG_FILE", own, 1);
    int first = run_child("refusals", NULL), second = run_child("refusals", NULL);
    setenv("CUDA_LOG_FILE", "/nonexistent/log", 1);
    int nowhere = run_child("refusals", NULL);
    unsetenv("CUDA_LOG_FILE");
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
    assert_int_equal(nowhere, 0);
    const char *text = read_file(own);
    assert_non_null(text);
    const char *at = strstr(text, "cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE");
    assert_non_null(at);
    at = strstr(at, "cuMemFree_v2 answered CUDA_ERROR_INVALID_VALUE");
    assert_non_null(at);
    assert_non_null(strstr(at, "cuMemAlloc_v2 answered")); /* of the second process */
    unlink(own);
}

/* stdout and stderr are names of their own. */
TEST(refused_calls_are_written_to_streams) {
    NEEDS_SOFTGPU("hardware has messages for some calls only");
    static const struct {
        const char *name;
        int fd;
    } streams[] = {{"stdout", STDOUT_FILENO}, {"stderr", STDERR_FILENO}};
    fflush(NULL);
    for (size_t i = 0; i < COUNT(streams); i++) {
        char own[TEMPORARY_ROOM];
        int fd = temporary_file(own, "gpumem-test-log"),
            kept = fcntl(streams[i].fd, F_DUPFD_CLOEXEC, 3);
        assert_true(fd >= 0 && kept >= 0);
        dup2(fd, streams[i].fd);
        setenv("CUDA_LOG_FILE", streams[i].name, 1);
        int status = run_child("refusals", NULL);
        unsetenv("CUDA_LOG_FILE");
        dup2(kept, streams[i].fd);
        close(kept);
        close(fd);
        const char *text = read_file(own);
        unlink(own);
        assert_int_equal(status, 0);
        assert_non_null(text);
        assert_non_null(strstr(text, "cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE"));
    }
}

TEST_WHERE(a_variable_orders_devices_by_bus, NEEDS_DEVICES(2)) {
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    int status = run_child("bus_order", NULL);
    unsetenv("CUDA_DEVICE_ORDER");
    assert_int_equal(status, 0);
}
