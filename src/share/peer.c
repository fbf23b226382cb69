#include "share/peer.h"

#include "base/descriptor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Field 22 of /proc/PID/stat; 0 when it cannot be read. The name, field 2, may contain blanks and
 * brackets. */
static unsigned long long start_of(pid_t pid) {
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = gm_fd_stream(path, "r");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/*
 * The PID of a sender that has ended may have been reused by another process, whose start time is
 * then read. This cannot be used to pass for the exporter of a description: the exporter was
 * running, with its own PID, when the description was sent, before the descriptors.
 */
struct gm_peer gm_peer_of(const struct gm_sender *sender) {
    struct gm_peer unknown = {0};
    if (sender->pid <= 0)
        return unknown;
    struct gm_peer peer = {sender->pid, sender->uid, start_of(sender->pid)};
    return peer.start ? peer : unknown;
}

int gm_peer_equal(const struct gm_peer *a, const struct gm_peer *b) {
    return a->pid && a->pid == b->pid && a->uid == b->uid && a->start == b->start;
}

gpumem_status gm_connection_of(int socket, struct gm_connection *connection) {
    struct stat about;
    if (fstat(socket, &about) != 0)
        return gm_fail_system(GPUMEM_ERROR_INVALID_ARGUMENT, errno, "fstat",
                              "descriptor %d is not a connected Unix socket", socket);
    *connection = (struct gm_connection){about.st_dev, about.st_ino};
    return GPUMEM_OK;
}

int gm_connection_equal(const struct gm_connection *a, const struct gm_connection *b) {
    return a->inode && a->inode == b->inode && a->device == b->device;
}
