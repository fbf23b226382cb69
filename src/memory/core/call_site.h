/*
 * Where in the program an allocation was requested. The outermost public function of the library on
 * the stack records its return address; library calls inside it, or made by a resource of the
 * program, do not change it.
 */
#ifndef GM_MEMORY_CALL_SITE_H
#define GM_MEMORY_CALL_SITE_H

extern _Thread_local void *gm_call_site; /* NULL outside of a call */

static inline void *gm_call_site_enter(void *address) {
    void *before = gm_call_site;
    if (!before)
        gm_call_site = address;
    return before;
}

static inline void gm_call_site_leave(void *const *before) {
    gm_call_site = *before;
}

/* In a public function: where the program continues when it returns. */
#define GM_RETURN_ADDRESS __builtin_return_address(0)

/* For the rest of the function. */
#define GM_CALL_SITE(address)                                                                      \
    __attribute__((cleanup(gm_call_site_leave), unused)) void *const gm_call_site_before_ =        \
        gm_call_site_enter(address)

#endif
