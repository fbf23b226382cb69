/*
 * Sharing buffers and events with other processes, without a copy.
 *
 * The owner makes an export and sends it over a Unix socket; the other process receives it. Memory
 * of virtual resources is mapped there in a reservation of its own, in the same layout; memory of
 * the driver's pools and events are opened there. What crosses the socket is not trusted.
 *
 * Mapped memory can grow while it is shared. The owner grows its buffer and takes that into the
 * export (gpumem_export_update); an importer that received it with a capacity asks for what is new
 * when it wants it (gpumem_import_update), and keeps its address; the owner answers
 * (gpumem_export_answer). Nothing ever changes in an importer without its asking.
 *
 * After PEER a connection is of no more use, since the other side may be in the middle of
 * something; after every other answer it can be used again.
 *
 * docs/sharing.md has it step by step. gpumem/connect.h makes the sockets.
 */
#ifndef GPUMEM_SHARE_H
#define GPUMEM_SHARE_H

#include <gpumem/buffer.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_export gpumem_export;

/* ---- The owner ------------------------------------------------------------------------------- */

/*
 * The buffer as it is now: memory of a virtual resource, or of a driver's pool with `ipc` (device
 * or pinned), also through the library's wrappers. Until the export is detached or destroyed the
 * buffer cannot shrink, and freeing it takes effect afterwards. The caller destroys it. Needs one
 * descriptor for each handle, or one for a pool's buffer. NOT_SUPPORTED: the buffer's resource
 * cannot (properties.exportable; a pool without ipc, or with a fabric handle), or it is itself
 * imported. SYSTEM: descriptor limit. May block: 0.9 ms a handle, far more for handles of 1 GiB.
 * Thread-safe, but not beside a growth of the same buffer. Driver: cuMemExportToShareableHandle;
 * for pools cuMemPoolExportToShareableHandle, cuMemPoolExportPointer.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_create(gpumem_buffer *buffer,
                                                                gpumem_export **exported);

/*
 * An event of `device`, made with gpumem_event_create and `interprocess`: streams of the other
 * process can wait for what is recorded here, and the other way round. It stays the caller's, and
 * must live until the importers have destroyed theirs, as the driver demands. One of another device
 * ends the process within NVIDIA's driver (seen on two H200s). DRIVER: an event made otherwise.
 * Does not block. Driver: cuIpcGetEventHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_create_event(gpumem_device *device,
                                                                      CUevent event,
                                                                      gpumem_export **exported);

/*
 * Takes in what the buffer has grown since the export was made or updated. Whole or nothing: on
 * failure the export is as it was. Importers hear of it when they ask; what they have stays. Does
 * nothing for events and memory of pools. INVALID_ARGUMENT: detached. Errors and blocking as
 * create, for the handles that are new. Thread-safe beside sends and answers, not beside a growth
 * of the same buffer; pointers to the description are stale afterwards.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_update(gpumem_export *exported);

/*
 * Ends the sharing from the owner's side, and lets the buffer shrink, move and end again. The
 * descriptors are closed; the object stays, to tell importers that ask, and is still to be
 * destroyed. What this promises, and what it does not:
 *
 * - Nothing is taken from anybody. What importers have mapped stays mapped, readable and writable,
 *   until they free it, or their processes end; the owner cannot revoke it or see that it is over.
 * - As long as the owner keeps a chunk, it is the same memory on both sides. What it gives up by a
 *   shrink, a decommit or its end is the importers' alone from then on.
 * - The device gets such memory back when the last importer has let go, not before.
 * - New memory that the owner grows into afterwards is never what an importer still maps.
 * - An importer's update is refused from here on, and leaves its import as it is. The owner exports
 *   anew, and the importer receives a new buffer, at another address. Where nothing was given back
 *   in between (the buffer only grew), the former import can be updated from the new export.
 *
 * BUSY: another thread is just sending it. NOT_SUPPORTED: events and memory of pools, which the
 * driver wants kept until their importers have let go. Does not block. No driver call.
 */
GPUMEM_API gpumem_status gpumem_export_detach(gpumem_export *exported);

/* Closes its descriptors and lets the buffer go; NULL is allowed. What was imported elsewhere
 * stays, as after detach; memory of pools and events must not be given up before their importers
 * have let go. Not while another thread sends or answers. */
GPUMEM_API gpumem_status gpumem_export_destroy(gpumem_export *exported);

/* Bytes of the buffer when it was exported or updated, 0 for an event; and number of descriptors, 0
 * once it is detached. Cannot fail. */
GPUMEM_API size_t gpumem_export_size(const gpumem_export *exported);
GPUMEM_API size_t gpumem_export_descriptor_count(const gpumem_export *exported);

/*
 * What an importer needs, for programs that have a transport of their own: a description of some
 * bytes, valid until the export is updated or destroyed, and the descriptors, which stay the
 * export's. For an importer that has the first n handles, the descriptors from n on are enough
 * (gpumem_import_extend). INVALID_ARGUMENT: detached. SYSTEM with EBADF, here and when sending, for
 * a descriptor that somebody else has closed.
 */
GPUMEM_API gpumem_status gpumem_export_get_description(const gpumem_export *exported,
                                                       const void **description, size_t *bytes);
GPUMEM_API gpumem_status gpumem_export_get_descriptor(const gpumem_export *exported, size_t index,
                                                      int *fd);

typedef struct gpumem_share_options {
    size_t size;
    int timeout_ms;       /* for all waits on the other side together; 0: 30 s; negative: none */
    gpumem_access access; /* import: what is asked for, READ_WRITE or READ; of a pool READ_WRITE */
    size_t maximum_bytes; /* import, update: refuse more than this in all with DATA; 0: the device's
                             memory */
    size_t capacity;      /* import: addresses to reserve for growth, rounded up to the granularity;
                             0: it does not grow. Costs address space alone */
} gpumem_share_options;
#define GPUMEM_SHARE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_share_options, __VA_ARGS__)

/*
 * Sends over a connected Unix socket (stream or seqpacket), at most 253 descriptors a message, and
 * waits for the answer. OK: the other side has mapped it. PEER: it is gone, was not done within the
 * timeout, speaks another protocol, or refused (the message says why). INVALID_ARGUMENT: detached.
 * The socket stays open and can be used again after OK. One send or answer at a time per socket.
 * Thread-safe. Blocks. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_send(gpumem_export *exported, int socket,
                                                              const gpumem_share_options *options);

/*
 * Waits for an importer to ask what is new, and answers: with the handles that it does not have, or
 * that there are none. To be called when `socket` can be read (poll). OK: the importer has all that
 * the export has. PEER: as send; also when the importer has closed the connection or asks nothing.
 * DATA: it asks for the growth of what was never exported so, or of what the owner has given back
 * since: it was told that it has to import anew. INVALID_ARGUMENT: detached, and the importer was
 * told; or an event or memory of a pool. The rest as send.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_export_answer(gpumem_export *exported, int socket, const gpumem_share_options *options);

/* ---- The importer ---------------------------------------------------------------------------- */

/*
 * Receives memory that gpumem_export_send sends and maps it on `device`, which must be the same
 * physical device. The result is a buffer (no resource), freed like any other. Without a capacity
 * it stays as large as it is, and the same export received again from the same process gives the
 * same address, and is mapped once: who sends is asked of the kernel (SO_PASSCRED, for the time of
 * the call; where it does not say, each is mapped anew). With a capacity it is mapped by itself and
 * grows by gpumem_import_update. PEER: gone, not done within the timeout, or another protocol.
 * DATA: what it sent is no description of memory, names one memory twice, is an event, or more than
 * `maximum_bytes`. NO_DEVICE: memory of another device. NOT_SUPPORTED: a capacity or READ for
 * memory of a pool. Nothing is left behind on failure, and the sender is told. Blocks. Driver:
 * cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap, cuMemSetAccess; for pools
 * cuMemPoolImportFromShareableHandle, cuMemPoolImportPointer.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_receive(
    gpumem_device *device, int socket, const gpumem_share_options *options, gpumem_buffer **buffer);

/* The same from a description and descriptors that came another way; those stay the caller's. Each
 * call maps anew: who exported is not known. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_import_create(gpumem_device *device, const void *description, size_t description_bytes,
                     const int *descriptors, size_t descriptor_count,
                     const gpumem_share_options *options, gpumem_buffer **buffer);

/*
 * Asks the exporter for what its buffer has grown, over the connection that the import came over,
 * and maps that behind the rest: the address stays, gpumem_buffer_size is the new one, rights are
 * those of the import. OK also when there was nothing new. Of the options timeout_ms and
 * maximum_bytes count. Whole or nothing: on failure the import is as it was, and the exporter is
 * told. OUT_OF_CAPACITY: it has grown beyond the capacity. DATA: more than maximum_bytes, what was
 * sent is no growth of this memory (it shrinks, repeats, overlaps or contradicts what was sent
 * before), or another process sent it. PEER: as receive; also when the exporter refuses, since it
 * has detached the export or given memory back: import anew. INVALID_ARGUMENT: an import without
 * capacity, or another socket. Not thread-safe with other calls on this buffer. Blocks. Driver:
 * cuMemImportFromShareableHandle, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_import_update(gpumem_buffer *buffer, int socket, const gpumem_share_options *options);

/* The same by another way: the description of the whole buffer as it is now, and the descriptors of
 * the handles that the import does not have. The caller knows that they come from the exporter. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_extend(
    gpumem_buffer *buffer, const void *description, size_t description_bytes,
    const int *descriptors, size_t descriptor_count, const gpumem_share_options *options);

/*
 * Receives an event. It is the caller's, who destroys it (gpumem_event_destroy), before the
 * exporter destroys its own; until then streams wait for it (gpumem_stream_wait_event), and it can
 * be recorded here too. Not in the process that made it (DRIVER). DATA: something else was sent, or
 * no event can be opened by it. Otherwise as receive. Driver: cuIpcOpenEventHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_receive_event(
    gpumem_device *device, int socket, const gpumem_share_options *options, CUevent *event);

/* The same from a description that came another way. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_create_event(gpumem_device *device,
                                                                      const void *description,
                                                                      size_t description_bytes,
                                                                      CUevent *event);

#ifdef __cplusplus
}
#endif

#endif
