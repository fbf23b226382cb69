#include "softgpu/address/phys.h"

#include "base/descriptor.h"
#include "softgpu/address/arena.h"
#include "softgpu/address/dma_file.h"
#include "softgpu/address/epoch.h"
#include "softgpu/address/memfile.h"
#include "softgpu/address/object.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/device/notification.h"
#include "softgpu/device/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_SLOT SG_MAX_DEVICES

/* The part of a physical allocation that is private to this file; freed with it. */
struct sg_phys_place {
    struct sg_retired retired;
    struct sg_phys phys;
    struct sg_arena *arena;
    uint64_t page;
    struct sg_phys_place *next_file; /* SG_PHYS_FD: to find a file that is imported again */
};

/* The last one is the host side's. */
static struct sg_arena arenas[SG_MAX_DEVICES + 1];
static uint64_t used[SG_MAX_DEVICES + 1];
static struct sg_phys_place *files;

CUresult sg_memory_init(void) {
    for (int i = 0; i <= SG_MAX_DEVICES; i++)
        arenas[i] =
            (struct sg_arena)SG_ARENA_INIT(i == HOST_SLOT ? "softgpu host" : "softgpu device");
    return CUDA_SUCCESS;
}

uint64_t sg_memory_used(int device) {
    return used[device];
}

void sg_poison(unsigned char *bytes, size_t size, int pattern) {
    if (sg_config()->poison)
        memset(bytes, pattern, size);
}

static int slot_of(int device) {
    return device < 0 ? HOST_SLOT : device;
}

/* Pinned memory is resident on hardware, so it is limited to what the machine can give. */
static uint64_t limit_of(int device) {
    return device >= 0 ? sg_device(device)->limit : sg_devices_pinned_limit();
}

/* Memory that others have taken since the limits were set cannot be regained by waiting. */
static uint64_t left(int device, size_t wanted) {
    uint64_t limit = limit_of(device), taken = used[slot_of(device)];
    uint64_t ours = taken < limit ? limit - taken : 0;
    if (wanted > ours)
        return ours;
    uint64_t groups = sg_machine_left(wanted);
    uint64_t kept =
        arenas[slot_of(device)].dirty_pages * SG_PAGE; /* freed, and taken again first */
    return ours > kept && groups < ours - kept ? groups + kept : ours;
}

static bool fits(int device, size_t size) {
    return size <= left(device, size);
}

/* Pools keep freed memory: they give it back before anything is refused for lack of it. */
static bool charge(int device, size_t size) {
    if (!fits(device, size)) {
        sg_chapters_reclaim(device, size);
        uint64_t now = left(device, size);
        if (size > now) {
            size_t over = size - (size_t)now;
            sg_log(SG_LOG_INFO, "out of memory on %s %d: %zu bytes wanted, %llu of %llu in use",
                   device < 0 ? "host" : "device", device, size,
                   (unsigned long long)used[slot_of(device)], (unsigned long long)limit_of(device));
            if (device >= 0)
                sg_notify_over_budget(device, over);
            return false;
        }
    }
    used[slot_of(device)] += size;
    return true;
}

static bool place_in_arena(struct sg_phys_place *place) {
    struct sg_phys *phys = &place->phys;
    place->arena = &arenas[slot_of(phys->device)];
    if (!sg_arena_take(place->arena, phys->size / SG_PAGE, &place->page, &phys->host))
        return false;
    phys->kind = SG_PHYS_ARENA;
    phys->file = *sg_arena_file(place->arena, place->page);
    phys->file_offset = place->page * SG_PAGE;
    return true;
}

/* Takes ownership of the descriptor on success. Importers find the file from then on. */
static bool place_in_file(struct sg_phys_place *place, const struct gm_kept_file *file) {
    struct sg_phys *phys = &place->phys;
    phys->host = sg_memfile_map(file, 0, phys->size);
    if (!phys->host)
        return false;
    phys->kind = SG_PHYS_FD;
    phys->file = *file;
    phys->file_offset = 0;
    place->next_file = files;
    files = place;
    return true;
}

/* What an importer has to know is the file's name, which goes with every descriptor, so that the
 * file has the memory's size: DMA buffers are such files. */
#define NAME_FORMAT "softgpu memory 2 %llx %s %x %x %x %x %x %x %x"
#define NAME_ROOM   200

static void name_file(const struct sg_phys *phys, char name[NAME_ROOM]) {
    const CUmemAllocationProp *prop = &phys->prop;
    char uuid[33] = "-"; /* of a device */
    for (int i = 0; phys->device >= 0 && i < 16; i++)
        snprintf(uuid + 2 * i, 3, "%02x", (unsigned char)sg_device(phys->device)->uuid.bytes[i]);
    snprintf(name, NAME_ROOM, NAME_FORMAT, (unsigned long long)phys->size, uuid,
             (unsigned)prop->type, (unsigned)prop->requestedHandleTypes,
             (unsigned)prop->location.type, (unsigned)prop->location.id,
             prop->allocFlags.compressionType, prop->allocFlags.gpuDirectRDMACapable,
             prop->allocFlags.usage);
}

static bool make_file(struct sg_phys_place *place) {
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct gm_kept_file file;
    char name[NAME_ROOM];
    name_file(&place->phys, name);
    if (!sg_memfile_new(name, place->phys.size, &file))
        return false;
    if (fcntl(file.fd, F_ADD_SEALS, seals) == 0 && place_in_file(place, &file))
        return true;
    sg_log(SG_LOG_ERROR, "cannot make shareable memory: %s", strerror(errno));
    gm_kept_file_close(&file);
    return false;
}

static struct sg_phys_place *new_place(const CUmemAllocationProp *prop, int device, size_t size) {
    struct sg_phys_place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->phys.refs = 1;
    place->phys.device = device;
    place->phys.size = size;
    place->phys.prop = *prop;
    place->phys.place = place;
    return place;
}

CUmemAllocationProp sg_plain_prop(int device) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    prop.location.type = device < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device < 0 ? 0 : device;
    return prop;
}

static int device_of(const CUmemAllocationProp *prop) {
    return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
}

/* Of memory that has been charged. NULL: out of memory. */
static struct sg_phys *make(const CUmemAllocationProp *prop, size_t size) {
    const unsigned types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    bool shared = ((unsigned)prop->requestedHandleTypes & types) != 0;
    struct sg_phys_place *place = new_place(prop, device_of(prop), size);
    if (!place || !(shared ? make_file(place) : place_in_arena(place))) {
        free(place);
        return NULL;
    }
    sg_poison(place->phys.host, size, SG_POISON_FRESH);
    return &place->phys;
}

CUresult sg_phys_create_parts(const CUmemAllocationProp *prop, size_t size, size_t part,
                              struct sg_phys **parts) {
    int device = device_of(prop);
    size_t made = 0, count = 0;
    if (!charge(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (; made < size; made += parts[count++]->size) {
        parts[count] = make(prop, size - made < part ? size - made : part);
        if (!parts[count])
            break;
    }
    if (made == size)
        return CUDA_SUCCESS;
    used[slot_of(device)] -= size - made;
    while (count > 0)
        sg_phys_unref(parts[--count]);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_phys_create(const CUmemAllocationProp *prop, size_t size, struct sg_phys **phys) {
    return sg_phys_create_parts(prop, size, size, phys);
}

CUresult sg_phys_create_in(const struct gm_kept_file *file, uint64_t offset,
                           const CUmemAllocationProp *prop, size_t size, bool imported,
                           struct sg_phys **phys) {
    int device = device_of(prop);
    if (!imported && !charge(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_phys_place *place = new_place(prop, device, size);
    unsigned char *host = place ? sg_memfile_map(file, offset, size) : NULL;
    if (!host) {
        free(place);
        if (!imported)
            used[slot_of(device)] -= size;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    place->phys.kind = SG_PHYS_PART;
    place->phys.host = host;
    place->phys.file = *file;
    place->phys.file_offset = offset;
    place->phys.imported = imported;
    if (!imported)
        sg_poison(host, size, SG_POISON_FRESH);
    *phys = &place->phys;
    return CUDA_SUCCESS;
}

void sg_phys_ref(struct sg_phys *phys) {
    phys->refs++;
}

static void forget_file(struct sg_phys_place *place) {
    struct sg_phys_place **link = &files;
    while (*link && *link != place)
        link = &(*link)->next_file;
    if (*link)
        *link = place->next_file;
}

static bool give_back(const struct sg_phys *phys) {
    return sg_memfile_give_back(&phys->file, phys->file_offset, phys->host, phys->size);
}

/* Pages that somebody else holds are not reused: they and their place in the file are lost, unless
 * the machine takes them back. */
static void give_to_arena(struct sg_phys_place *place) {
    const struct sg_phys *phys = &place->phys;
    if (!phys->pages_held)
        sg_poison(phys->host, phys->size, SG_POISON_FREED);
    if (place->phys.moved && !sg_dma_file_end(&place->phys))
        return;
    if (!phys->pages_held || give_back(phys))
        sg_arena_give(place->arena, place->page, phys->size / SG_PAGE);
}

/* Importers then read zeros, even where the file keeps the bytes. The file may be closed by now;
 * the mapping still refers to it. */
static void end_part(const struct sg_phys *phys) {
    if (!phys->imported && !give_back(phys))
        memset(phys->host, 0, phys->size);
    sg_addresses_end(phys->host, phys->size);
}

static void reclaim(struct sg_retired *retired) {
    struct sg_phys_place *place = (struct sg_phys_place *)retired;
    struct sg_phys *phys = &place->phys;
    if (phys->kind == SG_PHYS_ARENA) {
        give_to_arena(place);
    } else if (phys->kind == SG_PHYS_PART) {
        end_part(phys);
    } else {
        if (phys->moved)
            sg_dma_file_forget(phys);
        sg_addresses_end(phys->host, phys->size);
        gm_kept_file_close(&phys->file);
    }
    free(place);
}

/* The bytes are uncharged at once, as on hardware: only space in a sparse file waits for running
 * work. A shared file is no longer offered to importers: it would be unmapped under them. */
void sg_phys_unref(struct sg_phys *phys) {
    if (--phys->refs > 0)
        return;
    if (phys->ops) {
        phys->ops->end(phys);
        return;
    }
    if (!phys->imported)
        used[slot_of(phys->device)] -= phys->size;
    if (phys->kind == SG_PHYS_FD)
        forget_file(phys->place);
    sg_retire(&phys->place->retired, reclaim);
}

static struct sg_phys *find_file(const struct stat *status) {
    for (struct sg_phys_place *place = files; place; place = place->next_file)
        if (place->phys.file.device == status->st_dev && place->phys.file.inode == status->st_ino)
            return &place->phys;
    return NULL;
}

/* What the name of a file says. */
struct shared {
    uint64_t size;
    CUuuid device; /* zero for host memory */
    CUmemAllocationProp prop;
};

static bool read_uuid(const char *text, struct shared *shared) {
    for (int i = 0; text[0] != '-' && i < 16; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        shared->device.bytes[i] = (char)byte;
    }
    return true;
}

static bool read_name(int fd, struct shared *shared) {
    char path[32], name[NAME_ROOM + 32], uuid[33];
    unsigned long long size;
    unsigned type, handles, place, id, compression, rdma, usage;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length <= 0)
        return false;
    name[length] = 0;
    *shared = (struct shared){.size = 0};
    if (sscanf(name, "/memfd:softgpu memory 2 %llx %32s %x %x %x %x %x %x %x", &size, uuid, &type,
               &handles, &place, &id, &compression, &rdma, &usage) != 9 ||
        (strlen(uuid) != 32 && strcmp(uuid, "-") != 0) || !read_uuid(uuid, shared))
        return false;
    shared->size = size;
    shared->prop.type = (CUmemAllocationType)type;
    shared->prop.requestedHandleTypes = (CUmemAllocationHandleType)handles;
    shared->prop.location = (CUmemLocation){.type = (CUmemLocationType)place, .id = (int)id};
    shared->prop.allocFlags.compressionType = (unsigned char)compression;
    shared->prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
    shared->prop.allocFlags.usage = (unsigned short)usage;
    return true;
}

static const char *read_shared(int fd, struct stat *status, struct shared *shared) {
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (fstat(fd, status) != 0)
        return "not an open file descriptor";
    int sealed = fcntl(fd, F_GET_SEALS);
    if (!S_ISREG(status->st_mode) || sealed < 0 || (sealed & seals) != seals)
        return "not a sealed memory file";
    if (!read_name(fd, shared) || shared->size == 0 || shared->size % SG_PAGE != 0 ||
        shared->size != (uint64_t)status->st_size)
        return "not exported by softgpu, or by another version of it";
    return NULL;
}

static int find_device(const struct shared *shared) {
    for (int i = 0; i < sg_device_count(); i++)
        if (memcmp(&sg_device(i)->uuid, &shared->device, sizeof shared->device) == 0)
            return i;
    return -1;
}

static CUresult import_new(int fd, const struct shared *shared, struct sg_phys **phys) {
    CUmemAllocationProp prop = shared->prop;
    int device = -1;
    if (prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        device = find_device(shared);
        if (device < 0) {
            sg_log(SG_LOG_WARNING,
                   "imported memory belongs to a device that this process does not see");
            return CUDA_ERROR_INVALID_DEVICE;
        }
        prop.location.id = device;
    }
    struct sg_phys_place *place = new_place(&prop, device, (size_t)shared->size);
    struct gm_kept_file own = GM_NO_KEPT_FILE;
    bool kept = gm_kept_file_set(gm_fd_duplicate(fd), &own);
    if (!place || !kept || !place_in_file(place, &own)) {
        gm_kept_file_close(&own);
        free(place);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    place->phys.imported = true;
    *phys = &place->phys;
    return CUDA_SUCCESS;
}

bool sg_phys_has_own_file(const struct sg_phys *phys) {
    return phys->kind == SG_PHYS_FD;
}

CUresult sg_phys_give(struct sg_phys *phys) {
    CUresult result = phys->moved ? sg_dma_file_return(phys) : CUDA_SUCCESS;
    phys->given |= result == CUDA_SUCCESS;
    return result;
}

bool sg_phys_exported(int fd) {
    struct stat status;
    struct shared shared;
    return !read_shared(fd, &status, &shared);
}

CUresult sg_phys_import(int fd, struct sg_phys **phys) {
    struct stat status;
    struct shared shared;
    const char *wrong = read_shared(fd, &status, &shared);
    if (wrong) {
        sg_log(SG_LOG_WARNING, "descriptor %d cannot be imported: %s", fd, wrong);
        return CUDA_ERROR_UNKNOWN;
    }
    struct sg_phys *known = find_file(&status);
    if (!known)
        return import_new(fd, &shared, phys);
    sg_phys_ref(known);
    *phys = known;
    return CUDA_SUCCESS;
}

static void dump(struct sg_text *text) {
    for (int i = 0; i < sg_device_count(); i++)
        sg_text_line(text, "device %d used %llu", i, (unsigned long long)sg_memory_used(i));
}

const struct sg_chapter sg_address_chapter = {.dump = dump};
