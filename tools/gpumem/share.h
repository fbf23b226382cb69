/* The parts of gpumem share: arguments, the attached processes, and the requests to them. */
#ifndef CLI_SHARE_H
#define CLI_SHARE_H

#include <gpumem/gpumem.h>
#include <stdbool.h>
#include <sys/types.h>

#define SHARE_MOST_PROCESSES 32
#define SHARE_MOST_SECONDS   60 /* for one step of one of them */
/* Bytes that each process writes, in order: the owner's part is the first. */
#define SHARE_PART ((size_t)4096)

/* Arguments that gpumem share and attaching processes have in common. */
struct share_place {
    const char *driver;
    int device;
    const char *path; /* of the socket; NULL, only for the owner: an abstract name of its own */
};

/* Values in a command's table of options; its own options follow. */
enum share_option { SHARE_DRIVER = 256, SHARE_DEVICE, SHARE_AT, SHARE_OWN_OPTIONS };

/* Handles one of the command's own options, from SHARE_OWN_OPTIONS on; false: its value is
 * invalid. */
typedef bool (*share_option_fn)(int option, const char *value, void *arguments);

/* Reads the options of a command. CLI_OK, or an exit status after reporting why. */
struct option;
int share_parse(const char *command, int argc, char **argv, const struct option *options,
                struct share_place *place, share_option_fn own, void *arguments);

/* Runs the command with driver and device open; returns its exit status. */
typedef int (*share_run_fn)(const void *arguments, gpumem_library *library, gpumem_device *device);
int share_on_device(const struct share_place *place, share_run_fn run, const void *arguments);

struct share_arguments {
    struct share_place place;
    uint64_t bytes; /* initially; the buffer grows to twice as much */
    unsigned processes;
    bool json;
};

struct share_process {
    pid_t pid; /* 0: it has ended */
    int connection;
};

enum share_word {
    SHARE_UPDATE = 'u', /* request the growth */
    SHARE_WRITE = 'w',  /* write your part */
    SHARE_CHECK = 'c',  /* check the parts of the named processes */
    SHARE_QUIT = 'q',
};

/* The owner's request to an attached process, and its answer. */
struct share_command {
    uint32_t word;
    uint32_t round;   /* of the marks to write or check */
    uint64_t offset;  /* where the parts begin */
    uint64_t writers; /* one bit for each that has written: bit 0 is the owner */
};

struct share_reply {
    uint32_t good;
    uint32_t zero;
    uint64_t address, bytes;
};

/* The byte that process `number` (0: the owner) writes to its part. */
unsigned char share_mark(unsigned number, uint32_t round);

/* Sends all bytes over a connection; false: the other side is gone. */
bool share_send(int connection, const void *data, size_t bytes);
bool share_receive(int connection, void *data, size_t bytes);

/* Checks the parts of all writers, from `offset` on. CLI_OK, or an exit status after reporting
 * why. */
int share_check(gpumem_buffer *buffer, const struct share_command *command);
int share_write(gpumem_buffer *buffer, unsigned number, const struct share_command *command);

/* Starts the processes, which attach at `path`. Records those that were started even on failure;
 * returns an exit status. */
int share_start(const struct share_arguments *arguments, const char *driver, const char *path,
                struct share_process *processes);
/* Kills it, if it is running, and waits: returns its wait status. Closes the connection. */
int share_kill(struct share_process *process);

#endif
