/* What the environment says about an instance. */
#include "icd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 736f6674-6770-8075-8000-00000000000n, as softgpu numbers its devices. */
static const unsigned char softgpu_uuid[VK_UUID_SIZE] = {0x73, 0x6f, 0x66, 0x74, 0x67,
                                                         0x70, 0x80, 0x75, 0x80};

static const char *read_uuid(const char *text, unsigned char uuid[VK_UUID_SIZE]) {
    for (unsigned i = 0; i < VK_UUID_SIZE; i++) {
        unsigned byte;
        while (*text == '-')
            text++;
        if (sscanf(text, "%2x", &byte) != 1)
            return NULL;
        uuid[i] = (unsigned char)byte;
        text += 2;
    }
    return text;
}

static void read_uuids(const char *text, struct settings *settings) {
    while (text && *text && settings->devices < MOST_DEVICES) {
        text = read_uuid(text, settings->uuids[settings->devices]);
        if (!text) {
            violation("VULKAN_ICD_UUID is not a list of UUIDs");
            return;
        }
        settings->devices++;
        text += *text == ',';
    }
}

static uint64_t number(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : usual;
}

static bool is(const char *name, const char *value) {
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

void settings_read(struct settings *settings) {
    const char *uuids = getenv("VULKAN_ICD_UUID"), *without = getenv("VULKAN_ICD_WITHOUT");
    memset(settings, 0, sizeof *settings);
    if (uuids) {
        read_uuids(uuids, settings);
    } else {
        memcpy(settings->uuids[0], softgpu_uuid, sizeof softgpu_uuid);
        settings->devices = 1;
    }
    bool none = is("VULKAN_ICD_COHERENT", "none"), no = is("VULKAN_ICD_COHERENT", "no");
    settings->coherent = !none && !no;
    settings->non_coherent = no || is("VULKAN_ICD_COHERENT", "both");
    settings->placed = !is("VULKAN_ICD_PLACED", "no");
    settings->reserve = settings->placed && !is("VULKAN_ICD_PLACED", "unreserved");
    settings->allocations = (uint32_t)number("VULKAN_ICD_ALLOCATIONS", 4096);
    settings->heap = number("VULKAN_ICD_HEAP", UINT64_C(1) << 30);
    settings->budget = number("VULKAN_ICD_BUDGET", settings->heap);
    settings->atom = number("VULKAN_ICD_ATOM", VULKAN_ICD_ATOM);
    snprintf(settings->without, sizeof settings->without, "%s", without ? without : "");
}

bool settings_lack(const struct settings *settings, const char *name) {
    size_t length = strlen(name);
    const char *at = settings ? settings->without : "";
    while ((at = strstr(at, name)) != NULL) {
        bool begins = at == settings->without || at[-1] == ',';
        if (begins && (at[length] == 0 || at[length] == ','))
            return true;
        at += length;
    }
    return false;
}
