# Two devices, everything that does not depend on the machine.
SOFTGPU_DEVICES=2 "$GPUMEM" info --json | python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["softgpu"], report["driver_version"])
for device in report["devices"]:
    print(device["ordinal"], device["name"], device["memory_bytes"], device["granularity_minimum"])
    for name, capability in device["capabilities"].items():
        print("  ", name, capability["supported"], capability["reason"] or "")
'
