/*
 * The connecting side greets first, and the other greets back or rejects it. Each makes the kernel
 * add its credentials to what it sends, so that the receiver gets them even for a message sent
 * before the receiver could ask for them.
 */
#include "share/greeting.h"

#include "base/options.h"
#include "memory/core/driver_error.h"

#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define VERSION    1u
#define TIMEOUT_MS 30000

enum word { HELLO = 1, WELCOME = 2, TURNED_AWAY = 3 };

struct greeting {
    char magic[8];
    uint32_t version;
    uint32_t word;
};

static const char magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'h'};

/* ---- Options and addresses ------------------------------------------------------------------- */

static void own_users(struct gm_users *users) {
    users->ids[0] = getuid();
    users->ids[1] = geteuid();
    users->count = 2;
}

gpumem_status gm_connect_options(const char *call, const gpumem_connect_options *given,
                                 gpumem_connect_options *options, struct gm_users *users) {
    gpumem_status status = GM_OPTIONS_READ(gpumem_connect_options, given, options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(options->user_count <= GM_MOST_USERS, "%s: %zu users; the maximum is %d", call,
               options->user_count, GM_MOST_USERS);
    GM_REQUIRE(options->users || !options->user_count, "%s: users is NULL", call);
    GM_REQUIRE(options->permissions <= 0777, "%s: 0%o are not valid permissions", call,
               options->permissions);
    if (!options->timeout_ms)
        options->timeout_ms = TIMEOUT_MS;
    if (!options->permissions)
        options->permissions = options->user_count ? 0666 : 0600;
    if (!options->backlog || options->backlog > 4096)
        options->backlog = options->backlog ? 4096 : 64;
    users->count = options->user_count;
    if (users->count)
        memcpy(users->ids, options->users, users->count * sizeof *users->ids);
    else
        own_users(users);
    options->users = NULL; /* the caller's */
    return GPUMEM_OK;
}

gpumem_status gm_connect_address(const char *call, const char *path, struct sockaddr_un *address,
                                 socklen_t *length) {
    GM_REQUIRE(path && path[0] && strcmp(path, "@") != 0, "%s: no path is given", call);
    size_t bytes = strlen(path);
    GM_REQUIRE(bytes < sizeof address->sun_path,
               "%s: the path has %zu bytes; the maximum for a socket is %zu", call, bytes,
               sizeof address->sun_path - 1);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, bytes);
    int abstract = path[0] == '@';
    if (abstract)
        address->sun_path[0] = 0;
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + !abstract);
    return GPUMEM_OK;
}

/* ---- Users ----------------------------------------------------------------------------------- */

int gm_users_have(const struct gm_users *users, unsigned user) {
    for (size_t i = 0; i < users->count && user != GM_USER_UNKNOWN; i++)
        if (users->ids[i] == user)
            return 1;
    return 0;
}

unsigned gm_connection_user(int connection) {
    struct ucred other = {.uid = GM_USER_UNKNOWN};
    socklen_t size = sizeof other;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0)
        return GM_USER_UNKNOWN;
    return other.uid;
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static gpumem_status say(int connection, enum word word, const struct gm_deadline *deadline) {
    struct greeting greeting = {.version = VERSION, .word = (uint32_t)word};
    memcpy(greeting.magic, magic, sizeof greeting.magic);
    return gm_socket_send(connection, &greeting, sizeof greeting, deadline);
}

static gpumem_status hear(int connection, const struct gm_deadline *deadline, enum word *word,
                          struct gm_sender *other) {
    struct greeting greeting;
    *other = (struct gm_sender){GM_SENDER_NONE, GM_USER_UNKNOWN};
    gpumem_status status =
        gm_socket_receive_fds(connection, &greeting, sizeof greeting, NULL, 0, other, deadline);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(greeting.magic, magic, sizeof magic) != 0)
        return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
    if (greeting.version != VERSION)
        return gm_fail(GPUMEM_ERROR_PEER, "the other process uses version %u of the greeting",
                       greeting.version);
    *word = (enum word)greeting.word;
    return GPUMEM_OK;
}

static gpumem_status check_user(const struct gm_users *users, const struct gm_sender *other) {
    if (gm_users_have(users, other->uid))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_PERMITTED,
                   "the other process (%d) is of user %d, who is not allowed", (int)other->pid,
                   (int)other->uid);
}

static gpumem_status hear_welcome(int connection, const struct gm_users *users,
                                  const struct gm_deadline *deadline, struct gm_sender *other) {
    enum word word = HELLO;
    gpumem_status status = hear(connection, deadline, &word, other);
    if (status == GPUMEM_OK && word == TURNED_AWAY)
        status = gm_fail(GPUMEM_ERROR_PEER, "the other process does not accept this user");
    else if (status == GPUMEM_OK && word != WELCOME)
        status = gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
    return status == GPUMEM_OK ? check_user(users, other) : status;
}

gpumem_status gm_greet_first(int connection, const struct gm_users *users,
                             const struct gm_deadline *deadline, struct gm_sender *other) {
    int before = gm_socket_name_senders(connection, 1);
    gpumem_status status = say(connection, HELLO, deadline);
    /* The other side may have rejected us, and closed, before this was sent. */
    if (status == GPUMEM_OK || status == GPUMEM_ERROR_PEER)
        status = hear_welcome(connection, users, deadline, other);
    gm_socket_name_senders(connection, before);
    return status;
}

gpumem_status gm_greet_back(int connection, const struct gm_users *users,
                            const struct gm_deadline *deadline, struct gm_sender *other) {
    enum word word = TURNED_AWAY;
    int before = gm_socket_name_senders(connection, 1);
    gpumem_status status = hear(connection, deadline, &word, other);
    if (status == GPUMEM_OK && word != HELLO)
        status = gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
    if (status == GPUMEM_OK)
        status = check_user(users, other);
    if (status == GPUMEM_OK)
        status = say(connection, WELCOME, deadline);
    gm_socket_name_senders(connection, before);
    return status;
}

bool gm_greeting_is_there(int connection) {
    int bytes = 0;
    return ioctl(connection, FIONREAD, &bytes) == 0 && (size_t)bytes >= sizeof(struct greeting);
}

void gm_turn_away(int connection) {
    const struct gm_deadline now = gm_deadline_start(1);
    struct gm_error_record saved;
    gm_error_save(&saved);
    (void)say(connection, TURNED_AWAY, &now);
    gm_error_restore(&saved);
}
