/*
 * The GIL around calls, lines of the log, exceptions of callbacks, forks.
 *
 * The library calls its log with locks held, so a line is only queued here, without the GIL; the
 * next call that returns to Python passes it on to the module logging.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 1000 };

struct line {
    struct line *next;
    int level;
    unsigned logger; /* gpumem._log's number of it; 0: "gpumem" */
    char text[];
};

static struct {
    pthread_mutex_t lock;
    struct line *first, **last;
    int count;
    unsigned long lost;
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &lines.first};
atomic_bool core_lines_waiting;

/* The calls into the library that this thread is in, one in another by way of callbacks, and what a
 * callback raised in the innermost. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    int depth;
    PyObject *raised;
} calls;

void core_log_line(void *user, gpumem_log_level level, const char *text) {
    size_t length = strlen(text) + 1;
    struct line *line = malloc(sizeof *line + length);
    pthread_mutex_lock(&lines.lock);
    if (!line || lines.count >= MOST_LINES) {
        ++lines.lost;
        free(line);
    } else {
        *line = (struct line){.level = (int)level, .logger = (unsigned)(uintptr_t)user};
        memcpy(line->text, text, length);
        *lines.last = line;
        lines.last = &line->next;
        ++lines.count;
    }
    pthread_mutex_unlock(&lines.lock);
    atomic_store_explicit(&core_lines_waiting, true, memory_order_release);
}

void core_pass_lines_on(void) {
    pthread_mutex_lock(&lines.lock);
    struct line *line = lines.first;
    unsigned long lost = lines.lost;
    lines.first = NULL;
    lines.last = &lines.first;
    lines.count = 0;
    lines.lost = 0;
    atomic_store_explicit(&core_lines_waiting, false, memory_order_relaxed);
    pthread_mutex_unlock(&lines.lock);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (line) {
        struct line *next = line->next;
        PyObject *done =
            core.log && !core.finalizing
                ? PyObject_CallFunction(core.log, "isI", line->level, line->text, line->logger)
                : NULL;
        if (!done && PyErr_Occurred()) {
            PyErr_WriteUnraisable(core.log);
        }
        Py_XDECREF(done);
        free(line);
        line = next;
    }
    if (lost && core.log && !core.finalizing) {
        PyObject *done = PyObject_CallFunction(core.log, "is", (int)GPUMEM_LOG_WARNING,
                                               "lines of the log were lost: too many at once");
        Py_XDECREF(done);
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
}

PyThreadState *core_leave_python(void) {
    ++calls.depth;
    return PyEval_SaveThread();
}

void core_enter_python(PyThreadState *state) {
    PyEval_RestoreThread(state);
    --calls.depth;
}

int core_finish(void) {
    if (atomic_load_explicit(&core_lines_waiting, memory_order_relaxed)) {
        core_pass_lines_on();
    }
    if (!calls.raised) {
        return 0;
    }
    PyObject *raised = calls.raised;
    calls.raised = NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type) { /* the failure that followed from it */
        PyErr_NormalizeException(&type, &value, &traceback);
        PyException_SetContext(raised, value);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_DECREF(raised);
    return -1;
}

void core_callback_failed(PyObject *where) {
    if (calls.depth == 0 || calls.raised) {
        PyErr_WriteUnraisable(where);
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) {
        PyException_SetTraceback(value, traceback);
    }
    calls.raised = value;
    Py_XDECREF(type);
    Py_XDECREF(traceback);
}

bool core_may_call_back(void) {
    return !core.finalizing;
}

/* A child has one thread: nobody else is in a buffer, nobody holds a lock, and the parent's lines
 * are the parent's to pass on. */
static void after_fork(void) {
    ++core.epoch;
    pthread_mutex_init(&core.left_lock, NULL);
    pthread_cond_init(&core.left_changed, NULL);
    pthread_mutex_init(&lines.lock, NULL);
    lines.first = NULL;
    lines.last = &lines.first;
    lines.count = 0;
    core.waiting = 0;
    atomic_store(&core_lines_waiting, false);
}

int core_start_threads(void) {
    pthread_mutex_init(&core.left_lock, NULL);
    pthread_cond_init(&core.left_changed, NULL);
    if (pthread_atfork(NULL, NULL, after_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    gpumem_set_log(core_log_line, NULL, GPUMEM_LOG_DEFAULT);
    return 0;
}
