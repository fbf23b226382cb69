/* What softgpu tells of itself: counts, state, leaks, trace. */
#include "harness.h"
#include "temporary.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

TEST_WHERE(calls_are_counted, NEEDS_SOFTGPU("counts calls")) {
    CUcontext current;
    uint64_t all = soft->call_count(NULL), mine = soft->call_count("cuCtxGetCurrent");
    OK_CU(cu.cuCtxGetCurrent(&current));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_int_equal(soft->call_count("cuCtxGetCurrent"), mine + 2);
    assert_int_equal(soft->call_count(NULL), all + 2);
    assert_int_equal(soft->call_count("cuNoSuchFunction"), 0);
}

TEST_WHERE(the_state_dump_shows_live_objects, NEEDS_SOFTGPU("dumps its state")) {
    char *before = soft->state_dump();
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    char *with_memory = soft->state_dump();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    char *with_both = soft->state_dump();
    DESTROY_CU(stream, memory);
    char *after = soft->state_dump();
    assert_string_not_equal(before, with_memory);
    assert_string_not_equal(with_memory, with_both);
    assert_string_equal(before, after);
    soft->free_text(before);
    soft->free_text(with_memory);
    soft->free_text(with_both);
    soft->free_text(after);
}

TEST_WHERE(the_leak_report_names_live_memory, NEEDS_SOFTGPU("reports leaks")) {
    char *none = soft->leak_report();
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    char *one = soft->leak_report();
    OK_CU(cu.cuMemFree_v2(memory));
    /* The harness holds the primary context, so there may be lines that are not about memory. */
    assert_true(strlen(one) > strlen(none));
    assert_non_null(strstr(one, "4096"));
    soft->free_text(none);
    soft->free_text(one);
}

/* cuda.h makes other names of these when a program is compiled; its source has one. */
TEST_WHERE(a_fault_by_name_counts_every_version_of_the_function, NEEDS_SOFTGPU("injects faults")) {
    const softgpu_fault_mode before = SOFTGPU_FAULT_BEFORE;
    assert_int_equal(soft->fault_arm_name("cuStreamQuery", 3, CUDA_ERROR_UNKNOWN, before), 0);
    assert_int_equal(soft->fault_reached(), 0);
    OK_CU(cu.cuStreamQuery(NULL));
    OK_CU(cu.cuStreamQuery_ptsz(NULL));
    assert_int_equal(soft->fault_reached(), 2);
    FAILS_CU(UNKNOWN, cu.cuStreamQuery(NULL));
    OK_CU(cu.cuStreamQuery(NULL));
    assert_int_equal(soft->fault_reached(), 4);
    assert_int_equal(soft->fault_disarm(), 1);
    OK_CU(cu.cuStreamQuery(NULL));
    assert_int_equal(soft->fault_reached(), 4); /* a sweep asks behind the call that it tries */
    assert_int_equal(soft->fault_arm_name("=cuStreamQuery_ptsz", 0, CUDA_ERROR_UNKNOWN, before), 0);
    FAILS_CU(UNKNOWN, cu.cuStreamQuery_ptsz(NULL));
    assert_int_equal(soft->fault_reached(), 1);
    assert_int_equal(soft->fault_disarm(), 1);
    static const char *const wrong[] = {NULL, "", "cuNoSuchFunction", "=cuNoSuchFunction", "=*"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(soft->fault_arm_name(wrong[i], 1, CUDA_ERROR_UNKNOWN, before), -1);
    assert_int_equal(soft->fault_arm_name("*", 1, CUDA_ERROR_UNKNOWN, (softgpu_fault_mode)0), -1);
}

/* How many lines the report of what was made since `mark` has; each has to have this text. */
static unsigned left_since(uint64_t mark, const char *text) {
    char *report = soft->leak_report_since(mark);
    unsigned lines = 0;
    assert_non_null(report);
    for (char *rest = NULL, *line = strtok_r(report, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest), lines++)
        if (!strstr(line, text))
            fail_msg("no '%s' in '%s'", text, line);
    soft->free_text(report);
    return lines;
}

TEST_WHERE(a_leak_report_since_a_mark_leaves_out_what_was_there, NEEDS_SOFTGPU("reports leaks")) {
    const CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 8, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC sampling = {.maxAnisotropy = 0};
    CUtexObject texture;
    CUdeviceptr old = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    CUstream old_stream = MADE_CU(CUstream, cuStreamCreate, 0);
    uint64_t mark = soft->leak_mark();
    assert_int_equal(left_since(mark, ""), 0);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 12345);
    assert_int_equal(left_since(mark, "12345"), 1);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    CUevent event = MADE_CU(CUevent, cuEventCreate, 0);
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    CUdeviceptr range = MADE_CU(CUdeviceptr, cuMemAddressReserve, 2 << 20, 0, 0, 0);
    resource.res.array.hArray = MADE_CU(CUarray, cuArrayCreate_v2, &shape);
    OK_CU(cu.cuTexObjectCreate(&texture, &resource, &sampling, NULL));
    assert_int_equal(left_since(mark, ""), 7);
    uint64_t later = soft->leak_mark();
    assert_int_equal(left_since(later, ""), 0);
    OK_CU(cu.cuTexObjectDestroy(texture));
    OK_CU(cu.cuMemAddressFree(range, 2 << 20));
    DESTROY_CU(resource.res.array.hArray, graph, event, stream);
    DESTROY_CU(memory, old, old_stream);
    assert_int_equal(left_since(mark, ""), 0);
    /* The new one is where the old one was. */
    CUdeviceptr again = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    assert_int_equal(left_since(later, "4096"), 1);
    DESTROY_CU(again);
}

/* Each thread says what it does. */
static void *work_under_a_label(void *label) {
    uint64_t mark = soft->leak_mark();
    OK_CU(cu.cuCtxSetCurrent(ctx));
    soft->label_set(label);
    for (int i = 0; i < 20; i++) {
        CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
        char *report = soft->leak_report_since(mark);
        if (!report || !strstr(report, label))
            fail_msg("no '%s' in '%s'", (char *)label, report);
        soft->free_text(report);
        FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(memory + 1));
        (void)soft->fault_reached();
        DESTROY_CU(memory);
    }
    soft->label_set("");
    return NULL;
}

TEST_WHERE(each_thread_has_a_label_of_its_own, NEEDS_SOFTGPU("has labels")) {
    char labels[2][16] = {"test_download", "test_upload"};
    pthread_t threads[2];
    uint64_t mark = soft->leak_mark();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_under_a_label, labels[i]), 0);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 12345);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char *report = soft->leak_report_since(mark);
    assert_non_null(strstr(report, "12345"));
    assert_null(strstr(report, "test_"));
    soft->free_text(report);
    DESTROY_CU(memory);
}

TEST(the_control_tells_implemented_functions_from_refused_ones) {
    NEEDS_SOFTGPU("knows its functions");
    const char *test = NULL;
    assert_int_not_equal(soft->function_state("cuMemAlloc_v2", &test), SOFTGPU_FUNCTION_REFUSED);
    assert_non_null(test);
    assert_int_equal(soft->function_state("cuGLGetDevices_v2", &test), SOFTGPU_FUNCTION_REFUSED);
    assert_string_equal(test, "");
    assert_int_equal(soft->function_state("cuNoSuchFunction", NULL), SOFTGPU_FUNCTION_REFUSED);
    /* A capture makes nodes of launches; whether kernels run is what counts. */
    static const char *const launches[] = {"cuLaunchKernel", "cuLaunchKernelEx_ptsz",
                                           "cuLaunchCooperativeKernel", "cuLaunchGrid",
                                           "cuLaunchCooperativeKernelMultiDevice"};
    const char *kernels = getenv("SOFTGPU_KERNELS");
    bool run = !kernels || strcmp(kernels, "0") != 0;
    for (size_t i = 0; i < COUNT(launches); i++)
        assert_int_equal(soft->function_state(launches[i], NULL) == SOFTGPU_FUNCTION_REFUSED, !run);
}

TEST_WHERE(unsupported_functions_are_refused, NEEDS_SOFTGPU("has no displays")) {
    unsigned int count = 7;
    CUdevice device = 7;
    const void *table = &count;
    CUuuid id = {{0}};
    FAILS_CU(OPERATING_SYSTEM, cu.cuGLGetDevices_v2(&count, &device, 1, 1));
    assert_int_equal(count, 7);
    FAILS_CU(INVALID_VALUE, cu.cuGetExportTable(&table, &id));
    assert_null(table);
    FAILS_CU(OPERATING_SYSTEM, cu.cuGLInit());
}

CHILD_TEST_WHERE(the_state_dump_is_empty_before_cuinit, NEEDS_SOFTGPU("dumps its state")) {
    char *dump = soft->state_dump();
    char *leaks = soft->leak_report();
    assert_string_equal(dump, "");
    assert_string_equal(leaks, "");
    uint64_t used, limit;
    assert_int_equal(soft->memory_info(0, &used, &limit), -1);
    soft->free_text(dump);
    soft->free_text(leaks);
    return 0;
}

TEST_WHERE(memory_use_is_reported, NEEDS_SOFTGPU("tells its memory")) {
    uint64_t before = 0, with = 0, limit = 0;
    assert_int_equal(soft->memory_info(0, &before, &limit), 0);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 8 << 20);
    assert_int_equal(soft->memory_info(0, &with, &limit), 0);
    assert_int_equal(with - before, 8 << 20);
    OK_CU(cu.cuMemFree_v2(memory));
    assert_int_equal(soft->memory_info(99, &with, &limit), -1);
}

TEST_WHERE(profiles_are_listed_with_their_capability, NEEDS_SOFTGPU("has profiles")) {
    int newest = 0;
    char *text = soft->profile_list(&newest);
    const char *a100 = strstr(text, "a100 80\n"), *h200 = strstr(text, "h200 90\n");
    assert_true(a100 && h200 && a100 < h200 && strstr(text, "rtx5090 120\n"));
    assert_true(newest >= 90);
    soft->free_text(text);
    text = soft->profile_list(NULL);
    assert_non_null(text);
    soft->free_text(text);
}

TEST_WHERE(an_unknown_control_version_is_refused, NEEDS_SOFTGPU("has a control")) {
    softgpu_get_control_fn get;
    *(void **)&get = gpumem_driver_symbol(driver, "softgpu_get_control");
    assert_ptr_equal(get(SOFTGPU_CONTROL_VERSION), soft);
    assert_null(get(SOFTGPU_CONTROL_VERSION + 1));
    assert_int_equal(soft->size, sizeof(softgpu_control));
}

/* ---- What a child writes -------------------------------------------------------------------- */

static char output[1 << 18]; /* a trace begins with a line for each function looked up */

/* Runs a child with a variable set to `value`, or for NULL to the name of a file; otherwise the
 * file takes the child's standard error. Answers the exit status; what was written is in output. */
static int run_with(const char *variable, const char *value, const char *child) {
    char name[TEMPORARY_ROOM];
    assert_true(temporary_name(name, "gpumem-test"));
    int fd = mkostemp(name, O_CLOEXEC | O_APPEND);
    int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_true(fd >= 0 && errors >= 0);
    setenv(variable, value ? value : name, 1);
    if (value)
        dup2(fd, STDERR_FILENO);
    int status = run_child(child, NULL);
    dup2(errors, STDERR_FILENO);
    close(errors);
    unsetenv(variable);
    ssize_t length = pread(fd, output, sizeof output - 1, 0);
    output[length > 0 ? length : 0] = '\0';
    close(fd);
    unlink(name);
    return status;
}

CHILD(leave_memory) {
    init_driver();
    (void)MADE_CU(CUdeviceptr, cuMemAlloc_v2, 12345);
    return 3;
}

TEST_WHERE(leaks_are_reported_at_exit, NEEDS_SOFTGPU("reports leaks")) {
    assert_int_equal(run_with("SOFTGPU_LEAKS", "1", "leave_memory"), 3);
    assert_non_null(strstr(output, "still live at exit"));
    assert_non_null(strstr(output, "12345"));
    assert_int_equal(run_with("SOFTGPU_LEAKS", "0", "leave_memory"), 3);
    assert_string_equal(output, "");
}

TEST_WHERE(calls_are_traced_with_arguments_and_result, NEEDS_SOFTGPU("traces calls")) {
    assert_int_equal(run_with("SOFTGPU_TRACE", NULL, "leave_memory"), 3);
    const char *init = strstr(output, " cuInit(0) CUDA_SUCCESS\n");
    const char *allocation = strstr(output, " cuMemAlloc_v2(0x");
    assert_true(init && allocation && init < allocation);
    char size[64];
    unsigned long long where = 0, made = 0;
    assert_int_equal(
        sscanf(allocation, " cuMemAlloc_v2(0x%llx -> 0x%llx, 12345) %63s", &where, &made, size), 3);
    assert_true(where && made && strcmp(size, "CUDA_SUCCESS") == 0);
}

/* Whatever a label has, a line stays one. */
CHILD(work_in_a_test) {
    char log[32768];
    size_t size = sizeof log;
    CUdeviceptr memory, none;
    init_driver();
    soft->label_set("test_upload\n[4]");
    OK_CU(cu.cuMemAlloc_v2(&memory, 12345));
    FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&none, 0));
    soft->label_set(NULL);
    OK_CU(cu.cuMemFree_v2(memory));
    OK_CU(cu.cuLogsDumpToMemory(NULL, log, &size, 0));
    return strstr(log, "invalid argument, in test_upload\\x0a[4]\n") ? 0 : 1;
}

TEST_WHERE(a_label_is_shown_in_the_trace_and_the_error_log, NEEDS_SOFTGPU("has labels")) {
    assert_int_equal(run_with("SOFTGPU_TRACE", NULL, "work_in_a_test"), 0);
    assert_non_null(strstr(output, ", 12345) CUDA_SUCCESS, in test_upload\\x0a[4]\n"));
    assert_non_null(strstr(output, ", 0) CUDA_ERROR_INVALID_VALUE, in test_upload\\x0a[4]\n"));
    const char *freed = strstr(output, " cuMemFree_v2(");
    assert_true(freed && !strstr(freed, "test_upload"));
}

CHILD_THAT_ENDS(refused_call) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    init_driver();
    CUdeviceptr memory;
    cu.cuMemAlloc_v2(&memory, 0);
}

TEST_WHERE(a_refused_call_can_abort, NEEDS_SOFTGPU("aborts on demand")) {
    assert_int_equal(run_with("SOFTGPU_ABORT", "1", "refused_call"), 128 + SIGABRT);
    assert_non_null(strstr(output, "cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE"));
    assert_int_equal(run_with("SOFTGPU_ABORT", "0", "refused_call"), 0);
}

#define SETTINGS_STATUS 2 /* docs/softgpu.md */

/* No job with a wrong setting is a success, even where every test of it is skipped. */
CHILD_THAT_ENDS(refused_init) {
    FAILS_CU(SYSTEM_NOT_READY, cu.cuInit(0));
    FAILS_CU(SYSTEM_NOT_READY, cu.cuInit(0));
}

TEST_WHERE(settings_can_be_checked_before_cuinit, NEEDS_SOFTGPU("reads its environment")) {
    char text[2048] = "";
    const char *given = getenv("SOFTGPU_SEED");
    assert_null(given);
    assert_int_equal(soft->settings_check(text, sizeof text), 0);
    assert_string_equal(text, "");
    setenv("SOFTGPU_SEED", "x", 1);
    setenv("SOFTGPU_PROFILE", "z900", 1);
    assert_int_equal(soft->settings_check(text, sizeof text), 2);
    assert_non_null(strstr(text, "SOFTGPU_SEED='x' is not understood"));
    assert_non_null(strstr(text, "there is no profile z900"));
    char little[4] = "";
    assert_int_equal(soft->settings_check(little, sizeof little), 2);
    unsetenv("SOFTGPU_SEED");
    unsetenv("SOFTGPU_PROFILE");
    assert_int_equal(soft->settings_check(NULL, 0), -1);
}

TEST_WHERE(an_invalid_environment_variable_is_explained, NEEDS_SOFTGPU("reads its environment")) {
    assert_int_equal(run_with("SOFTGPU_MEMORY", "lots", "refused_init"), SETTINGS_STATUS);
    assert_non_null(
        strstr(output, "SOFTGPU_MEMORY='lots' is not understood: it takes a number of bytes"));
    assert_int_equal(run_with("SOFTGPU_FAULT", "cuMemAlloc_v2:x:UNKNOWN:before", "refused_init"),
                     SETTINGS_STATUS);
    assert_non_null(strstr(output, "no count 'x'"));
}

/* More addresses than there can be, than the limit leaves, or than the system gives. */
CHILD(reserve) {
    init_driver();
    CUdeviceptr first, second;
    size_t bytes = (size_t)strtoull(getenv("GPUMEM_TEST_RESERVE"), NULL, 0);
    OK_CU(cu.cuMemAddressReserve(&first, (size_t)2 << 20, 0, 0, 0));
    return cu.cuMemAddressReserve(&second, bytes, 0, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
}

TEST_WHERE(a_refused_address_range_is_explained, NEEDS_SOFTGPU("writes to standard error")) {
    static const struct {
        const char *bytes, *limit, *says, *never;
    } cases[] = {
        /* No limit is set, so none is spoken of. */
        {"0x1000000000000", "0", "an address has 47 bits", "in use"},
        {"0x800000000000", "0", "the system gives no range", "in use"},
        {"0x80000000", "1G", "2097152 of 1073741824 are in use", "47 bits"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        setenv("GPUMEM_TEST_RESERVE", cases[i].bytes, 1);
        assert_int_equal(run_with("SOFTGPU_ADDRESS_SPACE", cases[i].limit, "reserve"), 0);
        unsetenv("GPUMEM_TEST_RESERVE");
        if (!strstr(output, cases[i].says) || strstr(output, cases[i].never))
            fail_msg("%s bytes of %s: '%s'", cases[i].bytes, cases[i].limit, output);
        assert_null(strstr(output, "of 0 "));
    }
}
