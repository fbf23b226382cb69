#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

gpumem_driver_api cu;
gpumem_driver *driver;
const softgpu_control *soft;
bool twins;
CUdevice dev;
CUcontext ctx;
int device_count;

/* ---- Checks --------------------------------------------------------------------------------- */

static const char *result_name(CUresult result) {
    const char *name = NULL;
    if (gpumem_driver_table(driver)->cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
        return name;
    static char number[16];
    snprintf(number, sizeof number, "%d", (int)result);
    return number;
}

/*
 * tests/coverage lets a function answer success without doing anything and wants to see a test of
 * its effect fail. That a bad call is no longer refused must not count, so it is overlooked then.
 */
static bool is_skipped(const char *call) {
    const char *fault = getenv("SOFTGPU_FAULT");
    if (fault && fault[0] == '=')
        fault++;
    size_t length = fault ? strcspn(fault, ":") : 0;
    if (length == 0 || !strstr(fault, ":skip"))
        return false;
    if (length > 5 && (memcmp(fault + length - 5, "_ptds", 5) == 0 ||
                       memcmp(fault + length - 5, "_ptsz", 5) == 0))
        length -= 5;
    const char *called = strstr(call, "cu.cu");
    return called && strncmp(called + 3, fault, length) == 0 && called[3 + length] == '(';
}

void check_result(CUresult got, CUresult wanted, const char *call, const char *file, int line) {
    if (got == wanted || (got == CUDA_SUCCESS && is_skipped(call)))
        return;
    print_error("%s answered %s", call, result_name(got));
    print_error(", not %s\n", result_name(wanted));
    _fail(file, line);
}

bool no_kernels(CUresult launched) {
    const char *setting = getenv("SOFTGPU_KERNELS");
    return soft && launched == CUDA_ERROR_NOT_SUPPORTED && setting && strcmp(setting, "0") == 0;
}

/* The runner reads the line before cmocka's own about the skip. */
void skip_reason(const char *format, ...) {
    va_list arguments;
    printf("skip: ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

int device_attribute(CUdevice_attribute attribute) {
    return MADE_CU(int, cuDeviceGetAttribute, attribute, dev);
}

bool pools_have_descriptors(void) {
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
    };
    CUmemoryPool pool;
    CUresult result = cu.cuMemPoolCreate(&pool, &props);
    if (result != CUDA_SUCCESS) {
        assert_int_equal(result, CUDA_ERROR_INVALID_VALUE);
        return false;
    }
    OK_CU(cu.cuMemPoolDestroy(pool));
    return true;
}

/* ---- The driver ----------------------------------------------------------------------------- */

/* The row that exports `symbol`, or GPUMEM_FN_COUNT. */
static gpumem_driver_fn find_row(const char *symbol) {
    unsigned i = 0;
    while (i < GPUMEM_FN_COUNT &&
           strcmp(gpumem_driver_fn_info_get((gpumem_driver_fn)i)->symbol, symbol) != 0)
        i++;
    return (gpumem_driver_fn)i;
}

/* Puts the twin of a function where tests look for the function. */
static void use_twins(void) {
    typedef void (*any_fn)(void);
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        const gpumem_driver_fn_info *twin = gpumem_driver_fn_info_get((gpumem_driver_fn)i);
        if (twin->kind == GPUMEM_FN_PLAIN || !gpumem_driver_has(driver, (gpumem_driver_fn)i))
            continue;
        char plain[128];
        snprintf(plain, sizeof plain, "%.*s", (int)(strlen(twin->symbol) - strlen("_ptsz")),
                 twin->symbol);
        gpumem_driver_fn fn = find_row(plain);
        if (fn != GPUMEM_FN_COUNT)
            memcpy((char *)&cu + (size_t)fn * sizeof(any_fn), (char *)&cu + i * sizeof(any_fn),
                   sizeof(any_fn));
    }
}

/* Without a GPU and without a choice these tests choose softgpu, and say so. */
static bool open_driver(void) {
    if (gpumem_driver_open(NULL, &driver) != GPUMEM_OK &&
        (getenv("GPUMEM_DRIVER") || gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)) {
        fprintf(stderr, "%s\n", gpumem_last_error()->message);
        return false;
    }
    cu = *gpumem_driver_table(driver);
    gate_use(&cu);
    softgpu_get_control_fn get;
    *(void **)&get = gpumem_driver_symbol(driver, "softgpu_get_control");
    soft = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
    const char *twin = getenv("GPUMEM_TWIN");
    twins = twin && strcmp(twin, "ptds") == 0;
    if (twins)
        use_twins();
    return true;
}

void init_driver(void) {
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDeviceGetCount(&device_count));
    OK_CU(cu.cuDeviceGet(&dev, 0));
    OK_CU(cu.cuDevicePrimaryCtxRetain(&ctx, dev));
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

static int group_begin(void **state) {
    init_driver();
    return 0;
}

static int group_end(void **state) {
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(dev));
    return 0;
}

/* ---- Each test ------------------------------------------------------------------------------ */

static char *state_before;

/* A call that waits behind a closed gate would take the tests after it along. No test needs so many
 * seconds while it holds one, on the slowest of sanitizers, where no other task has the processor.
 */
#define GATE_SECONDS 40
#define MOST_STRETCH 20
static volatile sig_atomic_t gates_forced, gate_seconds;
static long processors;

/* How many tasks share a processor, over the last minute; 1 where that is not known. In a signal
 * handler: no streams, no locale. */
static long tasks_a_processor(void) {
    char text[16] = {0};
    long tasks = 0;
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 1;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9' && tasks < 100000; i++)
        tasks = tasks * 10 + (text[i] - '0');
    if (tasks <= processors)
        return 1;
    return tasks / processors + 1 < MOST_STRETCH ? tasks / processors + 1 : MOST_STRETCH;
}

/* Looks again as often as other tasks of this machine may have made the test longer. */
static void force_gates(int unused) {
    int kept = errno;
    gate_seconds += GATE_SECONDS;
    if (gate_seconds < GATE_SECONDS * tasks_a_processor())
        alarm(GATE_SECONDS);
    else if (gate_release_all())
        gates_forced = 1;
    errno = kept;
}

static void watch_gates(void) {
    struct sigaction action = {.sa_handler = force_gates, .sa_flags = SA_RESTART};
    gates_forced = gate_seconds = 0;
    processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1)
        processors = 1;
    sigaction(SIGALRM, &action, NULL);
    alarm(GATE_SECONDS);
}

int test_begin(void **state) {
    watch_gates();
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuCtxSynchronize());
    state_before = soft ? soft->state_dump() : NULL;
    return 0;
}

static bool has_line(const char *text, const char *line, size_t length) {
    for (; *text; text += strcspn(text, "\n") + 1)
        if (strcspn(text, "\n") == length && memcmp(text, line, length) == 0)
            return true;
    return false;
}

/* Lines of `text` that `other` lacks; the first of them, because a loop may leave thousands. */
static void print_difference(const char *sign, const char *text, const char *other) {
    int shown = 0;
    for (; *text && shown < 20; text += strcspn(text, "\n") + 1) {
        size_t length = strcspn(text, "\n");
        if (has_line(other, text, length))
            continue;
        print_error("%s %.*s\n", sign, (int)length, text);
        shown++;
    }
}

int test_end(void **state) {
    alarm(0);
    gate_release_all();
    if (gates_forced)
        print_error("a call waited behind a gate for %d seconds\n", (int)gate_seconds);
    if (soft && !getenv("SOFTGPU_FAULT")) /* what tests/coverage armed is for the whole program */
        soft->fault_disarm();
    cu.cuCtxSetCurrent(ctx);
    destroy_objects();
    if (!soft)
        return gates_forced ? -1 : 0;
    CUresult current = cu.cuCtxSetCurrent(ctx);
    CUresult done = cu.cuCtxSynchronize();
    char *after = soft->state_dump();
    bool same = state_before && after && strcmp(state_before, after) == 0;
    if (!same) {
        print_error("the test left something behind (%s, %s):\n", result_name(current),
                    result_name(done));
        print_difference("-", state_before ? state_before : "", after ? after : "");
        print_difference("+", after ? after : "", state_before ? state_before : "");
    }
    soft->free_text(state_before);
    soft->free_text(after);
    state_before = NULL;
    return same && !gates_forced ? 0 : -1;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* Tests about two devices are worth having; one that wants another number says so itself. */
static int begin(bool child) {
    setenv("SOFTGPU_DEVICES", "2", 0);
    if (!open_driver())
        return 1;
    if (child)
        return 0;
    printf("# driver %s%s\n", driver_info(driver).path, twins ? ", twins" : "");
    fflush(stdout);
    return 0;
}

const struct test_folder test_folder = {begin, test_begin, test_end, group_begin, group_end};

/* ---- Bytes ---------------------------------------------------------------------------------- */

static unsigned char pattern(size_t offset, unsigned seed) {
    return (unsigned char)((offset % 251u + 17u * seed + 1u) & 0xffu);
}

void fill_pattern(void *bytes, size_t size, unsigned seed) {
    unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        at[i] = pattern(i, seed);
}

bool has_pattern(const void *bytes, size_t size, unsigned seed) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        if (at[i] != pattern(i, seed))
            return false;
    return true;
}

unsigned char byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    OK_CU(cu.cuMemcpyDtoH_v2(&byte, address, sizeof byte));
    return byte;
}

uint32_t word_at(CUdeviceptr address) {
    uint32_t word = 0;
    OK_CU(cu.cuMemcpyDtoH_v2(&word, address, sizeof word));
    return word;
}

void set_bytes(CUdeviceptr to, unsigned char value, size_t count) {
    OK_CU(cu.cuMemsetD8_v2(to, value, count));
    OK_CU(cu.cuCtxSynchronize());
}

void set_words(CUdeviceptr to, unsigned value, size_t count) {
    OK_CU(cu.cuMemsetD32_v2(to, value, count));
    OK_CU(cu.cuCtxSynchronize());
}

void launch_and_wait(CUgraphExec exec, CUstream stream) {
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
}

void order_streams(CUstream first, CUevent event, CUstream second) {
    OK_CU(cu.cuEventRecord(event, first));
    OK_CU(cu.cuStreamWaitEvent(second, event, 0));
}

void unmap_and_free(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle memory) {
    OK_CU(cu.cuMemUnmap(at, size));
    OK_CU(cu.cuMemRelease(memory));
    OK_CU(cu.cuMemAddressFree(at, size));
}
