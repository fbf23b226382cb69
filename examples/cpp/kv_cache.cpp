// A cache of keys and values that grows at one address, and a second process that reads it.
#include <cstdio>
#include <cstdlib>
#include <gpumem/gpumem.hpp>
#include <span>
#include <spawn.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <vector>

extern char **environ;

constexpr std::size_t token_bytes = std::size_t{64} << 10; // keys and values of all layers
constexpr std::size_t most_tokens = 4096; // addresses for 256 MiB, which cost no memory

struct accelerator {
    gpumem::library library = gpumem::library::open();
    gpumem::device device = gpumem::device::open(library, 0);
};

// A message of our own on the connection: how many tokens are ready, 0 at the end.
void tell(int socket, std::uint64_t tokens) {
    if (::send(socket, &tokens, sizeof tokens, MSG_NOSIGNAL) != sizeof tokens)
        std::abort();
}

std::uint64_t hear(int socket) {
    std::uint64_t tokens = 0;
    return ::recv(socket, &tokens, sizeof tokens, MSG_WAITALL) == sizeof tokens ? tokens : 0;
}

// Each token's bytes are its number. Fills are queued, so the stream is waited for.
void write_tokens(gpumem::buffer_ref cache, std::size_t first, std::size_t end) {
    for (std::size_t token = first; token < end; token++)
        cache.fill(token * token_bytes, token_bytes, static_cast<unsigned char>(token));
    gpumem::stream_ref(cache.device()).synchronize();
}

bool tokens_are_right(gpumem::buffer_ref cache, std::size_t tokens) {
    std::vector<unsigned char> bytes(tokens * token_bytes);
    cache.read(0, std::as_writable_bytes(std::span(bytes)));
    gpumem::stream_ref(cache.device()).synchronize();
    for (std::size_t i = 0; i < bytes.size(); i++)
        if (bytes[i] != static_cast<unsigned char>(i / token_bytes))
            return false;
    return true;
}

// The second process: its mapping grows when it asks, at an address of its own that stays.
int read_cache(const char *path) {
    const accelerator gpu;
    const gpumem::connection connection = gpumem::connect(path);
    const gpumem::buffer cache =
        gpumem::receive_buffer(gpu.device, connection, {.capacity = most_tokens * token_bytes});
    const CUdeviceptr before = cache.pointer();
    bool right = true;
    while (const std::uint64_t tokens = hear(connection)) {
        gpumem::update_import(cache, connection);
        right = right && tokens_are_right(cache, tokens) && cache.pointer() == before;
        std::printf("reader: %llu tokens are %s\n", static_cast<unsigned long long>(tokens),
                    right ? "right, at the same address" : "wrong");
        std::fflush(stdout);
        tell(connection, tokens); // seen
    }
    return right ? 0 : 1;
}

int own_cache(char *program, const char *path) {
    const accelerator gpu;
    const gpumem::resource memory = gpumem::virtual_resource(gpu.device);
    const gpumem::listener listener = gpumem::listener::create(path);

    char word[] = "read";
    std::string copy = path;
    char *arguments[] = {program, word, copy.data(), nullptr};
    pid_t reader = 0;
    if (posix_spawn(&reader, program, nullptr, nullptr, arguments, environ) != 0)
        return 1;
    const gpumem::connection connection = listener.accept();

    std::size_t tokens = 32;
    const gpumem::buffer cache =
        memory.allocate(tokens * token_bytes, {.capacity = most_tokens * token_bytes});
    write_tokens(cache, 0, tokens);
    const gpumem::exported shared = gpumem::exported::create(cache);
    shared.send(connection);
    for (; tokens <= 512; tokens *= 4) {
        cache.grow(tokens * token_bytes);
        write_tokens(cache, tokens / 4, tokens);
        shared.update();
        tell(connection, tokens);
        shared.answer(connection); // the reader asks for the growth
        if (hear(connection) != tokens)
            break;
        std::printf("owner: the reader has seen %zu tokens\n", tokens);
        std::fflush(stdout);
    }
    tell(connection, 0);
    int status = 1;
    waitpid(reader, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int count, char **arguments) {
    try {
        if (count == 3 && std::string(arguments[1]) == "read")
            return read_cache(arguments[2]);
        if (count == 2)
            return own_cache(arguments[0], arguments[1]);
        std::fprintf(stderr, "usage: %s SOCKET\n", arguments[0]);
        return 2;
    } catch (const gpumem::error &failure) {
        std::fprintf(stderr, "%s\n", failure.message());
        return 1;
    }
}
