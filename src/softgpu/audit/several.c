/* Several PTX texts become one image by softgpu's own linker. */
#include "audit.h"
#include "base/descriptor.h"

#include <dlfcn.h>
#include <gpumem/softgpu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void audit_say(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *said[16];
    static size_t count;
    bool known = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        known = known || said[i] == text;
    if (!known && count < sizeof said / sizeof *said)
        said[count++] = text;
    pthread_mutex_unlock(&lock);
    char line[600];
    int size = snprintf(line, sizeof line, "gpumem: %s\n", text);
    if (known || size < 0)
        return;
    if ((size_t)size >= sizeof line)
        size = sizeof line - 1;
    (void)gm_fd_write(STDERR_FILENO, line, (size_t)size); /* there is no other way to report */
}

/* The program's libsoftgpu, loaded into its own names; it need not have been opened yet. */
static const softgpu_control *control_of_program(void) {
    const char *path = getenv("GPUMEM_SOFTGPU_LIBRARY");
    void *library = path ? dlmopen(LM_ID_BASE, path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "softgpu_get_control") : NULL;
    softgpu_get_control_fn get;
    memcpy(&get, &symbol, sizeof get);
    const softgpu_control *control = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
    return control && control->size >= sizeof *control ? control : NULL;
}

unsigned char *audit_link_texts(unsigned architecture, const char *const *texts, size_t count,
                                size_t *size) {
    char log[1024] = "";
    unsigned char *image = NULL;
    size_t room = 0;
    const softgpu_control *control = control_of_program();
    if (!control) {
        audit_say("several PTX inputs were linked, and softgpu's library was not found");
        return NULL;
    }
    int result = control->link_texts(architecture, texts, count, log, sizeof log, NULL, &room);
    if (result == 0 && (image = malloc(room)))
        result = control->link_texts(architecture, texts, count, log, sizeof log, image, &room);
    if (result == 0 && image) {
        *size = room;
        return image;
    }
    free(image);
    fprintf(stderr, "gpumem: softgpu's linker refuses the PTX: %s\n", log);
    return NULL;
}
