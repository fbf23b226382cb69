"""The UUID of Mesa's software Vulkan device, as Vulkan tells it. Alone: prints it, or says why not.

Written with ctypes because the loader's own library is all that is sure to be there.
"""
import ctypes
import sys

APPLICATION_INFO, INSTANCE_CREATE_INFO = 0, 1
PROPERTIES_2, ID_PROPERTIES = 1000059001, 1000071004
TYPE_CPU = 4
VERSION_1_1 = 1 << 22 | 1 << 12


class Unavailable(Exception):
    """No Vulkan loader, or no device on the CPU."""


class ApplicationInfo(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("version", ctypes.c_uint32),
                ("engine", ctypes.c_char_p), ("engine_version", ctypes.c_uint32),
                ("api", ctypes.c_uint32)]


class InstanceCreateInfo(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("application", ctypes.POINTER(ApplicationInfo)),
                ("layer_count", ctypes.c_uint32), ("layers", ctypes.c_void_p),
                ("extension_count", ctypes.c_uint32), ("extensions", ctypes.c_void_p)]


class IdProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p),
                ("device", ctypes.c_ubyte * 16), ("driver", ctypes.c_ubyte * 16),
                ("luid", ctypes.c_ubyte * 8), ("node_mask", ctypes.c_uint32),
                ("luid_valid", ctypes.c_uint32)]


class Properties2(ctypes.Structure):
    """The limits that follow the name and the like are not read; there is room for them."""
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p),
                ("api", ctypes.c_uint32), ("driver", ctypes.c_uint32),
                ("vendor", ctypes.c_uint32), ("device", ctypes.c_uint32),
                ("device_type", ctypes.c_uint32), ("name", ctypes.c_char * 256),
                ("rest", ctypes.c_ubyte * 4096)]


def instance_of(library):
    application = ApplicationInfo(type=APPLICATION_INFO, api=VERSION_1_1)
    info = InstanceCreateInfo(type=INSTANCE_CREATE_INFO, application=ctypes.pointer(application))
    instance = ctypes.c_void_p()
    result = library.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance))
    if result != 0:
        raise Unavailable(f"vkCreateInstance answers {result}")
    return instance


def device_uuid():
    try:
        library = ctypes.CDLL("libvulkan.so.1")
    except OSError as why:
        raise Unavailable(str(why)) from why
    instance = instance_of(library)
    count = ctypes.c_uint32(16)
    devices = (ctypes.c_void_p * 16)()
    library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices)
    for device in devices[:count.value]:
        ids = IdProperties(type=ID_PROPERTIES)
        properties = Properties2(type=PROPERTIES_2, next=ctypes.addressof(ids))
        library.vkGetPhysicalDeviceProperties2(ctypes.c_void_p(device), ctypes.byref(properties))
        if properties.device_type == TYPE_CPU:
            return bytes(ids.device).hex()
    raise Unavailable("Vulkan has no device on the CPU (Debian: mesa-vulkan-drivers)")


if __name__ == "__main__":
    try:
        print(device_uuid())
    except Unavailable as reason:
        sys.exit(str(reason))
