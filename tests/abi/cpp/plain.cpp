// A user's program without exceptions, on softgpu: the `try_` forms, and what a result is.
#include "expect.hpp"
#include <array>
#include <cstring>
#include <gpumem/dlpack_abi.h>
#include <gpumem/gpumem.hpp>
#include <span>
#include <string_view>
#include <type_traits>

#ifdef __cpp_exceptions
#error "this program is to be compiled without exceptions"
#endif

namespace {

constexpr std::size_t KIB = 1024;
constexpr std::size_t MIB = KIB * KIB;

// The forms that throw are not there to be called.
template <class T>
concept throws_on_allocation = requires(const T &memory) {
    memory.allocate(MIB);
};
static_assert(!throws_on_allocation<gpumem::resource>);

gpumem::result<std::uint64_t> first_word(gpumem::buffer_ref buffer) {
    std::uint64_t word = 0;
    if (auto done = buffer.try_read(0, std::as_writable_bytes(std::span(&word, 1))); !done)
        return gpumem::unexpected(done.error());
    if (auto done = gpumem::stream_ref(buffer.device()).try_synchronize(); !done)
        return gpumem::unexpected(done.error());
    return word;
}

void results_are_values_or_failures(gpumem::resource_ref memory) {
    gpumem::result<gpumem::buffer> made = memory.try_allocate(2 * MIB, {.capacity = 8 * MIB});
    EXPECT(made.has_value() && made && made->size() == 2 * MIB);
    EXPECT(made.value().get() == (*made).get());
    gpumem::buffer buffer = *std::move(made);
    EXPECT(buffer.size() == 2 * MIB);

    const std::uint64_t word = 0x0123456789abcdefU;
    EXPECT(buffer.try_write(0, std::as_bytes(std::span(&word, 1))).has_value());
    EXPECT(buffer.try_grow(8 * MIB).has_value());
    const gpumem::result<std::uint64_t> read = first_word(buffer);
    EXPECT(read && *read == word && read.value() == word);

    const gpumem::result<void> grown = buffer.try_grow(9 * MIB);
    EXPECT(!grown.has_value() && grown.error().status() == GPUMEM_ERROR_OUT_OF_CAPACITY);
    EXPECT(std::strcmp(grown.error().message(), gpumem_last_error()->message) == 0);
    EXPECT(buffer.size() == 8 * MIB);
    EXPECT(buffer.try_free(nullptr).has_value() && !buffer);

    gpumem::result<gpumem::buffer> refused = memory.try_allocate(0);
    EXPECT(!refused && refused.error().status() == GPUMEM_ERROR_INVALID_ARGUMENT);
    const gpumem::result<gpumem::buffer> moved = std::move(refused);
    EXPECT(*moved.error().message() != '\0');
    EXPECT(gpumem::result<int>(gpumem::unexpected(moved.error())).value_or(4) == 4);
    EXPECT(gpumem::result<int>(3).value_or(4) == 3);
    using made_with = gpumem::result<gpumem::buffer>;
    static_assert(std::is_same_v<made_with::error_type, gpumem::error>);
    static_assert(std::is_same_v<made_with::value_type, gpumem::buffer>);
    static_assert(!std::is_copy_constructible_v<made_with>);
    static_assert(std::is_nothrow_move_constructible_v<made_with>);
}

void everything_has_this_form(gpumem::library_ref library, gpumem::device_ref device,
                              gpumem::resource_ref memory, const char *file) {
    EXPECT(library.try_info()->softgpu && library.try_info()->device_count >= 1);
    EXPECT(library.try_device_info(0)->ordinal == 0 && library.try_stats().has_value());
    EXPECT(device.try_info()->ordinal == 0 && device.try_memory()->total_bytes > 0);
    EXPECT(device.try_capability(GPUMEM_CAPABILITY_VIRTUAL_MEMORY)->supported == 1);
    EXPECT(device.try_trim().has_value() && device.try_stats().has_value());
    EXPECT(!device.try_can_access_peer(1000).has_value());
    EXPECT(gpumem::try_pinned_resource(device).has_value());
    EXPECT(gpumem::try_managed_resource(device).has_value());
    EXPECT(gpumem::try_device_pool_resource(device).has_value());
    EXPECT(gpumem::try_limiting_resource(memory, MIB).has_value());
    EXPECT(gpumem::try_logging_resource(memory).has_value());
    EXPECT(gpumem::try_caching_resource(memory)->try_caching_info().has_value());
    EXPECT(memory.try_properties()->can_resize == 1 && memory.try_trim().has_value());
    EXPECT(!memory.try_forget_stream(nullptr).has_value());
    EXPECT(gpumem::stream::try_create(device)->try_done().value());
    EXPECT(gpumem::event::try_create(device)->try_done().value());
    EXPECT(gpumem::reservation::try_create(device, 2 * MIB)->try_info()->bytes == 2 * MIB);
    EXPECT(gpumem::physical::try_create(device, 2 * MIB)->try_properties()->bytes == 2 * MIB);
    EXPECT(*gpumem::try_physical_granularity(device) == 2 * MIB);
    EXPECT(gpumem::try_load_file(memory, file)->report.bytes > 0);
    const auto stop = [](const gpumem_load_progress &) { return false; };
    EXPECT(gpumem::try_file_checksum(file, {.progress = stop}).error().status() ==
           GPUMEM_ERROR_CANCELLED);
}

// Callables that are lent for a call, and callables that a resource keeps.
void wrappers_have_this_form(gpumem::resource_ref memory) {
    std::size_t written = 0;
    auto count = [&](std::string_view text) { written += text.size(); };
    {
        const auto trace = gpumem::try_trace_resource(memory, {.write = count});
        EXPECT(gpumem::try_trace_note(*trace, "note").has_value());
        EXPECT(gpumem::try_trace_flush(*trace).has_value() && written > 4);
        EXPECT(!gpumem::try_trace_flush(memory).has_value());
    }
    const auto tracking = gpumem::try_tracking_resource(memory);
    const auto buffer = tracking->try_allocate(MIB);
    std::size_t bytes = 0;
    const auto add = [&](const gpumem_tracked &each) { bytes += each.bytes; };
    EXPECT(gpumem::try_tracking_visit(*tracking, add).has_value() && bytes == MIB);
    written = 0;
    EXPECT(gpumem::try_tracking_report(*tracking, GPUMEM_REPORT_TEXT, count) && written > 0);
    EXPECT(!gpumem::try_tracking_report(memory, GPUMEM_REPORT_TEXT, count).has_value());
    EXPECT(gpumem::try_alignment_resource(memory, {.alignment = 4096})->try_allocate(1)->pointer() %
               4096 ==
           0);
    unsigned asked = 0;
    const auto give_up = [&](const gpumem_allocation_failure &) {
        asked++;
        return GPUMEM_FAILURE_GIVE_UP;
    };
    const auto limited = gpumem::try_limiting_resource(memory, MIB);
    const auto asking = gpumem::try_failure_callback_resource(*limited, {.fn = give_up});
    EXPECT(asking->try_allocate(2 * MIB).error().status() == GPUMEM_ERROR_OUT_OF_CAPACITY);
    EXPECT(asked == 1);
    const auto either = gpumem::try_fallback_resource(*limited, memory);
    const auto second = either->try_allocate(2 * MIB);
    EXPECT(*gpumem::try_fallback_source(*second) == memory);
    written = 0;
    EXPECT(gpumem::try_write_snapshot(memory.device().library(), count).has_value() && written > 0);
    EXPECT(gpumem::try_snapshot(memory.device().library())->view().front() == '{');
}

void changes_have_this_form(gpumem::device_ref device, gpumem::resource_ref memory) {
    std::size_t left = 0;
    const auto note = [&](const gpumem_watch_event &event) { left += event.bytes; };
    {
        const auto watch = gpumem::watch::try_create(memory, note);
        const auto buffer = memory.try_allocate(4 * MIB);
        const auto of_one = gpumem::watch::try_create(*buffer, note);
        EXPECT(watch && of_one && buffer->try_layout()->bytes == 4 * MIB);
        EXPECT(buffer->try_attributes()->foreign == 0 && buffer->try_layout()->segment_count == 1);
        EXPECT(*buffer->try_get_access(0, 0) == GPUMEM_ACCESS_READ_WRITE);
        EXPECT(buffer->try_set_access(0, 4 * MIB, 0).has_value());
        EXPECT(*buffer->try_decommit(0, 4 * MIB) == 4 * MIB && left == 8 * MIB);
        EXPECT(buffer->try_recommit(0, 4 * MIB).has_value());
        EXPECT(*buffer->try_move_to_capacity(8 * MIB) == buffer->pointer());
        EXPECT(buffer->try_mark_shared().has_value());
        EXPECT(!buffer->try_view(0, 5 * MIB) && buffer->try_view(MIB, 1)->size() == 1);
        EXPECT(memory.try_set_access(0).has_value());
        EXPECT(memory.try_get_access(0).has_value());
    }
    const auto address = memory.try_allocate_pointer(KIB);
    EXPECT(memory.try_find(*address)->size() == KIB && memory.try_use(*address, nullptr));
    EXPECT(memory.try_find(*address)->try_order(nullptr).has_value());
    EXPECT(memory.try_deallocate(*address) && !memory.try_find(*address));
    auto closed = gpumem::try_limiting_resource(memory, MIB);
    EXPECT(closed->try_close_later().has_value() && !*closed);
    EXPECT(device.try_trim(true).has_value());
}

void copies_have_this_form(gpumem::device_ref device, gpumem::resource_ref memory) {
    const auto buffer = memory.try_allocate(MIB);
    const std::array<std::byte, 4> word{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    std::array<std::byte, 4> read{};
    EXPECT(buffer->try_write(0, word) && buffer->try_copy_from(8, *buffer, 0, 4));
    EXPECT(buffer->try_read(8, read) && gpumem::stream_ref(device).try_synchronize());
    EXPECT(read == word && buffer->try_fill(0, 4, 0));
    const gpumem_rows rows{.width = 2, .count = 2, .to_pitch = 0, .from_pitch = 0};
    EXPECT(buffer->try_write_2d(0, word.data(), rows) &&
           buffer->try_copy_from_2d(16, *buffer, 0, rows));
    EXPECT(buffer->try_read_2d(16, read.data(), rows).has_value());
    EXPECT(buffer->try_fill_pattern(0, 8, word).has_value());
    const std::array<gpumem_buffer_copy_item, 1> item{{{buffer->get(), 96, buffer->get(), 0, 8}}};
    EXPECT(gpumem::try_copy_batch(item)->copies == 1);
    EXPECT(buffer->try_read(96, read) && gpumem::stream_ref(device).try_synchronize());
    EXPECT(read == word);
}

void other_libraries_memory_has_this_form(gpumem::device_ref device, gpumem::resource_ref memory) {
    const auto owner = memory.try_allocate(MIB);
    unsigned deleted = 0;
    const auto deleter = [&](CUdeviceptr, std::size_t, CUstream) { deleted++; };
    EXPECT(gpumem::try_buffer_from_pointer(device, owner->pointer(), MIB, {.deleter = deleter})
               .has_value());
    EXPECT(!gpumem::try_buffer_from_pointer(device, 0, MIB).has_value());
    DLManagedTensorVersioned *const tensor = *gpumem::try_to_dlpack(*owner);
    EXPECT(gpumem::try_buffer_from_dlpack(device, tensor)->size() == MIB);
    DLManagedTensor *const old = *gpumem::try_to_dlpack_unversioned(*owner, {.offset = KIB});
    EXPECT(gpumem::try_buffer_from_dlpack_unversioned(device, old)->size() == MIB - KIB);
    EXPECT(device.try_trim(true).has_value() && deleted == 1);
}

void pools_have_this_form(gpumem::library_ref library, gpumem::device_ref device) {
    const auto pool = gpumem::try_device_pool_resource(device, {.ipc = true});
    EXPECT(gpumem::try_pool_info(*pool)->handle != nullptr);
    EXPECT(gpumem::try_pool_set_attribute(*pool, GPUMEM_POOL_USED_HIGH, 0).has_value());
    EXPECT(*gpumem::try_pool_get_attribute(*pool, GPUMEM_POOL_USED_HIGH) == 0);
    const auto where = pool->try_allocate_pointer(MIB);
    EXPECT(where && !pool->try_deallocate(*where, 1) && pool->try_deallocate(*where, MIB));
    const auto handle = gpumem::try_pool_share_handle(*pool);
    const auto mapped = gpumem::try_pool_from_share_handle(device, *handle);
    EXPECT(!gpumem::try_pool_from_registry(library, handle->uuid).has_value());
    EXPECT(*gpumem::try_pool_register(*mapped, handle->uuid) == *mapped);
    EXPECT(*gpumem::try_pool_from_registry(library, handle->uuid) == *mapped);
    const auto buffer = pool->try_allocate(MIB);
    const auto shared = gpumem::try_pool_export_buffer(*buffer);
    EXPECT(gpumem::try_pool_import_buffer(*mapped, *shared)->size() == MIB);
    EXPECT(!gpumem::try_pool_import_buffer(*pool, *shared).has_value());
    EXPECT(!gpumem::try_pool_send(*mapped, -1).has_value());
    EXPECT(!gpumem::try_pool_receive(device, -1).has_value());
    EXPECT(device.try_trim(true).has_value());
}

void mapped_memory_has_this_form(gpumem::device_ref device, gpumem::resource_ref memory) {
    std::array<std::byte, 8> bytes{};
    const auto mapped = gpumem::try_mapped_resource(device, {.method = GPUMEM_MAPPED_DESCRIPTOR});
    EXPECT(gpumem::try_mapped_info(*mapped)->method == GPUMEM_MAPPED_DESCRIPTOR);
    EXPECT(!gpumem::try_mapped_info(memory).has_value());
    const auto buffer = mapped->try_allocate(KIB);
    EXPECT(gpumem::try_mapped_write(*buffer, 0, bytes).has_value());
    EXPECT(gpumem::try_mapped_read(*buffer, 0, bytes).has_value());
    EXPECT(gpumem::try_mapped_flush(*buffer, 0, 8).has_value());
    EXPECT(gpumem::try_mapped_invalidate(*buffer, 0, 8).has_value());
    EXPECT(gpumem::try_mapped_publish(*buffer, 0, bytes, 8, 1).has_value());
    EXPECT(!gpumem::try_mapped_write(*buffer, KIB, bytes).has_value());
    EXPECT(gpumem::try_mapped_calibrate(*mapped, {.maximum_bytes = 64, .keep_nothing = true})
               .has_value());
    EXPECT(!gpumem::try_mapped_calibrate(memory).has_value());
    const auto viewed = memory.try_allocate(KIB);
    auto view = gpumem::try_host_view(*viewed);
    EXPECT(view->host_pointer() != nullptr && gpumem::try_buffer_mapped_info(*view)->atom >= 1);
    EXPECT(gpumem::try_mapped_write(*view, 0, bytes).has_value());
    EXPECT(view->try_close().has_value() && !*view);
    EXPECT(!gpumem::try_host_view(nullptr).has_value());
}

void rings_have_this_form(gpumem::device_ref device) {
    const std::array<std::byte, 8> bytes{};
    const std::array<CUevent, 1> no_event{};
    const auto mapped = gpumem::try_mapped_resource(device, {.method = GPUMEM_MAPPED_DESCRIPTOR});
    auto ring = gpumem::ring::try_create(*mapped, {.chunk_bytes = KIB, .chunk_count = 2});
    EXPECT(!gpumem::ring::try_create(*mapped, {}).has_value());
    const auto chunk = ring->try_acquire(8, 0);
    EXPECT(ring->try_write(chunk->sequence, 0, bytes).has_value());
    EXPECT(ring->try_flush(chunk->sequence, 0, 8).has_value());
    EXPECT(!ring->try_close().has_value());
    EXPECT(ring->try_commit(chunk->sequence, 8).has_value());
    EXPECT(!ring->try_abandon(chunk->sequence).has_value());
    EXPECT(ring->try_consume()->bytes == 8);
    EXPECT(!ring->try_release(chunk->sequence, {}, no_event).has_value());
    EXPECT(ring->try_release(chunk->sequence).has_value());
    EXPECT(ring->try_stop().has_value() && ring->try_info()->released == 1);
    EXPECT(ring->try_close().has_value() && !*ring);
}

} // namespace

int main(int, char **argv) {
    gpumem::result<gpumem::library> library = gpumem::library::try_open({.driver = "softgpu"});
    if (!library) {
        std::printf("%s\n", library.error().message());
        return 1;
    }
    gpumem::result<gpumem::device> device = gpumem::device::try_open(*library);
    EXPECT(device.has_value());
    {
        const gpumem::result<gpumem::resource> memory = gpumem::try_virtual_resource(*device);
        EXPECT(memory.has_value());
        results_are_values_or_failures(*memory);
        everything_has_this_form(*library, *device, *memory, argv[0]);
        wrappers_have_this_form(*memory);
        changes_have_this_form(*device, *memory);
        copies_have_this_form(*device, *memory);
        other_libraries_memory_has_this_form(*device, *memory);
        pools_have_this_form(*library, *device);
        mapped_memory_has_this_form(*device, *memory);
        rings_have_this_form(*device);
    }
    EXPECT(library->try_close().error().status() == GPUMEM_ERROR_BUSY);
    EXPECT(device->try_close().has_value() && library->try_close().has_value());
    return wrong != 0;
}
