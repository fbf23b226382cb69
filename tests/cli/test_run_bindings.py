#!/usr/bin/env python3
"""However a program gets at its compiler's functions, gpumem run stands in front of them: calls through the procedure
linkage table, bound early or late, programs without such a table, addresses that a structure holds, dlsym."""
import shutil
import subprocess

import harness
from harness import Skip, expect, expect_status

NVRTC = harness.MACHINE_CODE + """
typedef void *P;
int nvrtcGetCUBINSize(P p, unsigned long *n) { *n = p ? SIZE : 0; return 0; }
int nvrtcGetCUBIN(P p, char *to) { if (p) memcpy(to, cubin, SIZE); return 0; }
int nvrtcGetPTXSize(P p, unsigned long *n) { *n = 9; return 0; }
int nvrtcGetPTX(P p, char *to) { strcpy(to, "the text"); return 0; }
/* Of its own: what it asks itself is what it made. */
unsigned long nvrtcOwnSize(P p) { unsigned long n; nvrtcGetCUBINSize(p, &n); return n; }
"""

NVRTC_CLIENT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
typedef void *P;
typedef int get_size(P, unsigned long *);
typedef int get_bytes(P, char *);
get_size nvrtcGetCUBINSize;
get_bytes nvrtcGetCUBIN;
unsigned long nvrtcOwnSize(P);
/* As loaders of functions at run time hold them. */
struct table { get_size *size; get_bytes *bytes; } table = {nvrtcGetCUBINSize, nvrtcGetCUBIN};
static const char *in(const char *image, unsigned long size) {
    return memcmp(image, "\\177ELF", 4) ? "no code" : memmem(image, size, "the text", 9) ? "code with text" : "code";
}
static void show(const char *way, get_size *size, get_bytes *bytes) {
    unsigned long count = 0;
    char image[9000] = "";
    size(&count, &count);
    bytes(&count, image);
    printf("%s: %s\\n", way, in(image, count));
}
int main(void) {
    unsigned long count = 0;
    char image[9000] = "";
    nvrtcGetCUBINSize(&count, &count);
    nvrtcGetCUBIN(&count, image);
    printf("call: %s\\n", in(image, count));
    show("table", table.size, table.bytes);
    struct table found;
    *(void **)&found.size = dlsym(RTLD_DEFAULT, "nvrtcGetCUBINSize");
    *(void **)&found.bytes = dlsym(RTLD_DEFAULT, "nvrtcGetCUBIN");
    show("dlsym", found.size, found.bytes);
    printf("own: %lu\\n", nvrtcOwnSize(&count));
    return 0;
}
"""

# What a link of one text answers; only the text in front of it is softgpu's.
JITLINK = harness.MACHINE_CODE + """
#include <stdlib.h>
int nvJitLinkCreate(void **h, unsigned n, const char **o) { *h = malloc(1); return 0; }
int nvJitLinkDestroy(void **h) { free(*h); return 0; }
int nvJitLinkAddData(void *h, int type, const void *d, unsigned long s, const char *w) { return 0; }
int nvJitLinkAddFile(void *h, int type, const char *f) { return 0; }
int nvJitLinkComplete(void *h) { return 0; }
int nvJitLinkGetLinkedCubinSize(void *h, unsigned long *n) { *n = SIZE; return 0; }
int nvJitLinkGetLinkedCubin(void *h, void *to) { memcpy(to, cubin, SIZE); return 0; }
int nvJitLinkGetLinkedPtxSize(void *h, unsigned long *n) { return 1; }
int nvJitLinkGetLinkedPtx(void *h, char *to) { return 1; }
"""

JITLINK_CLIENT = """
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
int nvJitLinkCreate(void **, unsigned, const char **), nvJitLinkDestroy(void **), nvJitLinkComplete(void *);
int nvJitLinkAddData(void *, int, const void *, unsigned long, const char *);
int nvJitLinkGetLinkedCubinSize(void *, unsigned long *), nvJitLinkGetLinkedCubin(void *, void *);
struct {
    int (*create)(void **, unsigned, const char **);
    int (*add)(void *, int, const void *, unsigned long, const char *);
    int (*complete)(void *);
    int (*size)(void *, unsigned long *);
    int (*get)(void *, void *);
    int (*destroy)(void **);
} table = {nvJitLinkCreate, nvJitLinkAddData, nvJitLinkComplete, nvJitLinkGetLinkedCubinSize, nvJitLinkGetLinkedCubin,
           nvJitLinkDestroy};
int main(void) {
    const char *options[] = {"-arch=sm_90"};
    void *link = 0;
    unsigned long size = 0;
    char made[9000] = "";
    if (table.create(&link, 1, options) || table.add(link, 2, "the text", 8, "a") || table.complete(link) ||
        table.size(link, &size) || size > sizeof made || table.get(link, made) || table.destroy(&link))
        return 1;
    puts(memmem(made, size, "the text", 9) ? "with text" : "without");
    return 0;
}
"""

# A file below the folder that stands for another one, by a call and by an address.
PATHS_CLIENT = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
struct { int (*open)(const char *, int, ...); int (*stat)(const char *, struct stat *); } table = {open, stat};
int main(int count, char **words) {
    struct stat status;
    mkdir(words[1], 0700);
    int fd = open(words[2], O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || write(fd, "here", 4) != 4 || close(fd) || table.stat(words[2], &status))
        return 1;
    fd = table.open(words[2], O_RDONLY);
    printf("%d %ld\\n", fd >= 0, (long)status.st_size);
    return 0;
}
"""

WAYS = {"late": ["-Wl,-z,lazy"], "early": ["-Wl,-z,now"], "without a table": ["-fno-plt", "-Wl,-z,now"],
        "not position independent": ["-fno-pie", "-no-pie"]}


# What the client says of a library that is intercepted: all but the library itself get its text, too.
HELD = ["call: code with text", "table: code with text", "dlsym: code with text", "own: 4208"]


def compile_it(folder, name, source, *options):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    path = folder / name
    path.with_suffix(".c").write_text(source)
    subprocess.run([compiler, "-w", "-O1", "-o", path, path.with_suffix(".c"), *options], check=True)
    return path


def run(*words, **more):
    return harness.run_program(["--"], *words, env=harness.bare_environment("LD_AUDIT", "GPUMEM_CACHE", **more))


def linked(folder, name, source, client, way):
    compile_it(folder, f"lib{name}.so", source, "-shared", "-fPIC")
    return compile_it(folder, "client", client, *WAYS[way], f"-L{folder}", f"-l{name}", f"-Wl,-rpath,{folder}")


def test_nvrtc_is_intercepted_however_it_is_called(folder):
    for way in WAYS:
        done = run(linked(folder, "renamed", NVRTC, NVRTC_CLIENT, way))
        expect_status(done, 0)
        expect(done.stdout.splitlines() == HELD,
               f"{way}: {done.stdout}")


def test_nvrtc_is_not_intercepted_without_gpumem_run(folder):
    client = linked(folder, "renamed", NVRTC, NVRTC_CLIENT, "early")
    done = subprocess.run([client], stdout=subprocess.PIPE, text=True, check=True)
    expect(done.stdout.splitlines() == ["call: code", "table: code", "dlsym: code", HELD[3]], done.stdout)


def test_a_library_with_a_sysv_hash_table_is_intercepted(folder):
    compile_it(folder, "librenamed.so", NVRTC, "-shared", "-fPIC", "-Wl,--hash-style=sysv")
    client = compile_it(folder, "client", NVRTC_CLIENT, *WAYS["without a table"], f"-L{folder}", "-lrenamed",
                        f"-Wl,-rpath,{folder}")
    done = run(client)
    expect_status(done, 0)
    expect(done.stdout.splitlines() == HELD, done.stdout)


def test_nvjitlink_is_intercepted_however_it_is_called(folder):
    for way in WAYS:
        done = run(linked(folder, "jit", JITLINK, JITLINK_CLIENT, way))
        expect_status(done, 0)
        expect(done.stdout == "with text\n", f"{way}: {done.stdout}")


def test_a_needed_library_may_have_much_thread_local_storage(folder):
    """jemalloc has as much; glibc 2.36 refuses it under any auditor."""
    compile_it(folder, "liblarge.so", "__thread char large[4096]; char *f(void) { return large; }", "-shared", "-fPIC",
               "-ftls-model=initial-exec")
    program = compile_it(folder, "program", "char *f(void); int main(void) { return f()[4095]; }", f"-L{folder}",
                         "-llarge", f"-Wl,-rpath,{folder}")
    expect_status(run(program), 0)
    ours, own = "glibc.rtld.optional_static_tls=4096", "glibc.rtld.optional_static_tls=600"
    for given, wanted in (("", ours), ("glibc.malloc.check=0", f"glibc.malloc.check=0:{ours}"), (own, own)):
        done = run("sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES=given)
        expect(done.stdout.strip() == wanted, done.stdout)


# As jemalloc: an allocator that starts a thread when it is first asked for memory. Nothing is freed.
ALLOCATOR = """
#include <pthread.h>
#include <string.h>
static _Alignas(16) char room[1 << 26];
static size_t used;
static int begun;
static void *work(void *p) { return p; }
void *malloc(size_t size) {
    pthread_t thread;
    if (!__atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST))
        pthread_create(&thread, 0, work, 0);
    return room + __atomic_fetch_add(&used, (size + 31) / 16 * 16, __ATOMIC_SEQ_CST);
}
void free(void *p) {}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *p, size_t size) { void *q = malloc(size); return p ? memcpy(q, p, size) : q; }
"""


def test_the_programs_allocator_is_not_called_before_the_c_library_begins(folder):
    if harness.SANITIZE != "off":
        raise Skip("the sanitizer's allocator takes its place")
    compile_it(folder, "liballocator.so", ALLOCATOR, "-shared", "-fPIC", "-pthread")
    program = compile_it(folder, "program", "#include <stdlib.h>\nint main(void) { return malloc(9) == 0; }",
                         f"-L{folder}", "-fno-builtin", "-Wl,--no-as-needed", "-lallocator", f"-Wl,-rpath,{folder}")
    expect_status(run(program), 0)


def test_a_cache_path_is_redirected_however_it_is_opened(folder):
    for number, way in enumerate(WAYS):
        user = folder / f"cache-{number}"
        user.mkdir()
        done = run(compile_it(folder, "client", PATHS_CLIENT, *WAYS[way]), user / "cuda-python",
                   user / "cuda-python" / "key", XDG_CACHE_HOME=str(user))
        expect_status(done, 0)
        expect(done.stdout == "1 4\n", f"{way}: {done.stdout}")
        expect(not (user / "cuda-python").exists(), f"{way}: the user's own cache was written")
        expect([path.read_text() for path in user.glob("gpumem-*/cuda-python/key")] == ["here"], way)


if __name__ == "__main__":
    harness.main(globals())
