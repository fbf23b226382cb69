#include "share/protocol.h"

#include "base/error.h"
#include "share/refusal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL 2u

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

struct answer {
    char magic[8];
    uint32_t verdict;
    int32_t status; /* gpumem_status of a refusal */
    char message[GM_REFUSAL_BYTES];
};

static const char offer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'};
static const char batch_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'b'};
static const char answer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'a'};
static const char request_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'r'};

_Static_assert(sizeof(struct gm_request) == 56, "the layout is a protocol");

gpumem_status gm_other_protocol(void) {
    return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
}

static gpumem_status check_version(uint32_t version) {
    if (version == PROTOCOL)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks version %u of the protocol",
                   version);
}

/* ---- Answers --------------------------------------------------------------------------------- */

gpumem_status gm_read_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict *verdict) {
    struct answer answer;
    gpumem_status status = gm_socket_receive(socket, &answer, sizeof answer, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(answer.magic, answer_magic, sizeof answer.magic) != 0)
        return gm_other_protocol();
    if (answer.verdict == GM_VERDICT_REFUSED)
        return gm_refusal_read(answer.status, answer.message);
    if (answer.verdict < GM_VERDICT_SEND || answer.verdict > GM_VERDICT_NOTHING)
        return gm_other_protocol();
    *verdict = (enum gm_verdict)answer.verdict;
    return GPUMEM_OK;
}

gpumem_status gm_send_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict verdict) {
    struct answer answer = {.verdict = (uint32_t)verdict};
    memcpy(answer.magic, answer_magic, sizeof answer.magic);
    if (verdict == GM_VERDICT_REFUSED) {
        answer.status = (int32_t)gpumem_last_error()->status;
        gm_refusal_write(answer.message);
    }
    return gm_socket_send(socket, &answer, sizeof answer, deadline);
}

void gm_tell_outcome(int socket, const struct gm_deadline *deadline, gpumem_status status) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    /* If the sender is gone by now, nothing is lost: the memory is already mapped here. */
    if (status == GPUMEM_OK)
        (void)gm_send_answer(socket, deadline, GM_VERDICT_DONE);
    else if (status != GPUMEM_ERROR_PEER)
        (void)gm_send_answer(socket, deadline, GM_VERDICT_REFUSED);
    gm_error_restore(&saved);
}

/* ---- Requests -------------------------------------------------------------------------------- */

gpumem_status gm_send_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline) {
    memcpy(request->magic, request_magic, sizeof request->magic);
    request->version = PROTOCOL;
    return gm_socket_send(socket, request, sizeof *request, deadline);
}

gpumem_status gm_read_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline) {
    gpumem_status status = gm_socket_receive(socket, request, sizeof *request, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(request->magic, request_magic, sizeof request->magic) != 0)
        return gm_other_protocol();
    return check_version(request->version);
}

/* ---- The sender ------------------------------------------------------------------------------ */

static gpumem_status send_batches(const struct gm_outgoing *out, int socket,
                                  const struct gm_deadline *deadline) {
    for (size_t first = 0; first < out->count;) {
        size_t left = out->count - first;
        size_t count = left < GM_SOCKET_MOST_FDS ? left : GM_SOCKET_MOST_FDS;
        struct batch batch = {.first = (uint32_t)first, .count = (uint32_t)count};
        memcpy(batch.magic, batch_magic, sizeof batch.magic);
        gpumem_status status =
            gm_socket_send_fds(socket, &batch, sizeof batch, out->fds + first, count, deadline);
        if (status != GPUMEM_OK)
            return status;
        first += count;
    }
    return GPUMEM_OK;
}

gpumem_status gm_send_offer(const struct gm_outgoing *out, int socket,
                            const struct gm_deadline *deadline) {
    struct offer offer = {.version = PROTOCOL,
                          .description_bytes = (uint32_t)out->description_bytes};
    memcpy(offer.magic, offer_magic, sizeof offer.magic);
    enum gm_verdict verdict = GM_VERDICT_REFUSED;
    gpumem_status status = gm_socket_send(socket, &offer, sizeof offer, deadline);
    if (status == GPUMEM_OK)
        status = gm_socket_send(socket, out->description, out->description_bytes, deadline);
    if (status == GPUMEM_OK)
        status = gm_read_answer(socket, deadline, &verdict);
    if (status == GPUMEM_OK && verdict != GM_VERDICT_SEND)
        return gm_other_protocol(); /* it cannot have anything that it was not sent */
    if (status == GPUMEM_OK)
        status = send_batches(out, socket, deadline);
    if (status == GPUMEM_OK)
        status = gm_read_answer(socket, deadline, &verdict);
    if (status == GPUMEM_OK && verdict != GM_VERDICT_DONE)
        return gm_other_protocol();
    return status;
}

/* ---- The receiver ---------------------------------------------------------------------------- */

gpumem_status gm_read_offer(int socket, const struct gm_deadline *deadline, void **description,
                            size_t *bytes) {
    struct offer offer;
    gpumem_status status = gm_socket_receive(socket, &offer, sizeof offer, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(offer.magic, offer_magic, sizeof offer.magic) != 0)
        return gm_other_protocol();
    status = check_version(offer.version);
    if (status != GPUMEM_OK)
        return status;
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
            status = gm_other_protocol();
        have += count;
    }
    for (size_t i = 0; status != GPUMEM_OK && i < have; i++)
        close(fds[i]);
    return status;
}

/* The kernel records senders from before "send" is sent: a sender that follows the protocol waits
 * for it. One that does not is unknown, and so is what it sends. */
gpumem_status gm_ask_for_descriptors(int socket, const struct gm_deadline *deadline, int *fds,
                                     size_t count, struct gm_peer *peer) {
    struct gm_sender sender = {.pid = GM_SENDER_NONE};
    int before = gm_socket_name_senders(socket, 1);
    gpumem_status status = gm_send_answer(socket, deadline, GM_VERDICT_SEND);
    if (status == GPUMEM_OK)
        status = read_batches(socket, deadline, fds, count, &sender);
    gm_socket_name_senders(socket, before);
    if (status == GPUMEM_OK)
        *peer = gm_peer_of(&sender);
    return status;
}
