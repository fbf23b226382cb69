/*
 * Packets from the network, assembled in GPU memory: several threads receive UDP and write each
 * packet to its place in a chunk, in whatever order packets arrive; two streams work on each chunk
 * that is ready; its place is reused when both have finished. docs/mapped-memory.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/packet_assembler
 */
#include <arpa/inet.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAYLOAD   ((size_t)1024)
#define PER_CHUNK ((size_t)32) /* packets */
#define CHUNK     (PER_CHUNK * PAYLOAD)
#define CHUNKS    ((size_t)256) /* that the network sends */
#define PACKETS   (CHUNKS * PER_CHUNK)
#define RECEIVERS 3
#define WINDOW    ((size_t)3)  /* chunks that are being filled at a time */
#define SHUFFLED  ((size_t)16) /* packets that arrive out of order */

struct packet {
    uint64_t number;
    unsigned char payload[PAYLOAD];
};

/* A chunk that is being filled. */
struct open_chunk {
    gpumem_ring_chunk chunk;
    bool is_open, seen[PER_CHUNK];
    size_t count, writers;
};

struct assembler {
    gpumem_ring *ring;
    int socket;
    struct sockaddr_in address;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t written;
    struct open_chunk open[WINDOW]; /* by number, modulo their count */
    size_t first, end;              /* numbers of the oldest that may be open, and of the next */
    size_t received, lost, whole;
};

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

static void check_system(bool good, const char *what) {
    if (good)
        return;
    perror(what);
    exit(1);
}

static unsigned char payload_byte(uint64_t number, size_t i) {
    return (unsigned char)(number * 7 + i);
}

/* What the network loses. */
static bool is_lost(uint64_t number) {
    return number % 97 == 5;
}

/* ---- Chunks that are being filled ------------------------------------------------------------ */

/* With the lock held. Missing packets are lost: zeros take their place. */
static void commit(struct assembler *a, struct open_chunk *open) {
    for (size_t i = 0; i < PER_CHUNK; i++)
        if (!open->seen[i])
            memset((unsigned char *)open->chunk.host + i * PAYLOAD, 0, PAYLOAD);
    a->lost += PER_CHUNK - open->count;
    a->whole += open->count == PER_CHUNK;
    open->is_open = false;
    check(gpumem_ring_commit(a->ring, open->chunk.sequence, CHUNK));
    while (a->first < a->end && !a->open[a->first % WINDOW].is_open)
        a->first++;
}

/* With the lock held: gives up waiting for the rest of the oldest chunk. The caller checks again:
 * while a thread is still writing to it, this only waits for a change. */
static void commit_oldest(struct assembler *a) {
    struct open_chunk *oldest = &a->open[a->first % WINDOW];
    if (oldest->writers)
        pthread_cond_wait(&a->written, &a->lock);
    else
        commit(a, oldest);
}

/* With the lock held. Waits while the ring is full, because the streams are slower than the
 * network. */
static struct open_chunk *find(struct assembler *a, size_t number) {
    while (a->end <= number) {
        if (a->end - a->first == WINDOW) {
            commit_oldest(a);
            continue;
        }
        struct open_chunk *open = &a->open[a->end++ % WINDOW];
        *open = (struct open_chunk){.is_open = true, .chunk = {.size = sizeof open->chunk}};
        check(gpumem_ring_acquire(a->ring, 0, -1, &open->chunk));
    }
    struct open_chunk *found = &a->open[number % WINDOW];
    return number >= a->first && found->is_open ? found : NULL; /* NULL: it arrived too late */
}

/* The copy runs without the lock: threads write different packets of a chunk at once. */
static void place(struct assembler *a, const struct packet *packet) {
    size_t index = packet->number % PER_CHUNK;
    pthread_mutex_lock(&a->lock);
    struct open_chunk *open = find(a, packet->number / PER_CHUNK);
    if (open && !open->seen[index]) {
        open->writers++;
        pthread_mutex_unlock(&a->lock);
        check(gpumem_ring_write(a->ring, open->chunk.sequence, index * PAYLOAD, packet->payload,
                                PAYLOAD));
        pthread_mutex_lock(&a->lock);
        open->writers--;
        open->seen[index] = true;
        if (++open->count == PER_CHUNK)
            commit(a, open);
    }
    a->received++;
    pthread_cond_broadcast(&a->written);
    pthread_mutex_unlock(&a->lock);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *receive(void *user) {
    struct assembler *a = user;
    struct packet packet;
    ssize_t bytes;
    while ((bytes = recv(a->socket, &packet, sizeof packet, 0)) > 0)
        if ((size_t)bytes == sizeof packet && packet.number < PACKETS)
            place(a, &packet);
    check_system(bytes == 0, "recv"); /* an empty packet: the end */
    return NULL;
}

static void send_packet(struct assembler *a, int socket, const void *data, size_t bytes) {
    ssize_t sent = sendto(socket, data, bytes, 0, (struct sockaddr *)&a->address,
                          (socklen_t)sizeof a->address);
    check_system(sent == (ssize_t)bytes, "sendto");
}

/* Not faster than the receivers, so that only what is meant to be lost is lost. */
static void wait_for_receivers(struct assembler *a, size_t received) {
    pthread_mutex_lock(&a->lock);
    while (a->received < received)
        pthread_cond_wait(&a->written, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

static void *play_network(void *user) {
    struct assembler *a = user;
    size_t sent = 0;
    struct packet packet;
    int from = socket(AF_INET, SOCK_DGRAM, 0);
    check_system(from >= 0, "socket");
    for (size_t i = 0; i < PACKETS; i++) {
        if (i % SHUFFLED == 0)
            wait_for_receivers(a, sent);
        packet.number = i / SHUFFLED * SHUFFLED + i * 7 % SHUFFLED;
        if (is_lost(packet.number))
            continue;
        for (size_t k = 0; k < PAYLOAD; k++)
            packet.payload[k] = payload_byte(packet.number, k);
        send_packet(a, from, &packet, sizeof packet);
        sent++;
    }
    wait_for_receivers(a, sent);
    pthread_mutex_lock(&a->lock);
    while (a->first < a->end)
        commit_oldest(a);
    pthread_mutex_unlock(&a->lock);
    check(gpumem_ring_close(a->ring));
    for (int i = 0; i < RECEIVERS; i++)
        send_packet(a, from, NULL, 0);
    close(from);
    return NULL;
}

static void open_socket(struct assembler *a) {
    socklen_t length = sizeof a->address;
    struct sockaddr *address = (struct sockaddr *)&a->address;
    a->address.sin_family = AF_INET;
    a->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a->socket = socket(AF_INET, SOCK_DGRAM, 0);
    check_system(a->socket >= 0 && bind(a->socket, address, length) == 0 &&
                     getsockname(a->socket, address, &length) == 0,
                 "socket");
}

/* ---- The GPU's side -------------------------------------------------------------------------- */

/* One stream keeps each chunk in the device's memory, the other copies it to the host. */
static void consume_all(gpumem_ring *ring, gpumem_buffer *memory, gpumem_buffer *archive,
                        gpumem_buffer *host, const CUstream streams[2]) {
    for (;;) {
        gpumem_ring_chunk chunk = {.size = sizeof chunk};
        gpumem_status status = gpumem_ring_consume(ring, -1, &chunk);
        if (status == GPUMEM_ERROR_CANCELLED) /* closed, and nothing is left */
            return;
        check(status);
        size_t place = chunk.sequence * CHUNK;
        size_t from = (size_t)(chunk.device - gpumem_buffer_pointer(memory));
        check(gpumem_buffer_copy(archive, place, memory, from, chunk.bytes, streams[0]));
        check(gpumem_buffer_copy(host, place, memory, from, chunk.bytes, streams[1]));
        check(gpumem_ring_release(ring, chunk.sequence, streams, 2, NULL, 0));
    }
}

/* Bytes that are neither what the network sent nor, where it lost them, zero. */
static size_t count_wrong(const unsigned char *bytes) {
    size_t wrong = 0;
    for (uint64_t number = 0; number < PACKETS; number++)
        for (size_t i = 0; i < PAYLOAD; i++)
            wrong += bytes[number * PAYLOAD + i] != (is_lost(number) ? 0 : payload_byte(number, i));
    return wrong;
}

static void report(gpumem_device *device, const struct assembler *a, gpumem_buffer *archive,
                   gpumem_buffer *host, const CUstream streams[2]) {
    gpumem_ring_info info = {.size = sizeof info};
    unsigned char *kept = malloc(CHUNKS * CHUNK);
    check_system(kept != NULL, "malloc");
    for (int i = 0; i < 2; i++)
        check(gpumem_stream_synchronize(device, streams[i]));
    check(gpumem_buffer_read(archive, 0, kept, CHUNKS * CHUNK, NULL));
    check(gpumem_stream_synchronize(device, NULL));
    check(gpumem_ring_get_info(a->ring, &info));
    printf("%zu packets received, %zu lost\n", a->received, a->lost);
    printf("%zu chunks through %zu places, %zu of them whole\n", (size_t)info.released,
           info.chunk_count, a->whole);
    printf("wrong bytes: %zu on the device, %zu on the host\n", count_wrong(kept),
           count_wrong(gpumem_buffer_host_pointer(host)));
    free(kept);
}

static void assemble(gpumem_device *device, struct assembler *a, gpumem_buffer *archive,
                     gpumem_buffer *host, const CUstream streams[2]) {
    pthread_t threads[RECEIVERS + 1];
    open_socket(a);
    for (int i = 0; i <= RECEIVERS; i++)
        check_system(pthread_create(&threads[i], NULL, i < RECEIVERS ? receive : play_network, a) ==
                         0,
                     "pthread_create");
    gpumem_ring_info info = {.size = sizeof info};
    gpumem_buffer *memory; /* the ring's, as a buffer to copy from */
    check(gpumem_ring_get_info(a->ring, &info));
    check(gpumem_buffer_from_pointer(device, info.device, info.bytes, NULL, &memory));
    consume_all(a->ring, memory, archive, host, streams);
    for (int i = 0; i <= RECEIVERS; i++)
        pthread_join(threads[i], NULL);
    report(device, a, archive, host, streams);
    check(gpumem_buffer_free(memory, NULL));
    close(a->socket);
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *mapped, *memory, *pinned;
    gpumem_buffer *archive, *host;
    CUstream streams[2];
    struct assembler a = {.lock = PTHREAD_MUTEX_INITIALIZER, .written = PTHREAD_COND_INITIALIZER};
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    check(gpumem_mapped_resource_create(device, NULL, &mapped));
    check(gpumem_ring_create(
        mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = CHUNK, .chunk_count = 2 * WINDOW), &a.ring));
    check(gpumem_virtual_resource_create(device, NULL, &memory));
    check(gpumem_pinned_resource_create(device, NULL, &pinned));
    check(gpumem_buffer_allocate(memory, CHUNKS * CHUNK, NULL, &archive));
    check(gpumem_buffer_allocate(pinned, CHUNKS * CHUNK, NULL, &host));

    for (int i = 0; i < 2; i++)
        check(gpumem_stream_create(device, NULL, &streams[i]));

    assemble(device, &a, archive, host, streams);

    check(gpumem_buffer_free(host, NULL));
    check(gpumem_buffer_free(archive, NULL));
    for (int i = 0; i < 2; i++)
        check(gpumem_stream_destroy(device, streams[i]));
    check(gpumem_ring_destroy(a.ring));
    check(gpumem_resource_destroy(pinned));
    check(gpumem_resource_destroy(memory));
    check(gpumem_resource_destroy(mapped));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
