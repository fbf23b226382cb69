"""PTX that several programs load: kernels, some of which run, and variables that are read and written."""

TEXT = """
.version 7.8
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter = 41;
.visible .global .align 8 .u64 table[4] = {1, 2, 3, 4};
.visible .const .align 4 .f32 scale = 0f3F800000;

.visible .entry add(
    .param .u64 add_out,
    .param .u64 add_in,
    .param .u32 add_n,
    .param .align 16 .b8 add_pair[32]
)
{
    ret;
}

.visible .entry nothing()
{
    ret;
}

.visible .entry count()
{
    .reg .b32 %r;
    atom.global.add.u32 %r, [counter], 1;
    ret;
}
"""

# Loaded, but not launched on softgpu: it says so at the function.
REFUSED = """
.version 8.0
.target sm_90a
.address_size 64

.visible .entry fences()
{
    wgmma.fence.sync.aligned;
    ret;
}
"""
