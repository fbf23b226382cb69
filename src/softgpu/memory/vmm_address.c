/* Reservations of device addresses. */
#include "softgpu/address/window.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/site.h"
#include "softgpu/memory/vmm.h"

#include <stdlib.h>

static struct sg_tree reservations;

static struct sg_reservation *of_node(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct sg_reservation, node);
}

bool sg_page_aligned(CUdeviceptr address, size_t size) {
    return size != 0 && ((address | size) & (SG_PAGE - 1)) == 0;
}

struct sg_reservation *sg_reservation_at(CUdeviceptr address) {
    struct sg_reservation *found = of_node(sg_tree_at_most(&reservations, address));
    return found && address - found->node.key < found->size ? found : NULL;
}

bool sg_reserved(CUdeviceptr address, size_t size) {
    CUdeviceptr at = address, end = address + size;
    while (at < end) {
        struct sg_reservation *found = sg_reservation_at(at);
        if (!found)
            return false;
        at = found->node.key + found->size;
    }
    return end >= address;
}

struct sg_reservation *sg_reservation_next(struct sg_reservation *reservation) {
    return of_node(reservation ? sg_tree_next(&reservation->node)
                               : sg_tree_at_least(&reservations, 0));
}

CUresult sg_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                unsigned long long flags) {
    bool power = (alignment & (alignment - 1)) == 0;
    if (!ptr || !sg_page_aligned(addr, size) || !power || alignment > (size_t)1 << 62 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_reservation *made = malloc(sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr address;
    CUresult result =
        sg_addresses_take(size, alignment > SG_PAGE ? alignment : SG_PAGE, addr, &address);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    made->node.key = address;
    made->size = size;
    made->origin = sg_origin_here();
    sg_tree_insert(&reservations, &made->node);
    *ptr = address;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    struct sg_reservation *found = sg_reservation_at(ptr);
    if (!found || found->node.key != ptr || found->size != size || sg_mapping_first(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    sg_tree_remove(&reservations, &found->node);
    sg_addresses_give(ptr, size);
    free(found);
    return CUDA_SUCCESS;
}
