/* What a driver reports and is told beside its work: error log, core dump settings, profiler,
 * notifications, writes of other devices. */
#include "../parity.h"
#include "temporary.h"

#include <fcntl.h>

/* ---- The error log --------------------------------------------------------------------------- */

static int logged;
static size_t logged_length;
static CUlogLevel logged_level;

static void CUDAAPI on_log(void *data, CUlogLevel level, char *message, size_t length) {
    logged++;
    logged_level = level;
    logged_length = message != NULL && strlen(message) == length;
}

static void see_log(const char *what) {
    par_see(what, "calls %d level %d length-is-strlen %d", logged, (int)logged_level,
            (int)logged_length);
    logged = 0;
}

static void provoke(void) {
    CUdeviceptr p;
    par.api->cuMemAlloc_v2(&p, 0);
}

SCENARIO(log_callbacks, "report/log-callbacks", par_init) {
    CUlogsCallbackHandle handle, second;
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, 0));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuLogsRegisterCallback, "ok", (on_log, NULL, &handle), OUT_C(handle));
    provoke();
    see_log("refused-call");
    CUstream bad_stream = (CUstream)(uintptr_t)0;
    CUdeviceptr p = 0;
    par.api->cuMemsetD8Async(p, 0, 16, bad_stream);
    see_log("refused-set");
    par.api->cuStreamCreate(NULL, 0);
    see_log("null-output");
    par.api->cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
    see_log("null-attribute");
    CALLO(cuLogsRegisterCallback, "again", (on_log, NULL, &second), OUT_C(second));
    provoke();
    see_log("two-callbacks");
    CALL(cuLogsUnregisterCallback, "ok", (handle));
    provoke();
    see_log("one-left");
    CALL(cuLogsUnregisterCallback, "second", (second));
    provoke();
    see_log("none-left");
    CALLO(cuLogsRegisterCallback, "null-function", (NULL, NULL, &handle), OUT_C(handle));
    CALL(cuLogsRegisterCallback, "null-out", (on_log, NULL, NULL));
    CALL(cuLogsUnregisterCallback, "null", (NULL));
}

SCENARIO(log_memory, "report/log-memory", par_init) {
    static char buffer[65536];
    static const size_t sizes[] = {0, 1, 16, 100, 1000, 25600, 25601, 65536};
    CUlogIterator iterator = 0, start = 0;
    CALLO(cuLogsCurrent, "fresh", (&iterator, 0), OUT_U(iterator));
    CALL(cuLogsCurrent, "flags", (&iterator, 1));
    CALL(cuLogsCurrent, "null-out", (NULL, 0));
    size_t size = sizeof buffer;
    CALLO(cuLogsDumpToMemory, "empty", (NULL, buffer, &size, 0), IO_U(size));
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, 0));
    SETUP(cuCtxSetCurrent, (par.primary));
    SETUP(cuLogsCurrent, (&start, 0));
    provoke();
    CALLO(cuLogsCurrent, "one-error", (&iterator, 0), OUT_C(iterator));
    par_see("iterator", "%s", iterator == start ? "same" : "moved");
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        size = sizes[i];
        memset(buffer, 'x', sizeof buffer);
        par_note("size=%zu", sizes[i]);
        CALL(cuLogsDumpToMemory, "size", (NULL, buffer, &size, 0));
        par_see("dump", "written %s ends-with-zero %d", size > 0 ? "some" : "none",
                size > 0 && size <= sizeof buffer && buffer[size - 1] == 0);
    }
    iterator = start;
    size = sizeof buffer;
    CALL(cuLogsDumpToMemory, "iterator", (&iterator, buffer, &size, 0));
    par_see("iterator", "%s", iterator == start ? "same" : "moved");
    size = sizeof buffer;
    CALL(cuLogsDumpToMemory, "iterator-again", (&iterator, buffer, &size, 0));
    par_see("dump", "written %s", size > 0 ? "some" : "none");
    size = sizeof buffer;
    CALL(cuLogsDumpToMemory, "flags", (NULL, buffer, &size, 1));
    CALL(cuLogsDumpToMemory, "null-size", (NULL, buffer, NULL, 0));
    CALL(cuLogsDumpToMemory, "null-buffer", (NULL, NULL, &size, 0));
}

SCENARIO(log_many, "report/log-many", par_context) {
    static char buffer[65536];
    size_t size = sizeof buffer;
    for (int i = 0; i < 300; i++)
        provoke();
    CALL(cuLogsDumpToMemory, "many", (NULL, buffer, &size, 0));
    size_t lines = 0;
    for (size_t i = 0; i < size && i < sizeof buffer; i++)
        lines += buffer[i] == '\n';
    par_see("dump", "lines %zu", lines);
    CUlogIterator iterator = PAR_MADE(CUlogIterator, cuLogsCurrent, 0);
    par_see("iterator", "%u", iterator);
}

SCENARIO(log_file, "report/log-file", par_context) {
    char path[TEMPORARY_ROOM];
    CUlogIterator iterator = 0;
    int fd = temporary_file(path, "gpumem-parity-log");
    if (fd < 0)
        return;
    provoke();
    CALL(cuLogsDumpToFile, "ok", (NULL, path, 0));
    par_see("file", "%s", lseek(fd, 0, SEEK_END) > 0 ? "written" : "empty");
    CALL(cuLogsDumpToFile, "iterator", (&iterator, path, 0));
    CALL(cuLogsDumpToFile, "flags", (NULL, path, 1));
    CALL(cuLogsDumpToFile, "null-path", (NULL, NULL, 0));
    CALL(cuLogsDumpToFile, "no-folder", (NULL, "/nonexistent/folder/file", 0));
    CALL(cuLogsDumpToFile, "is-folder", (NULL, "/tmp", 0));
    close(fd);
    unlink(path);
}

/* ---- Core dump settings ---------------------------------------------------------------------- */

static void dump_read(const char *cls, bool global, CUcoredumpSettings which, size_t room) {
    unsigned char value[4096];
    size_t size = room;
    memset(value, PAR_SENTINEL, sizeof value);
    par_note("setting=%d room=%zu", (int)which, room);
    if (global)
        CALLO(cuCoredumpGetAttributeGlobal, cls, (which, value, &size), IO_U(size));
    else
        CALLO(cuCoredumpGetAttribute, cls, (which, value, &size), IO_U(size));
    if (par_last() == CUDA_SUCCESS && which != CU_COREDUMP_FILE && which != CU_COREDUMP_PIPE)
        par_see("value", "%02x %02x %02x %02x %02x", value[0], value[1], value[2], value[3],
                value[4]);
}

static void dump_sizes(bool global) {
    static const size_t rooms[] = {0, 1, 2, 3, 4, 5, 8, 1024, 4096};
    for (int which = 0; which <= 8; which++) {
        size_t size = 7;
        par_note("setting=%d", which);
        if (global)
            CALLO(cuCoredumpGetAttributeGlobal, "ask-size",
                  ((CUcoredumpSettings)which, NULL, &size), IO_U(size));
        else
            CALLO(cuCoredumpGetAttribute, "ask-size", ((CUcoredumpSettings)which, NULL, &size),
                  IO_U(size));
        for (unsigned i = 0; i < COUNT(rooms); i++)
            dump_read("room", global, (CUcoredumpSettings)which, rooms[i]);
    }
}

static void dump_write(const char *cls, bool global, CUcoredumpSettings which, const void *value,
                       size_t room) {
    unsigned char copy[4096];
    size_t size = room;
    if (room > 0)
        memcpy(copy, value, room);
    par_note("setting=%d size=%zu", (int)which, room);
    if (global)
        CALLO(cuCoredumpSetAttributeGlobal, cls, (which, copy, &size), IO_U(size));
    else
        CALLO(cuCoredumpSetAttribute, cls, (which, copy, &size), IO_U(size));
    if (par_last() == CUDA_SUCCESS) {
        dump_read("after-set", global, which, which == CU_COREDUMP_GENERATION_FLAGS ? 4 : 1);
        dump_read("other-scope", !global, which, which == CU_COREDUMP_GENERATION_FLAGS ? 4 : 1);
    }
}

static void dump_writes(bool global) {
    static const unsigned char yes = 1, no = 0, two = 2;
    static const int yes_wide = 1;
    static const unsigned flags[] = {0, 1, 2, 16, 32, 0x2f, 0x3f, 0x40, ~0u};
    for (int which = 0; which <= 8; which++) {
        dump_write("true", global, (CUcoredumpSettings)which, &yes, 1);
        dump_write("false", global, (CUcoredumpSettings)which, &no, 1);
        dump_write("two", global, (CUcoredumpSettings)which, &two, 1);
        dump_write("wide", global, (CUcoredumpSettings)which, &yes_wide, 4);
        dump_write("empty", global, (CUcoredumpSettings)which, &yes, 0);
    }
    for (unsigned i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        dump_write("flags", global, CU_COREDUMP_GENERATION_FLAGS, &flags[i], 4);
    }
}

static void dump_names(bool global) {
    static const char name[] = "core-of-parity";
    char got[4096];
    size_t size = sizeof name;
    for (int which = CU_COREDUMP_FILE; which <= CU_COREDUMP_PIPE; which++) {
        char copy[sizeof name];
        memcpy(copy, name, sizeof name);
        size = sizeof name;
        par_note("setting=%d", which);
        if (global)
            CALLO(cuCoredumpSetAttributeGlobal, "name", ((CUcoredumpSettings)which, copy, &size),
                  IO_U(size));
        else
            CALLO(cuCoredumpSetAttribute, "name", ((CUcoredumpSettings)which, copy, &size),
                  IO_U(size));
        size = sizeof got;
        memset(got, 0, sizeof got);
        par_note("setting=%d", which);
        if (global)
            CALL(cuCoredumpGetAttributeGlobal, "name", ((CUcoredumpSettings)which, got, &size));
        else
            CALL(cuCoredumpGetAttribute, "name", ((CUcoredumpSettings)which, got, &size));
        par_see("name", "size %zu %s", size,
                strcmp(got, name) == 0 ? "equal"
                : strstr(got, name)    ? "contained"
                                       : "other");
    }
}

SCENARIO_IN(dump_get_global, "report/dump-get-global", par_init, dump_sizes(true));
SCENARIO_IN(dump_get_context, "report/dump-get-context", par_context, dump_sizes(false));
SCENARIO_IN(dump_set_global, "report/dump-set-global", par_init, dump_writes(true));
SCENARIO_IN(dump_set_context, "report/dump-set-context", par_context, dump_writes(false));
SCENARIO_IN(dump_names_global, "report/dump-names-global", par_init, dump_names(true));
SCENARIO_IN(dump_names_context, "report/dump-names-context", par_context, dump_names(false));

SCENARIO(dump_set_after_context, "report/dump-set-after-context", par_context) {
    dump_writes(true);
    dump_names(true);
}

SCENARIO(dump_without_context, "report/dump-without-context", par_init) {
    unsigned char value = 1;
    size_t size = 1;
    CALLO(cuCoredumpGetAttribute, "no-context", (CU_COREDUMP_LIGHTWEIGHT, &value, &size),
          IO_U(size));
    size = 1;
    CALLO(cuCoredumpSetAttribute, "no-context", (CU_COREDUMP_LIGHTWEIGHT, &value, &size),
          IO_U(size));
    CALL(cuCoredumpGetAttributeGlobal, "null-size", (CU_COREDUMP_LIGHTWEIGHT, &value, NULL));
    CALL(cuCoredumpSetAttributeGlobal, "null-size", (CU_COREDUMP_LIGHTWEIGHT, &value, NULL));
    CALL(cuCoredumpSetAttributeGlobal, "null-value", (CU_COREDUMP_LIGHTWEIGHT, NULL, &size));
}

/* ---- Profiler -------------------------------------------------------------------------------- */

SCENARIO(profiler, "report/profiler") {
    CALL(cuProfilerStart, "not-initialized", ());
    par_init();
    CALL(cuProfilerStart, "no-context", ());
    CALL(cuProfilerStop, "no-context", ());
    CALL(cuProfilerInitialize, "no-context", ("config", "output", CU_OUT_KEY_VALUE_PAIR));
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, 0));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuProfilerStop, "not-started", ());
    CALL(cuProfilerStart, "ok", ());
    CALL(cuProfilerStart, "again", ());
    CALL(cuProfilerStop, "ok", ());
    CALL(cuProfilerStop, "again", ());
    CALL(cuProfilerInitialize, "ok", ("config", "output", CU_OUT_KEY_VALUE_PAIR));
    CALL(cuProfilerInitialize, "csv", ("config", "output", CU_OUT_CSV));
    CALL(cuProfilerInitialize, "bad-mode", ("config", "output", (CUoutput_mode)7));
    CALL(cuProfilerInitialize, "null-config", (NULL, "output", CU_OUT_CSV));
    CALL(cuProfilerInitialize, "null-output", ("config", NULL, CU_OUT_CSV));
}

/* ---- Notifications --------------------------------------------------------------------------- */

static void CUDAAPI on_notification(CUasyncNotificationInfo *info, void *user,
                                    CUasyncCallbackHandle handle) {
    (void)info, (void)user, (void)handle;
}

SCENARIO(notifications, "report/notifications", par_init) {
    CUasyncCallbackHandle handle, second, other_device;
    CALLO(cuDeviceRegisterAsyncNotification, "ok", (0, on_notification, NULL, &handle),
          OUT_C(handle));
    CUresult first = par_last();
    CALLO(cuDeviceRegisterAsyncNotification, "again", (0, on_notification, NULL, &second),
          OUT_C(second));
    CUresult other = par_last();
    CALLO(cuDeviceRegisterAsyncNotification, "bad-device",
          (99, on_notification, NULL, &other_device), OUT_C(other_device));
    CALL(cuDeviceRegisterAsyncNotification, "null-out", (0, on_notification, NULL, NULL));
    if (first == CUDA_SUCCESS) {
        CALL(cuDeviceUnregisterAsyncNotification, "bad-device", (99, second));
        CALL(cuDeviceUnregisterAsyncNotification, "ok", (0, handle));
    }
    if (other == CUDA_SUCCESS)
        CALL(cuDeviceUnregisterAsyncNotification, "second", (0, second));
    CALL(cuDeviceUnregisterAsyncNotification, "null", (0, NULL));
}

SCENARIO(notification_null, "report/notification-null", par_init) {
    CUasyncCallbackHandle handle;
    CALLO(cuDeviceRegisterAsyncNotification, "null-function", (0, NULL, NULL, &handle),
          OUT_C(handle));
}

/* ---- Other questions ------------------------------------------------------------------------- */

SCENARIO(rdma_flush, "report/rdma-flush", par_init) {
    CALL(cuFlushGPUDirectRDMAWrites, "no-context",
         (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, 0));
    SETUP(cuCtxSetCurrent, (par.primary));
    static const int scopes[] = {0, 1, 99, 100, 101, 199, 200, 201};
    for (int target = -1; target <= 1; target++)
        for (unsigned i = 0; i < COUNT(scopes); i++) {
            par_note("target=%d scope=%d", target, scopes[i]);
            CALL(cuFlushGPUDirectRDMAWrites, "scope",
                 ((CUflushGPUDirectRDMAWritesTarget)target,
                  (CUflushGPUDirectRDMAWritesScope)scopes[i]));
        }
}

SCENARIO(luid, "report/luid", par_init) {
    char id[8];
    unsigned mask;
    CALLO(cuDeviceGetLuid, "ok", (id, &mask, 0), OUT_U(mask));
    CALLO(cuDeviceGetLuid, "bad-device", (id, &mask, 99), OUT_U(mask));
    CALL(cuDeviceGetLuid, "null-mask", (id, NULL, 0));
}

SCENARIO(export_table, "report/export-table") {
    const void *table;
    CUuuid id;
    memset(&id, 0x5a, sizeof id);
    par_init();
    CALLO(cuGetExportTable, "unknown", (&table, &id), OUT_C(table));
    CALL(cuGetExportTable, "null-out", (NULL, &id));
    CALLO(cuGetExportTable, "null-id", (&table, NULL), OUT_C(table));
}

SCENARIO(loading_mode, "report/loading-mode") {
    CUmoduleLoadingMode mode;
    CALLO(cuModuleGetLoadingMode, "not-initialized", (&mode), OUT_I(mode));
    par_init();
    CALLO(cuModuleGetLoadingMode, "ok", (&mode), OUT_I(mode));
    CALL(cuModuleGetLoadingMode, "null-out", (NULL));
}

SCENARIO(loading_mode_eager, "report/loading-mode-eager") {
    CUmoduleLoadingMode mode;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    par_init();
    CALLO(cuModuleGetLoadingMode, "eager", (&mode), OUT_I(mode));
}

SCENARIO(loading_mode_other, "report/loading-mode-other") {
    CUmoduleLoadingMode mode;
    setenv("CUDA_MODULE_LOADING", "something", 1);
    par_init();
    CALLO(cuModuleGetLoadingMode, "not-understood", (&mode), OUT_I(mode));
}
