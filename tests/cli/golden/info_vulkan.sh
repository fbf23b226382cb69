# The Vulkan driver of each device, or why there is none: with the tests' own driver, which has the
# first of two devices.
ICD=$(dirname "$GPUMEM")/../tests/vulkan_icd/libvulkan_icd.so
ICD=$(realpath "$ICD")
vulkan() {
    sed -n '/^device/p; /vulkan/p; /CPU can map/p'
}
SOFTGPU_DEVICES=2 GPUMEM_VULKAN=$ICD "$GPUMEM" info | vulkan
GPUMEM_VULKAN=$ICD VULKAN_ICD_COHERENT=no VULKAN_ICD_PLACED=no VULKAN_ICD_WITHOUT=VK_EXT_memory_budget \
    "$GPUMEM" info | vulkan
GPUMEM_VULKAN=off "$GPUMEM" info | vulkan
GPUMEM_VULKAN=/nowhere/libvulkan.so "$GPUMEM" info | vulkan
GPUMEM_VULKAN=nvidia "$GPUMEM" info | vulkan
GPUMEM_VULKAN=$ICD "$GPUMEM" info --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["devices"][0]["vulkan"])'
GPUMEM_VULKAN=off "$GPUMEM" info --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["devices"][0]["vulkan"])'
GPUMEM_VULKAN=$ICD VULKAN_ICD_PLACED=no "$GPUMEM" doctor | grep Vulkan
GPUMEM_VULKAN=off "$GPUMEM" doctor | grep Vulkan
