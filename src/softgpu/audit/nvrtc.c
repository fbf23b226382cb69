/*
 * In front of NVRTC: who asks for the machine code of a program gets it with its PTX inside, which
 * NVRTC keeps of the same compilation. Without machine code (an architecture "compute_...", LTO)
 * nothing changes.
 */
#include "audit.h"

#include <stdlib.h>
#include <string.h>

typedef int get_size(void *program, size_t *size);
typedef int get_bytes(void *program, char *bytes);

static struct {
    bool used;
    const struct link_map *map;
    get_size *machine_size, *text_size;
    get_bytes *machine, *text;
} copies[AUDIT_COPIES];

#define OUT_OF_MEMORY 1 /* NVRTC_ERROR_OUT_OF_MEMORY */

/* What `get` writes, malloc'd; NULL if that is nothing, or there is no memory. */
static unsigned char *got(void *program, get_size *size_of, get_bytes *get, size_t *size) {
    unsigned char *bytes = NULL;
    if (size_of(program, size) != 0 || *size == 0 || !(bytes = malloc(*size)))
        return NULL;
    if (get(program, (char *)bytes) == 0)
        return bytes;
    free(bytes);
    return NULL;
}

/* Whether there is machine code and a text, which has more than its final zero. */
static bool has_both(int copy, void *program) {
    size_t machine, text;
    return copies[copy].machine_size(program, &machine) == 0 && machine > 0 &&
           copies[copy].text_size(program, &text) == 0 && text > 1;
}

/* Where there are both. NULL: no memory, or NVRTC's machine code is of another form. */
static unsigned char *make(int copy, void *program, size_t *size) {
    struct audit_bytes machine = {0}, text = {0};
    unsigned char *made = NULL, *code, *of;
    code = got(program, copies[copy].machine_size, copies[copy].machine, &machine.size);
    of = got(program, copies[copy].text_size, copies[copy].text, &text.size);
    machine.data = code;
    text.data = of;
    if (code && of && audit_cubin_type(machine) != ET_NONE)
        made = audit_cubin_with(machine, AUDIT_TEXT, text, size);
    free(code);
    free(of);
    return made;
}

static int answer_size(int copy, void *program, size_t *size) {
    if (!size || !has_both(copy, program))
        return copies[copy].machine_size(program, size);
    unsigned char *made = make(copy, program, size);
    free(made);
    return made ? 0 : OUT_OF_MEMORY;
}

static int answer(int copy, void *program, char *bytes) {
    size_t size;
    if (!bytes || !has_both(copy, program))
        return copies[copy].machine(program, bytes);
    unsigned char *made = make(copy, program, &size);
    if (!made)
        return OUT_OF_MEMORY;
    memcpy(bytes, made, size);
    free(made);
    return 0;
}

/* The functions get no more than the program, so each copy of NVRTC has its own in front. */
#define IS_OWN(number) audit_is_own_call(copies[number].map, __builtin_return_address(0))
#define COPY(number)                                                                               \
    static int size_##number(void *program, size_t *size) {                                        \
        return IS_OWN(number) ? copies[number].machine_size(program, size)                         \
                              : answer_size(number, program, size);                                \
    }                                                                                              \
    static int bytes_##number(void *program, char *bytes) {                                        \
        return IS_OWN(number) ? copies[number].machine(program, bytes)                             \
                              : answer(number, program, bytes);                                    \
    }
COPY(0)
COPY(1)
COPY(2)
COPY(3)
COPY(4)
COPY(5)
COPY(6)
COPY(7)

static get_size *const sizes[] = {size_0, size_1, size_2, size_3, size_4, size_5, size_6, size_7};
static get_bytes *const bytes[] = {bytes_0, bytes_1, bytes_2, bytes_3,
                                   bytes_4, bytes_5, bytes_6, bytes_7};
_Static_assert(sizeof sizes / sizeof *sizes == AUDIT_COPIES, "a function for each copy");

int audit_nvrtc_open(const struct link_map *map) {
    void *found[] = {audit_find(map, "nvrtcGetCUBINSize"), audit_find(map, "nvrtcGetPTXSize"),
                     audit_find(map, "nvrtcGetCUBIN"), audit_find(map, "nvrtcGetPTX")};
    if (!found[0] || !found[1] || !found[2] || !found[3])
        return -1;
    for (int i = 0; i < AUDIT_COPIES; i++)
        if (!copies[i].used) {
            memcpy(&copies[i].machine_size, &found[0], sizeof found[0]);
            memcpy(&copies[i].text_size, &found[1], sizeof found[1]);
            memcpy(&copies[i].machine, &found[2], sizeof found[2]);
            memcpy(&copies[i].text, &found[3], sizeof found[3]);
            copies[i].map = map;
            copies[i].used = true;
            return i;
        }
    audit_say("more than 8 copies of NVRTC in one process: the last gives machine code, which "
              "softgpu does not run");
    return -1;
}

void audit_nvrtc_close(int copy) {
    copies[copy].used = false;
}

uintptr_t audit_nvrtc_replace(int copy, const char *name, uintptr_t address) {
    (void)address;
    if (strcmp(name, "nvrtcGetCUBINSize") == 0)
        return (uintptr_t)sizes[copy];
    if (strcmp(name, "nvrtcGetCUBIN") == 0)
        return (uintptr_t)bytes[copy];
    return 0;
}
