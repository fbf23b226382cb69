#include "softgpu/address/epoch.h"
#include "softgpu/address/memfile.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/address/window.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Releases a segment's addresses when running work no longer uses them. */
struct sg_segment_end {
    struct sg_retired retired;
    CUdeviceptr address;
    size_t size;
};

/* Where the device finds the bytes: for host memory, at the application's own address, so that a
 * ThreadSanitizer in the application sees softgpu's accesses. */
static unsigned char *place_of(const struct sg_segment *segment) {
    if (segment->phys->device >= 0)
        return segment->phys->host;
    return (unsigned char *)(uintptr_t)segment->address;
}

CUresult sg_segment_map(struct sg_phys *phys, unsigned rights_devices, struct sg_segment *segment) {
    struct sg_segment made = {.size = phys->size, .phys = phys};
    made.end = malloc(sizeof *made.end);
    if (!made.end)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_addresses_take(made.size, SG_PAGE, 0, &made.address);
    if (result != CUDA_SUCCESS) {
        free(made.end);
        return result;
    }
    if (phys->device < 0 &&
        !sg_view_map_at(phys->host, place_of(&made), made.size, PROT_READ | PROT_WRITE)) {
        sg_addresses_give(made.address, made.size);
        free(made.end);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_table_map(made.address, made.size, place_of(&made), sg_rights_of_mask(rights_devices));
    sg_phys_ref(phys);
    *segment = made;
    return CUDA_SUCCESS;
}

static void end_host(struct sg_retired *retired) {
    struct sg_segment_end *end = (struct sg_segment_end *)retired;
    sg_addresses_clear((unsigned char *)(uintptr_t)end->address, end->size);
    sg_addresses_give(end->address, end->size);
    free(end);
}

void sg_segment_unmap(struct sg_segment *segment) {
    sg_table_unmap(segment->address, segment->size);
    if (segment->phys->device < 0) {
        segment->end->address = segment->address;
        segment->end->size = segment->size;
        sg_retire(&segment->end->retired, end_host);
    } else {
        sg_addresses_give(segment->address, segment->size);
        free(segment->end);
    }
    sg_phys_unref(segment->phys);
    segment->phys = NULL;
}
