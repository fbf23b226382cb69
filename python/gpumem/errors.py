"""What a failure raises: a class for each status of the C interface, and how its text is made."""

TYPE_CHECKING = False  # typing's, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._enums import Status

__all__ = [
    "BusyError", "CUDAError", "CUDAWarning", "CancelledError", "DataError", "DeviceFaultError", "DriverError",
    "Error", "ForkedError", "InvalidArgumentError", "NoDeviceError", "NoDriverError", "NotPermittedError",
    "NotSupportedError", "OutOfCapacityError", "OutOfHostMemoryError", "OutOfMemoryError", "PeerError",
    "SystemCallError", "TimedOutError",
]


class Error(RuntimeError):
    """A failure of the library: its status, and the codes and the call of whoever refused."""

    driver_code: int = 0
    vulkan_code: int = 0
    system_code: int = 0
    call: str = ""
    _status: int = 10

    @property
    def status(self) -> "Status":
        from ._enums import Status as Words
        return Words(self._status)


class InvalidArgumentError(Error, ValueError):
    _status = 1


class OutOfMemoryError(Error, MemoryError):
    _status = 2


class OutOfHostMemoryError(OutOfMemoryError):
    _status = 3


class OutOfCapacityError(OutOfMemoryError):
    _status = 4


class BusyError(Error):
    _status = 5


class NotSupportedError(Error, NotImplementedError):
    _status = 6


class NotPermittedError(Error, PermissionError):
    _status = 7


class NoDriverError(Error):
    _status = 8


class NoDeviceError(Error):
    _status = 9


class DriverError(Error):
    _status = 10


class DeviceFaultError(Error):
    _status = 11


class SystemCallError(Error, OSError):
    _status = 12


class PeerError(Error, ConnectionError):
    _status = 13


class DataError(Error, ValueError):
    _status = 14


class CancelledError(Error):
    _status = 15


class ForkedError(Error):
    _status = 16


class TimedOutError(Error, TimeoutError):
    _status = 17


CUDAError = Error


class CUDAWarning(RuntimeWarning):
    pass


CLASSES = {each._status: each for each in (
    InvalidArgumentError, OutOfMemoryError, OutOfHostMemoryError, OutOfCapacityError, BusyError,
    NotSupportedError, NotPermittedError, NoDriverError, NoDeviceError, DriverError, DeviceFaultError,
    SystemCallError, PeerError, DataError, CancelledError, ForkedError, TimedOutError)}
# Set by gpumem._library: the driver's name of a code.
driver_name: "Callable[[int], str] | None" = None


def make(status: int, driver_code: int, vulkan_code: int, system_code: int, call: str, message: str) -> Error:
    """The exception of a failure: called by the extension."""
    name = driver_name(driver_code) if driver_code and driver_name else ""
    text = message if not name or name in message else f"{message} ({name})"
    error = CLASSES.get(status, Error)(text)
    error._status = status
    error.driver_code, error.vulkan_code, error.system_code = driver_code, vulkan_code, system_code
    error.call = call
    if isinstance(error, OSError) and system_code:
        error.errno = system_code
    return error
