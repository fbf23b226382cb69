/*
 * Sharing a buffer with another process, without a copy.
 *
 * The owner makes an export, which holds a file descriptor for each physical handle, and sends it
 * over a Unix socket. The other process receives it and maps the same memory in a reservation of
 * its own, in the same layout. Either side may go first: memory lives until both have let go. What
 * crosses the socket is not trusted.
 */
#ifndef GPUMEM_SHARE_H
#define GPUMEM_SHARE_H

#include <gpumem/buffer.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_export gpumem_export;

/*
 * The buffer as it is now; what it grows later is not part of it. Until the export is destroyed the
 * buffer cannot shrink, and freeing it takes effect afterwards. The caller destroys it. Needs one
 * descriptor for each handle. NOT_SUPPORTED: the buffer's resource cannot (properties.exportable),
 * or it is itself imported. SYSTEM: descriptor limit. May block: 0.9 ms a handle, far more for
 * handles of 1 GiB. Thread-safe, but not beside a growth of the same buffer. Driver:
 * cuMemExportToShareableHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_create(gpumem_buffer *buffer,
                                                                gpumem_export **exported);
/* Closes its descriptors; NULL is allowed. What was imported elsewhere stays. */
GPUMEM_API gpumem_status gpumem_export_destroy(gpumem_export *exported);

/* Bytes of the buffer when it was exported, and number of descriptors. Cannot fail. */
GPUMEM_API size_t gpumem_export_size(const gpumem_export *exported);
GPUMEM_API size_t gpumem_export_descriptor_count(const gpumem_export *exported);

/*
 * What an importer needs, for programs that have a transport of their own: a description of some
 * bytes, valid until the export is destroyed, and the descriptors, which stay the export's. SYSTEM
 * with EBADF, here and when sending, for a descriptor that somebody else has closed.
 */
GPUMEM_API gpumem_status gpumem_export_get_description(const gpumem_export *exported,
                                                       const void **description, size_t *bytes);
GPUMEM_API gpumem_status gpumem_export_get_descriptor(const gpumem_export *exported, size_t index,
                                                      int *fd);

typedef struct gpumem_share_options {
    size_t size;
    int timeout_ms;       /* for all waits on the other side together; 0: 30 s; negative: none */
    gpumem_access access; /* import: what is asked for, READ_WRITE or READ */
    size_t maximum_bytes; /* import: refuse more than this with DATA; 0: the device's memory */
} gpumem_share_options;
#define GPUMEM_SHARE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_share_options, __VA_ARGS__)

/*
 * Sends over a connected Unix socket (stream or seqpacket), at most 253 descriptors a message, and
 * waits for the answer. OK: the other side has mapped it. PEER: it is gone, was not done within the
 * timeout, speaks another protocol, or refused (the message says why). The socket stays open and
 * can be used again after OK. One send at a time per socket. Blocks. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_export_send(gpumem_export *exported, int socket,
                                                              const gpumem_share_options *options);

/*
 * Receives what gpumem_export_send sends and maps it on `device`, which must be the same physical
 * device. The result is a buffer (no resource, cannot grow), freed like any other. The same export
 * received again from the same process gives the same address, and is mapped once: who sends is
 * asked of the kernel (SO_PASSCRED, for the time of the call; where it does not say, each is mapped
 * anew). PEER: gone, not done within the timeout, or another protocol. DATA: what it sent is no
 * description of memory, or more than `maximum_bytes`. NO_DEVICE: memory of another device. Nothing
 * is left behind on failure, and the sender is told. Blocks. Driver:
 * cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_import_receive(
    gpumem_device *device, int socket, const gpumem_share_options *options, gpumem_buffer **buffer);

/* The same from a description and descriptors that came another way; those stay the caller's. Each
 * call maps anew: who exported is not known. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_import_create(gpumem_device *device, const void *description, size_t description_bytes,
                     const int *descriptors, size_t descriptor_count,
                     const gpumem_share_options *options, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
