/* The open devices of the process, and the libraries that are tried for a new one. */
#include "base/fork.h"
#include "base/log.h"
#include "base/printable.h"
#include "vulkan/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const usual[] = {"libvulkan.so.1", "libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};
#define USUAL (sizeof usual / sizeof usual[0])

/* Exists with NVIDIA's kernel module, even in a container. */
#define NVIDIA_MODULE "/proc/driver/nvidia/version"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_vulkan *devices;
/* The process that opened a library first; 0 if none. A child reads it before it takes the lock,
 * which another thread of the parent may have held. */
static atomic_uint opened_in;

/* ---- Who may --------------------------------------------------------------------------------- */

static gpumem_status enter_process(void) {
    gm_fork_watch();
    unsigned none = 0, here = gm_fork_generation();
    if (atomic_compare_exchange_strong(&opened_in, &none, here) || none == here)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_FORKED,
                   "the parent of this process opened a Vulkan driver, which a "
                   "forked child cannot use");
}

gpumem_status gm_vulkan_enter(const struct gm_vulkan *vulkan, const char *what) {
    if (vulkan->generation == gm_fork_generation())
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_FORKED, "%s: the Vulkan device was opened by this process's parent",
                   what);
}

/* ---- Trying libraries ------------------------------------------------------------------------ */

struct attempts {
    char text[GM_VULKAN_REASON]; /* "libA: why; libB: why" */
    gpumem_status status;        /* of the library that has the device, else NOT_SUPPORTED */
    /* The failure for the error record: of the library that has the device, else the last one of a
     * Vulkan call. */
    int code;
    char call[64];
    bool found, nvidia_missing;
};

static void note_refusal(struct attempts *attempts, const char *name, gpumem_status status,
                         bool found) {
    const gpumem_error *error = gpumem_last_error();
    size_t used = strlen(attempts->text);
    char shown[256];
    gm_printable(name, shown, sizeof shown);
    /* The dynamic loader's message also begins with the name. */
    const char *why = error->message;
    size_t length = strlen(name);
    if (strncmp(why, name, length) == 0 && strncmp(why + length, ": ", 2) == 0)
        why += length + 2;
    snprintf(attempts->text + used, sizeof attempts->text - used, "%s%s: %s", used ? "; " : "",
             shown, why);
    if (found || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY)
        attempts->status = status;
    if (found || (error->vulkan_code && !attempts->found)) {
        attempts->code = error->vulkan_code;
        snprintf(attempts->call, sizeof attempts->call, "%s", error->call);
    }
    attempts->found |= found;
}

static void name_library(struct gm_vulkan *vulkan, const struct gm_vulkan_library *library,
                         const struct attempts *attempts) {
    snprintf(vulkan->library, sizeof vulkan->library, "%s", library->path);
    snprintf(vulkan->refusals, sizeof vulkan->refusals, "%s", attempts->text);
    vulkan->facts.library = vulkan->library;
    vulkan->facts.refusals = vulkan->refusals;
    vulkan->facts.name = vulkan->name;
}

static bool try_library(struct gm_vulkan *vulkan, const char *name, bool named,
                        struct attempts *attempts) {
    struct gm_vulkan_library library;
    bool found = false;
    gpumem_status status = gm_vulkan_library_open(name, named, &library);
    bool opened = status == GPUMEM_OK;
    if (opened)
        status = gm_vulkan_make(vulkan, &library, &found);
    if (status == GPUMEM_OK) {
        name_library(vulkan, &library, attempts);
        return true;
    }
    attempts->nvidia_missing |= !opened && strstr(name, "nvidia");
    note_refusal(attempts, name, status, found);
    memset(&vulkan->facts, 0, sizeof vulkan->facts);
    return false;
}

/* NVIDIA's container runtime provides what NVIDIA_DRIVER_CAPABILITIES names, which is mostly
 * compute and utility. */
static void note_container(struct attempts *attempts) {
    size_t used = strlen(attempts->text);
    if (attempts->nvidia_missing && access(NVIDIA_MODULE, F_OK) == 0)
        snprintf(attempts->text + used, sizeof attempts->text - used,
                 "; NVIDIA's driver is present without its Vulkan part: a container needs the "
                 "capability graphics (NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics)");
}

static gpumem_status refuse(struct attempts *attempts, char *reason, size_t size) {
    note_container(attempts);
    if (reason && size)
        snprintf(reason, size, "%s", attempts->text);
    gpumem_status status =
        gm_fail(attempts->status, "no Vulkan driver maps this device's memory: %s", attempts->text);
    struct gm_error_record record;
    gm_error_save(&record);
    record.error.vulkan_code = attempts->code;
    memcpy(record.call, attempts->call, sizeof record.call);
    gm_error_restore(&record);
    return status;
}

/* Threads that a driver starts while it is opened get no signals: those are for the program's
 * threads. */
static bool try_all(struct gm_vulkan *vulkan, struct attempts *attempts) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool opened = false;
    if (vulkan->choice)
        opened = try_library(vulkan, vulkan->choice, true, attempts);
    for (size_t i = 0; !vulkan->choice && !opened && i < USUAL; i++)
        opened = try_library(vulkan, usual[i], false, attempts);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return opened;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static bool same_choice(const char *one, const char *other) {
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static struct gm_vulkan *find_open(const unsigned char uuid[16], const char *choice) {
    for (struct gm_vulkan *vulkan = devices; vulkan; vulkan = vulkan->next)
        if (memcmp(vulkan->uuid, uuid, sizeof vulkan->uuid) == 0 &&
            same_choice(vulkan->choice, choice))
            return vulkan;
    return NULL;
}

/* As the thread's last error has it. */
static void give_reason(char *reason, size_t size) {
    if (reason && size)
        snprintf(reason, size, "%s", gpumem_last_error()->message);
}

static gpumem_status make_new(const unsigned char uuid[16], const char *choice,
                              struct gm_vulkan **vulkan, char *reason, size_t size) {
    struct gm_vulkan *made = calloc(1, sizeof *made);
    char *copy = choice ? strdup(choice) : NULL;
    if (!made || (choice && !copy)) {
        free(made);
        free(copy);
        gpumem_status status =
            gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a Vulkan device");
        give_reason(reason, size);
        return status;
    }
    made->choice = copy;
    made->generation = gm_fork_generation();
    memcpy(made->uuid, uuid, sizeof made->uuid);
    struct attempts attempts = {.status = GPUMEM_ERROR_NOT_SUPPORTED};
    if (!try_all(made, &attempts)) {
        free(copy);
        free(made);
        return refuse(&attempts, reason, size);
    }
    gm_log(GPUMEM_LOG_INFO, "Vulkan: %s has %s", made->library, made->name);
    made->next = devices;
    devices = made;
    *vulkan = made;
    return GPUMEM_OK;
}

static gpumem_status read_choice(const char **choice) {
    const char *text = secure_getenv("GPUMEM_VULKAN");
    *choice = text && text[0] ? text : NULL;
    if (!*choice || strchr(text, '/'))
        return GPUMEM_OK;
    if (strcmp(text, "off") == 0)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "GPUMEM_VULKAN=off: Vulkan is not used");
    char shown[256];
    gm_printable(text, shown, sizeof shown);
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "GPUMEM_VULKAN is '%s': it must be off, or the path, with a slash, of a Vulkan "
                   "loader or driver",
                   shown);
}

gpumem_status gm_vulkan_open(const unsigned char uuid[16], struct gm_vulkan **vulkan, char *reason,
                             size_t size) {
    const char *choice = NULL;
    gpumem_status status = read_choice(&choice);
    if (status == GPUMEM_OK)
        status = enter_process();
    if (status != GPUMEM_OK) {
        give_reason(reason, size);
        return status;
    }
    pthread_mutex_lock(&lock);
    struct gm_vulkan *found = find_open(uuid, choice);
    if (!found)
        status = make_new(uuid, choice, &found, reason, size);
    if (found) {
        found->references++;
        *vulkan = found;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void gm_vulkan_hold(struct gm_vulkan *vulkan) {
    pthread_mutex_lock(&lock);
    vulkan->references++;
    pthread_mutex_unlock(&lock);
}

static void forget(struct gm_vulkan *vulkan) {
    struct gm_vulkan **at = &devices;
    while (*at != vulkan)
        at = &(*at)->next;
    *at = vulkan->next;
}

void gm_vulkan_close(struct gm_vulkan *vulkan) {
    /* The parent's object is left alone: its driver's state is not this process's. */
    if (!vulkan || vulkan->generation != gm_fork_generation())
        return;
    pthread_mutex_lock(&lock);
    /* A device must not be destroyed before its memory: with quarantined memory it is kept for the
     * next open. */
    if (--vulkan->references == 0 && atomic_load(&vulkan->quarantined) == 0) {
        forget(vulkan);
        gm_vulkan_unmake(vulkan);
        free(vulkan->choice);
        free(vulkan);
    }
    pthread_mutex_unlock(&lock);
}

const struct gm_vulkan_facts *gm_vulkan_get_facts(const struct gm_vulkan *vulkan) {
    return &vulkan->facts;
}

size_t gm_vulkan_memory_count(const struct gm_vulkan *vulkan) {
    return atomic_load(&vulkan->memories);
}

size_t gm_vulkan_quarantined(const struct gm_vulkan *vulkan) {
    return atomic_load(&vulkan->quarantined);
}
