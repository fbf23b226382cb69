/* Links softgpu in the driver's place, and asks for its control. */
#include <gpumem/softgpu.h>

int cuInit(unsigned int flags);
const softgpu_control *softgpu_get_control(int version);

int main(void) {
    const softgpu_control *soft = softgpu_get_control(SOFTGPU_CONTROL_VERSION);
    return cuInit(0) || !soft || soft->call_count("cuInit") != 1;
}
