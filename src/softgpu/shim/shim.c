/*
 * libcuda.so.1 has no code: it needs libsoftgpu.so.0 beside it, where the driver's functions are. A
 * look-up in the shim, by dlsym or by a program linked with -lcuda, goes on in what it needs.
 *
 * The names are kept apart because of what the dynamic loader does with them: a library whose own
 * name is libcuda.so.1 answers every later request for that name in the process, so that a program
 * which opened the engine by path could no longer reach NVIDIA's driver.
 */

/* A translation unit may not be empty; and this says in a debugger what the library is. */
extern const char softgpu_shim[];
__attribute__((visibility("default"))) const char softgpu_shim[] = "gpumem softgpu";
