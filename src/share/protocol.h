/*
 * What goes over the socket. An export is offered with its description; the receiver answers with
 * "send" or a refusal; descriptors follow in numbered batches; the receiver answers once more. A
 * request for growth comes before that from the receiver: the exporter answers "news", and offers
 * what is new, "nothing", or a refusal.
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

/* What an importer has, and asks for more of. */
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

/* The whole of it from the sender's side, to the answer that it is mapped. */
gpumem_status gm_send_offer(const struct gm_outgoing *out, int socket,
                            const struct gm_deadline *deadline);

/* PEER, with the other side's words, for a refusal. */
gpumem_status gm_read_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict *verdict);
/* With a refusal go this thread's last error and its message. */
gpumem_status gm_send_answer(int socket, const struct gm_deadline *deadline,
                             enum gm_verdict verdict);

/* Ends a receiving call: tells the other side, unless there is none. The error on record stays. */
void gm_tell_outcome(int socket, const struct gm_deadline *deadline, gpumem_status status);

gpumem_status gm_send_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline);
gpumem_status gm_read_request(int socket, struct gm_request *request,
                              const struct gm_deadline *deadline);

/* *description is malloced. */
gpumem_status gm_read_offer(int socket, const struct gm_deadline *deadline, void **description,
                            size_t *bytes);

/* Says "send" and takes `count` descriptors, which are the caller's; on failure none is open. *peer
 * is who sent them all, as far as the kernel tells. */
gpumem_status gm_ask_for_descriptors(int socket, const struct gm_deadline *deadline, int *fds,
                                     size_t count, struct gm_peer *peer);

#endif
