/* What the processes of gpumem share write and check, and how they communicate. */
#include "cli.h"
#include "share.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

unsigned char share_mark(unsigned number, uint32_t round) {
    return (unsigned char)(17 * (number + 1) + 61 * round);
}

bool share_send(int connection, const void *data, size_t bytes) {
    ssize_t sent;
    do
        sent = send(connection, data, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes; /* far less than a socket holds */
}

bool share_receive(int connection, void *data, size_t bytes) {
    ssize_t received;
    do
        received = recv(connection, data, bytes, MSG_WAITALL);
    while (received < 0 && errno == EINTR);
    return received == (ssize_t)bytes;
}

int share_write(gpumem_buffer *buffer, unsigned number, const struct share_command *command) {
    gpumem_status status = gpumem_buffer_fill(buffer, (size_t)command->offset + number * SHARE_PART,
                                              SHARE_PART, share_mark(number, command->round), NULL);
    if (status == GPUMEM_OK)
        status = gpumem_stream_synchronize(gpumem_buffer_device(buffer), NULL);
    return status == GPUMEM_OK ? CLI_OK : cli_fail(status);
}

static int check_part(gpumem_buffer *buffer, unsigned number, const struct share_command *command) {
    unsigned char bytes[SHARE_PART];
    gpumem_status status = gpumem_buffer_read(buffer, (size_t)command->offset + number * SHARE_PART,
                                              bytes, sizeof bytes, NULL);
    if (status == GPUMEM_OK)
        status = gpumem_stream_synchronize(gpumem_buffer_device(buffer), NULL);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != share_mark(number, command->round))
            return cli_error(CLI_MISMATCH, "share: byte %zu of process %u is %u, and should be %u",
                             i, number, bytes[i], share_mark(number, command->round));
    return CLI_OK;
}

int share_check(gpumem_buffer *buffer, const struct share_command *command) {
    int result = CLI_OK;
    for (unsigned number = 0; number <= SHARE_MOST_PROCESSES && result == CLI_OK; number++)
        if (command->writers >> number & 1)
            result = check_part(buffer, number, command);
    return result;
}
