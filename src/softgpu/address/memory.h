/*
 * Device memory: physical memory, addresses, the page table between them, and what is known about
 * each address range.
 *
 * Physical memory of a device is a sparse memory file, mapped into a view that grows in steps;
 * exportable memory has a sealed memory file of its own. Addresses come from windows of 64 GiB of
 * PROT_NONE, so that reserving, mapping, granting access and unmapping are table edits without a
 * system call, and a device pointer dereferenced by the CPU faults as on a machine with a GPU.
 * Pinned and other host-located memory of softgpu is in the same windows, really mapped, with
 * entries of distance 0. Registered and pageable memory is outside them and has no entry: the CPU
 * uses it at the same address.
 *
 * Everything here requires the lock, except sg_translate.
 */
#ifndef SG_ADDRESS_MEMORY_H
#define SG_ADDRESS_MEMORY_H

#include "base/kept_file.h"
#include "softgpu/address/tree.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/site.h"
#include "softgpu/core/state.h"

#include <stddef.h>

struct sg_context;

/* ---- Physical memory ------------------------------------------------------------------------- */

enum sg_phys_kind {
    SG_PHYS_ARENA,  /* a run of pages of a memory file: the device's, or the host side's */
    SG_PHYS_FD,     /* a sealed memory file of its own: exportable, or imported */
    SG_PHYS_PART,   /* a part of a file: a pool's, another process's, an external memory's */
    SG_PHYS_OBJECT, /* no bytes of its own, but operations: address/object.h */
};

struct sg_phys_ops;

struct sg_phys {
    enum sg_phys_kind kind;
    const struct sg_phys_ops *ops; /* of an object; else NULL */
    unsigned object;               /* its number: object.c's */
    unsigned refs; /* handles, mappings, segments; freed (after running work) at 0 */
    int device;    /* ordinal; -1 for host memory */
    size_t size;   /* multiple of SG_PAGE */
    /* Byte 0 as softgpu itself sees it, SG_PAGE aligned. Host memory has this view too, in addition
     * to the mappings at the addresses that the application uses. */
    unsigned char *host;
    /* The memory file that holds the bytes: the arena's, its own or the pool's. For legacy IPC and
     * external memory it is closed once they are mapped; an object has none. */
    struct gm_kept_file file;
    uint64_t file_offset; /* of byte 0 */
    bool imported;        /* created by another process, which is charged for it */
    bool pages_held;      /* perhaps by a DMA buffer: not to be reused */
    bool moved;           /* some of its pages are in a file of dma_file.c */
    bool given;           /* its own file, which others may have mapped */
    bool named;           /* to other processes, by its place in the file: legacy IPC */
    CUmemAllocationProp prop;
    struct sg_phys_place *place; /* phys.c's */
};

/* The properties of unshared memory of `device` (-1: of the host). */
CUmemAllocationProp sg_plain_prop(int device);
/* OUT_OF_MEMORY if it exceeds the device's limit or what the machine has. `prop` determines device
 * or host and exportability; the caller has validated it. The result has one reference. */
CUresult sg_phys_create(const CUmemAllocationProp *prop, size_t size, struct sg_phys **phys);
/* The same in parts of `part` bytes and a rest, with a reference to each: all or nothing. */
CUresult sg_phys_create_parts(const CUmemAllocationProp *prop, size_t size, size_t part,
                              struct sg_phys **parts);
/* The same for bytes of a file of the caller's, which must remain open until this returns. When the
 * memory is freed, its bytes in the file are given back to the machine, unless it is `imported`
 * (and therefore not charged either). */
CUresult sg_phys_create_in(const struct gm_kept_file *file, uint64_t offset,
                           const CUmemAllocationProp *prop, size_t size, bool imported,
                           struct sg_phys **phys);
void sg_phys_ref(struct sg_phys *phys);
/* At 0 the bytes become reusable once no running operation can still see them. */
void sg_phys_unref(struct sg_phys *phys);

/* ---- Ranges: what the application knows an address as ---------------------------------------- */

struct sg_range_ops;

struct sg_range {
    CUdeviceptr start;
    size_t size;
    const struct sg_range_ops *ops; /* of its kind: address/range.h */
    int device;                     /* where the bytes are: ordinal, or -1 for host memory */
    struct sg_context *context;     /* its lifetime ends with this; NULL for VMM and pools */
    unsigned flags;                 /* host allocation or registration flags */
    uint64_t buffer_id;             /* unique in the process, never reused */
    bool sync_memops;               /* set by cuPointerSetAttribute */
    bool
        sync_memops_set; /* until then the attribute reads 1 for device memory, and means nothing */
    bool variable;       /* of a loaded image, which frees it: the application cannot */
    struct sg_origin origin; /* core/site.h */
    struct sg_phys *phys;    /* device kinds; NULL for host memory that the application owns */
    size_t phys_offset;
    unsigned cpu_rights; /* of a mapping of host memory: set by cuMemSetAccess for the CPU */
    uint64_t cpu_mark;   /* the epoch from which new work does not use the CPU mapping; 0: none */
    void *owner;         /* the pool block, the suballocator page, ... of its chapter */
    struct sg_tree_node node; /* range.c's */
};

/* The range that holds `address`, or NULL. Ranges never overlap. */
struct sg_range *sg_range_find(CUdeviceptr address);
/* The first range that starts at or after `address`, or NULL: for walking. */
struct sg_range *sg_range_from(CUdeviceptr address);
struct sg_range *sg_range_next(struct sg_range *range);
/* The last range that starts at or before `address`, which may end before it, or NULL. */
struct sg_range *sg_range_before(CUdeviceptr address);
/* One of the last 256 ranges that were removed, and held `address`; the newest of these. */
struct sg_range_past {
    CUdeviceptr start;
    size_t size;
};
bool sg_range_was(CUdeviceptr address, struct sg_range_past *past);
/* Inserts the range and sets its buffer_id; false if it would overlap. The caller owns the object.
 */
bool sg_range_insert(struct sg_range *range);
void sg_range_remove(struct sg_range *range);

/* ---- Execution's view, without the lock ------------------------------------------------------ */

#define SG_READ  1u
#define SG_WRITE 2u

/*
 * The host bytes of a device-visible address as seen by `device`: returns the pointer for `address`
 * and sets *span to the number of contiguous bytes from there (<= want), or returns NULL if the
 * device may not access it: an illegal address. Host addresses translate to themselves. Lock-free:
 * reads only the page table; valid while the caller's operation is running (see sg_work_begin).
 */
unsigned char *sg_translate(int device, CUdeviceptr address, size_t want, unsigned rights,
                            size_t *span);

/*
 * Brackets for work that touches bytes with the lock released. Begin and end are called with the
 * lock held; physical pages freed in between are not reused before the end. Only for moving bytes,
 * which always finishes: never around a host function or a wait, because unmapping host memory
 * waits for the open brackets.
 */
struct sg_work {
    uint64_t epoch;
    struct sg_work *next, *previous;
};
void sg_work_begin(struct sg_work *work);
void sg_work_end(struct sg_work *work);

/* ---- Segments: address range + physical memory + mapping, in one ----------------------------- */

struct sg_segment {
    CUdeviceptr address;
    size_t size;
    struct sg_phys *phys;
    struct sg_segment_end *end; /* segment.c's: allocated early so that unmapping cannot fail */
};
/*
 * Reserves addresses for `phys` (adds a reference), maps all of it there and gives `rights_devices`
 * (bit per device) read and write access. Host-located memory is also mapped for the CPU at that
 * address. Does all of it or nothing. Unmapping takes effect immediately for the device; the CPU's
 * mapping and the addresses are released when no running work can see them.
 */
CUresult sg_segment_map(struct sg_phys *phys, unsigned rights_devices, struct sg_segment *segment);
void sg_segment_unmap(struct sg_segment *segment);

/* cuInit's work for this chapter. */
CUresult sg_memory_init(void);
/* Bytes of physical device memory in use. */
uint64_t sg_memory_used(int device);

extern const struct sg_chapter sg_address_chapter;

#endif
