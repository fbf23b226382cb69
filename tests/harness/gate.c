#include "gate.h"

#include "test.h"

#define GATE_LIMIT 64

static const gpumem_driver_api *cu;
/* Gates that exist: a test that fails must not leave the next one waiting behind its gate. */
static uint32_t *live[GATE_LIMIT];

#define OK_CU(call) assert_int_equal((call), CUDA_SUCCESS)

void gate_use(const gpumem_driver_api *driver) {
    cu = driver;
}

static void exchange(uint32_t *from, uint32_t *to) {
    for (size_t i = 0; i < GATE_LIMIT; i++)
        if (live[i] == from) {
            live[i] = to;
            return;
        }
}

void gate_make(struct gate *gate) {
    void *memory = NULL;
    OK_CU(cu->cuMemHostAlloc(&memory, sizeof *gate->flag,
                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    *gate = (struct gate){.flag = memory};
    exchange(NULL, gate->flag);
    __atomic_store_n(gate->flag, 0, __ATOMIC_RELEASE);
}

void gate_hold(struct gate *gate, CUstream stream) {
    CUdeviceptr address;
    __atomic_store_n(gate->flag, 0, __ATOMIC_RELEASE);
    OK_CU(cu->cuMemHostGetDevicePointer_v2(&address, gate->flag, 0));
    OK_CU(cu->cuStreamWaitValue32_v2(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ));
}

void gate_release(struct gate *gate) {
    __atomic_store_n(gate->flag, 1, __ATOMIC_RELEASE);
}

void gate_free(struct gate *gate) {
    gate_release(gate);
    exchange(gate->flag, NULL);
    OK_CU(cu->cuMemFreeHost(gate->flag));
    gate->flag = NULL;
}

bool gate_release_all(void) {
    bool closed = false;
    for (size_t i = 0; i < GATE_LIMIT; i++)
        if (live[i])
            closed |= __atomic_exchange_n(live[i], 1, __ATOMIC_ACQ_REL) == 0;
    return closed;
}
