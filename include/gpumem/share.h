/*
 * Sharing buffers and events between processes, without a copy.
 *
 * The owner creates an export and sends it over a Unix socket; the other process receives it.
 * There, memory of virtual resources is mapped into a reservation of its own, in the same layout;
 * memory of the driver's pools, and events, are opened. Data from the socket is not trusted.
 *
 * Mapped memory can grow while it is shared. The owner grows its buffer and adds the growth to the
 * export (gpumem_export_update). An importer that received it with a capacity requests the growth
 * when it wants it (gpumem_import_update), at an unchanged address, and the owner answers
 * (gpumem_export_answer). Nothing ever changes in an importer that did not request it.
 *
 * After PEER a connection is unusable, because the other side may be in the middle of a message;
 * after any other result it can be used again.
 *
 * docs/sharing.md explains it step by step. gpumem/connect.h creates the sockets.
 */
#ifndef GPUMEM_SHARE_H
#define GPUMEM_SHARE_H

#include <gpumem/buffer.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer or an event that other processes may receive. */
typedef struct gpumem_export gpumem_export;

/* ---- The owner ------------------------------------------------------------------------------- */

/*
 * Exports the buffer as it is now: memory of a virtual resource, or of a driver's pool with `ipc`
 * (device or pinned), also through the library's wrappers. Until the export is detached or
 * destroyed the buffer cannot shrink, and a free takes effect only afterwards. The caller destroys
 * the export. It needs one descriptor per handle, or one for a pool's buffer. NOT_SUPPORTED: the
 * buffer's resource cannot export (properties.exportable; a pool without ipc, or with a fabric
 * handle), or the buffer is itself imported. SYSTEM: descriptor limit. May block: 0.9 ms per
 * handle, far more for handles of 1 GiB. Thread-safe, except with a concurrent growth of the same
 * buffer. Driver: cuMemExportToShareableHandle; for pools cuMemPoolExportToShareableHandle,
 * cuMemPoolExportPointer.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_create(gpumem_buffer *buffer,
                                                                gpumem_export **exported);

/*
 * Exports an event of `device`, made by gpumem_event_create with `interprocess`: streams of either
 * process can wait for what the other records. The event remains the caller's; the driver requires
 * that it live until the importers have destroyed theirs. With an event of another device, NVIDIA's
 * driver ends the process (seen on two H200s). DRIVER: an event made in any other way. Does not
 * block. Driver: cuIpcGetEventHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_create_event(gpumem_device *device,
                                                                      CUevent event,
                                                                      gpumem_export **exported);

/*
 * Adds the buffer's growth since the export was created or updated. All or nothing: on failure the
 * export is as before. Importers learn of it when they ask; their present mappings are kept. Does
 * nothing for events and memory of pools. INVALID_ARGUMENT: detached. Errors and blocking as
 * create, for the new handles. Thread-safe with concurrent sends and answers, but not with a growth
 * of the same buffer; invalidates pointers to the description.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_update(gpumem_export *exported);

/*
 * Ends the sharing on the owner's side, so that the buffer can shrink, move and be freed again. The
 * descriptors are closed; the object remains, to answer importers that ask, and must still be
 * destroyed. What this guarantees, and what it does not:
 *
 * - Nothing is taken from importers. Their mappings stay readable and writable until they free them
 *   or their processes end; the owner cannot revoke them or see when they end.
 * - While the owner keeps a chunk, it is the same memory on both sides. A chunk that it gives up by
 *   a shrink, a decommit or a free belongs to the importers alone from then on.
 * - The device gets such memory back only when the last importer has let go.
 * - Memory that the owner grows into afterwards is never memory that an importer still maps.
 * - From now on importers' updates are refused, and leave their imports unchanged. The owner
 *   exports again, and the importer receives a new buffer, at another address. If nothing was
 *   given back in between (the buffer only grew), the former import can be updated from the new
 *   export.
 *
 * BUSY: another thread is sending it. NOT_SUPPORTED: events and memory of pools, which the driver
 * requires to exist until their importers have let go. Does not block. No driver call.
 */
GPUMEM_API gpumem_status gpumem_export_detach(gpumem_export *exported);

/* Closes the descriptors and releases the buffer; NULL is allowed. Imports elsewhere remain, as
 * after detach; memory of pools, and events, must not be given up before their importers have let
 * go. Not while another thread sends or answers. */
GPUMEM_API gpumem_status gpumem_export_destroy(gpumem_export *exported);

/* An export, for programs with their own transport: what an importer needs. */
typedef struct gpumem_export_info {
    size_t size;
    size_t bytes;            /* of the buffer when it was exported or updated; 0 for an event */
    const void *description; /* valid until the export is updated or destroyed */
    size_t description_bytes;
    const int *descriptors; /* they and the array belong to the export; valid likewise */
    size_t descriptor_count;
} gpumem_export_info;

/*
 * Set `info->size` before the call. An importer that has the first n handles needs only the
 * descriptors from n on (gpumem_import_extend). Once detached there are only `bytes`. SYSTEM with
 * EBADF, here and when sending: a descriptor was closed by other code. No driver call.
 */
GPUMEM_API gpumem_status gpumem_export_get_info(const gpumem_export *exported,
                                                gpumem_export_info *info);

/* Options of exports and imports. */
typedef struct gpumem_share_options {
    size_t size;
    int timeout_ms;       /* for all waits on the other side together; 0: 30 s; negative: no
                           * timeout */
    gpumem_access access; /* import: READ_WRITE or READ; for a pool only READ_WRITE */
    size_t maximum_bytes; /* import, update: most in total, more is refused with DATA; 0: the
                             device's memory */
    size_t capacity;      /* import: address space to reserve for growth, rounded up to the
                             granularity; 0: no growth. Costs no memory */
} gpumem_share_options;
#define GPUMEM_SHARE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_share_options, __VA_ARGS__)

/*
 * Sends the export over a connected Unix socket (stream or seqpacket), at most 253 descriptors per
 * message, and waits for the answer. OK: the other side has mapped it. PEER: the other side is
 * gone, did not finish within the timeout, speaks another protocol, or refused (the message says
 * why). INVALID_ARGUMENT: detached. The socket stays open and can be used again after OK. One send
 * or answer at a time per socket. Thread-safe. Blocks. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_send(gpumem_export *exported, int socket,
                                                              const gpumem_share_options *options);

/*
 * Waits for an importer's request for growth and answers it with the handles that the importer does
 * not have, or that there are none. Call it when `socket` is readable (poll). OK: the importer has
 * everything in the export. PEER: as send; also if the importer has closed the connection or
 * requests nothing. DATA: it requests the growth of memory that was never exported in this form, or
 * that the owner has since given back; the importer is informed that it must import again.
 * INVALID_ARGUMENT: detached, of which the importer is informed; or an event or memory of a pool.
 * Otherwise as send.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_export_answer(gpumem_export *exported, int socket, const gpumem_share_options *options);

/* ---- The importer ---------------------------------------------------------------------------- */

/*
 * Receives memory sent by gpumem_export_send and maps it on `device`, which must be the same
 * physical device. The result is a buffer without a resource, freed like any other. Without a
 * capacity its size is fixed, and the same export received again from the same process has the same
 * address and is mapped only once; the kernel identifies the sender (SO_PASSCRED, during the call;
 * if it does not, each import is mapped separately). With a capacity it is always mapped separately
 * and grows by gpumem_import_update. PEER: the sender is gone, did not finish within the timeout,
 * or speaks another protocol. DATA: the data is not a description of memory, names the same memory
 * twice, is an event, or exceeds `maximum_bytes`. NO_DEVICE: memory of another device.
 * NOT_SUPPORTED: a capacity or READ for memory of a pool. On failure everything is undone and the
 * sender is informed. Blocks. Driver: cuMemImportFromShareableHandle, cuMemAddressReserve,
 * cuMemMap, cuMemSetAccess; for pools cuMemPoolImportFromShareableHandle, cuMemPoolImportPointer.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_receive(
    gpumem_device *device, int socket, const gpumem_share_options *options, gpumem_buffer **buffer);

/* The same from a description and descriptors that arrived by other means; the descriptors remain
 * the caller's. Each call maps the memory separately, because the exporter is not known. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_import_create(gpumem_device *device, const void *description, size_t description_bytes,
                     const int *descriptors, size_t descriptor_count,
                     const gpumem_share_options *options, gpumem_buffer **buffer);

/*
 * Requests the growth of the exporter's buffer, over the connection that the import came from, and
 * maps it after the rest: the address is unchanged, gpumem_buffer_size is the new size, access is
 * that of the import. OK also if there was no growth. Of the options only timeout_ms and
 * maximum_bytes are used. All or nothing: on failure the import is as before, and the exporter is
 * informed. OUT_OF_CAPACITY: the buffer has grown beyond the capacity. DATA: more than
 * maximum_bytes, or the data is not a growth of this memory (it shrinks, repeats, overlaps or
 * contradicts earlier data), or another process sent it. PEER: as receive; also if the exporter
 * refuses because it has detached the export or given memory back: import again. INVALID_ARGUMENT:
 * an import without capacity, or another socket. Not thread-safe with other calls on this buffer.
 * Blocks. Driver: cuMemImportFromShareableHandle, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_import_update(gpumem_buffer *buffer, int socket, const gpumem_share_options *options);

/* The same by other means: the description of the whole buffer as it is now, and the descriptors of
 * the handles that the import does not have. The caller must know that they come from the
 * exporter. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_extend(
    gpumem_buffer *buffer, const void *description, size_t description_bytes,
    const int *descriptors, size_t descriptor_count, const gpumem_share_options *options);

/*
 * Receives an event. The caller destroys it (gpumem_event_destroy) before the exporter destroys its
 * own; until then streams can wait for it (gpumem_stream_wait_event), and it can be recorded here
 * too. DRIVER: the event was made by this process. DATA: something else was sent, or it opens no
 * event. Otherwise as receive. Driver: cuIpcOpenEventHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_receive_event(
    gpumem_device *device, int socket, const gpumem_share_options *options, CUevent *event);

/* The same from a description that arrived by other means. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_create_event(gpumem_device *device,
                                                                      const void *description,
                                                                      size_t description_bytes,
                                                                      CUevent *event);

#ifdef __cplusplus
}
#endif

#endif
