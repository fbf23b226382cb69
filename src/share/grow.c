/*
 * Growth of imports: an exporter adds its buffer's growth, and an importer requests what it does
 * not have. Any failure leaves both sides as they were.
 */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/shortage.h"
#include "share/import.h"
#include "share/protocol.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Adding to an import --------------------------------------------------------------------- */

static gpumem_status contradicts(const char *what) {
    return gm_fail(GPUMEM_ERROR_DATA, "the data contradicts what was sent before: %s", what);
}

/* Compares it with what is known of the exporter. Its end was checked when it was read. */
static gpumem_status check_growth(const gpumem_buffer *buffer, const struct gm_import *import,
                                  const struct gm_description_head *head) {
    if (memcmp(head->buffer, import->identity.buffer, sizeof head->buffer) != 0)
        return contradicts("it is another buffer");
    if (head->epoch != import->epoch)
        return contradicts("the buffer has given memory back since");
    if (head->bytes < buffer->allocation.bytes)
        return contradicts("the buffer has shrunk");
    if (head->committed > import->extent.capacity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                       "the buffer has grown to %llu bytes (%llu rounded up), but was imported "
                       "with a capacity of %zu",
                       (unsigned long long)head->bytes, (unsigned long long)head->committed,
                       import->extent.capacity);
    return gm_share_check_device(import->extent.device, head->device);
}

/* The context is current. */
static gpumem_status map_more(struct gm_import *import, const struct gm_file *files, size_t count,
                              const int *fds) {
    if (!count)
        return GPUMEM_OK;
    struct gm_chunk *chunks = calloc(count, sizeof *chunks);
    if (!chunks)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu handles", count);
    gpumem_status status = gm_import_handles(import, files, count, fds, chunks);
    if (status == GPUMEM_OK) {
        size_t before = import->extent.committed;
        status = gm_extent_adopt(&import->extent, chunks, count);
        if (status == GPUMEM_OK)
            gm_meter_add(import->extent.meter, GM_IMPORTED, import->extent.committed - before);
        else
            gm_import_release(import, chunks, count);
    }
    free(chunks);
    return status;
}

static void note_growth(gpumem_buffer *buffer, struct gm_import *import,
                        const struct gm_description_head *head) {
    import->identity.layout = head->layout;
    import->identity.bytes = head->bytes;
    import->identity.committed = head->committed;
    gpumem_allocation changed = buffer->allocation;
    changed.bytes = (size_t)head->bytes;
    changed.committed_bytes = import->extent.committed;
    pthread_mutex_lock(&buffer->lock); /* another thread may be making a view */
    gm_buffer_take_over(buffer, &changed);
    pthread_mutex_unlock(&buffer->lock);
}

gpumem_status gm_import_grow(gpumem_buffer *buffer, struct gm_import *import,
                             const struct gm_description_head *head, const unsigned char *sizes,
                             const int *fds) {
    size_t known = import->extent.count;
    struct gm_current current;
    gpumem_status status = gm_identity_extend(&import->identity, head, sizes, fds);
    if (status != GPUMEM_OK)
        return status;
    status = gm_current_enter(&current, import->extent.device);
    if (status == GPUMEM_OK) {
        status = map_more(import, import->identity.files + known, head->chunk_count - known, fds);
        gm_current_leave(&current);
    }
    if (status == GPUMEM_OK)
        note_growth(buffer, import, head);
    else
        gm_identity_cut(&import->identity, known);
    return gm_tell_shortage(import->extent.device, NULL, head->bytes, status);
}

static gpumem_status find_import(const gpumem_buffer *buffer, const char *call,
                                 struct gm_import **import) {
    GM_REQUIRE(!(buffer->freed & GM_FREED), "%s: the buffer was freed", call);
    *import = gm_import_that_grows(buffer);
    GM_REQUIRE(*import,
               "%s: the buffer does not follow another process's: import it with a capacity "
               "(gpumem_share_options)",
               call);
    return GPUMEM_OK;
}

/* ---- Without a socket ------------------------------------------------------------------------ */

/* A whole description must begin with the present chunks. */
static gpumem_status check_beginning(const struct gm_import *import,
                                     const struct gm_description_head *head,
                                     const unsigned char *sizes) {
    if (head->chunk_count < import->extent.count)
        return contradicts("earlier handles are missing");
    for (size_t i = 0; i < import->extent.count; i++)
        if (gm_description_chunk(sizes, i) != import->extent.chunks[i].bytes)
            return contradicts("an earlier handle has a different size");
    return GPUMEM_OK;
}

gpumem_status gpumem_import_extend(gpumem_buffer *buffer, const void *description,
                                   size_t description_bytes, const int *descriptors,
                                   size_t descriptor_count, const gpumem_share_options *given) {
    GM_UNCANCELLED;
    gpumem_share_options options;
    struct gm_import *import = NULL;
    struct gm_description_head head;
    const unsigned char *sizes;
    GM_CHECK(buffer, "gpumem_import_extend");
    GM_REQUIRE(description && (descriptors || !descriptor_count),
               "gpumem_import_extend: an argument is NULL");
    gpumem_device *device = buffer->resource->device;
    gpumem_status status = find_import(buffer, "gpumem_import_extend", &import);
    if (status == GPUMEM_OK)
        status = gm_share_options(device, given, &options);
    if (status == GPUMEM_OK)
        status = gm_description_read(description, description_bytes, device->granularity,
                                     options.maximum_bytes, NULL, &head, &sizes);
    if (status == GPUMEM_OK)
        status = check_beginning(import, &head, sizes);
    if (status == GPUMEM_OK)
        status = check_growth(buffer, import, &head);
    if (status != GPUMEM_OK)
        return status;
    size_t known = import->extent.count;
    if (descriptor_count != head.chunk_count - known)
        return gm_fail(
            GPUMEM_ERROR_DATA,
            "the description has %zu more handles than the import, but %zu descriptors are given",
            head.chunk_count - known, descriptor_count);
    return gm_import_grow(buffer, import, &head, sizes + known * sizeof(uint64_t), descriptors);
}

/* ---- The importer's side --------------------------------------------------------------------- */

/* The growth must come from the process that sent the rest, as far as the kernel knows. */
static gpumem_status check_peer(const struct gm_import *import, const struct gm_peer *peer) {
    if (gm_peer_equal(&import->peer, peer) || (!import->peer.pid && !peer->pid))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_DATA,
                   "the growth comes from process %d, but the import from process %d",
                   (int)peer->pid, (int)import->peer.pid);
}

static gpumem_status take_news(gpumem_buffer *buffer, struct gm_import *import, int socket,
                               const struct gm_deadline *deadline,
                               const struct gm_description_head *head, const unsigned char *sizes) {
    size_t count = head->chunk_count - import->extent.count;
    int *fds = malloc((count + 1) * sizeof *fds);
    if (!fds)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu descriptors", count);
    struct gm_peer peer;
    gpumem_status status = gm_ask_for_descriptors(socket, deadline, fds, count, &peer);
    if (status == GPUMEM_OK) {
        /* Without descriptors there is no sender: the mappings remain as they are. */
        status = count ? check_peer(import, &peer) : GPUMEM_OK;
        if (status == GPUMEM_OK)
            status = gm_import_grow(buffer, import, head, sizes, fds);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
    free(fds);
    return status;
}

static gpumem_status read_news(gpumem_buffer *buffer, struct gm_import *import, int socket,
                               const struct gm_deadline *deadline, uint64_t maximum) {
    void *description = NULL;
    size_t bytes = 0;
    const struct gm_known_chunks known = {import->extent.count, import->extent.committed};
    struct gm_description_head head;
    const unsigned char *sizes;
    gpumem_status status = gm_read_offer(socket, deadline, &description, &bytes);
    if (status == GPUMEM_OK)
        status = gm_description_read(description, bytes, import->extent.device->granularity,
                                     maximum, &known, &head, &sizes);
    if (status == GPUMEM_OK)
        status = check_growth(buffer, import, &head);
    if (status == GPUMEM_OK)
        status = take_news(buffer, import, socket, deadline, &head, sizes);
    free(description);
    gm_tell_outcome(socket, deadline, status);
    return status;
}

static gpumem_status ask(const gpumem_buffer *buffer, const struct gm_import *import, int socket,
                         const struct gm_deadline *deadline, enum gm_verdict *verdict) {
    struct gm_request request = {
        .chunk_count = (uint32_t)import->extent.count,
        .epoch = import->epoch,
        .committed = import->extent.committed,
        .bytes = buffer->allocation.bytes,
    };
    memcpy(request.buffer, import->identity.buffer, sizeof request.buffer);
    gpumem_status status = gm_send_request(socket, &request, deadline);
    if (status == GPUMEM_OK)
        status = gm_read_answer(socket, deadline, verdict);
    if (status == GPUMEM_OK && *verdict != GM_VERDICT_NEWS && *verdict != GM_VERDICT_NOTHING)
        status = gm_other_protocol();
    return status;
}

static gpumem_status check_connection(const struct gm_import *import, int socket) {
    struct gm_connection connection;
    gpumem_status status = gm_connection_of(socket, &connection);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(gm_connection_equal(&import->connection, &connection),
               "gpumem_import_update: socket %d is not the connection that the import came from",
               socket);
    return GPUMEM_OK;
}

gpumem_status gpumem_import_update(gpumem_buffer *buffer, int socket,
                                   const gpumem_share_options *given) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_import_update: socket is %d", socket);
    gpumem_share_options options;
    struct gm_import *import = NULL;
    GM_CHECK(buffer, "gpumem_import_update");
    gpumem_status status = find_import(buffer, "gpumem_import_update", &import);
    if (status == GPUMEM_OK)
        status = check_connection(import, socket);
    if (status == GPUMEM_OK)
        status = gm_share_options(buffer->resource->device, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    enum gm_verdict verdict = GM_VERDICT_REFUSED;
    status = ask(buffer, import, socket, &deadline, &verdict);
    if (status != GPUMEM_OK || verdict == GM_VERDICT_NOTHING)
        return status;
    return read_news(buffer, import, socket, &deadline, options.maximum_bytes);
}

/* ---- The exporter's side --------------------------------------------------------------------- */

static gpumem_status stale(const char *what) {
    return gm_fail(GPUMEM_ERROR_DATA, "%s: the buffer must be imported again", what);
}

/* Whether an importer that has this can continue from there, according to the export's own
 * description. */
static gpumem_status check_request(const struct gm_description_head *head,
                                   const unsigned char *sizes, const struct gm_request *request) {
    if (memcmp(request->buffer, head->buffer, sizeof head->buffer) != 0)
        return stale("the import is of another buffer");
    if (request->epoch != head->epoch)
        return stale("the buffer has given memory back since it was imported");
    uint64_t committed = 0;
    for (size_t i = 0; i < request->chunk_count && i < head->chunk_count; i++)
        committed += gm_description_chunk(sizes, i);
    if (request->chunk_count > head->chunk_count || request->committed != committed ||
        request->bytes > head->bytes)
        return gm_fail(
            GPUMEM_ERROR_DATA,
            "the other process claims %u handles of %llu bytes, which were never exported",
            request->chunk_count, (unsigned long long)request->committed);
    return GPUMEM_OK;
}

/* What the importer does not have. If that is nothing, *news is 0 and nothing is taken. */
static gpumem_status take_growth(gpumem_export *exported, const struct gm_request *request,
                                 int *news, struct gm_outgoing *out) {
    struct gm_outgoing whole;
    gpumem_status status = gm_export_take(exported, 0, &whole);
    if (status != GPUMEM_OK)
        return status;
    struct gm_description_head head;
    memcpy(&head, whole.description, sizeof head);
    status = check_request(&head, (const unsigned char *)whole.description + sizeof head, request);
    *news = request->chunk_count < head.chunk_count || request->bytes < head.bytes;
    gm_export_put(exported, &whole);
    if (status != GPUMEM_OK || !*news)
        return status;
    return gm_export_take(exported, request->chunk_count, out);
}

static gpumem_status answer(gpumem_export *exported, int socket,
                            const struct gm_deadline *deadline) {
    struct gm_request request;
    struct gm_outgoing out;
    int news = 0;
    gpumem_status status = gm_read_request(socket, &request, deadline);
    if (status != GPUMEM_OK)
        return status;
    status = take_growth(exported, &request, &news, &out);
    if (status != GPUMEM_OK) {
        gm_tell_outcome(socket, deadline, status);
        return status;
    }
    if (!news)
        return gm_send_answer(socket, deadline, GM_VERDICT_NOTHING);
    status = gm_send_answer(socket, deadline, GM_VERDICT_NEWS);
    if (status == GPUMEM_OK)
        status = gm_send_offer(&out, socket, deadline);
    gm_export_put(exported, &out);
    return status;
}

gpumem_status gpumem_export_answer(gpumem_export *exported, int socket,
                                   const gpumem_share_options *given) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_export_answer: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(exported, "gpumem_export_answer");
    GM_REQUIRE(exported->grows,
               "gpumem_export_answer: only mapped memory grows; events and memory of pools do not");
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    return answer(exported, socket, &deadline);
}
