/*
 * Clients' compilers give PTX: a library for the dynamic linker's audit interface (rtld-audit),
 * which gpumem run puts in front of NVRTC and nvJitLink wherever they come from. A client that asks
 * for machine code gets it with the PTX of the same compilation inside, which softgpu runs.
 *
 * A process of its own inside the process: an auditor has its own copy of the C library, so memory
 * made here is freed here. It writes nothing unless something cannot be answered.
 */
#ifndef SG_AUDIT_AUDIT_H
#define SG_AUDIT_AUDIT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Libraries of one kind that a process may have at a time; later ones are left alone. */
#define AUDIT_COPIES 8

/* ---- objects.c ------------------------------------------------------------------------------- */

/* The address of a function that an object defines, or NULL. Not of those it needs. */
void *audit_find(const struct link_map *map, const char *name);

/*
 * What callers of the function `name`, at `real`, get of a library that is number `copy` of its
 * kind; 0: the function itself. `real` may be the answer of an earlier call.
 */
typedef uintptr_t audit_replace(int copy, const char *name, uintptr_t real);

/*
 * Gives the symbols of an object that was just mapped the values that `replace` has for them, for
 * whoever looks them up: calls, tables of addresses, dlsym. Where they cannot be written, nothing
 * is replaced.
 */
void audit_redefine(const struct link_map *map, int copy, audit_replace *replace);

/* Whether the call that returns there is the object's own, or this library's: a library that calls
 * its own functions must not come back to what is in front of them. */
bool audit_is_own_call(const struct link_map *map, const void *return_address);

/* ---- cubin.c --------------------------------------------------------------------------------- */

/* Sections of a cubin (docs/softgpu.md): the PTX that it was made from, and what softgpu's linker
 * made of several. */
#define AUDIT_TEXT   ".softgpu.ptx"
#define AUDIT_LINKED ".softgpu.program"

struct audit_bytes {
    const unsigned char *data;
    size_t size;
};

/* The section of that name; false without one, and for what is no cubin. */
bool audit_cubin_section(struct audit_bytes cubin, const char *name, struct audit_bytes *found);
/* ET_EXEC for a whole program, ET_REL for what is to be linked; ET_NONE for what is no cubin. */
unsigned audit_cubin_type(struct audit_bytes cubin);
/* A malloc'd copy of a cubin with one section more, the last. NULL: no memory. */
unsigned char *audit_cubin_with(struct audit_bytes cubin, const char *name,
                                struct audit_bytes content, size_t *size);
/* Takes the last section out again if it has that name: nvJitLink stops with a fault at any section
 * that it does not know in relocatable code for sm_100 and later. */
void audit_cubin_without(unsigned char *cubin, size_t size, const char *name);

/* The machine code for that architecture (90 for sm_90) in a fatbin, *at bytes from its beginning;
 * false without any, or where it is compressed. */
bool audit_fatbin_cubin(struct audit_bytes fatbin, unsigned architecture, size_t *at,
                        struct audit_bytes *cubin);

/* ---- What is put in front of functions --------------------------------------------------------
 */

/*
 * Each notes a library of its kind and returns its number, or -1 if it is none (or one too many).
 * Called with the linker's lock held: nothing in them may load or look up through it.
 */
int audit_nvrtc_open(const struct link_map *map);
void audit_nvrtc_close(int copy);
audit_replace audit_nvrtc_replace;

int audit_jitlink_open(const struct link_map *map);
void audit_jitlink_close(int copy);
audit_replace audit_jitlink_replace;

/* The C library's functions of paths, for caches that no variable moves. */
bool audit_paths_wanted(void);
audit_replace audit_paths_replace;

/* ---- runtime.c ------------------------------------------------------------------------------- */

/* Where our libcudart is, for a name of NVIDIA's; any other name as it is. Valid until the next
 * call with a name of the same version. */
const char *audit_runtime_path(const char *name);

/* ---- several.c ------------------------------------------------------------------------------- */

/*
 * Links PTX texts by softgpu, in the audited program's own libsoftgpu: an ELF. NULL, with what it
 * said printed, if they do not fit together or there is no softgpu; else malloc'd.
 */
unsigned char *audit_link_texts(unsigned architecture, const char *const *texts, size_t count,
                                size_t *size);

/* One line on standard error, "gpumem: " in front; each text once in a process. */
void audit_say(const char *text);

#endif
