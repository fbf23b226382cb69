/* What a program or library holds for GPUs, and which CUDA runtime it uses, without running it. */
#ifndef CLI_DEVICE_CODE_H
#define CLI_DEVICE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file, or a part of one: every read is checked against its size. */
struct source {
    int fd;
    uint64_t begin, size;
};
/* All of `size` bytes at `offset`; false past the end, or when they cannot be read. */
bool source_read(const struct source *source, uint64_t offset, void *to, size_t size);

/* The profiles of softgpu. */
enum { MOST_PROFILES = 64 };
struct profiles {
    struct profile {
        char name[64];
        int capability; /* 90 for 9.0 */
    } profile[MOST_PROFILES];
    size_t count;
    int newest_ptx; /* 92 for 9.2 */
};

enum runtime_kind {
    RUNTIME_NONE,
    RUNTIME_SHARED, /* named as a library that it needs */
    RUNTIME_OPENED, /* named in its data: it may open it itself */
    RUNTIME_INSIDE, /* linked statically */
    RUNTIME_ITSELF, /* the file is one */
};

/* Code for one architecture. */
struct target {
    bool ptx; /* else machine code */
    int architecture;
    char suffix; /* 'a', 'f' or 0 */
    int version; /* of PTX, 90 for 9.0 */
    bool runs_on[MOST_PROFILES];
    uint64_t images;
};

enum { MOST_TARGETS = 128, MOST_LIBRARIES = 8 };
struct device_code {
    enum runtime_kind runtime;
    char runtime_name[64];
    char libraries[MOST_LIBRARIES][64]; /* of NVIDIA's, which compute by machine code */
    size_t library_count;
    struct target targets[MOST_TARGETS];
    size_t target_count;
    uint64_t binaries;            /* fat binaries: one of each translation unit */
    uint64_t runs[MOST_PROFILES]; /* those of them that have PTX for the profile */
    bool relocatable;
    bool damaged;             /* a fat binary does not end where it says */
    bool is_cubin, is_fatbin; /* the file is that itself */
};

/*
 * Examines an ELF file of x86-64 or another host, a cubin or a fat binary. False when it is none of
 * these or is damaged, with the reason in `why`.
 */
bool device_code_read(const struct source *source, const struct profiles *profiles,
                      struct device_code *code, char *why, size_t size);

/* "sm_90a", "compute_90"; `text` holds at least 32 bytes; returned. */
char *device_code_target(const struct target *target, char *text);

#endif
