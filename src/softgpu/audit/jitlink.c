/*
 * In front of nvJitLink: links of LTO IR are asked for PTX; a link of PTX is answered with its text
 * or, of several, with what softgpu's linker makes of them. nvJitLink links all the same, so that
 * its errors and logs are the client's. Links that involve machine code are left alone.
 */
#include "audit.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_PTX     2
#define INPUT_LTOIR   3
#define INPUT_LIBRARY 6
#define OUT_OF_MEMORY 6 /* NVJITLINK_ERROR_INTERNAL: memory has no code of its own */

struct functions {
    int (*create)(void **handle, uint32_t count, const char **options);
    int (*add_data)(void *handle, int type, const void *data, size_t size, const char *name);
    int (*add_file)(void *handle, int type, const char *path);
    int (*complete)(void *handle);
    int (*cubin_size)(void *handle, size_t *size);
    int (*cubin)(void *handle, void *bytes);
    int (*destroy)(void **handle);
};

static struct {
    bool used;
    struct functions real;
    int (*ptx_size)(void *handle, size_t *size);
    int (*ptx)(void *handle, char *text);
} copies[AUDIT_COPIES];

/* A link whose result will be asked for as machine code. */
struct job {
    struct job *next;
    void *handle;
    unsigned architecture;
    bool lto;     /* which this file asked for PTX */
    bool machine; /* an input is neither PTX nor, with lto, LTO IR */
    bool ir;      /* with lto: there is some */
    bool runtime; /* the library of the device runtime is among the inputs */
    bool refused; /* no memory for a text */
    char **texts;
    size_t count;
    unsigned char *answer;
    size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *jobs;

static struct job *job_of(void *handle) {
    pthread_mutex_lock(&lock);
    struct job *job = jobs;
    while (job && job->handle != handle)
        job = job->next;
    pthread_mutex_unlock(&lock);
    return job;
}

static void job_free(struct job *job) {
    for (size_t i = 0; i < job->count; i++)
        free(job->texts[i]);
    free(job->texts);
    free(job->answer);
    free(job);
}

static void job_end(void *handle) {
    pthread_mutex_lock(&lock);
    struct job **link = &jobs;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    struct job *job = *link;
    if (job)
        *link = job->next;
    pthread_mutex_unlock(&lock);
    if (job)
        job_free(job);
}

static void job_begin(struct job *job, void *handle) {
    job->handle = handle;
    pthread_mutex_lock(&lock);
    job->next = jobs;
    jobs = job;
    pthread_mutex_unlock(&lock);
}

/* ---- Creating -------------------------------------------------------------------------------- */

/* Of "-arch=sm_90a" and its like: 90. */
static unsigned architecture_of(const char *option) {
    const char *at = strncmp(option, "-arch", 5) == 0 ? strstr(option, "sm_") : NULL;
    return at ? (unsigned)strtoul(at + 3, NULL, 10) : 0;
}

static int create(int copy, void **handle, uint32_t count, const char **options) {
    bool lto = false, text = false;
    struct job *job = calloc(1, sizeof *job);
    const char **mine = malloc((count + 1u) * sizeof *mine);
    for (uint32_t i = 0; job && mine && i < count; i++) {
        mine[i] = options[i];
        lto = lto || strcmp(options[i], "-lto") == 0;
        text = text || strcmp(options[i], "-ptx") == 0;
        if (architecture_of(options[i]))
            job->architecture = architecture_of(options[i]);
    }
    int result = OUT_OF_MEMORY;
    if (job && mine) {
        job->lto = lto && !text;
        if (job->lto)
            mine[count] = "-ptx";
        result = copies[copy].real.create(handle, count + job->lto, mine);
    }
    free(mine);
    if (result == 0 && !text)
        job_begin(job, *handle);
    else if (job)
        job_free(job);
    return result;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void keep_text(struct job *job, const void *data, size_t size) {
    char **more = realloc(job->texts, (job->count + 1) * sizeof *more);
    char *text = malloc(size + 1);
    if (more)
        job->texts = more;
    if (!more || !text) {
        free(text);
        job->refused = true;
        return;
    }
    memcpy(text, data, size);
    text[size] = 0;
    job->texts[job->count++] = text;
}

static bool is_device_runtime(int type, const char *name) {
    const char *slash = name ? strrchr(name, '/') : NULL;
    return type == INPUT_LIBRARY && name &&
           strncmp(slash ? slash + 1 : name, "libcudadevrt", strlen("libcudadevrt")) == 0;
}

/* Whether the input is ours alone: with lto, nvJitLink would refuse a text, and machine code. */
static bool take(struct job *job, int type, const void *data, size_t size, const char *name) {
    if (type == INPUT_PTX) {
        keep_text(job, data, size);
        return job->lto && !job->refused;
    }
    if (is_device_runtime(type, name)) {
        job->runtime = true;
        return job->lto;
    }
    if (job->lto && type == INPUT_LTOIR)
        job->ir = true;
    else
        job->machine = true;
    return false;
}

static int add_data(int copy, void *handle, int type, const void *data, size_t size,
                    const char *name) {
    struct job *job = job_of(handle);
    if (job && data && take(job, type, data, size, name))
        return 0;
    return copies[copy].real.add_data(handle, type, data, size, name);
}

/* The whole file, or NULL. */
static char *read_file(const char *path, size_t *size) {
    struct stat status;
    int fd = path ? gm_fd_open(path, O_RDONLY, 0) : -1;
    char *bytes = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && (bytes = malloc((size_t)status.st_size + 1))) {
        size_t done = 0;
        ssize_t got;
        while (done < (size_t)status.st_size &&
               (got = read(fd, bytes + done, (size_t)status.st_size - done)) > 0)
            done += (size_t)got;
        *size = done;
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

static int add_file(int copy, void *handle, int type, const char *path) {
    struct job *job = job_of(handle);
    size_t size = 0;
    char *bytes = job && type == INPUT_PTX ? read_file(path, &size) : NULL;
    bool ours = job && (bytes || type != INPUT_PTX) && take(job, type, bytes, size, path);
    free(bytes);
    return ours ? 0 : copies[copy].real.add_file(handle, type, path);
}

/* ---- The result ------------------------------------------------------------------------------ */

/* With lto, the text that nvJitLink made of all IR stands before the others. */
static bool add_linked_text(int copy, struct job *job) {
    size_t size = 0;
    if (!job->lto || !job->ir)
        return true;
    char *text = NULL;
    if (copies[copy].ptx_size(job->handle, &size) != 0 || !(text = malloc(size + 1)) ||
        copies[copy].ptx(job->handle, text) != 0) {
        free(text);
        return false;
    }
    keep_text(job, text, size);
    free(text);
    if (job->refused)
        return false;
    char *last = job->texts[job->count - 1];
    memmove(job->texts + 1, job->texts, (job->count - 1) * sizeof *job->texts);
    job->texts[0] = last;
    return true;
}

/* The library's machine code is of no use; what a text calls of it is there as PTX, too. */
static bool add_grid_sync(struct job *job) {
    bool called = false;
    for (size_t i = 0; i < job->count; i++)
        called = called || strstr(job->texts[i], "cudaCG");
    if (job->runtime && called)
        keep_text(job, audit_grid_sync, strlen(audit_grid_sync));
    return !job->refused;
}

static void make_answer(int copy, struct job *job) {
    if (job->answer || job->refused || job->machine || !add_linked_text(copy, job) ||
        !add_grid_sync(job))
        return;
    if (job->count == 1) {
        job->size = strlen(job->texts[0]) + 1;
        if ((job->answer = malloc(job->size)))
            memcpy(job->answer, job->texts[0], job->size);
    } else if (job->count > 1) {
        job->answer = audit_link_texts(job->architecture, (const char *const *)job->texts,
                                       job->count, &job->size);
    }
}

static int complete(int copy, void *handle) {
    struct job *job = job_of(handle);
    if (job && job->lto && job->machine)
        audit_say("nvJitLink was given machine code beside LTO IR, of which it cannot make PTX: "
                  "give it LTO IR and PTX only (docs/clients.md)");
    if (job && job->lto && !job->ir && !job->machine && job->count > 0) {
        make_answer(copy, job); /* texts only: nvJitLink has got none of them */
        return job->answer ? 0 : OUT_OF_MEMORY;
    }
    int result = copies[copy].real.complete(handle);
    if (result == 0 && job)
        make_answer(copy, job);
    if (result == 0 && job && job->machine)
        audit_say("nvJitLink was given machine code, and so gives machine code, which softgpu does "
                  "not run: give it PTX or LTO IR (docs/clients.md)");
    return result;
}

static int cubin_size(int copy, void *handle, size_t *size) {
    const struct job *job = job_of(handle);
    if (!job || !job->answer || !size)
        return copies[copy].real.cubin_size(handle, size);
    *size = job->size;
    return 0;
}

static int cubin(int copy, void *handle, void *bytes) {
    const struct job *job = job_of(handle);
    if (!job || !job->answer || !bytes)
        return copies[copy].real.cubin(handle, bytes);
    memcpy(bytes, job->answer, job->size);
    return 0;
}

static int destroy(int copy, void **handle) {
    if (handle)
        job_end(*handle);
    return copies[copy].real.destroy(handle);
}

/* ---- In front of each copy ------------------------------------------------------------------- */

#define COPY(n)                                                                                    \
    static int create_##n(void **handle, uint32_t count, const char **options) {                   \
        return create(n, handle, count, options);                                                  \
    }                                                                                              \
    static int add_data_##n(void *handle, int type, const void *data, size_t size,                 \
                            const char *name) {                                                    \
        return add_data(n, handle, type, data, size, name);                                        \
    }                                                                                              \
    static int add_file_##n(void *handle, int type, const char *path) {                            \
        return add_file(n, handle, type, path);                                                    \
    }                                                                                              \
    static int complete_##n(void *handle) {                                                        \
        return complete(n, handle);                                                                \
    }                                                                                              \
    static int cubin_size_##n(void *handle, size_t *size) {                                        \
        return cubin_size(n, handle, size);                                                        \
    }                                                                                              \
    static int cubin_##n(void *handle, void *bytes) {                                              \
        return cubin(n, handle, bytes);                                                            \
    }                                                                                              \
    static int destroy_##n(void **handle) {                                                        \
        return destroy(n, handle);                                                                 \
    }
COPY(0)
COPY(1)
COPY(2)
COPY(3)
COPY(4)
COPY(5)
COPY(6)
COPY(7)

#define FRONT(n)                                                                                   \
    { create_##n, add_data_##n, add_file_##n, complete_##n, cubin_size_##n, cubin_##n, destroy_##n }
static const struct functions fronts[] = {FRONT(0), FRONT(1), FRONT(2), FRONT(3),
                                          FRONT(4), FRONT(5), FRONT(6), FRONT(7)};
_Static_assert(sizeof fronts / sizeof *fronts == AUDIT_COPIES, "functions for each copy");

/* The members by the names that end in the version they are of, or in none. */
#define NAMED(member, name)                                                                        \
    { offsetof(struct functions, member), name, sizeof name - 1 }
static const struct {
    size_t offset;
    const char *name;
    size_t length;
} names[] = {NAMED(create, "nvJitLinkCreate"),
             NAMED(add_data, "nvJitLinkAddData"),
             NAMED(add_file, "nvJitLinkAddFile"),
             NAMED(complete, "nvJitLinkComplete"),
             NAMED(cubin_size, "nvJitLinkGetLinkedCubinSize"),
             NAMED(cubin, "nvJitLinkGetLinkedCubin"),
             NAMED(destroy, "nvJitLinkDestroy")};

/* Libraries of 12.0 have only names with a version; each keeps those of the first of its major. */
static void *find(const struct link_map *map, const char *name) {
    static const char *const forms[][2] = {{"", ""}, {"__", "_13_0"}, {"__", "_12_0"}};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof forms / sizeof *forms; i++) {
        char whole[64];
        snprintf(whole, sizeof whole, "%s%s%s", forms[i][0], name, forms[i][1]);
        found = audit_find(map, whole);
    }
    return found;
}

int audit_jitlink_open(const struct link_map *map) {
    struct functions real;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = find(map, names[i].name);
        if (!found)
            return -1;
        memcpy((char *)&real + names[i].offset, &found, sizeof found);
    }
    void *text[] = {find(map, "nvJitLinkGetLinkedPtxSize"), find(map, "nvJitLinkGetLinkedPtx")};
    if (!text[0] || !text[1])
        return -1;
    for (int i = 0; i < AUDIT_COPIES; i++)
        if (!copies[i].used) {
            copies[i].real = real;
            memcpy(&copies[i].ptx_size, &text[0], sizeof text[0]);
            memcpy(&copies[i].ptx, &text[1], sizeof text[1]);
            copies[i].used = true;
            return i;
        }
    audit_say("more than 8 copies of nvJitLink in one process: the last gives machine code, which "
              "softgpu does not run");
    return -1;
}

void audit_jitlink_close(int copy) {
    copies[copy].used = false;
}

/* Without the leading "__" and the version at the end: "__nvJitLinkCreate_13_0". */
static bool is_name(const char *given, const char *name, size_t length) {
    if (strncmp(given, "__", 2) == 0)
        given += 2;
    return strncmp(given, name, length) == 0 &&
           (!given[length] ||
            (given[length] == '_' && given[length + 1] >= '0' && given[length + 1] <= '9'));
}

static uintptr_t member_of(const struct functions *functions, const char *name) {
    uintptr_t member = 0;
    for (size_t i = 0; !member && i < sizeof names / sizeof *names; i++)
        if (is_name(name, names[i].name, names[i].length))
            memcpy(&member, (const char *)functions + names[i].offset, sizeof member);
    return member;
}

uintptr_t audit_jitlink_replace(int copy, const char *name, uintptr_t address) {
    (void)address;
    return member_of(&fronts[copy], name);
}

uintptr_t audit_jitlink_itself(int copy, const char *name) {
    return member_of(&copies[copy].real, name);
}
