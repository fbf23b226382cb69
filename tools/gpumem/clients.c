#include "clients.h"
#include "cli.h"
#include "descriptor.h"
#include "terminal.h"
#include "toolkit.h"

#include <elf.h>
#include <errno.h>
#include <gpumem/status.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set(const char *variable, const char *value) {
    if (setenv(variable, value, 1) == 0)
        return CLI_OK;
    return cli_error(CLI_FAILED, "cannot set %s: %s", variable, strerror(errno));
}

static const char *value_of(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

/* Prepends `text` to a list, unless it is first already. */
static int put_first(const char *variable, const char *text, const char *otherwise) {
    const char *old = value_of(variable);
    char whole[3 * PATH_MAX];
    size_t length = strlen(text);
    if (!old)
        old = otherwise;
    if (old && strncmp(old, text, length) == 0 && (!old[length] || old[length] == ':'))
        return CLI_OK;
    int size = snprintf(whole, sizeof whole, "%s%s%s", text, old ? ":" : "", old ? old : "");
    if (size < 0 || (size_t)size >= sizeof whole)
        return cli_error(CLI_FAILED, "%s is too long to be extended", variable);
    return set(variable, whole);
}

/* Adds `text` at the end of what the variable has. */
static int append(const char *variable, char between, const char *text) {
    const char *old = value_of(variable);
    char whole[PATH_MAX];
    int size = old ? snprintf(whole, sizeof whole, "%s%c%s", old, between, text)
                   : snprintf(whole, sizeof whole, "%s", text);
    if (size < 0 || (size_t)size >= sizeof whole)
        return cli_error(CLI_FAILED, "%s is too long to be extended", variable);
    return set(variable, whole);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* What a cache's content depends on besides what its owner knows: "h200-0.3.0". If the profile is a
 * file, its name and a hash of its path. */
static void name_of_kind(char *name, size_t room) {
    const char *profile = value_of("SOFTGPU_PROFILE");
    const char *slash = profile ? strrchr(profile, '/') : NULL;
    uint32_t sum = 2166136261u;
    for (const char *at = slash ? profile : ""; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 16777619u;
    if (slash)
        snprintf(name, room, "gpumem-%.60s-%08x-%s", slash + 1, (unsigned)sum,
                 GPUMEM_VERSION_STRING);
    else
        snprintf(name, room, "gpumem-%.60s-%s", profile ? profile : "h200", GPUMEM_VERSION_STRING);
}

/* The user's folder for caches; false if there is none. */
static bool cache_root(char root[PATH_MAX]) {
    const char *given = value_of("XDG_CACHE_HOME"), *home = value_of("HOME");
    int size = -1;
    if (given && given[0] == '/')
        size = snprintf(root, PATH_MAX, "%s", given);
    else if (home)
        size = snprintf(root, PATH_MAX, "%s/.cache", home);
    return size > 0 && size < PATH_MAX;
}

static const struct {
    const char *variable, *name;
} caches[] = {
    {"NUMBA_CACHE_DIR", "numba"},
    {"TRITON_CACHE_DIR", "triton"},
    {"PYCUDA_CACHE_DIR", "pycuda"},
    {"CUPY_CACHE_DIR", "cupy"},
    {"TORCHINDUCTOR_CACHE_DIR", "torchinductor"},
    {"TORCH_EXTENSIONS_DIR", "torch-extensions"},
};

/* Makes a folder and its parents. If that fails, the folder's user will report it. */
static void make_folder(const char *path) {
    char part[2 * PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(part, 0700); /* each may exist */
        *slash = '/';
    }
    mkdir(part, 0700);
}

/* A client that finds its results for hardware would pass on machine code. A cache that the user
 * has moved gets a folder inside of the user's. pycuda requires that the folder exists. */
static int move_cache(const char *variable, const char *name, const char *kind, const char *root) {
    char folder[2 * PATH_MAX];
    const char *given = value_of(variable);
    const char *last = given ? strrchr(given, '/') : NULL;
    if (last && strcmp(last + 1, kind) == 0)
        return CLI_OK; /* gpumem run inside gpumem run */
    if (given)
        snprintf(folder, sizeof folder, "%s/%s", given, kind);
    else
        snprintf(folder, sizeof folder, "%s/%s/%s", root, kind, name);
    make_folder(folder);
    return set(variable, folder);
}

static int move_caches(const char *root, const char *kind) {
    char path[2 * PATH_MAX];
    int status = CLI_OK;
    for (size_t i = 0; i < sizeof caches / sizeof *caches && status == CLI_OK; i++)
        status = move_cache(caches[i].variable, caches[i].name, kind, root);
    snprintf(path, sizeof path, "%s/cuda-python", root);
    if (status == CLI_OK)
        status = set("GPUMEM_CACHE_OF_CUDA_PYTHON", path);
    snprintf(path, sizeof path, "%s/%s/cuda-python", root, kind);
    if (status == CLI_OK)
        status = set("GPUMEM_CACHE_OF_CUDA_PYTHON_HERE", path);
    return status;
}

/* ---- Compilers ------------------------------------------------------------------------------- */

/* Triton runs its own package's ptxas unless this variable names another. */
static int name_ptxas(const char *bin) {
    static const char *const variables[] = {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"};
    char path[3 * PATH_MAX];
    int status = CLI_OK;
    snprintf(path, sizeof path, "%s/ptxas", bin);
    for (size_t i = 0; i < sizeof variables / sizeof *variables && status == CLI_OK; i++)
        status = set(variables[i], path);
    return status;
}

/* The wrappers come first, as part of a toolkit if there is one. */
static int put_wrappers_first(const char *bin, const char *root, const char *kind) {
    char cache[2 * PATH_MAX], linked[PATH_MAX];
    snprintf(cache, sizeof cache, "%s/%s", root, kind);
    make_folder(cache);
    bool found = toolkit_link(bin, cache, linked);
    return put_first("PATH", found ? linked : bin, "/usr/local/bin:/usr/bin:/bin");
}

/*
 * With an auditor, glibc (2.36, and those before it) has room for some 1,700 bytes of thread-local
 * storage with fixed offsets in the libraries that a program needs, and does not start one that
 * needs more: jemalloc has 2,632. Each thread's stack has the room in it: with 10 KiB, threads of
 * the smallest stack (16 KiB) fail.
 */
static int make_room_for_tls(void) {
    const char *old = value_of("GLIBC_TUNABLES");
    bool given = old && strstr(old, "glibc.rtld.optional_static_tls=");
    return given ? CLI_OK : append("GLIBC_TUNABLES", ':', "glibc.rtld.optional_static_tls=4096");
}

/* ---- The runtime ----------------------------------------------------------------------------- */

/* nvcc links its runtime statically unless it is told not to; no other is then put in its place. */
static int link_runtime_shared(void) {
    static const char option[] = "--cudart=shared";
    const char *old = value_of("NVCC_APPEND_FLAGS");
    return old && strstr(old, option) ? CLI_OK : append("NVCC_APPEND_FLAGS", ' ', option);
}

/* The auditor answers by it for NVIDIA's library; Python, for what is linked into cuda.bindings. */
static int name_runtime(const char *folder) {
    char runtime[2 * PATH_MAX], library[3 * PATH_MAX], python[2 * PATH_MAX];
    snprintf(runtime, sizeof runtime, "%s/runtime", folder);
    snprintf(library, sizeof library, "%s/13/libcudart.so.13", runtime);
    snprintf(python, sizeof python, "%s/clients/python.zip", folder);
    if (access(library, R_OK) != 0) {
        cli_line(stderr,
                 "gpumem: %s is missing: programs of CUDA's runtime get NVIDIA's, which does not "
                 "run on softgpu",
                 library);
        return CLI_OK;
    }
    int status = set("GPUMEM_RUNTIME", runtime);
    if (status == CLI_OK)
        status = put_first("PYTHONPATH", python, NULL);
    return status == CLI_OK ? link_runtime_shared() : status;
}

int clients_prepare(const char *softgpu, bool runtime) {
    char folder[PATH_MAX], auditor[2 * PATH_MAX], bin[2 * PATH_MAX], library[2 * PATH_MAX];
    char kind[128], root[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strlen(softgpu) - strlen(strrchr(softgpu, '/'))),
             softgpu);
    snprintf(auditor, sizeof auditor, "%s/clients/audit.so", folder);
    snprintf(bin, sizeof bin, "%s/clients/bin", folder);
    snprintf(library, sizeof library, "%s/libsoftgpu.so.0", softgpu);
    if (access(auditor, R_OK) != 0) {
        cli_line(stderr,
                 "gpumem: %s is missing: compilers inside of COMMAND give machine code, "
                 "which softgpu does not run",
                 auditor);
        return CLI_OK;
    }
    name_of_kind(kind, sizeof kind);
    if (!cache_root(root)) {
        snprintf(root, sizeof root, "/tmp");
        cli_line(stderr, "gpumem: neither XDG_CACHE_HOME nor HOME is set: clients' caches are in "
                         "/tmp");
    }
    int status = put_first("LD_AUDIT", auditor, NULL);
    if (status == CLI_OK)
        status = make_room_for_tls();
    if (status == CLI_OK)
        status = put_wrappers_first(bin, root, kind);
    if (status == CLI_OK)
        status = set("GPUMEM_SOFTGPU_LIBRARY", library);
    if (status == CLI_OK)
        status = name_ptxas(bin);
    if (status == CLI_OK && runtime)
        status = name_runtime(folder);
    return status == CLI_OK ? move_caches(root, kind) : status;
}

/* ---- Programs without a dynamic linker ------------------------------------------------------- */

/* Searches like execvp. */
static bool find_command(const char *command, char found[PATH_MAX]) {
    const char *path = value_of("PATH");
    if (strchr(command, '/') || !path)
        return snprintf(found, PATH_MAX, "%s", command) < PATH_MAX;
    for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int size = snprintf(found, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, command);
        if (size < PATH_MAX && access(found, X_OK) == 0)
            return true;
    }
    return false;
}

static bool read_at(FILE *file, uint64_t offset, void *to, size_t size) {
    return fseeko(file, (off_t)offset, SEEK_SET) == 0 && fread(to, 1, size, file) == size;
}

/* An ELF program without an interpreter. */
static bool is_static(FILE *file) {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    if (!read_at(file, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++)
        if (!read_at(file, head.e_phoff + (uint64_t)i * head.e_phentsize, &part, sizeof part) ||
            part.p_type == PT_INTERP)
            return false;
    return true;
}

void clients_warn(const char *command) {
    char path[PATH_MAX];
    struct stat status;
    const char *why = NULL;
    FILE *file = find_command(command, path) ? cli_open_text(path) : NULL;
    if (!file)
        return;
    if (fstat(fileno(file), &status) == 0 && status.st_mode & (S_ISUID | S_ISGID))
        why = "is set-user-ID or set-group-ID, so the dynamic linker ignores the variables of "
              "gpumem run: run a copy without that bit";
    else if (is_static(file))
        why = "is linked statically, so the dynamic linker puts nothing into it: link it "
              "dynamically, with -lcuda";
    fclose(file);
    if (why)
        cli_line(stderr, "gpumem: %s %s", command, why);
}
