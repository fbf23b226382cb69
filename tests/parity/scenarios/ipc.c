/* Legacy inter-process handles, pools and pool pointers, events: here and in another process. */
#include "../parity.h"

SCENARIO(handle_of, "ipc/handle-of", par_context) {
    CUipcMemHandle handle, again;
    CUdeviceptr p, q;
    p = par_alloc(PAR_2M);
    CALLO(cuIpcGetMemHandle, "ok", (&handle, p), OUT_C(handle));
    CALLO(cuIpcGetMemHandle, "again", (&again, p), OUT_C(again));
    par_see("same-handle", memcmp(&handle, &again, sizeof(handle)) == 0 ? "yes" : "no");
    CALLO(cuIpcGetMemHandle, "interior", (&again, p + 512), OUT_C(again));
    par_see("same-handle", memcmp(&handle, &again, sizeof(handle)) == 0 ? "yes" : "no");
    CALLO(cuIpcGetMemHandle, "small-allocation", (&handle, par_alloc(100)), OUT_C(handle));
    CALL(cuIpcGetMemHandle, "null-out", (NULL, p));
    CALLO(cuIpcGetMemHandle, "null", (&handle, 0), OUT_C(handle));
    CALLO(cuIpcGetMemHandle, "random", (&handle, 0x1000), OUT_C(handle));
    CALLO(cuIpcGetMemHandle, "mapped", (&handle, par_mapped(PAR_2M)), OUT_C(handle));
    CALLO(cuIpcGetMemHandle, "pinned", (&handle, (CUdeviceptr)(uintptr_t)par_pinned(4096)),
          OUT_C(handle));
    SETUP(cuMemAllocAsync, (&q, PAR_2M, NULL));
    CALLO(cuIpcGetMemHandle, "pool", (&handle, q), OUT_C(handle));
    SETUP(cuMemFree_v2, (p));
    CALLO(cuIpcGetMemHandle, "freed", (&handle, p), OUT_C(handle));
}

SCENARIO(open_here, "ipc/open-here", par_context) {
    CUipcMemHandle handle, zero;
    CUdeviceptr p, opened;
    p = par_alloc(PAR_2M);
    memset(&zero, 0, sizeof(zero));
    SETUP(cuIpcGetMemHandle, (&handle, p));
    CALLO(cuIpcOpenMemHandle_v2, "same-process", (&opened, handle, 1), OUT_P(opened));
    CALLO(cuIpcOpenMemHandle_v2, "flags-zero", (&opened, handle, 0), OUT_P(opened));
    CALLO(cuIpcOpenMemHandle_v2, "bad-flags", (&opened, handle, 2), OUT_P(opened));
    CALL(cuIpcOpenMemHandle_v2, "null-out", (NULL, handle, 1));
    CALLO(cuIpcOpenMemHandle_v2, "zero-handle", (&opened, zero, 1), OUT_P(opened));
    CALLO(cuIpcOpenMemHandle, "same-process", (&opened, handle, 1), OUT_P(opened));
    CALL(cuIpcCloseMemHandle, "not-opened", (p));
    CALL(cuIpcCloseMemHandle, "null", (0));
    CALL(cuIpcCloseMemHandle, "random", (0x1000));
}

SCENARIO(garbage_handle, "ipc/garbage-handle", par_context) {
    CUipcMemHandle garbage;
    CUdeviceptr opened;
    memset(&garbage, 0x5c, sizeof(garbage));
    CALLO(cuIpcOpenMemHandle_v2, "garbage-handle", (&opened, garbage, 1), OUT_P(opened));
}

SCENARIO(memory_to_peer, "ipc/memory-to-peer") {
    unsigned word = 0;
    char answer;
    int peer = par_spawn("ipc-memory");
    par_context();
    CUdeviceptr p = par_alloc(2 * PAR_2M);
    SETUP(cuMemsetD32_v2, (p, 0x0a0b0c0d, 2 * PAR_2M / 4));
    CUipcMemHandle handle = PAR_MADE(CUipcMemHandle, cuIpcGetMemHandle, p);
    SETUP(cuCtxSynchronize, ());
    par_send(peer, &handle, sizeof(handle), -1);
    par_receive(peer, &answer, 1, NULL);
    CALL(cuMemcpyDtoH_v2, "written-by-peer", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemFree_v2, "opened-by-peer", (p));
    par_send(peer, "f", 1, -1);
    par_join();
}

HELPER(helper_memory, "ipc-memory") {
    CUipcMemHandle handle;
    CUdeviceptr p, q, base;
    size_t size;
    unsigned word = 0, mine = 0x77665544;
    char byte;
    par_record_start("ipc/memory-to-peer:peer");
    par_context();
    if (!par_receive(par.peer_fd, &handle, sizeof(handle), NULL))
        return;
    CALLO(cuIpcOpenMemHandle_v2, "other-process", (&p, handle, 1), OUT_R(p, 2 * PAR_2M));
    CALLO(cuIpcOpenMemHandle_v2, "twice", (&q, handle, 1), OUT_P(q));
    CALLO(cuMemGetAddressRange_v2, "imported", (&base, &size, p + 4), OUT_P(base), OUT_U(size));
    CALL(cuMemcpyDtoH_v2, "imported", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuMemcpyHtoD_v2, "imported", (p, &mine, 4));
    CALL(cuMemFree_v2, "imported", (p));
    CALLO(cuIpcGetMemHandle, "imported", (&handle, p), OUT_C(handle));
    par_send(par.peer_fd, "w", 1, -1);
    if (par_receive(par.peer_fd, &byte, 1, NULL)) {
        CALL(cuMemcpyDtoH_v2, "exporter-freed", (&word, p, 4));
        par_see("content", "0x%08x", word);
        CALL(cuIpcCloseMemHandle, "interior", (p + 512));
        CALL(cuIpcCloseMemHandle, "first", (p));
        CALL(cuIpcCloseMemHandle, "second", (p));
        CALL(cuIpcCloseMemHandle, "third", (p));
    }
}

SCENARIO(event_handles, "ipc/event-handles", par_context) {
    CUevent e, plain, opened;
    CUipcEventHandle handle, zero;
    memset(&zero, 0, sizeof(zero));
    CALLO(cuEventCreate, "interprocess-with-timing", (&e, CU_EVENT_INTERPROCESS), OUT_H(e));
    CALLO(cuEventCreate, "interprocess", (&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
          OUT_H(e));
    SETUP(cuEventCreate, (&plain, CU_EVENT_DISABLE_TIMING));
    CALLO(cuIpcGetEventHandle, "ok", (&handle, e), OUT_C(handle));
    CALLO(cuIpcGetEventHandle, "not-interprocess", (&handle, plain), OUT_C(handle));
    CALL(cuIpcGetEventHandle, "null-out", (NULL, e));
    CALLO(cuIpcGetEventHandle, "null-event", (&handle, NULL), OUT_C(handle));
    SETUP(cuIpcGetEventHandle, (&handle, e));
    CALLO(cuIpcOpenEventHandle, "same-process", (&opened, handle), OUT_H(opened));
    CALLO(cuIpcOpenEventHandle, "zero-handle", (&opened, zero), OUT_H(opened));
    CALL(cuIpcOpenEventHandle, "null-out", (NULL, handle));
}

SCENARIO(event_to_peer, "ipc/event-to-peer") {
    char answer;
    int peer = par_spawn("ipc-event");
    par_context();
    CUstream s = par_stream();
    CUevent e = par_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    CUipcEventHandle handle = PAR_MADE(CUipcEventHandle, cuIpcGetEventHandle, e);
    par_send(peer, &handle, sizeof(handle), -1);
    par_receive(peer, &answer, 1, NULL); /* opened, queried unrecorded */
    par_hold(s);
    CALL(cuEventRecord, "held", (e, s));
    par_send(peer, "r", 1, -1);
    par_receive(peer, &answer, 1, NULL); /* queried while held */
    PAR_DRAIN("released", s);
    par_send(peer, "d", 1, -1);
    par_join();
    CALL(cuEventDestroy_v2, "after-peer", (e));
}

HELPER(helper_event, "ipc-event") {
    CUevent e;
    CUipcEventHandle handle;
    char byte;
    par_record_start("ipc/event-to-peer:peer");
    par_context();
    if (!par_receive(par.peer_fd, &handle, sizeof(handle), NULL))
        return;
    CALLO(cuIpcOpenEventHandle, "other-process", (&e, handle), OUT_H(e));
    CALL(cuEventQuery, "never-recorded", (e));
    par_send(par.peer_fd, "o", 1, -1);
    par_receive(par.peer_fd, &byte, 1, NULL);
    CALL(cuEventQuery, "held-by-exporter", (e));
    par_send(par.peer_fd, "q", 1, -1);
    par_receive(par.peer_fd, &byte, 1, NULL);
    CALL(cuEventSynchronize, "released-by-exporter", (e));
    CALL(cuEventQuery, "released-by-exporter", (e));
    CALL(cuEventRecord, "imported", (e, par_stream()));
    CALL(cuEventDestroy_v2, "imported", (e));
}

/* memory_to_peer with the wait that it lacks: a small copy from pageable memory returns before it
 * has reached the device, and no other process's call is ordered behind it. */
SCENARIO(memory_waited, "ipc/memory-waited") {
    unsigned word = 0;
    char answer;
    int peer = par_spawn("ipc-waited");
    par_context();
    CUdeviceptr p = par_alloc(PAR_2M);
    SETUP(cuMemsetD32_v2, (p, 0x0a0b0c0d, PAR_2M / 4));
    CUipcMemHandle handle = PAR_MADE(CUipcMemHandle, cuIpcGetMemHandle, p);
    SETUP(cuCtxSynchronize, ());
    par_send(peer, &handle, sizeof(handle), -1);
    par_receive(peer, &answer, 1, NULL);
    CALL(cuMemcpyDtoH_v2, "written-by-peer", (&word, p, 4));
    par_see("content", "0x%08x", word);
    par_send(peer, "r", 1, -1);
    par_join();
}

HELPER(helper_waited, "ipc-waited") {
    CUipcMemHandle handle;
    unsigned mine = 0x77665544;
    char byte;
    par_record_start("ipc/memory-waited:peer");
    par_context();
    if (!par_receive(par.peer_fd, &handle, sizeof(handle), NULL))
        return;
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuIpcOpenMemHandle_v2, handle, 1);
    CALL(cuMemcpyHtoD_v2, "imported", (p, &mine, 4));
    CALL(cuCtxSynchronize, "written", ());
    par_send(par.peer_fd, "w", 1, -1);
    par_receive(par.peer_fd, &byte, 1, NULL);
}

/* Handles of memory that its owner freed, and of memory that lies at the same address since. */
SCENARIO(stale_handles, "ipc/stale-handles") {
    CUipcMemHandle handles[2];
    char answer;
    int peer = par_spawn("ipc-stale");
    par_context();
    CUdeviceptr p = par_alloc(PAR_2M);
    SETUP(cuIpcGetMemHandle, (&handles[0], p));
    CUdeviceptr q = par_alloc(PAR_2M);
    SETUP(cuIpcGetMemHandle, (&handles[1], q));
    SETUP(cuMemFree_v2, (p));
    SETUP(cuCtxSynchronize, ());
    par_send(peer, handles, sizeof(handles), -1);
    par_receive(peer, &answer, 1, NULL);
    par_join();
}

HELPER(helper_stale, "ipc-stale") {
    CUipcMemHandle handles[2];
    CUdeviceptr p, q;
    par_record_start("ipc/stale-handles:peer");
    par_context();
    if (!par_receive(par.peer_fd, handles, sizeof(handles), NULL))
        return;
    CALLO(cuIpcOpenMemHandle_v2, "freed", (&p, handles[0], 1), OUT_C(p));
    CALLO(cuIpcOpenMemHandle_v2, "live", (&q, handles[1], 1), OUT_C(q));
    par_send(par.peer_fd, "d", 1, -1);
}

/* The exporter ends while the importer holds its memory and its event. */
SCENARIO(exporter_gone, "ipc/exporter-gone") {
    struct {
        CUipcMemHandle memory;
        CUipcEventHandle event;
    } m;
    CUdeviceptr p = 0, again;
    CUevent e = NULL;
    unsigned word = 0;
    int peer = par_spawn("ipc-exporter");
    par_context();
    if (!par_receive(peer, &m, sizeof(m), NULL))
        return;
    CALLO(cuIpcOpenMemHandle_v2, "exporter-alive", (&p, m.memory, 1), OUT_P(p));
    CALLO(cuIpcOpenEventHandle, "exporter-alive", (&e, m.event), OUT_H(e));
    par_send(peer, "e", 1, -1);
    par_join();
    CALL(cuMemcpyDtoH_v2, "exporter-gone", (&word, p, 4));
    par_see("content", "0x%08x", word);
    CALL(cuEventQuery, "exporter-gone", (e));
    CALLO(cuIpcOpenMemHandle_v2, "exporter-gone-open-again", (&again, m.memory, 1), OUT_P(again));
    CALL(cuIpcCloseMemHandle, "exporter-gone", (p));
    CALL(cuEventDestroy_v2, "exporter-gone", (e));
}

HELPER(helper_exporter, "ipc-exporter") {
    struct {
        CUipcMemHandle memory;
        CUipcEventHandle event;
    } m;
    char byte;
    par_context();
    CUdeviceptr p = par_alloc(PAR_2M);
    SETUP(cuMemsetD32_v2, (p, 0x0e0f0e0f, PAR_2M / 4));
    CUevent e = par_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    SETUP(cuCtxSynchronize, ());
    SETUP(cuIpcGetMemHandle, (&m.memory, p));
    SETUP(cuIpcGetEventHandle, (&m.event, e));
    par_send(par.peer_fd, &m, sizeof(m), -1);
    par_receive(par.peer_fd, &byte, 1, NULL);
}
