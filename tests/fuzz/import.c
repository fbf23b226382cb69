/*
 * What another process sends of its memory: descriptions and descriptors that were not exported so,
 * of mapped memory, of a pool's, of an event, and of growth. gpumem_import_create and _extend
 * refuse them or map what is there, and leave nothing behind.
 */
#include "input.h"
#include "leaked_descriptors.h"
#include "sizes.h"

#include <fcntl.h>
#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <gpumem/softgpu.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VIRTUAL     3
#define EXPORTS     5
#define DESCRIPTORS 16
#define MOST_BYTES  512
/* Where softgpu describes the memory: in the file's last page. */
#define TRAILER      96
#define TRAILER_PAGE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gpumem_library *library;
static gpumem_device *device;
static const softgpu_control *soft;
static gpumem_export *exports[EXPORTS];
static int foreign[5];
static char *state_at_start;
static unsigned descriptors_at_start;

static void require(bool true_here, const char *what) {
    if (true_here)
        return;
    fprintf(stderr, "import: %s; the last error says: %s\n", what, gpumem_last_error()->message);
    abort();
}

static void make_foreign(void) {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    foreign[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    foreign[1] = memfd_create("not exported", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    foreign[2] = memfd_create("empty", MFD_CLOEXEC);
    foreign[3] = ends[0];
    foreign[4] = ends[1];
    require(ftruncate(foreign[1], 4 << 20) == 0, "no memory file");
}

/* Buffers of one, two and three chunks. */
static void make_exports(void) {
    gpumem_resource *resource;
    require(gpumem_virtual_resource_create(device, NULL, &resource) == GPUMEM_OK, "no resource");
    for (unsigned i = 0; i < VIRTUAL; i++) {
        gpumem_buffer *buffer;
        require(gpumem_buffer_allocate(resource, 2 * MIB,
                                       GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = 16 * MIB),
                                       &buffer) == GPUMEM_OK,
                "no buffer");
        for (unsigned j = 0; j < i; j++)
            require(gpumem_buffer_grow(buffer, (j + 2) * 2 * MIB - 5 * j, NULL) == GPUMEM_OK,
                    "it does not grow");
        require(gpumem_export_create(buffer, &exports[i]) == GPUMEM_OK, "no export");
    }
}

/* Of a pool, and an event, which is nothing to import as memory. */
static void make_others(void) {
    gpumem_resource *pool;
    gpumem_buffer *buffer;
    CUevent event;
    require(gpumem_device_pool_resource_create(device, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1),
                                               &pool) == GPUMEM_OK &&
                gpumem_buffer_allocate(pool, 3 * MIB, NULL, &buffer) == GPUMEM_OK &&
                gpumem_export_create(buffer, &exports[VIRTUAL]) == GPUMEM_OK,
            "no export of a pool");
    require(gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event) ==
                    GPUMEM_OK &&
                gpumem_export_create_event(device, event, &exports[VIRTUAL + 1]) == GPUMEM_OK,
            "no export of an event");
}

static void begin(void) {
    setenv("SOFTGPU_MEMORY", "128M", 1);
    setenv("SOFTGPU_LOG", "off", 1);
    require(gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = "softgpu"), &library) ==
                    GPUMEM_OK &&
                gpumem_device_open(library, 0, &device) == GPUMEM_OK,
            "cannot open softgpu");
    softgpu_get_control_fn get;
    void *symbol = gpumem_driver_symbol(gpumem_library_driver(library), "softgpu_get_control");
    memcpy(&get, &symbol, sizeof get);
    soft = get(SOFTGPU_CONTROL_VERSION);
    make_foreign();
    make_exports();
    make_others();
}

static gpumem_export_info info_of(const gpumem_export *exported) {
    gpumem_export_info info = {.size = sizeof info};
    (void)gpumem_export_get_info(exported, &info);
    return info;
}

static int first_of(const gpumem_export *exported) {
    const gpumem_export_info info = info_of(exported);
    return info.descriptor_count ? info.descriptors[0] : -1;
}

static size_t chunks_of(gpumem_buffer *buffer) {
    gpumem_layout layout = {.size = sizeof layout};
    (void)gpumem_buffer_get_layout(buffer, &layout, NULL, 0);
    return layout.segment_count;
}

/* A description as it was exported, then damaged; or bytes that never were one. */
static size_t draw_description(struct input *input, const gpumem_export *from,
                               unsigned char bytes[MOST_BYTES]) {
    const gpumem_export_info info = info_of(from);
    size_t size = info.description_bytes;
    unsigned pick = draw8(input);
    if (pick >= 0xe0) {
        size = (size_t)draw8(input) * 2;
        draw_bytes(input, bytes, size);
        return size;
    }
    memcpy(bytes, info.description, size);
    for (unsigned i = 0; i < (pick & 7); i++) {
        size_t at = draw8(input) % size;
        if (pick & 0x80)
            bytes[at] = draw8(input);
        else if (at + 8 <= size) {
            /* Whole fields, by which sums and counts stay believable. */
            uint64_t value = (uint64_t)draw8(input) * 2 * MIB;
            memcpy(bytes + at / 8 * 8, &value, sizeof value);
        }
    }
    if (pick & 0x40)
        size = size + draw8(input) % 17 - 8;
    return size;
}

/* A file that looks like exported memory, with another trailer than softgpu writes. */
static int craft(struct input *input) {
    unsigned char trailer[TRAILER];
    struct stat status;
    int genuine = first_of(exports[0]);
    require(fstat(genuine, &status) == 0 && status.st_size > TRAILER_PAGE &&
                pread(genuine, trailer, sizeof trailer, status.st_size - TRAILER_PAGE) ==
                    (ssize_t)sizeof trailer,
            "no trailer");
    unsigned pick = draw8(input);
    for (unsigned i = 0; i < (pick & 3); i++)
        trailer[draw8(input) % sizeof trailer] = draw8(input);
    off_t size = status.st_size;
    if (pick >= 0x80) {
        uint64_t bytes = pick >= 0xc0 ? draw64(input) & INT64_MAX : draw8(input) * 2 * MIB;
        memcpy(trailer + 24, &bytes, sizeof bytes); /* the size that it speaks of */
        size = (off_t)((bytes + (uint64_t)TRAILER_PAGE) & INT64_MAX);
    }
    int fd = memfd_create("crafted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fd >= 0, "no memory file");
    if (ftruncate(fd, size) == 0 && size >= TRAILER_PAGE &&
        pwrite(fd, trailer, sizeof trailer, size - TRAILER_PAGE) == (ssize_t)sizeof trailer)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return fd;
}

static size_t draw_descriptors(struct input *input, const gpumem_export *from, int fds[DESCRIPTORS],
                               int *crafted) {
    const gpumem_export_info info = info_of(from);
    size_t count = info.descriptor_count;
    for (size_t i = 0; i < count; i++)
        fds[i] = info.descriptors[i];
    unsigned pick = draw8(input);
    if (pick & 0x80)
        count = pick % DESCRIPTORS;
    for (unsigned i = 0; i < (pick >> 4 & 7); i++) {
        unsigned at = draw8(input) % DESCRIPTORS, which = draw8(input);
        if (which < 0x40)
            fds[at] = foreign[which % 5];
        else if (which < 0x80)
            fds[at] = *crafted = *crafted < 0 ? craft(input) : *crafted;
        else if (which < 0xf0)
            fds[at] = first_of(exports[which % EXPORTS]);
        else
            fds[at] = which & 1 ? -1 : 100000;
    }
    return count;
}

/* What was imported is used, for it must be there. */
static void use(gpumem_buffer *buffer) {
    unsigned char bytes[64];
    size_t held = gpumem_buffer_size(buffer);
    size_t size = held < sizeof bytes ? held : sizeof bytes;
    (void)gpumem_buffer_read(buffer, held - size, bytes, size, NULL);
}

/* Calls that take something. What the driver refuses to take back stays, by design. */
static const char *const acquiring[] = {"cuMemImportFromShareableHandle",
                                        "cuMemGetAllocationPropertiesFromHandle",
                                        "cuMemAddressReserve",
                                        "cuMemMap",
                                        "cuMemSetAccess",
                                        "cuCtxPushCurrent_v2"};
#define ACQUIRING (sizeof acquiring / sizeof acquiring[0])

/* Refused, it is what it was; else it has grown, and never moved. */
static void try_growth(struct input *input, gpumem_buffer *buffer) {
    unsigned char bytes[MOST_BYTES];
    int fds[DESCRIPTORS], crafted = -1;
    for (unsigned i = 0; i < DESCRIPTORS; i++)
        fds[i] = -1;
    const gpumem_export *from = exports[draw8(input) % EXPORTS];
    size_t size = draw_description(input, from, bytes);
    size_t count = draw_descriptors(input, from, fds, &crafted), first = draw8(input) % 3;
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    size_t before = gpumem_buffer_size(buffer), chunks = chunks_of(buffer);
    count = count > first ? count - first : 0;
    unsigned char *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    gpumem_status status = gpumem_import_extend(buffer, exact, size, fds + first, count, NULL);
    free(exact);
    soft->fault_disarm();
    if (crafted >= 0)
        close(crafted);
    require(gpumem_buffer_pointer(buffer) == address, "growth has moved the buffer");
    require(status == GPUMEM_OK
                ? gpumem_buffer_size(buffer) >= before
                : gpumem_buffer_size(buffer) == before && chunks_of(buffer) == chunks,
            "a size that is neither");
}

static void try_import(struct input *input) {
    unsigned char bytes[MOST_BYTES];
    int fds[DESCRIPTORS], crafted = -1;
    for (unsigned i = 0; i < DESCRIPTORS; i++)
        fds[i] = -1;
    const gpumem_export *from = exports[draw8(input) % EXPORTS];
    size_t size = draw_description(input, from, bytes);
    size_t count = draw_descriptors(input, from, fds, &crafted);
    gpumem_share_options options = {.size = sizeof options};
    unsigned pick = draw8(input);
    if (pick & 1)
        options.access = (gpumem_access)(pick >> 1 & 3);
    if (pick & 0x40)
        options.maximum_bytes = (size_t)draw32(input);
    if (pick & 0x10)
        options.capacity = 16 * MIB;
    if (pick & 0x80)
        soft->fault_arm(acquiring[draw8(input) % ACQUIRING], 1u + draw8(input) % 4u,
                        CUDA_ERROR_OUT_OF_MEMORY,
                        pick & 0x20 ? SOFTGPU_FAULT_AFTER : SOFTGPU_FAULT_BEFORE);
    gpumem_buffer *buffer = NULL;
    /* A copy of the exact size, so that reading one byte too many shows. */
    unsigned char *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    gpumem_status status = gpumem_import_create(device, exact, size, fds, count, &options, &buffer);
    free(exact);
    soft->fault_disarm();
    if (crafted >= 0)
        close(crafted);
    require((status == GPUMEM_OK) == (buffer != NULL), "an output without a success");
    if (buffer && pick & 0x10) {
        if (pick & 8)
            soft->fault_arm(acquiring[draw8(input) % ACQUIRING], 1u + draw8(input) % 4u,
                            CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
        try_growth(input, buffer);
    }
    if (buffer) {
        use(buffer);
        require(gpumem_buffer_free(buffer, NULL) == GPUMEM_OK, "it cannot be freed");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, data + size};
    if (!library) {
        begin();
        /* Of zeros: what was exported is imported as it is. */
        struct input zeros = {NULL, NULL};
        try_import(&zeros);
        state_at_start = soft->state_dump();
        descriptors_at_start = count_descriptors(0);
    }
    try_import(&input);
    char *state = soft->state_dump();
    unsigned descriptors = count_descriptors(0);
    if (strcmp(state, state_at_start) != 0) {
        fprintf(stderr, "-- at the start:\n%s-- now:\n%s", state_at_start, state);
        require(false, "softgpu's state is not as at the start");
    }
    if (descriptors != descriptors_at_start)
        count_descriptors(1);
    require(descriptors == descriptors_at_start, "descriptors are left open");
    soft->free_text(state);
    return 0;
}
