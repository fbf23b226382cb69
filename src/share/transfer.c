/* Exports over a socket: the public calls of both sides. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "share/import.h"
#include "share/protocol.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- The exporter ---------------------------------------------------------------------------- */

gpumem_status gpumem_export_send(gpumem_export *exported, int socket,
                                 const gpumem_share_options *given) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_export_send: socket is %d", socket);
    gpumem_share_options options;
    struct gm_outgoing out;
    GM_CHECK(exported, "gpumem_export_send");
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status == GPUMEM_OK)
        status = gm_export_take(exported, 0, &out);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    status = gm_send_offer(&out, socket, &deadline);
    gm_export_put(exported, &out);
    return status;
}

/* ---- The importer ---------------------------------------------------------------------------- */

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static gpumem_status receive_and_map(gpumem_device *device, int socket,
                                     const struct gm_deadline *deadline,
                                     const struct gm_incoming *incoming,
                                     const struct gm_import_terms *terms, gpumem_buffer **buffer) {
    size_t count = gm_incoming_descriptors(incoming);
    int *fds = malloc(count * sizeof *fds);
    if (!fds)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu descriptors", count);
    struct gm_peer peer;
    gpumem_status status = gm_ask_for_descriptors(socket, deadline, fds, count, &peer);
    if (status == GPUMEM_OK) {
        struct gm_import_terms known = *terms;
        known.peer = &peer;
        status = gm_incoming_map(device, incoming, fds, &known, buffer);
        close_all(fds, count);
    }
    free(fds);
    return status;
}

static gpumem_status receive(gpumem_device *device, int socket, const gpumem_share_options *options,
                             const struct gm_deadline *deadline, const void *description,
                             size_t bytes, gpumem_buffer **buffer) {
    struct gm_incoming incoming;
    struct gm_import_terms terms = {.access = options->access, .capacity = options->capacity};
    gpumem_status status =
        gm_incoming_read(device, description, bytes, options->maximum_bytes, &incoming);
    if (status == GPUMEM_OK)
        status = gm_connection_of(socket, &terms.connection);
    if (status != GPUMEM_OK)
        return status;
    return receive_and_map(device, socket, deadline, &incoming, &terms, buffer);
}

gpumem_status gpumem_import_receive(gpumem_device *device, int socket,
                                    const gpumem_share_options *given, gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_import_receive: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(device, "gpumem_import_receive");
    GM_REQUIRE(buffer, "gpumem_import_receive: buffer is NULL");
    gpumem_status status = gm_share_options(device, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    void *description = NULL;
    size_t bytes = 0;
    gpumem_buffer *made = NULL;
    status = gm_read_offer(socket, &deadline, &description, &bytes);
    if (status == GPUMEM_OK)
        status = receive(device, socket, &options, &deadline, description, bytes, &made);
    free(description);
    gm_tell_outcome(socket, &deadline, status);
    if (status == GPUMEM_OK)
        *buffer = made;
    return status;
}
