/*
 * Memory files and their mappings: the system calls that physical memory is built on. Every failure
 * is logged with its reason and returned as false or -1; the callers' error is always
 * OUT_OF_MEMORY.
 */
#ifndef SG_ADDRESS_MEMFILE_H
#define SG_ADDRESS_MEMFILE_H

#include "base/kept_file.h"

#include <stddef.h>
#include <stdint.h>

/* A memfd of `size` bytes, close-on-exec, sealable. `name` appears in /proc/PID/maps. */
bool sg_memfile_new(const char *name, uint64_t size, struct gm_kept_file *file);
/* Extends the file to `size` bytes unless it is already longer (after an earlier failure; it may be
 * sealed against shrinking). Refuses to exceed the process's file size limit, which would raise
 * SIGXFSZ. */
bool sg_memfile_grow(const struct gm_kept_file *file, uint64_t size);
/* Gives the bytes at `view`, which maps `offset` of the file, back to the machine: they read as
 * zero afterwards, in all mappings. False if the kernel refuses; then nothing has changed. */
bool sg_memfile_give_back(const struct gm_kept_file *file, uint64_t offset, unsigned char *view,
                          size_t size);

/* PROT_NONE addresses without memory, aligned to a power of two; NULL on failure. */
unsigned char *sg_addresses_reserve(size_t size, size_t align);
/* The same at a given address; false if any of it is in use. */
bool sg_addresses_reserve_at(uintptr_t address, size_t size);
/* Maps `size` bytes of a file at SG_PAGE alignment, readable and writable; NULL on failure. */
unsigned char *sg_memfile_map(const struct gm_kept_file *file, uint64_t offset, size_t size);
/* Maps over reserved addresses with `prot`. */
bool sg_memfile_map_at(const struct gm_kept_file *file, uint64_t offset, unsigned char *at,
                       size_t size, int prot);
/* Maps the memory under `view`, which is readable and writable, a second time, over reserved
 * addresses. Needs no descriptor. */
bool sg_view_map_at(unsigned char *view, unsigned char *at, size_t size, int prot);
/* Ends a mapping or a reservation and releases the addresses. */
void sg_addresses_end(unsigned char *at, size_t size);
/* Turns mapped addresses into reserved ones. */
void sg_addresses_clear(unsigned char *at, size_t size);

#endif
