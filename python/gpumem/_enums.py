"""The statuses of the C interface and the capabilities of devices, made by tools/api/python_tables.py (./dev api)."""
import enum


class Status(enum.IntEnum):
    """What a call of the C interface returned."""

    OK = 0
    INVALID_ARGUMENT = 1
    OUT_OF_MEMORY = 2
    OUT_OF_HOST_MEMORY = 3
    OUT_OF_CAPACITY = 4
    BUSY = 5
    NOT_SUPPORTED = 6
    NOT_PERMITTED = 7
    NO_DRIVER = 8
    NO_DEVICE = 9
    DRIVER = 10
    DEVICE_FAULT = 11
    SYSTEM = 12
    PEER = 13
    DATA = 14
    CANCELLED = 15
    FORKED = 16
    TIMED_OUT = 17


CAPABILITIES = (
    "unified_addressing",
    "virtual_memory",
    "handle_posix_fd",
    "handle_fabric",
    "gpu_direct_rdma",
    "gpu_direct_rdma_virtual",
    "dma_buf",
    "compression",
    "device_pool",
    "device_pool_posix_fd",
    "host_pool",
    "host_pool_posix_fd",
    "host_numa_pool",
    "host_numa_pool_posix_fd",
    "host_virtual_memory",
    "host_numa_virtual_memory",
    "host_register",
    "host_register_read_only",
    "host_registered_same_pointer",
    "pageable_access",
    "managed",
    "managed_concurrent",
    "stream_memory_operations_64",
    "host_native_atomics",
    "multicast",
    "event_ipc",
    "device_uuid",
)
