/*
 * Sends the share handle of a pool over a socket: one message with one descriptor, and the answer
 * of the other side when it has created a resource from it.
 */
#include "base/cancel.h"
#include "base/socket.h"
#include "memory/core/driver_error.h"
#include "share/refusal.h"
#include "share/share.h"

#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL 1u

struct pool_offer {
    char magic[8];
    uint32_t version;
    int32_t location;
    int32_t numa_node;
    uint32_t zero;
    unsigned char uuid[16];
};

struct pool_answer {
    char magic[8];
    int32_t status; /* gpumem_status; OK: mapped */
    uint32_t zero;
    char message[GM_REFUSAL_BYTES];
};

static const char offer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'p'};
static const char answer_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'q'};

static gpumem_status other_protocol(void) {
    return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
}

/* ---- The owner ------------------------------------------------------------------------------- */

static gpumem_status read_answer(int socket, const struct gm_deadline *deadline) {
    struct pool_answer answer;
    gpumem_status status = gm_socket_receive(socket, &answer, sizeof answer, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(answer.magic, answer_magic, sizeof answer.magic) != 0)
        return other_protocol();
    return answer.status == GPUMEM_OK ? GPUMEM_OK : gm_refusal_read(answer.status, answer.message);
}

gpumem_status gpumem_pool_send(gpumem_resource *resource, int socket,
                               const gpumem_share_options *given) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_pool_send: socket is %d", socket);
    gpumem_share_options options;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status == GPUMEM_OK)
        status = gpumem_pool_get_share_handle(resource, &handle);
    if (status != GPUMEM_OK)
        return status;
    if (handle.type != GPUMEM_HANDLE_POSIX_FD)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "a fabric handle is not a descriptor: send the bytes of "
                       "gpumem_pool_share_handle");
    struct pool_offer offer = {
        .version = PROTOCOL, .location = (int32_t)handle.location, .numa_node = handle.numa_node};
    memcpy(offer.magic, offer_magic, sizeof offer.magic);
    memcpy(offer.uuid, handle.uuid, sizeof offer.uuid);
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    status = gm_socket_send_fds(socket, &offer, sizeof offer, &handle.descriptor, 1, &deadline);
    return status == GPUMEM_OK ? read_answer(socket, &deadline) : status;
}

/* ---- The other side -------------------------------------------------------------------------- */

static gpumem_status make_resource(gpumem_device *device, const struct pool_offer *offer, int fd,
                                   gpumem_resource **resource) {
    if (memcmp(offer->magic, offer_magic, sizeof offer->magic) != 0)
        return other_protocol();
    if (offer->version != PROTOCOL)
        return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks version %u of the protocol",
                       offer->version);
    if (offer->location < 0 || offer->location > GPUMEM_LOCATION_HOST_NUMA || offer->numa_node < -1)
        return gm_fail(GPUMEM_ERROR_DATA, "a pool at location %d, node %d is impossible",
                       (int)offer->location, (int)offer->numa_node);
    gpumem_pool_share_handle handle = {
        .size = sizeof handle,
        .type = GPUMEM_HANDLE_POSIX_FD,
        .descriptor = fd,
        .location = (gpumem_location)offer->location,
        .numa_node = offer->numa_node,
    };
    memcpy(handle.uuid, offer->uuid, sizeof handle.uuid);
    return gpumem_pool_from_share_handle(device, &handle, resource);
}

static void send_answer(int socket, const struct gm_deadline *deadline, gpumem_status status) {
    struct pool_answer answer = {.status = (int32_t)status};
    memcpy(answer.magic, answer_magic, sizeof answer.magic);
    if (status != GPUMEM_OK)
        gm_refusal_write(answer.message);
    struct gm_error_record saved;
    gm_error_save(&saved);
    /* If it is gone by now, nothing is lost. */
    (void)gm_socket_send(socket, &answer, sizeof answer, deadline);
    gm_error_restore(&saved);
}

gpumem_status gpumem_pool_receive(gpumem_device *device, int socket,
                                  const gpumem_share_options *given, gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_pool_receive: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(device, "gpumem_pool_receive");
    GM_REQUIRE(resource, "gpumem_pool_receive: resource is NULL");
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    struct gm_sender sender = {.pid = GM_SENDER_NONE};
    struct pool_offer offer;
    int fd = -1;
    status = gm_socket_receive_fds(socket, &offer, sizeof offer, &fd, 1, &sender, &deadline);
    if (status == GPUMEM_OK) {
        status = make_resource(device, &offer, fd, resource);
        close(fd);
    } else if (status == GPUMEM_ERROR_PEER) {
        return status; /* nobody is left to inform */
    }
    send_answer(socket, &deadline, status);
    return status;
}
