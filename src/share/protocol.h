/*
 * The protocol on the socket. An export is offered with its description; the receiver answers with
 * "send" or a refusal; descriptors follow in numbered batches; the receiver answers once more. A
 * request for growth precedes that, from the receiver: the exporter answers "news" and offers the
 * growth, or "nothing", or a refusal.
 */
#ifndef GM_SHARE_PROTOCOL_H
#define GM_SHARE_PROTOCOL_H

#include "base/socket.h"
#include "share/share.h"

enum gm_verdict {
    GM_VERDICT_SEND = 1,
    GM_VERDICT_DONE = 2, /* mapped */
    GM_VERDICT_REFUSED = 3,
    GM_VERDICT_NEWS = 4, /* an offer follows */
    GM_VERDICT_NOTHING = 5,
};

/* What an importer has when it requests growth. */
struct gm_request {
    char magic[8];
    uint32_t version;
    uint32_t chunk_count;
    unsigned char buffer[16];
    uint64_t epoch;
    uint64_t committed;
    uint64_t bytes;
};

gpumem_status gm_other_protocol(void);

/* The whole exchange on the sender's side, up to the answer that it is mapped. */
gpumem_status gm_send_offer(const struct gm_outgoing *out, int socket,
                            const struct gm_deadline *deadline);

/* PEER, with the other side's words, for a refusal. */
gpumem_status gm_read_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict *verdict);
/* A refusal carries this thread's last error and its message. */
gpumem_status gm_send_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict verdict);

/* Ends a receiving call: informs the other side, if there is one. The recorded error is kept. */
void gm_tell_outcome(int socket, const struct gm_deadline *deadline, gpumem_status status);

gpumem_status gm_send_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline);
gpumem_status gm_read_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline);

/* *description is malloced. */
gpumem_status gm_read_offer(int socket, const struct gm_deadline *deadline, void **description,
                            size_t *bytes);

/* Answers "send" and receives `count` descriptors, which the caller owns; on failure none is open.
 * *peer is the sender of them all, as far as the kernel knows. */
gpumem_status gm_ask_for_descriptors(int socket, const struct gm_deadline *deadline, int *fds,
                                     size_t count, struct gm_peer *peer);

#endif
