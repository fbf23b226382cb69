"""Blender's Cycles, whose kernels are PTX of 700,000 lines: pictures as its CPU device renders them."""
import tempfile
import warnings
from pathlib import Path

import bpy
import numpy

from tap import expect, main

SCENE = bpy.context.scene
SCENE.render.engine = "CYCLES"
SCENE.render.resolution_x, SCENE.render.resolution_y, SCENE.render.resolution_percentage = 64, 48, 100
SCENE.render.image_settings.file_format = "OPEN_EXR"
SCENE.render.image_settings.color_depth = "32"
SCENE.cycles.samples, SCENE.cycles.seed = 6, 3
# Otherwise the first samples guide later ones, and a device renders more of them at a time.
SCENE.cycles.volume_biased = True
SCENE.cycles.use_denoising = SCENE.cycles.use_adaptive_sampling = False


def rendered(device):
    if device == "GPU":
        preferences = bpy.context.preferences.addons["cycles"].preferences
        preferences.compute_device_type = "CUDA"
        preferences.refresh_devices()
        for found in preferences.devices:
            found.use = found.type == "CUDA"
        expect(any(found.use for found in preferences.devices), "Cycles finds no CUDA device")
    SCENE.cycles.device = device
    with tempfile.TemporaryDirectory() as folder:
        SCENE.render.filepath = str(Path(folder) / "picture.exr")
        bpy.ops.render.render(write_still=True)
        picture = bpy.data.images.load(SCENE.render.filepath)
        pixels = numpy.array(picture.pixels[:]).reshape(SCENE.render.resolution_y, SCENE.render.resolution_x, -1)
        bpy.data.images.remove(picture)
    return pixels[..., :3]


def material(name, kind, **values):
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    nodes, links = made.node_tree.nodes, made.node_tree.links
    nodes.clear()
    shader, end = nodes.new(kind), nodes.new("ShaderNodeOutputMaterial")
    for key, value in values.items():
        shader.inputs[key.replace("_", " ")].default_value = value
    links.new(shader.outputs[0], end.inputs["Volume" if "Volume" in kind else "Surface"])
    return made, shader


def ball(x, surface):
    bpy.ops.mesh.primitive_uv_sphere_add(segments=24, ring_count=12, location=(x, -1.5, 0.6), radius=0.7)
    bpy.context.object.data.materials.append(surface)


def agree():
    """Light that takes another way after a rounding changes its pixel, which few do."""
    cpu, device = rendered("CPU"), rendered("GPU")
    expect(cpu.std() > 0.01, "the picture is of one colour")
    off = abs(device - cpu).max(-1) > 1e-3 * (1 + cpu.max(-1))
    expect(off.mean() < 0.02, f"{off.sum()} of {off.size} pixels differ, by up to {abs(device - cpu).max()}")
    expect(abs(device.mean() / cpu.mean() - 1) < 1e-2, f"the mean is {device.mean()}, on the CPU {cpu.mean()}")


def test_a_cube_is_rendered_as_on_the_cpu():
    agree()


def test_glass_metal_and_a_texture_are_rendered_as_on_the_cpu():
    ball(-2, material("glass", "ShaderNodeBsdfGlass", IOR=1.4)[0])
    ball(0, material("metal", "ShaderNodeBsdfGlossy", Roughness=0.3)[0])
    matt, shader = material("matt", "ShaderNodeBsdfDiffuse")
    noise = matt.node_tree.nodes.new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value = 4
    matt.node_tree.links.new(noise.outputs["Color"], shader.inputs["Color"])
    ball(2, matt)
    agree()


def test_a_picture_on_a_surface_and_fog_are_rendered_as_on_the_cpu():
    image = bpy.data.images.new("squares", 16, 16, float_buffer=True)
    y, x = numpy.mgrid[0:16, 0:16]
    image.pixels = numpy.stack([(x // 4 + y // 4) % 2, x / 16, y / 16, x * 0 + 1], -1).astype(numpy.float32).ravel()
    matt, shader = material("picture", "ShaderNodeBsdfDiffuse")
    texture = matt.node_tree.nodes.new("ShaderNodeTexImage")
    texture.image, texture.interpolation = image, "Closest"  # a texture's weights have eight bits on a device
    matt.node_tree.links.new(texture.outputs["Color"], shader.inputs["Color"])
    bpy.ops.mesh.primitive_plane_add(size=14, location=(0, 0, -1.2))
    bpy.context.object.data.materials.append(matt)
    bpy.ops.mesh.primitive_cube_add(size=3, location=(1, -1, 0.5))
    bpy.context.object.data.materials.append(material("fog", "ShaderNodeVolumeScatter", Density=0.3)[0])
    agree()


warnings.simplefilter("ignore")
if __name__ == "__main__":
    print(f"# Blender {bpy.app.version_string}")
    main(globals())
