// A user's program with exceptions, on softgpu: every class and function of gpumem.hpp in use, with
// the bytes looked at.
#include "expect.hpp"
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <gpumem/cpp/pmr.hpp>
#include <gpumem/dlpack_abi.h>
#include <gpumem/gpumem.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t KIB = 1024;
constexpr std::size_t MIB = KIB * KIB;

// Copies that are done on return.
void write_now(gpumem::buffer_ref to, std::size_t offset, std::span<const std::byte> data) {
    to.write(offset, data);
    gpumem::stream_ref(to.device()).synchronize();
}

void read_now(gpumem::buffer_ref from, std::size_t offset, std::span<std::byte> data) {
    from.read(offset, data);
    gpumem::stream_ref(from.device()).synchronize();
}

std::span<const std::byte> description_of(const gpumem::exported &exported) {
    const gpumem_export_info info = exported.info();
    return {static_cast<const std::byte *>(info.description), info.description_bytes};
}

// An owner is a pointer, and is moved only; a borrowed handle is a pointer, and is copied only.
template <class Owner> void is_a_pointer() {
    static_assert(sizeof(Owner) == sizeof(void *));
    static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>);
    static_assert(std::is_nothrow_move_constructible_v<Owner>);
    static_assert(std::is_nothrow_move_assignable_v<Owner>);
    static_assert(std::is_nothrow_destructible_v<Owner>);
}

template <class Ref> void is_a_borrowed_pointer() {
    static_assert(sizeof(Ref) == sizeof(void *));
    static_assert(std::is_trivially_copyable_v<Ref> && !std::is_copy_assignable_v<Ref>);
}

void handles_cost_what_pointers_cost() {
    is_a_pointer<gpumem::library>();
    is_a_pointer<gpumem::device>();
    is_a_pointer<gpumem::resource>();
    is_a_pointer<gpumem::buffer>();
    is_a_pointer<gpumem::hold>();
    is_a_pointer<gpumem::exported>();
    is_a_pointer<gpumem::reservation>();
    is_a_pointer<gpumem::physical>();
    is_a_pointer<gpumem::mapping>();
    is_a_pointer<gpumem::watch>();
    is_a_borrowed_pointer<gpumem::library_ref>();
    is_a_borrowed_pointer<gpumem::device_ref>();
    is_a_borrowed_pointer<gpumem::resource_ref>();
    is_a_borrowed_pointer<gpumem::buffer_ref>();
    // These carry a second word, which the C calls ask for as well.
    static_assert(sizeof(gpumem::stream) == 2 * sizeof(void *));
    static_assert(sizeof(gpumem::event) == 2 * sizeof(void *));
    static_assert(sizeof(gpumem::capture_pool) == 2 * sizeof(void *));
}

// What a call throws; a failed expectation and GPUMEM_OK when it throws nothing.
template <class Call> gpumem::error thrown_by(Call &&call) {
    try {
        call();
    } catch (const gpumem::error &failure) {
        return failure;
    }
    const bool threw = false;
    EXPECT(threw);
    return gpumem::error(GPUMEM_OK);
}

std::vector<std::byte> numbers(std::size_t count) {
    std::vector<std::byte> made(count);
    for (std::size_t i = 0; i < count; i++)
        made[i] = static_cast<std::byte>(i * 7 + i / 251);
    return made;
}

std::vector<std::byte> content(gpumem::buffer_ref buffer, std::size_t offset, std::size_t count) {
    std::vector<std::byte> read(count);
    buffer.read(offset, read);
    gpumem::stream_ref(buffer.device()).synchronize();
    return read;
}

void errors_carry_everything(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::error failure = thrown_by([&] { (void)memory.allocate(std::size_t{1} << 45); });
    EXPECT(failure.status() == GPUMEM_ERROR_OUT_OF_MEMORY);
    EXPECT(failure.driver_code() == 2);
    EXPECT(std::string(failure.call()) == gpumem_last_error()->call && *failure.call());
    const std::string message = failure.message();
    EXPECT(message == gpumem_last_error()->message && message == failure.what());
    // It is a value of its own, and a standard exception.
    (void)thrown_by([&] { (void)memory.allocate(0); });
    EXPECT(message == failure.message());
    static_assert(std::is_base_of_v<std::exception, gpumem::error>);
    gpumem::error copy = failure;
    std::thread([copy, &message] { EXPECT(message == copy.message()); }).join();
    copy = gpumem::error(GPUMEM_ERROR_BUSY);
    EXPECT(copy.what() == std::string(gpumem_status_name(GPUMEM_ERROR_BUSY)));
    EXPECT(message == failure.message());
    // The other form of the same call.
    const gpumem::result<gpumem::buffer> refused = memory.try_allocate(0);
    EXPECT(!refused && refused.error().status() == GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(thrown_by([&] { (void)gpumem::or_throw(memory.try_allocate(0)); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(memory.try_allocate(1).value().size() == 1);
    const gpumem::error no_file =
        thrown_by([&] { (void)gpumem::file_checksum("/nowhere/at/all"); });
    EXPECT(no_file.status() == GPUMEM_ERROR_SYSTEM && no_file.system_code() == ENOENT);
}

void ownership_moves(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const auto live = [&] { return memory.stats().allocations; };
    gpumem::buffer first = memory.allocate(MIB);
    gpumem_buffer *const pointer = first.get();
    gpumem::buffer second = std::move(first);
    EXPECT(!first && second.get() == pointer && live() == 1);
    second = memory.allocate(MIB);
    EXPECT(second.get() != pointer && live() == 1);
    gpumem_buffer *const out = second.release();
    EXPECT(!second && live() == 1);
    gpumem::buffer back = gpumem::buffer::adopt(out);
    EXPECT(back.get() == out && gpumem::buffer_ref(back) == gpumem::buffer_ref(out));
    back.reset();
    EXPECT(live() == 0);
    back.close(); // of nothing
    std::vector<gpumem::buffer> several;
    for (int i = 0; i < 5; i++)
        several.push_back(memory.allocate(KIB));
    EXPECT(live() == 5);
    several.erase(several.begin() + 1);
    EXPECT(live() == 4);
}

gpumem_status refused_for;

void note_refusal(const gpumem_error &why) noexcept {
    refused_for = why.status;
}

void refusals_of_destructors_are_told(gpumem::device_ref device) {
    const gpumem::refusal_fn former = gpumem::set_refusal(note_refusal);
    gpumem::resource memory = gpumem::virtual_resource(device);
    gpumem_resource *const pointer = memory.get();
    gpumem::buffer buffer = memory.allocate(MIB);
    EXPECT(thrown_by([&] { memory.close(); }).status() == GPUMEM_ERROR_BUSY);
    EXPECT(memory.get() == pointer); // still the owner's
    memory.reset();
    EXPECT(refused_for == GPUMEM_ERROR_BUSY);
    EXPECT(buffer.resource().stats().allocations == 1); // it stayed
    buffer.reset();
    gpumem::resource::adopt(pointer).close();
    EXPECT(gpumem::set_refusal(former) == note_refusal);
}

void the_library_tells_of_itself(gpumem::library_ref library, gpumem::device_ref device) {
    EXPECT(library.info().softgpu == 1 && library.driver() != nullptr);
    EXPECT(library.info().device_count >= 1);
    EXPECT(library.device_info(0).memory_bytes == device.info().memory_bytes);
    EXPECT(device.library() == library && device.ordinal() == 0 && device.context() != nullptr);
    EXPECT(device.memory().total_bytes >= device.memory().free_bytes);
    EXPECT(device.capability(GPUMEM_CAPABILITY_VIRTUAL_MEMORY).supported == 1);
    EXPECT(thrown_by([&] { (void)device.can_access_peer(1000); }).status() != GPUMEM_OK);
    const gpumem_device_info info = device.info();
    const gpumem::device again = gpumem::device::open(library, std::span(info.uuid));
    EXPECT(again == device && again.cuda_device() == device.cuda_device());
    EXPECT(library.stats().allocations == device.stats().allocations);
    device.trim(true);
    EXPECT(thrown_by([&] { (void)gpumem::device::open(library, 1000); }).status() ==
           GPUMEM_ERROR_NO_DEVICE);
    EXPECT(thrown_by([] { (void)gpumem::library::open({.driver = "/no/driver.so"}); }).status() ==
           GPUMEM_ERROR_NO_DRIVER);
}

void buffers_grow_in_place(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device, {.exact_growth = true});
    const gpumem::buffer buffer = memory.allocate(2 * MIB, {.capacity = 64 * MIB});
    const CUdeviceptr before = buffer.pointer();
    const std::vector<std::byte> data = numbers(3 * KIB);
    buffer.write(MIB, data);
    buffer.grow(32 * MIB);
    EXPECT(buffer.pointer() == before && buffer.size() == 32 * MIB);
    EXPECT(buffer.capacity() == 64 * MIB && buffer.committed() == 32 * MIB &&
           buffer.layout().segment_count > 1);
    EXPECT(content(buffer, MIB, data.size()) == data);
    EXPECT(thrown_by([&] { buffer.grow(65 * MIB); }).status() == GPUMEM_ERROR_OUT_OF_CAPACITY);
    {
        const gpumem::hold held = buffer.hold();
        EXPECT(thrown_by([&] { buffer.shrink(2 * MIB); }).status() == GPUMEM_ERROR_BUSY);
    }
    buffer.shrink(2 * MIB);
    EXPECT(buffer.size() == 2 * MIB && content(buffer, MIB, data.size()) == data);
    EXPECT(buffer.device() == device && buffer.resource() == memory);
    EXPECT(buffer.host_pointer() == nullptr);
}

void holds_outlive_buffers(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    gpumem::buffer buffer = memory.allocate(MIB);
    gpumem::hold held = buffer.hold();
    buffer.free(nullptr);
    EXPECT(!buffer && memory.stats().committed_bytes != 0);
    held.reset();
    EXPECT(memory.stats().committed_bytes == 0);
}

void copies_move_bytes(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::device_pool_resource(device);
    const gpumem::stream stream = gpumem::stream::create(device);
    const gpumem::buffer from = memory.allocate(MIB, {.stream = stream});
    const gpumem::buffer to = memory.allocate(MIB, {.stream = stream});
    const std::vector<std::byte> data = numbers(KIB);
    from.write(5, data, stream);
    to.fill(0, MIB, 0xa5, stream);
    to.copy_from(100, from, 5, KIB, stream);
    to.copy_from(5000, from, 5, KIB, stream);
    to.fill(5000, 1, 0x11, stream);
    to.use(stream);
    stream.synchronize();
    EXPECT(stream.done());
    EXPECT(content(to, 100, KIB) == data && content(to, 99, 1)[0] == std::byte{0xa5});
    EXPECT(content(to, 5000, 1)[0] == std::byte{0x11} && content(to, 5001, 1)[0] == data[1]);
    EXPECT(thrown_by([&] { to.write(MIB, data); }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
}

void rows_patterns_and_batches(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::buffer from = memory.allocate(MIB);
    const gpumem::buffer to = memory.allocate(MIB);
    const std::vector<std::byte> data = numbers(KIB);
    const auto row = [](const std::vector<std::byte> &of, std::size_t at) {
        return std::vector<std::byte>(of.begin() + static_cast<std::ptrdiff_t>(at),
                                      of.begin() + static_cast<std::ptrdiff_t>(at + 8));
    };
    const std::array<std::byte, 2> pattern{std::byte{0x12}, std::byte{0x34}};
    to.fill_pattern(0, MIB, pattern);
    from.write_2d(0, data.data(), {.width = 8, .count = 4, .to_pitch = 16, .from_pitch = 8});
    to.copy_from_2d(0, from, 0, {.width = 8, .count = 4, .to_pitch = 32, .from_pitch = 16});
    to.copy_from_2d(KIB, from, 0, {.width = 8, .count = 2, .to_pitch = 8, .from_pitch = 16});
    const std::vector<std::byte> seen = content(to, 0, 3 * KIB);
    EXPECT(row(seen, 0) == row(data, 0) && row(seen, 96) == row(data, 24));
    EXPECT(seen[8] == pattern[0] && seen[9] == pattern[1]);
    EXPECT(row(seen, KIB + 8) == row(data, 8));
    std::vector<std::byte> packed(32);
    to.read_2d(0, packed.data(), {.width = 8, .count = 4, .to_pitch = 8, .from_pitch = 32});
    gpumem::stream_ref(device).synchronize();
    EXPECT(std::memcmp(packed.data(), data.data(), packed.size()) == 0);

    write_now(from, 0, data);
    const std::array<gpumem_buffer_copy_item, 2> items{
        {{to.get(), 0, from.get(), 0, 16}, {to.get(), 64, from.get(), 16, 16}}};
    EXPECT(gpumem::copy_batch(items).copies == 2);
    const std::vector<std::byte> after = content(to, 0, KIB);
    EXPECT(row(after, 8) == row(data, 8) && row(after, 64) == row(data, 16));
    EXPECT(thrown_by([&] { to.fill_pattern(0, MIB, std::span(data).first(3)); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void virtual_buffers_change(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(
        device, {.handle_type = GPUMEM_HANDLE_NONE, .give_back_bytes = 2 * MIB});
    const gpumem::buffer buffer = memory.allocate(8 * MIB);
    const std::vector<std::byte> data = numbers(KIB);
    write_now(buffer, 0, data);
    EXPECT(buffer.layout().segment_count == 4);
    EXPECT(buffer.decommit(2 * MIB, 4 * MIB) == 4 * MIB && buffer.committed() == 4 * MIB);
    buffer.recommit(2 * MIB, 4 * MIB);
    EXPECT(buffer.committed() == 8 * MIB && content(buffer, 0, KIB) == data);

    buffer.set_access(0, 2 * MIB, device.ordinal(), GPUMEM_ACCESS_READ);
    EXPECT(buffer.get_access(0, device.ordinal()) == GPUMEM_ACCESS_READ);
    EXPECT(buffer.get_access(2 * MIB, device.ordinal()) == GPUMEM_ACCESS_READ_WRITE);
    memory.set_access(device.ordinal());
    EXPECT(buffer.get_access(0, device.ordinal()) == GPUMEM_ACCESS_READ_WRITE);
    EXPECT(memory.get_access(device.ordinal()) == GPUMEM_ACCESS_READ_WRITE);
    EXPECT(thrown_by([&] { memory.set_access(1000); }).status() != GPUMEM_OK);

    std::array<gpumem_segment, 2> segments{};
    const gpumem_layout layout = buffer.layout(segments);
    EXPECT(layout.segment_count == 4 && layout.bytes == 8 * MIB);
    EXPECT(segments[1].offset == 2 * MIB && segments[1].bytes == 2 * MIB);
    const CUdeviceptr address = buffer.move_to_capacity(64 * MIB);
    EXPECT(buffer.pointer() == address && buffer.capacity() == 64 * MIB);
    EXPECT(content(buffer, 0, KIB) == data);
    EXPECT(buffer.layout().generation != layout.generation);
    buffer.mark_shared();
    EXPECT(buffer.attributes().ordinal == device.ordinal());

    const gpumem::resource pool = gpumem::device_pool_resource(device);
    const gpumem::buffer other = pool.allocate(MIB);
    EXPECT(thrown_by([&] { (void)other.decommit(0, MIB); }).status() == GPUMEM_ERROR_NOT_SUPPORTED);
}

void freed_memory_is_kept(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device, {.cache_bytes = 8 * MIB});
    memory.allocate(2 * MIB).reset();
    EXPECT(memory.stats().cached_bytes == 2 * MIB && memory.stats().allocations == 0);
}

void views_are_parts(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    gpumem::buffer buffer = memory.allocate(4 * MIB);
    const gpumem::buffer view = buffer.view(MIB, KIB);
    EXPECT(view.pointer() == buffer.pointer() + MIB && view.size() == KIB);
    EXPECT(view.attributes().viewed == buffer.get() && !buffer.attributes().viewed);
    const std::vector<std::byte> data = numbers(KIB);
    write_now(view, 0, data);
    EXPECT(content(buffer, MIB, KIB) == data);
    buffer.reset();
    EXPECT(content(view, 0, KIB) == data); // it holds the buffer
    EXPECT(thrown_by([&] { (void)view.view(0, MIB); }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
}

void foreign_memory_goes_back(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::buffer owner = memory.allocate(2 * MIB);
    const std::vector<std::byte> data = numbers(KIB);
    write_now(owner, 0, data);
    std::size_t given_back = 0;
    auto give_back = [&](CUdeviceptr pointer, std::size_t bytes, CUstream) {
        EXPECT(pointer == owner.pointer());
        given_back += bytes;
    };
    {
        const gpumem::buffer foreign =
            gpumem::buffer_from_pointer(device, owner.pointer(), MIB, {.deleter = give_back});
        EXPECT(!foreign.resource() && foreign.attributes().foreign == 1);
        EXPECT(content(foreign, 0, KIB) == data && given_back == 0);
    }
    device.trim(true);
    EXPECT(given_back == MIB);
    auto throwing = [&](CUdeviceptr, std::size_t, CUstream) {
        given_back = 0;
        throw std::runtime_error("enough");
    };
    gpumem::buffer_from_pointer(device, owner.pointer(), MIB, {.deleter = throwing}).reset();
    device.trim(true);
    EXPECT(given_back == 0);
    const gpumem::buffer locked =
        gpumem::buffer_from_pointer(device, owner.pointer(), MIB, {.read_only = true});
    EXPECT(thrown_by([&] { locked.fill(0, 1, 0); }).status() == GPUMEM_ERROR_NOT_PERMITTED);
    EXPECT(thrown_by([&] { (void)gpumem::buffer_from_pointer(device, 0, MIB); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void tensors_are_buffers(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::buffer buffer = memory.allocate(MIB);
    const std::vector<std::byte> data = numbers(KIB);
    write_now(buffer, 0, data);
    const std::array<std::int64_t, 2> shape{16, 32};
    const std::array<std::int64_t, 2> strides{32, 1};
    DLManagedTensorVersioned *const tensor =
        gpumem::to_dlpack(buffer, {.code = kDLFloat, .bits = 16, .shape = shape});
    EXPECT(tensor->dl_tensor.ndim == 2 && tensor->dl_tensor.shape[1] == 32);
    {
        const gpumem::buffer back = gpumem::buffer_from_dlpack(device, tensor);
        EXPECT(back.size() == KIB && back.pointer() == buffer.pointer());
        EXPECT(content(back, 0, KIB) == data);
    }
    {
        DLManagedTensor *const old = gpumem::to_dlpack_unversioned(
            buffer, {.code = kDLFloat, .bits = 16, .shape = shape, .strides = strides});
        const gpumem::buffer back = gpumem::buffer_from_dlpack_unversioned(device, old);
        EXPECT(back.size() == KIB);
    }
    device.trim(true);
    // Fewer strides than the shape has dimensions are not read.
    EXPECT(thrown_by([&] {
               (void)gpumem::to_dlpack(buffer,
                                       {.shape = shape, .strides = std::span(strides).first(1)});
           }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(thrown_by([&] {
               (void)gpumem::to_dlpack_unversioned(buffer, {.read_only = true});
           }).status() == GPUMEM_ERROR_NOT_SUPPORTED);
}

void memory_is_watched(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(
        device, {.handle_type = GPUMEM_HANDLE_NONE, .give_back_bytes = 2 * MIB});
    std::vector<gpumem_watch_reason> reasons;
    std::size_t all = 0;
    auto note = [&](const gpumem_watch_event &event) { reasons.push_back(event.reason); };
    auto throwing = [&](const gpumem_watch_event &) {
        all++;
        throw std::runtime_error("enough");
    };
    const gpumem::watch of_all = gpumem::watch::create(memory, throwing);
    gpumem::buffer buffer = memory.allocate(8 * MIB);
    {
        gpumem::watch of_one = gpumem::watch::create(buffer, note);
        buffer.shrink(4 * MIB);
        EXPECT(reasons == std::vector<gpumem_watch_reason>({GPUMEM_WATCH_SHRINK}));
        of_one.close();
        EXPECT(!of_one);
    }
    buffer.reset();
    device.trim(true);
    EXPECT(reasons.size() == 1 && all == 2); // the shrink and the free
}

struct registrar {
    std::size_t bytes = 0;
    bool throws = false;
    gpumem_status added(const gpumem_watch_event &event) {
        if (throws)
            throw std::runtime_error("enough");
        bytes += event.bytes;
        return GPUMEM_OK;
    }
    void gone(const gpumem_watch_event &event) {
        bytes -= event.bytes;
    }
};

void ranges_are_watched(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::resource cache = gpumem::caching_resource(memory);
    registrar told;
    const gpumem::watch watch = gpumem::watch::create_of_ranges(cache, told);
    const gpumem::buffer buffer = cache.allocate(4 * MIB);
    EXPECT(told.bytes == 4 * MIB);
    told.throws = true;
    const auto refused = cache.try_allocate(8 * MIB);
    EXPECT(!refused && refused.error().status() == GPUMEM_ERROR_CANCELLED);
    EXPECT(told.bytes == 4 * MIB);
}

void streams_and_events_are_cudas(gpumem::device_ref device) {
    gpumem::stream stream = gpumem::stream::create(device, {.blocking = true, .priority = -1});
    const gpumem::stream other = gpumem::stream::create(device);
    const gpumem::event start = gpumem::event::create(device, {.timing = true});
    gpumem::event end = gpumem::event::create(device, {.timing = true, .blocking_wait = true});
    start.record(stream);
    end.record(stream);
    other.wait(end);
    end.synchronize();
    EXPECT(end.done() && end.milliseconds_since(start) >= 0.0F);
    const CUstream raw = stream;
    gpumem::stream moved = std::move(stream);
    EXPECT(!stream && moved.get() == raw && moved.device() == device);
    moved = gpumem::stream::create(device);
    EXPECT(moved.get() != nullptr);
    gpumem::stream adopted = gpumem::stream::adopt(device, moved.release());
    EXPECT(!moved && adopted);
    adopted.close();
    EXPECT(!adopted);
    end = gpumem::event::create(device);
    const gpumem::event_ref borrowed(device, end);
    borrowed.record();
    borrowed.synchronize();
}

void every_resource_gives_memory(gpumem::device_ref device) {
    const std::vector<std::byte> data = numbers(KIB);
    const gpumem::resource pinned = gpumem::pinned_resource(device, {.slab_bytes = 4 * MIB});
    const gpumem::resource managed = gpumem::managed_resource(device, {.read_mostly = true});
    const gpumem::resource pool = gpumem::device_pool_resource(device, {.pool = GPUMEM_POOL_OWN});
    const std::array<int, 0> peers{};
    const gpumem::resource base = gpumem::virtual_resource(device, {.peers = peers});
    const gpumem::resource limited = gpumem::limiting_resource(base, 3 * MIB);
    std::string log;
    const gpumem::resource logged = gpumem::logging_resource(
        limited, {.level = GPUMEM_LOG_INFO,
                  .name = "tried",
                  .fn = [](void *user, gpumem_log_level,
                           const char *text) { static_cast<std::string *>(user)->append(text); },
                  .user = &log});
    for (const gpumem::resource *memory : {&pinned, &managed, &pool, &base, &limited, &logged}) {
        const gpumem::buffer buffer = memory->allocate(MIB);
        buffer.write(3, data);
        EXPECT(content(buffer, 3, KIB) == data);
        EXPECT(memory->device() == device && *memory->properties().kind);
        EXPECT(memory->stats().allocations == 1);
        if (memory->properties().host_accessible)
            EXPECT(std::memcmp(static_cast<std::byte *>(buffer.host_pointer()) + 3, data.data(),
                               KIB) == 0);
    }
    EXPECT(log.find("tried") != std::string::npos);
    EXPECT(thrown_by([&] { (void)limited.allocate(4 * MIB); }).status() ==
           GPUMEM_ERROR_OUT_OF_CAPACITY);
    pinned.trim();
    EXPECT(pinned.stats().cached_bytes == 0);
}

void caching_and_captures(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::device_pool_resource(device);
    const gpumem::resource cache = gpumem::caching_resource(memory, {.segment_bytes = 4 * MIB});
    {
        const gpumem::stream stream = gpumem::stream::create(device);
        CUdeviceptr where = 0;
        for (int i = 0; i < 3; i++) {
            const gpumem::buffer small = cache.allocate(256, {.stream = stream});
            EXPECT(where == 0 || small.pointer() == where);
            where = small.pointer();
        }
        EXPECT(cache.caching_info().segments == 1);
        gpumem::capture_pool pool = gpumem::capture_pool::create(cache);
        {
            gpumem::capture_scope scope = pool.begin(stream);
            EXPECT(pool.try_close().error().status() == GPUMEM_ERROR_BUSY && pool);
            const gpumem::buffer captured = cache.allocate(256, {.stream = stream});
            EXPECT(captured.pointer() != where);
            EXPECT(thrown_by([&] { (void)pool.begin(stream); }).status() ==
                   GPUMEM_ERROR_INVALID_ARGUMENT);
            gpumem::capture_scope moved = std::move(scope);
            scope.end(); // of nothing
            moved.end();
        }
        { const gpumem::capture_scope scope = pool.begin(stream); }
        pool.launched(stream);
        gpumem::capture_pool taken = std::move(pool);
        EXPECT(!pool && taken.get());
        taken = gpumem::capture_pool::adopt(taken.release());
        taken.close();
        stream.synchronize();
        cache.forget_stream(stream);
    }
    EXPECT(thrown_by([&] { (void)memory.caching_info(); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void virtual_memory_by_hand(gpumem::device_ref device) {
    const std::size_t unit = gpumem::physical_granularity(device);
    const gpumem::reservation where = gpumem::reservation::create(device, 2 * unit);
    const gpumem::physical memory = gpumem::physical::create(device, unit);
    EXPECT(where.info().bytes == 2 * unit && memory.properties().bytes == unit);
    gpumem::mapping mapping = gpumem::mapping::create(where, unit, memory);
    EXPECT(mapping.info().address == where.info().address + unit && mapping.info().bytes == unit);
    EXPECT(mapping.get_access(0) == GPUMEM_ACCESS_NONE);
    where.set_access(mapping.info().offset, unit, 0);
    EXPECT(mapping.get_access(0) == GPUMEM_ACCESS_READ_WRITE);
    const gpumem_physical_share_handle handle = memory.export_as(GPUMEM_HANDLE_POSIX_FD);
    const gpumem::physical imported = gpumem::physical::import_from(device, handle, unit);
    ::close(handle.descriptor);
    const gpumem::mapping twin = gpumem::mapping::create(where, 0, imported);
    where.set_access(0, unit, 0, GPUMEM_ACCESS_READ);
    gpumem::buffer_from_pointer(device, mapping.info().address, 16).fill(0, 16, 0x5a);
    std::array<std::byte, 16> read{};
    const gpumem::buffer seen = gpumem::buffer_from_pointer(device, twin.info().address, 16);
    read_now(seen, 0, read);
    EXPECT(read[15] == std::byte{0x5a});
    EXPECT(thrown_by([&] { (void)gpumem::mapping::create(where, 0, memory); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    mapping.close();
}

/* By path, with growth, an end of the sharing, and an event. */
void buffers_grow_where_they_are_shared(gpumem::device_ref device) {
    const gpumem::resource memory =
        gpumem::virtual_resource(device, {.maximum_chunk_bytes = 2 * MIB});
    gpumem::buffer buffer = memory.allocate(2 * MIB, {.capacity = 16 * MIB});
    gpumem::exported exported = gpumem::exported::create(buffer);
    const std::string path = "@gpumem-cpp-" + std::to_string(::getpid());
    const gpumem::listener listener = gpumem::listener::create(path.c_str());
    EXPECT(listener.descriptor() > 2);
    std::thread owner([&] {
        const gpumem::connection importer = listener.accept({.timeout_ms = 20000});
        EXPECT(importer.pid() == ::getpid() && importer.user() == ::getuid());
        exported.send(importer);
        buffer.grow(4 * MIB);
        buffer.write(3 * MIB, numbers(KIB));
        gpumem::stream_ref(device).synchronize();
        exported.update();
        exported.answer(importer);
        exported.detach();
        buffer.shrink(2 * MIB);
        EXPECT(!exported.try_answer(importer).has_value());
    });
    {
        const gpumem::connection to = gpumem::connect(path.c_str());
        const gpumem::buffer imported = gpumem::receive_buffer(device, to, {.capacity = 8 * MIB});
        const CUdeviceptr address = imported.pointer();
        gpumem::update_import(imported, to, {.maximum_bytes = 4 * MIB});
        EXPECT(imported.size() == 4 * MIB && imported.pointer() == address);
        EXPECT(content(imported, 3 * MIB, KIB) == numbers(KIB));
        EXPECT(thrown_by([&] { gpumem::update_import(imported, to); }).status() ==
               GPUMEM_ERROR_PEER);
        owner.join();
        EXPECT(content(imported, 3 * MIB, KIB) == numbers(KIB));
        EXPECT(thrown_by([&] { gpumem::extend_import(imported, {}, {}); }).status() ==
               GPUMEM_ERROR_INVALID_ARGUMENT);
    }
    const gpumem::event event = gpumem::event::create(device, {.interprocess = true});
    const gpumem::exported of_event = gpumem::exported::create_event(event);
    EXPECT(of_event.info().bytes == 0 && of_event.info().descriptor_count == 0);
    /* The process that made it cannot open it. */
    (void)thrown_by([&] { (void)gpumem::import_event(device, description_of(of_event)); });
    EXPECT(!gpumem::try_receive_event(device, -1).has_value());
    EXPECT(thrown_by([&] { (void)gpumem::receive_event(device, -1); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void buffers_are_shared(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::buffer buffer = memory.allocate(4 * MIB);
    const std::vector<std::byte> data = numbers(KIB);
    buffer.write(MIB, data);
    gpumem::stream_ref(device).synchronize();
    const gpumem::exported exported = gpumem::exported::create(buffer);
    const gpumem_export_info info = exported.info();
    EXPECT(info.bytes == 4 * MIB && info.descriptor_count == buffer.layout().segment_count);
    const std::span descriptors(info.descriptors, info.descriptor_count);
    {
        const gpumem::buffer imported =
            gpumem::import_buffer(device, description_of(exported), descriptors);
        EXPECT(!imported.resource() && content(imported, MIB, KIB) == data);
    }
    int sockets[2];
    EXPECT(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    {
        std::thread sender([&] { exported.send(sockets[0], {.timeout_ms = 20000}); });
        const gpumem::buffer received =
            gpumem::receive_buffer(device, sockets[1], {.access = GPUMEM_ACCESS_READ});
        sender.join();
        EXPECT(content(received, MIB, KIB) == data);
    }
    ::close(sockets[0]);
    ::close(sockets[1]);
}

void files_are_loaded(gpumem::device_ref device, const char *file) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::resource pinned = gpumem::pinned_resource(device);
    int told = 0;
    const gpumem::loaded loaded = gpumem::load_file(
        memory, file, {.pinned = pinned, .progress = [&](const gpumem_load_progress &now) {
                           told++;
                           return now.bytes_done <= now.bytes_total;
                       }});
    EXPECT(told > 0 && loaded.report.bytes == loaded.buffer.size());
    EXPECT(gpumem::checksum(loaded.buffer) == gpumem::file_checksum(file));
    const auto stop = [](const gpumem_load_progress &) { return false; };
    EXPECT(thrown_by([&] { (void)gpumem::load_file(memory, file, {.progress = stop}); }).status() ==
           GPUMEM_ERROR_CANCELLED);
    // What the callable throws comes out, through the C library and without passing it.
    bool caught = false;
    try {
        (void)gpumem::try_load_file(memory, file,
                                    {.progress = [](const gpumem_load_progress &) -> bool {
                                        throw std::runtime_error("enough");
                                    }});
    } catch (const std::runtime_error &enough) {
        caught = std::string(enough.what()) == "enough";
    }
    EXPECT(caught && memory.stats().allocations == 1);
}

// A resource of the user's that hands on another's buffers.
gpumem_status hand_on(void *user, const gpumem_request *request, gpumem_allocation *allocation) {
    gpumem::result<gpumem::buffer> made =
        static_cast<gpumem::resource *>(user)->try_allocate(request->bytes);
    if (!made)
        return made.error().status();
    allocation->pointer = made->pointer();
    allocation->bytes = allocation->capacity = made->size();
    allocation->committed_bytes = made->committed();
    allocation->cookie = made->release();
    return GPUMEM_OK;
}

void the_cpu_writes_device_memory(gpumem::device_ref device) {
    const std::vector<std::byte> data = numbers(KIB);
    std::vector<std::byte> back(KIB);
    const gpumem::resource mapped =
        gpumem::mapped_resource(device, {.method = GPUMEM_MAPPED_DESCRIPTOR, .capacity = 8 * MIB});
    EXPECT(gpumem::mapped_info(mapped).method == GPUMEM_MAPPED_DESCRIPTOR);
    const gpumem::buffer buffer = mapped.allocate(2 * MIB);
    gpumem::mapped_write(buffer, 5, data);
    gpumem::mapped_read(buffer, 5, back);
    EXPECT(back == data);
    gpumem::mapped_flush(buffer, 0, KIB);
    gpumem::mapped_invalidate(buffer, 0, KIB);
    gpumem::mapped_publish(buffer, 0, std::span(data).first(8), KIB, 3);
    EXPECT(static_cast<const unsigned *>(buffer.host_pointer())[KIB / sizeof(unsigned)] == 3);
    EXPECT(!gpumem::try_mapped_publish(buffer, 0, data, 4, 1));
    EXPECT(gpumem::mapped_info(mapped).copy_measured != GPUMEM_MEASURED_HERE);
    gpumem::mapped_calibrate(
        mapped, {.maximum_bytes = 4 * KIB, .run_nanoseconds = 1000, .keep_nothing = true});
    EXPECT(gpumem::mapped_info(mapped).copy_measured == GPUMEM_MEASURED_HERE);
    gpumem::mapped_write(buffer, 5, data);
    gpumem::mapped_read(buffer, 5, back);
    EXPECT(back == data);

    const gpumem::resource bounded = gpumem::mapped_resource(
        device,
        {.method = GPUMEM_MAPPED_DESCRIPTOR, .slab_bytes = 2 * MIB, .maximum_bytes = 4 * MIB});
    const gpumem::buffer small = bounded.allocate(100);
    EXPECT(small.capacity() == 100 && bounded.stats().committed_bytes == 2 * MIB);
    EXPECT(bounded.allocate(KIB).size() == KIB && bounded.stats().committed_bytes == 2 * MIB);
    EXPECT(thrown_by([&] { (void)bounded.allocate(4 * MIB); }).status() ==
           GPUMEM_ERROR_OUT_OF_CAPACITY);

    const gpumem::resource plain = gpumem::virtual_resource(device, {.capacity = 8 * MIB});
    const gpumem::buffer viewed = plain.allocate(2 * MIB);
    EXPECT(!gpumem::try_mapped_write(viewed, 0, data));
    gpumem::buffer view = gpumem::host_view(viewed);
    std::byte *place = static_cast<std::byte *>(view.host_pointer());
    viewed.grow(4 * MIB);
    place[3 * MIB] = data[1];
    gpumem::mapped_flush(view, 3 * MIB, 1);
    gpumem::mapped_invalidate(view, 3 * MIB, 1);
    back.resize(1);
    read_now(viewed, 3 * MIB, back);
    EXPECT(back[0] == data[1] && gpumem::buffer_mapped_info(view).atom >= 1);
    gpumem::mapped_write(view, 3 * MIB, data);
    back.resize(data.size());
    gpumem::mapped_read(view, 3 * MIB, back);
    EXPECT(back == data && view.size() == 4 * MIB &&
           !gpumem::try_mapped_write(view, 4 * MIB, data));
    view.close();
    EXPECT(!view);
}

void chunks_go_round(gpumem::device_ref device) {
    const std::vector<std::byte> data = numbers(KIB);
    const gpumem::resource mapped =
        gpumem::mapped_resource(device, {.method = GPUMEM_MAPPED_DESCRIPTOR});
    gpumem::ring ring =
        gpumem::ring::create(mapped, {.chunk_bytes = 3 * KIB, .chunk_count = 2, .mirrored = true});
    const gpumem::stream stream = gpumem::stream::create(device);
    const gpumem::event event = gpumem::event::create(device);
    const std::array<CUstream, 1> streams{stream.get()};
    const std::array<CUevent, 1> events{event.get()};
    for (int i = 0; i < 3; i++) {
        const gpumem_ring_chunk chunk = ring.acquire();
        ring.write(chunk.sequence, 1, data);
        ring.flush(chunk.sequence, 0, 1);
        ring.commit(chunk.sequence, KIB + 1);
        const gpumem_ring_chunk full = ring.consume(0);
        EXPECT(full.sequence == chunk.sequence && full.bytes == KIB + 1);
        std::vector<std::byte> back(KIB);
        const gpumem::buffer there = gpumem::buffer_from_pointer(device, full.device, full.bytes);
        there.read(1, back, stream);
        event.record(stream);
        if (i == 0)
            ring.release(full.sequence, {}, events);
        else
            ring.release(full.sequence, streams);
        gpumem::stream_ref(device, stream).synchronize();
        EXPECT(back == data);
    }
    const gpumem::result<gpumem_ring_chunk> none = ring.try_consume(1);
    EXPECT(!none && none.error().status() == GPUMEM_ERROR_TIMED_OUT);
    ring.abandon(ring.acquire(KIB).sequence);
    ring.stop();
    EXPECT(ring.info().closed == 1 && ring.info().acquired == 4);
    EXPECT(ring.try_acquire().error().status() == GPUMEM_ERROR_CANCELLED);
    ring.close();
    EXPECT(!ring);
}

void take_back(void *, const gpumem_allocation *allocation, CUstream) {
    gpumem::buffer::adopt(static_cast<gpumem_buffer *>(allocation->cookie)).reset();
}

void no_properties(void *, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
}

void own_resources_work(gpumem::device_ref device) {
    gpumem::resource memory = gpumem::virtual_resource(device);
    gpumem_resource_ops ops{};
    ops.kind = "handed_on";
    ops.allocate = hand_on;
    ops.deallocate = take_back;
    ops.properties = no_properties;
    ops.upstream = memory.get();
    const gpumem::resource own = gpumem::own_resource(device, ops, &memory);
    EXPECT(std::string(own.properties().kind) == "handed_on");
    const gpumem::buffer buffer = own.allocate(KIB);
    EXPECT(buffer.resource() == own && memory.stats().allocations == 1);
}

void addresses_without_owners(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const CUdeviceptr where = memory.allocate_pointer(MIB, {.alignment = 4096});
    EXPECT(where % 4096 == 0 && memory.stats().allocations == 1);
    EXPECT(thrown_by([&] { memory.deallocate(where, KIB); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(memory.stats().allocations == 1);
    memory.deallocate(where, MIB, GPUMEM_STREAM_LEGACY);
    EXPECT(memory.stats().allocations == 0);
    EXPECT(thrown_by([&] { (void)memory.allocate_pointer(0); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void pools_tell_of_themselves(gpumem::device_ref device) {
    const gpumem::resource own = gpumem::device_pool_resource(device, {.pool = GPUMEM_POOL_OWN});
    const gpumem_pool_info info = gpumem::pool_info(own);
    EXPECT(info.owned == 1 && info.mapped == 0 && info.ordinal == device.ordinal());
    EXPECT(info.handle != nullptr);
    gpumem::pool_set_attribute(own, GPUMEM_POOL_RELEASE_THRESHOLD, 3 * MIB);
    EXPECT(gpumem::pool_get_attribute(own, GPUMEM_POOL_RELEASE_THRESHOLD) == 3 * MIB);
    EXPECT(thrown_by([&] {
               gpumem::pool_set_attribute(own, GPUMEM_POOL_USED_CURRENT, 1);
           }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(thrown_by([&] { (void)gpumem::pool_share_handle(own); }).status() ==
           GPUMEM_ERROR_NOT_SUPPORTED);
    const gpumem::resource other = gpumem::virtual_resource(device);
    EXPECT(thrown_by([&] { (void)gpumem::pool_info(other); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    const gpumem::resource host = gpumem::pinned_resource(
        device, {.method = GPUMEM_PINNED_POOL, .keep_bytes = MIB, .pool = GPUMEM_POOL_OWN});
    EXPECT(gpumem::pool_info(host).owned == 1 && gpumem::pool_info(host).host_accessible == 1);
}

void pools_are_shared(gpumem::device_ref device) {
    const gpumem::resource pool = gpumem::device_pool_resource(device, {.ipc = true});
    const gpumem_pool_share_handle handle = gpumem::pool_share_handle(pool);
    const gpumem::buffer buffer = pool.allocate(MIB);
    const std::vector<std::byte> data = numbers(KIB);
    buffer.write(5, data);
    gpumem::stream_ref(device).synchronize();
    const gpumem_pool_share_buffer shared = gpumem::pool_export_buffer(buffer);
    EXPECT(shared.bytes == MIB && std::memcmp(shared.pool, handle.uuid, sizeof handle.uuid) == 0);

    gpumem::resource mapped = gpumem::pool_from_share_handle(device, handle);
    EXPECT(gpumem::pool_info(mapped).mapped == 1);
    EXPECT(thrown_by([&] { (void)mapped.allocate(KIB); }).status() == GPUMEM_ERROR_NOT_SUPPORTED);
    EXPECT(gpumem::pool_register(mapped, handle.uuid) == mapped);
    const gpumem::resource_ref found =
        gpumem::pool_from_registry(device.library(), gpumem::pool_uuid(shared.pool));
    EXPECT(found == mapped);
    {
        const gpumem::buffer imported = gpumem::pool_import_buffer(found, shared);
        EXPECT(imported.size() == MIB && content(imported, 5, KIB) == data);
    }
    int sockets[2];
    EXPECT(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    {
        std::thread sender([&] { gpumem::pool_send(pool, sockets[0], {.timeout_ms = 20000}); });
        const gpumem::resource received = gpumem::pool_receive(device, sockets[1]);
        sender.join();
        EXPECT(gpumem::pool_register(received, handle.uuid) == mapped); // it was there before
        EXPECT(gpumem::pool_import_buffer(received, shared).size() == MIB);
    }
    ::close(sockets[0]);
    ::close(sockets[1]);
    device.trim();
    mapped.close();
    EXPECT(thrown_by([&] {
               (void)gpumem::pool_from_registry(device.library(), handle.uuid);
           }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
}

void traces_are_written(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    std::string log;
    auto write = [&log](std::string_view text) { log += text; };
    {
        const gpumem::resource trace = gpumem::trace_resource(memory, {.write = write});
        (void)trace.allocate(MIB);
        gpumem::trace_note(trace, "half way");
        gpumem::trace_flush(trace);
        EXPECT(log.find("half way") != std::string::npos);
    }
    EXPECT(log.ends_with('\n') && log.find(std::to_string(MIB)) != std::string::npos);
    auto full = [](std::string_view) { return ENOSPC; };
    auto throwing = [](std::string_view) { throw std::runtime_error("no more"); };
    const gpumem::resource refused = gpumem::trace_resource(memory, {.write = full});
    (void)refused.allocate(MIB);
    EXPECT(thrown_by([&] { gpumem::trace_flush(refused); }).system_code() == ENOSPC);
    const gpumem::resource thrown = gpumem::trace_resource(memory, {.write = throwing});
    (void)thrown.allocate(MIB);
    EXPECT(thrown_by([&] { gpumem::trace_flush(thrown); }).system_code() == EIO);
    EXPECT(thrown_by([&] { (void)gpumem::trace_resource(memory, {}); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    EXPECT(thrown_by([&] { gpumem::trace_note(memory, "of none"); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

// What a callable throws comes out of the call that it was given to.
template <class Call> bool throws_enough(Call &&call) {
    try {
        call();
    } catch (const std::runtime_error &enough) {
        return std::string(enough.what()) == "enough";
    }
    return false;
}

void what_is_alive_is_shown(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::resource tracking = gpumem::tracking_resource(memory, {.frames = 4});
    const gpumem::buffer first = tracking.allocate(MIB);
    const gpumem::buffer second = tracking.allocate(2 * MIB);
    std::vector<CUdeviceptr> seen;
    gpumem::tracking_visit(tracking, [&](const gpumem_tracked &each) {
        EXPECT(each.frame_count > 0 && each.bytes != 0);
        seen.push_back(each.pointer);
    });
    EXPECT(seen == std::vector<CUdeviceptr>({first.pointer(), second.pointer()}));
    int visited = 0;
    gpumem::tracking_visit(tracking, [&](const gpumem_tracked &) { return ++visited < 1; });
    EXPECT(visited == 1); // false ends it
    EXPECT(throws_enough([&] {
        (void)gpumem::try_tracking_visit(tracking, [&](const gpumem_tracked &) {
            visited++;
            throw std::runtime_error("enough");
        });
    }));
    EXPECT(visited == 2);

    std::string text;
    gpumem::tracking_report(tracking, GPUMEM_REPORT_JSON, [&](std::string_view part) {
        text += part;
        return 0;
    });
    EXPECT(text.find(std::to_string(2 * MIB)) != std::string::npos);
    const auto full = [](std::string_view) { return ENOSPC; };
    EXPECT(thrown_by([&] {
               gpumem::tracking_report(tracking, GPUMEM_REPORT_TEXT, full);
           }).system_code() == ENOSPC);
    EXPECT(throws_enough([&] {
        (void)gpumem::try_tracking_report(tracking, GPUMEM_REPORT_TEXT, [](std::string_view) {
            throw std::runtime_error("enough");
        });
    }));
    EXPECT(thrown_by([&] {
               gpumem::tracking_visit(memory, [](const gpumem_tracked &) {});
           }).status() == GPUMEM_ERROR_INVALID_ARGUMENT);
}

void what_is_held_is_told(gpumem::library_ref library, gpumem::device_ref device) {
    const gpumem::resource pool = gpumem::device_pool_resource(device);
    const gpumem::buffer buffer = pool.allocate(3 * MIB);
    const gpumem::snapshot_text told = gpumem::snapshot(library, {.device = device.get()});
    EXPECT(told.view().starts_with("{\"schema\":\"gpumem.snapshot\""));
    EXPECT(told.view().find("\"buffers\"") != std::string_view::npos);
    EXPECT(told.view().size() == std::strlen(told.c_str()));
    EXPECT(gpumem::snapshot(library, {.without_buffers = true}).view().find("\"buffers\"") ==
           std::string_view::npos);
    std::string text;
    gpumem::write_snapshot(library, [&](std::string_view part) { text += part; },
                           {.device = device.get()});
    EXPECT(text.size() + 1024 > told.view().size());
    std::string of_all;
    gpumem::write_snapshot(library, [&](std::string_view part) { of_all += part; },
                           {.without_pieces = true});
    EXPECT(of_all.ends_with("}\n") && text.ends_with("}\n"));
    EXPECT(thrown_by([&] {
               gpumem::write_snapshot(library, [](std::string_view) { return ENOSPC; });
           }).system_code() == ENOSPC);
    EXPECT(throws_enough([&] {
        (void)gpumem::try_write_snapshot(
            library, [](std::string_view) { throw std::runtime_error("enough"); });
    }));
}

void addresses_are_aligned(gpumem::device_ref device) {
    const gpumem::resource pool = gpumem::device_pool_resource(device);
    const gpumem::resource aligned =
        gpumem::alignment_resource(pool, {.alignment = 64 * KIB, .threshold = 4 * KIB});
    const gpumem::buffer buffer = aligned.allocate(5 * KIB);
    EXPECT(buffer.pointer() % (64 * KIB) == 0 && buffer.size() == 5 * KIB);
    EXPECT(thrown_by([&] { (void)gpumem::alignment_resource(pool, {.alignment = 3}); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void is_a_containers_memory(gpumem::resource_ref memory) {
    gpumem::pmr_resource shared(memory);
    {
        std::pmr::vector<std::uint32_t> numbers(1000, 7, &shared);
        numbers.push_back(8);
        std::pmr::vector<std::uint32_t> copied(numbers, &shared);
        EXPECT(memory.stats().allocations == 2 && copied == numbers && copied.back() == 8);
    }
    EXPECT(memory.stats().allocations == 0);
    void *aligned = shared.allocate(1, 4096);
    EXPECT(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0 && shared.allocate(0) != aligned);
    shared.deallocate(aligned, 1, 4096);
    EXPECT(memory.stats().allocations == 1); // what is left is freed with the adaptor
    EXPECT(shared.is_equal(shared) && !shared.is_equal(*std::pmr::new_delete_resource()));
}

void containers_have_their_memory(gpumem::device_ref device) {
    const gpumem::resource pinned = gpumem::pinned_resource(device);
    const gpumem::resource managed = gpumem::managed_resource(device);
    const gpumem::resource mapped = gpumem::mapped_resource(device);
    for (const gpumem::resource_ref memory :
         {gpumem::resource_ref(pinned), gpumem::resource_ref(managed),
          gpumem::resource_ref(mapped)}) {
        is_a_containers_memory(memory);
        EXPECT(memory.stats().allocations == 0);
    }
    const gpumem::resource pool = gpumem::device_pool_resource(device);
    EXPECT(thrown_by([&] { gpumem::pmr_resource refused(pool); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
    const gpumem::resource limited = gpumem::limiting_resource(pinned, MIB);
    gpumem::pmr_resource little(limited);
    try {
        (void)little.allocate(2 * MIB);
        wrong++;
    } catch (const std::bad_alloc &) {
        EXPECT(gpumem_last_error()->status == GPUMEM_ERROR_OUT_OF_CAPACITY);
    }
}

void failures_are_asked_about(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::resource limited = gpumem::limiting_resource(memory, 4 * MIB);
    gpumem::buffer spare = limited.allocate(3 * MIB);
    std::vector<std::size_t> asked;
    auto free_the_spare = [&](const gpumem_allocation_failure &failure) {
        asked.push_back(failure.bytes);
        if (!spare)
            return GPUMEM_FAILURE_GIVE_UP;
        spare.reset();
        return GPUMEM_FAILURE_RETRY;
    };
    const gpumem::resource asking =
        gpumem::failure_callback_resource(limited, {.fn = free_the_spare, .maximum_retries = 3});
    EXPECT(asking.allocate(2 * MIB).size() == 2 * MIB);
    EXPECT(asked == std::vector<std::size_t>({2 * MIB}) && !spare);
    EXPECT(thrown_by([&] { (void)asking.allocate(5 * MIB); }).status() ==
           GPUMEM_ERROR_OUT_OF_CAPACITY);
    EXPECT(asked.size() == 2);
    auto throwing = [&](const gpumem_allocation_failure &) -> gpumem_failure_answer {
        asked.clear();
        throw std::runtime_error("enough");
    };
    const gpumem::resource thrown = gpumem::failure_callback_resource(limited, {.fn = throwing});
    EXPECT(thrown_by([&] { (void)thrown.allocate(5 * MIB); }).status() ==
           GPUMEM_ERROR_OUT_OF_CAPACITY);
    EXPECT(asked.empty());
    EXPECT(thrown_by([&] { (void)gpumem::failure_callback_resource(memory, {}); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

void the_second_gives_what_the_first_has_not(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    const gpumem::resource little = gpumem::limiting_resource(memory, 2 * MIB);
    const gpumem::resource pinned = gpumem::pinned_resource(device);
    const gpumem::resource either = gpumem::fallback_resource(little, pinned);
    const gpumem::buffer first = either.allocate(MIB);
    const gpumem::buffer second = either.allocate(2 * MIB);
    EXPECT(gpumem::fallback_source(first) == little);
    EXPECT(gpumem::fallback_source(second) == pinned && second.host_pointer() != nullptr);
    const gpumem::buffer other = memory.allocate(MIB);
    EXPECT(thrown_by([&] { (void)gpumem::fallback_source(other); }).status() ==
           GPUMEM_ERROR_INVALID_ARGUMENT);
}

// What a forked child inherits is its parent's: the child's handles go without a word.
void forked_children_give_nothing_back(gpumem::device_ref device) {
    const gpumem::resource memory = gpumem::virtual_resource(device);
    gpumem::buffer buffer = memory.allocate(MIB);
    const pid_t child = ::fork();
    if (child == 0) {
        refused_for = GPUMEM_OK;
        gpumem::set_refusal(note_refusal);
        buffer.reset();
        ::_exit(refused_for == GPUMEM_OK ? 7 : 1);
    }
    int status = 0;
    EXPECT(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    EXPECT(content(buffer, 0, 1).size() == 1 && memory.stats().allocations == 1);
}

} // namespace

int main(int, char **argv) {
    handles_cost_what_pointers_cost();
    try {
        gpumem::library library = gpumem::library::open({.driver = "softgpu"});
        gpumem::device device = gpumem::device::open(library);
        errors_carry_everything(device);
        ownership_moves(device);
        refusals_of_destructors_are_told(device);
        the_library_tells_of_itself(library, device);
        buffers_grow_in_place(device);
        holds_outlive_buffers(device);
        copies_move_bytes(device);
        rows_patterns_and_batches(device);
        virtual_buffers_change(device);
        freed_memory_is_kept(device);
        views_are_parts(device);
        foreign_memory_goes_back(device);
        tensors_are_buffers(device);
        memory_is_watched(device);
        ranges_are_watched(device);
        streams_and_events_are_cudas(device);
        every_resource_gives_memory(device);
        caching_and_captures(device);
        virtual_memory_by_hand(device);
        buffers_are_shared(device);
        buffers_grow_where_they_are_shared(device);
        files_are_loaded(device, argv[0]);
        the_cpu_writes_device_memory(device);
        chunks_go_round(device);
        own_resources_work(device);
        addresses_without_owners(device);
        pools_tell_of_themselves(device);
        pools_are_shared(device);
        traces_are_written(device);
        what_is_alive_is_shown(device);
        what_is_held_is_told(library, device);
        addresses_are_aligned(device);
        containers_have_their_memory(device);
        failures_are_asked_about(device);
        the_second_gives_what_the_first_has_not(device);
        forked_children_give_nothing_back(device);
        EXPECT(device.stats().allocations == 0 && device.stats().mappings == 0);
        EXPECT(device.stats().quarantined == 0);
        device.close();
        library.close();
    } catch (const std::exception &failure) {
        std::printf("thrown: %s\n", failure.what());
        wrong++;
    }
    return wrong != 0;
}
