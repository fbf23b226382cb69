/* The parts of gpumem load: arguments, outcome, the second process. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include <gpumem/gpumem.h>
#include <gpumem/load.h>
#include <stdbool.h>
#include <sys/types.h>

struct load_arguments {
    const char *driver;
    int device;
    const char *path;
    const char *receiver; /* the program to run as second process; NULL: this one */
    unsigned threads;
    uint64_t chunk_bytes;
    bool json, quiet, no_share;
};

struct load_outcome {
    char driver_path[4096]; /* room for any path: the second process opens it */
    bool softgpu;
    int driver_version;
    gpumem_device_info device;
    uint64_t free_bytes; /* before loading */
    gpumem_load_report load;
    uint64_t device_checksum, file_checksum;
    double check_seconds;
    bool shared;
    pid_t receiver;
    size_t descriptors;
    double share_seconds;
    double total_seconds; /* from the opening of the driver to the end of the last check */
};

/* Whether SIGINT or SIGTERM has arrived. */
bool load_interrupted(void);
void load_catch_signals(void);
/* Passes these signals on to a process group, immediately, whatever this process waits for: as
 * SIGTERM, and from the second signal as SIGKILL. 0: none. */
void load_pass_signals_to(pid_t group);

void load_print_text(const struct load_outcome *outcome);
/* Returns an exit status. */
int load_print_json(const struct load_arguments *arguments, const struct load_outcome *outcome);

/*
 * Exports the buffer, starts the second process, hands it over and waits until it has checked it
 * against outcome->device_checksum. Returns an exit status, after reporting what went wrong; no
 * process, descriptor or export remains.
 */
int load_share(const struct load_arguments *arguments, gpumem_buffer *buffer,
               struct load_outcome *outcome);

#endif
