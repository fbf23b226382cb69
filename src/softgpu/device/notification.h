/*
 * cuDeviceRegisterAsyncNotification: who is told that a device has too little memory.
 *
 * The one notification of the API is OVER_BUDGET. softgpu gives it when physical memory of the
 * device was refused, with the bytes that were missing. (Hardware may also give it when another
 * process presses; softgpu's processes do not share a device's memory.) A thread of its own calls
 * back, one after the other, with no lock held: callbacks may call the driver, but for the two
 * functions here, as documented. Unregistering waits until the callback is not running.
 */
#ifndef SG_DEVICE_NOTIFICATION_H
#define SG_DEVICE_NOTIFICATION_H

#include "softgpu/core/chapter.h"

#include <stdint.h>

/* With the big lock; queues. */
void sg_notify_over_budget(int device, uint64_t missing);

extern const struct sg_chapter sg_device_chapter;

#endif
