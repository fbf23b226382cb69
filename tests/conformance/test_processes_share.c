/* Many processes and one buffer: each opens it by its legacy handle, finds the bytes that the
 * others left alone, and writes a part of its own. */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>

#define PART ((size_t)64 << 10)
#define MANY 64
#define PEER CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

/* A context of hardware takes half a GiB and some tenths of a second. */
static unsigned processes(void) {
    return soft ? MANY : 4;
}

static void to_text(const CUipcMemHandle *handle, char text[2 * sizeof *handle + 1]) {
    for (size_t i = 0; i < sizeof *handle; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)handle)[i]);
}

static CUipcMemHandle from_text(const char *text) {
    CUipcMemHandle handle;
    for (size_t i = 0; i < sizeof handle; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    return handle;
}

static void write_part(CUdeviceptr p, unsigned number, unsigned seed) {
    unsigned char *bytes = malloc(PART);
    fill_pattern(bytes, PART, seed);
    OK_CU(cu.cuMemcpyHtoD_v2(p + number * PART, bytes, PART));
    free(bytes);
}

static bool part_has(CUdeviceptr p, unsigned number, unsigned seed) {
    unsigned char *bytes = malloc(PART);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p + number * PART, PART));
    bool has = has_pattern(bytes, PART, seed);
    free(bytes);
    return has;
}

/* sharer HANDLE NUMBER: every second one ends without closing anything. */
CHILD(sharer) {
    if (argc != 3)
        return 9;
    CUipcMemHandle handle = from_text(argv[1]);
    unsigned number = (unsigned)atoi(argv[2]);
    init_driver();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuIpcOpenMemHandle_v2, handle, PEER);
    if (!part_has(p, number, number))
        return 1;
    write_part(p, number, number + 100);
    OK_CU(cu.cuCtxSynchronize());
    if (number % 2)
        _exit(0);
    OK_CU(cu.cuIpcCloseMemHandle(p));
    return 0;
}

static unsigned open_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

TEST(many_processes_write_to_one_shared_buffer) {
    CUipcMemHandle handle;
    char text[2 * sizeof handle + 1], number[16];
    int children[MANY];
    /* What the first allocation and handle of a process open stays open. */
    CUdeviceptr first = new_memory(PART);
    OK_CU(cu.cuIpcGetMemHandle(&handle, first));
    unsigned before = open_descriptors();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, MANY * PART);
    for (unsigned i = 0; i < processes(); i++)
        write_part(p, i, i);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    to_text(&handle, text);
    for (unsigned i = 0; i < processes(); i++) {
        snprintf(number, sizeof number, "%u", i);
        children[i] = start_child("sharer", text, number, NULL);
    }
    for (unsigned i = 0; i < processes(); i++)
        assert_int_equal(wait_child(children[i]), 0);
    for (unsigned i = 0; i < processes(); i++)
        assert_true(part_has(p, i, i + 100));
    OK_CU(cu.cuMemFree_v2(p));
    assert_int_equal(open_descriptors(), before);
}

/* A copy of a descriptor that children inherit, as their argument. */
static int inheritable(int fd, char text[16]) {
    int copy = fcntl(fd, F_DUPFD, 10);
    assert_true(copy >= 0);
    snprintf(text, 16, "%d", copy);
    return copy;
}

#define SURVIVORS 4

/* exporter RESULTS: ends without a word as soon as the others have opened its memory. */
CHILD(exporter) {
    CUipcMemHandle handle;
    char text[2 * sizeof handle + 1], out[16], in[16];
    int opened[2], life[2];
    if (argc != 2)
        return 9;
    init_driver();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SURVIVORS * PART);
    for (unsigned i = 0; i < SURVIVORS; i++)
        write_part(p, i, i);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuIpcGetMemHandle(&handle, p));
    to_text(&handle, text);
    assert_int_equal(pipe2(opened, O_CLOEXEC) | pipe2(life, O_CLOEXEC), 0);
    int copy = inheritable(opened[1], out);
    inheritable(life[0], in);
    for (unsigned i = 0; i < SURVIVORS; i++)
        start_child("survivor", text, out, in, argv[1], NULL);
    close(opened[1]);
    close(copy);
    for (unsigned i = 0; i < SURVIVORS; i++) {
        char byte;
        assert_int_equal(read(opened[0], &byte, 1), 1);
    }
    _exit(0); /* nobody else has the writing end of `life` */
}

/* survivor HANDLE OPENED LIFE RESULTS */
CHILD(survivor) {
    char byte;
    if (argc != 5)
        return 9;
    CUipcMemHandle handle = from_text(argv[1]);
    init_driver();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuIpcOpenMemHandle_v2, handle, PEER);
    assert_int_equal(write(atoi(argv[2]), "o", 1), 1);
    bool good = read(atoi(argv[3]), &byte, 1) == 0; /* the exporter is gone */
    for (unsigned i = 0; i < SURVIVORS; i++)
        good &= part_has(p, i, i);
    OK_CU(cu.cuIpcCloseMemHandle(p));
    return write(atoi(argv[4]), good ? "g" : "b", 1) == 1 ? 0 : 1;
}

TEST(shared_bytes_outlive_the_exporter) {
    int results[2];
    char text[16], answers[SURVIVORS + 1] = "";
    assert_int_equal(pipe2(results, O_CLOEXEC), 0);
    int copy = inheritable(results[1], text);
    close(results[1]);
    assert_int_equal(run_child("exporter", text, NULL), 0);
    close(copy);
    for (unsigned i = 0; i < SURVIVORS; i++)
        assert_int_equal(read(results[0], &answers[i], 1), 1);
    assert_string_equal(answers, "gggg");
    close(results[0]);
}
