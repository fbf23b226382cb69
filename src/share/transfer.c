/*
 * An export over a socket. The sender offers the description; the receiver answers with "send" or a
 * refusal; descriptors follow in numbered batches; the receiver answers once more. Waiting for the
 * first answer keeps a sender from filling the socket of a receiver that has given up, and lets the
 * kernel write down who sends the descriptors.
 */
#include "base/cancel.h"
#include "base/socket.h"
#include "memory/driver_error.h"
#include "memory/vmm.h"
#include "share/share.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL 1u

struct offer {
    char magic[8];
    uint32_t version;
    uint32_t description_bytes;
};

struct batch {
    char magic[8];
    uint32_t first;
    uint32_t count;
};

enum verdict {
    VERDICT_SEND = 1,
    VERDICT_DONE = 2, /* mapped */
    VERDICT_REFUSED = 3,
};

struct answer {
    char magic[8];
    uint32_t verdict;
    int32_t status; /* gpumem_status of a refusal */
    char message[240];
};

static const char offer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'};
static const char batch_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'b'};
static const char answer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'a'};

static gpumem_status other_protocol(void) {
    return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
}

/* ---- The sender ------------------------------------------------------------------------------ */

/* The text goes to logs and terminals here; the other process chose it. */
static void make_printable(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static gpumem_status read_answer(int socket, const struct gm_deadline *deadline,
                                 uint32_t *verdict) {
    struct answer answer;
    gpumem_status status = gm_socket_receive(socket, &answer, sizeof answer, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(answer.magic, answer_magic, sizeof answer.magic) != 0)
        return other_protocol();
    answer.message[sizeof answer.message - 1] = 0;
    make_printable(answer.message);
    if (answer.verdict == VERDICT_REFUSED)
        return gm_fail(GPUMEM_ERROR_PEER, "the other process refused (%s): %s",
                       gpumem_status_string((gpumem_status)answer.status), answer.message);
    if (answer.verdict != VERDICT_SEND && answer.verdict != VERDICT_DONE)
        return other_protocol();
    *verdict = answer.verdict;
    return GPUMEM_OK;
}

static gpumem_status send_batches(const gpumem_export *exported, int socket,
                                  const struct gm_deadline *deadline) {
    for (size_t first = 0; first < exported->count;) {
        size_t left = exported->count - first;
        size_t count = left < GM_SOCKET_MOST_FDS ? left : GM_SOCKET_MOST_FDS;
        struct batch batch = {.first = (uint32_t)first, .count = (uint32_t)count};
        memcpy(batch.magic, batch_magic, sizeof batch.magic);
        gpumem_status status = gm_socket_send_fds(socket, &batch, sizeof batch,
                                                  exported->fds + first, count, deadline);
        if (status != GPUMEM_OK)
            return status;
        first += count;
    }
    return GPUMEM_OK;
}

gpumem_status gpumem_export_send(gpumem_export *exported, int socket,
                                 const gpumem_share_options *given) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_export_send: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(exported, "gpumem_export_send");
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status == GPUMEM_OK)
        status = gm_export_check_open(exported);
    if (status != GPUMEM_OK)
        return status;
    struct offer offer = {.version = PROTOCOL,
                          .description_bytes = (uint32_t)exported->description_bytes};
    memcpy(offer.magic, offer_magic, sizeof offer.magic);
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    uint32_t verdict = 0;
    status = gm_socket_send(socket, &offer, sizeof offer, &deadline);
    if (status == GPUMEM_OK)
        status =
            gm_socket_send(socket, exported->description, exported->description_bytes, &deadline);
    if (status == GPUMEM_OK)
        status = read_answer(socket, &deadline, &verdict);
    if (status == GPUMEM_OK && verdict != VERDICT_SEND)
        return other_protocol(); /* it cannot have what it was not sent */
    if (status == GPUMEM_OK)
        status = send_batches(exported, socket, &deadline);
    if (status == GPUMEM_OK)
        status = read_answer(socket, &deadline, &verdict);
    if (status == GPUMEM_OK && verdict != VERDICT_DONE)
        return other_protocol();
    return status;
}

/* ---- The receiver ---------------------------------------------------------------------------- */

static gpumem_status send_answer(int socket, const struct gm_deadline *deadline,
                                 enum verdict verdict) {
    struct answer answer = {.verdict = verdict};
    memcpy(answer.magic, answer_magic, sizeof answer.magic);
    if (verdict == VERDICT_REFUSED) {
        const gpumem_error *error = gpumem_last_error();
        answer.status = (int32_t)error->status;
        strncpy(answer.message, error->message, sizeof answer.message - 1);
    }
    return gm_socket_send(socket, &answer, sizeof answer, deadline);
}

/* Reads the offer; *description is malloced. */
static gpumem_status read_offer(int socket, const struct gm_deadline *deadline, void **description,
                                size_t *bytes) {
    struct offer offer;
    gpumem_status status = gm_socket_receive(socket, &offer, sizeof offer, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(offer.magic, offer_magic, sizeof offer.magic) != 0)
        return other_protocol();
    if (offer.version != PROTOCOL)
        return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks version %u of the protocol",
                       offer.version);
    if (offer.description_bytes == 0 || offer.description_bytes > GM_DESCRIPTION_MOST_BYTES)
        return gm_fail(GPUMEM_ERROR_DATA, "a description of %u bytes is out of range",
                       offer.description_bytes);
    void *data = malloc(offer.description_bytes);
    if (!data)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u bytes",
                       offer.description_bytes);
    status = gm_socket_receive(socket, data, offer.description_bytes, deadline);
    if (status != GPUMEM_OK) {
        free(data);
        return status;
    }
    *description = data;
    *bytes = offer.description_bytes;
    return GPUMEM_OK;
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* On failure none is left open. */
static gpumem_status read_batches(int socket, const struct gm_deadline *deadline, int *fds,
                                  size_t wanted, struct gm_sender *sender) {
    size_t have = 0;
    gpumem_status status = GPUMEM_OK;
    while (have < wanted && status == GPUMEM_OK) {
        size_t left = wanted - have;
        size_t count = left < GM_SOCKET_MOST_FDS ? left : GM_SOCKET_MOST_FDS;
        struct batch batch;
        status = gm_socket_receive_fds(socket, &batch, sizeof batch, fds + have, count, sender,
                                       deadline);
        if (status != GPUMEM_OK)
            break;
        if (memcmp(batch.magic, batch_magic, sizeof batch.magic) != 0 || batch.first != have ||
            batch.count != count)
            status = other_protocol();
        have += count;
    }
    if (status != GPUMEM_OK)
        close_all(fds, have);
    return status;
}

/* From before "send" on the kernel writes down who sends: a sender that keeps to the protocol waits
 * for that word. Who does not is unknown, and so is what it sends. */
static gpumem_status ask_for_descriptors(int socket, const struct gm_deadline *deadline, int *fds,
                                         size_t count, struct gm_peer *peer) {
    struct gm_sender sender = {.pid = GM_SENDER_NONE};
    int before = gm_socket_name_senders(socket, 1);
    gpumem_status status = send_answer(socket, deadline, VERDICT_SEND);
    if (status == GPUMEM_OK)
        status = read_batches(socket, deadline, fds, count, &sender);
    gm_socket_name_senders(socket, before);
    if (status == GPUMEM_OK)
        *peer = gm_peer_of(&sender);
    return status;
}

static gpumem_status receive_and_map(gpumem_device *device, int socket,
                                     const gpumem_share_options *options,
                                     const struct gm_deadline *deadline,
                                     const struct gm_description_head *head,
                                     const unsigned char *sizes, gpumem_buffer **buffer) {
    int *fds = malloc(head->chunk_count * sizeof *fds);
    if (!fds)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u descriptors",
                       head->chunk_count);
    struct gm_peer peer;
    gpumem_status status = ask_for_descriptors(socket, deadline, fds, head->chunk_count, &peer);
    if (status == GPUMEM_OK) {
        status = gm_import_map(device, head, sizes, fds, options->access, &peer, buffer);
        close_all(fds, head->chunk_count);
    }
    free(fds);
    return status;
}

static gpumem_status receive(gpumem_device *device, int socket, const gpumem_share_options *options,
                             const struct gm_deadline *deadline, const void *description,
                             size_t bytes, gpumem_buffer **buffer) {
    struct gm_description_head head;
    const unsigned char *sizes;
    gpumem_status status = gm_description_read(description, bytes, device->granularity,
                                               options->maximum_bytes, &head, &sizes);
    if (status == GPUMEM_OK)
        status = gm_import_check_device(device, &head);
    if (status != GPUMEM_OK)
        return status;
    return receive_and_map(device, socket, options, deadline, &head, sizes, buffer);
}

gpumem_status gpumem_import_receive(gpumem_device *device, int socket,
                                    const gpumem_share_options *given, gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_import_receive: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(device, "gpumem_import_receive");
    GM_REQUIRE(buffer, "gpumem_import_receive: buffer is NULL");
    gpumem_status status = gm_vmm_supported(device);
    if (status == GPUMEM_OK)
        status = gm_share_options(device, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    void *description = NULL;
    size_t bytes = 0;
    gpumem_buffer *made = NULL;
    status = read_offer(socket, &deadline, &description, &bytes);
    if (status == GPUMEM_OK)
        status = receive(device, socket, &options, &deadline, description, bytes, &made);
    free(description);
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (status == GPUMEM_OK) {
        /* A sender that is gone by now takes nothing away: the memory is mapped here. */
        (void)send_answer(socket, &deadline, VERDICT_DONE);
        *buffer = made;
    } else if (status != GPUMEM_ERROR_PEER) {
        (void)send_answer(socket, &deadline, VERDICT_REFUSED);
    }
    gm_error_restore(&saved);
    return status;
}
