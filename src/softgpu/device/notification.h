/*
 * cuDeviceRegisterAsyncNotification: callbacks for when a device has too little memory.
 *
 * The API's only notification is OVER_BUDGET. softgpu sends it, with the number of missing bytes,
 * when physical memory of the device was refused. (Hardware may also send it under pressure from
 * another process; softgpu's processes do not share a device's memory.) A dedicated thread makes
 * the callbacks, one at a time, with no lock held: they may call the driver, except for the two
 * functions here, as documented. Unregistering waits until the callback is not running.
 */
#ifndef SG_DEVICE_NOTIFICATION_H
#define SG_DEVICE_NOTIFICATION_H

#include "softgpu/core/chapter.h"

#include <stdint.h>

/* With the big lock; only queues. */
void sg_notify_over_budget(int device, uint64_t missing);

extern const struct sg_chapter sg_device_chapter;

#endif
