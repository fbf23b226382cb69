/*
 * In front of nvJitLink: a link of PTX is answered with nvJitLink's machine code, and in it the
 * text or, of several, what softgpu's linker makes of them; so is one of machine code that holds
 * its PTX. Links of LTO IR are asked for PTX, and answered with the output of softgpu's linker.
 * Links that involve other machine code are left alone.
 */
#include "audit.h"

#include "base/descriptor.h"
#include "softgpu/link/grid_sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_CUBIN   1
#define INPUT_PTX     2
#define INPUT_LTOIR   3
#define INPUT_FATBIN  4
#define INPUT_LIBRARY 6
#define INPUT_ANY     10
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
    const struct link_map *map;
    struct functions real;
    int (*ptx_size)(void *handle, size_t *size);
    int (*ptx)(void *handle, char *text);
} copies[AUDIT_COPIES];

/* Machine code without the section that holds its text, for nvJitLink, until the link ends. */
struct copy {
    struct copy *next;
    unsigned char bytes[];
};

/* A link whose result will be asked for as machine code. */
struct job {
    struct job *next;
    void *handle;
    unsigned architecture;
    bool lto;     /* which this file asked for PTX */
    bool machine; /* an input is neither PTX, nor holds it, nor, with lto, is LTO IR */
    bool ir;      /* with lto: there is some */
    bool runtime; /* the library of the device runtime is among the inputs */
    bool refused; /* no memory for a text */
    char **texts;
    size_t count;
    struct copy *copies;
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
    for (struct copy *copy = job->copies, *next; copy; copy = next) {
        next = copy->next;
        free(copy);
    }
    free(job->answer);
    free(job);
}

/* Takes it from the list; NULL if it is not there. */
static struct job *job_end(void *handle) {
    pthread_mutex_lock(&lock);
    struct job **link = &jobs;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    struct job *job = *link;
    if (job)
        *link = job->next;
    pthread_mutex_unlock(&lock);
    return job;
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

/* A copy of the input, or NULL. */
static unsigned char *keep_copy(struct job *job, struct audit_bytes of) {
    struct copy *copy = malloc(sizeof *copy + of.size);
    job->refused = job->refused || !copy;
    if (!copy)
        return NULL;
    memcpy(copy->bytes, of.data, of.size);
    copy->next = job->copies;
    job->copies = copy;
    return copy->bytes;
}

/*
 * Machine code that holds its PTX, alone or in a fatbin, goes on as it was before that was put into
 * it. A whole program gives nothing to a link, neither here nor there.
 */
static bool take_machine(struct job *job, bool fatbin, struct audit_bytes *input) {
    struct audit_bytes text, cubin = *input;
    size_t at = 0;
    if ((fatbin && !audit_fatbin_cubin(*input, job->architecture, &at, &cubin)) ||
        !audit_cubin_section(cubin, AUDIT_TEXT, &text))
        return false;
    if (audit_cubin_type(cubin) == ET_REL)
        keep_text(job, text.data, strnlen((const char *)text.data, text.size));
    unsigned char *copy = keep_copy(job, *input);
    if (copy) {
        audit_cubin_without(copy + at, cubin.size, AUDIT_TEXT);
        input->data = copy;
    }
    return true;
}

/* The kind of an input that names none, as far as it matters here. */
static int kind_of(struct audit_bytes input) {
    const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
    return audit_cubin_type(input) != ET_NONE ? INPUT_CUBIN
           : input.size >= sizeof fatbin && memcmp(input.data, fatbin, sizeof fatbin) == 0
               ? INPUT_FATBIN
           : memmem(input.data, input.size, ".version", 8) ? INPUT_PTX
                                                           : INPUT_ANY;
}

/* Whether the input is ours alone: with lto, nvJitLink would refuse a text, and machine code. It
 * may be replaced by a copy. */
static bool take(struct job *job, int type, struct audit_bytes *input, const char *name) {
    if (type == INPUT_ANY && input->data)
        type = kind_of(*input);
    if (type == INPUT_PTX) {
        keep_text(job, input->data, input->size);
        return job->lto && !job->refused;
    }
    if ((type == INPUT_CUBIN || type == INPUT_FATBIN) && input->data &&
        take_machine(job, type == INPUT_FATBIN, input))
        return job->lto && !job->refused;
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
    struct audit_bytes input = {data, size};
    if (job && data && take(job, type, &input, name))
        return 0;
    return copies[copy].real.add_data(handle, type, input.data, size, name);
}

/* The whole file, or NULL. */
static char *read_file(const char *path, size_t *size) {
    struct stat status;
    int fd = path ? gm_fd_open(path, O_RDONLY, 0) : -1;
    char *bytes = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && (bytes = malloc((size_t)status.st_size + 1))) {
        *size = (size_t)status.st_size;
        if (gm_fd_read(fd, bytes, *size) != status.st_size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

static int add_file(int copy, void *handle, int type, const char *path) {
    struct job *job = job_of(handle);
    struct audit_bytes input = {0};
    bool read = job && (type == INPUT_CUBIN || type == INPUT_PTX || type == INPUT_FATBIN ||
                        type == INPUT_ANY);
    unsigned char *bytes = read ? (unsigned char *)read_file(path, &input.size) : NULL;
    input.data = bytes;
    bool ours = job && (bytes || !read) && take(job, type, &input, path);
    int result = ours ? 0
                 : input.data != bytes
                     ? copies[copy].real.add_data(handle, type, input.data, input.size, path)
                     : copies[copy].real.add_file(handle, type, path);
    free(bytes);
    return result;
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
        called = called || strstr(job->texts[i], SG_LINK_GRID_PREFIX);
    if (job->runtime && called)
        keep_text(job, sg_link_grid_sync, strlen(sg_link_grid_sync));
    return !job->refused;
}

/* nvJitLink's machine code with one section more. */
static void answer_with(int copy, struct job *job, const char *section, struct audit_bytes what) {
    struct audit_bytes machine = {0};
    unsigned char *bytes = NULL;
    if (copies[copy].real.cubin_size(job->handle, &machine.size) == 0 &&
        (bytes = malloc(machine.size + 1)) && copies[copy].real.cubin(job->handle, bytes) == 0) {
        machine.data = bytes;
        if (audit_cubin_type(machine) != ET_NONE)
            job->answer = audit_cubin_with(machine, section, what, &job->size);
    }
    free(bytes);
}

/* Of texts, by softgpu's linker; with lto, nvJitLink has made no machine code. */
static void answer_linked(int copy, struct job *job) {
    struct audit_bytes image, program;
    unsigned char *linked = audit_link_texts(job->architecture, (const char *const *)job->texts,
                                             job->count, &image.size);
    image.data = linked;
    if (job->lto) {
        job->answer = linked;
        job->size = image.size;
        return;
    }
    if (linked && audit_cubin_section(image, AUDIT_LINKED, &program))
        answer_with(copy, job, AUDIT_LINKED, program);
    free(linked);
}

static void make_answer(int copy, struct job *job) {
    if (job->answer || job->refused || job->machine || !add_linked_text(copy, job) ||
        !add_grid_sync(job) || job->count == 0)
        return;
    const char *first = job->texts[0];
    if (job->count == 1 && !job->lto && !job->runtime)
        answer_with(copy, job, AUDIT_TEXT,
                    (struct audit_bytes){(const unsigned char *)first, strlen(first) + 1});
    else
        answer_linked(copy, job);
}

static int complete(int copy, void *handle) {
    struct job *job = job_of(handle);
    if (job && job->lto && job->machine)
        audit_say("nvJitLink was given machine code without PTX in it beside LTO IR, of which it "
                  "cannot make PTX: give it LTO IR and PTX only (docs/clients.md)");
    if (job && job->lto && !job->ir && !job->machine && job->count > 0) {
        make_answer(copy, job); /* texts only: nvJitLink has got none of them */
        return job->answer ? 0 : OUT_OF_MEMORY;
    }
    int result = copies[copy].real.complete(handle);
    if (result == 0 && job)
        make_answer(copy, job);
    if (result == 0 && job && job->machine)
        audit_say("nvJitLink was given machine code without PTX in it, and so gives machine code, "
                  "which softgpu does not run: give it PTX or LTO IR (docs/clients.md)");
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
    struct job *job = handle ? job_end(*handle) : NULL;
    int result = copies[copy].real.destroy(handle);
    if (job)
        job_free(job);
    return result;
}

/* ---- In front of each copy ------------------------------------------------------------------- */

#define IS_OWN(n) audit_is_own_call(copies[n].map, __builtin_return_address(0))
#define FUNCTION(n, name, declared, ...)                                                           \
    static int name##_##n declared {                                                               \
        return IS_OWN(n) ? copies[n].real.name(__VA_ARGS__) : name(n, __VA_ARGS__);                \
    }
#define COPY(n)                                                                                    \
    FUNCTION(n, create, (void **handle, uint32_t count, const char **options), handle, count,      \
             options)                                                                              \
    FUNCTION(n, add_data,                                                                          \
             (void *handle, int type, const void *data, size_t size, const char *name), handle,    \
             type, data, size, name)                                                               \
    FUNCTION(n, add_file, (void *handle, int type, const char *path), handle, type, path)          \
    FUNCTION(n, complete, (void *handle), handle)                                                  \
    FUNCTION(n, cubin_size, (void *handle, size_t *size), handle, size)                            \
    FUNCTION(n, cubin, (void *handle, void *bytes), handle, bytes)                                 \
    FUNCTION(n, destroy, (void **handle), handle)
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
            copies[i].map = map;
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
