"""gprMax: electromagnetic waves on the device, which nvcc compiles for through pycuda, as on the CPU."""
import tempfile
from pathlib import Path

import gprMax
import h5py
import numpy

from tap import expect, main

SETTINGS = {"hide_progress_bars": True, "log_level": 40}


def received(objects, **device):
    """All that receivers recorded in a box of 40 x 40 x 30 cells with a dipole in it."""
    scene = gprMax.Scene()
    for item in (gprMax.Discretisation(p1=(0.002,) * 3), gprMax.Domain(p1=(0.08, 0.08, 0.06)),
                 gprMax.TimeWindow(time=5e-10), gprMax.Waveform(wave_type="ricker", amp=1, freq=3e9, id="wave"),
                 gprMax.HertzianDipole(polarisation="z", p1=(0.03, 0.04, 0.03), waveform_id="wave"),
                 gprMax.Rx(p1=(0.05, 0.04, 0.03)), gprMax.Rx(p1=(0.03, 0.05, 0.036)), *objects):
        scene.add(item)
    with tempfile.TemporaryDirectory() as folder:
        gprMax.run(scenes=[scene], n=1, outputfile=Path(folder) / "out", **SETTINGS, **device)
        with h5py.File(next(Path(folder).glob("*.h5"))) as file:
            return {f"{number} {name}": values[()] for number, rows in file["rxs"].items() for name, values in rows.items()}


def agree(objects):
    """Single precision, over hundreds of steps."""
    cpu, device = received(objects()), received(objects(), gpu=[0])
    expect(len(cpu) == 12 and cpu.keys() == device.keys(), sorted(cpu))
    for kind in ("E", "H"):
        names = [name for name in cpu if name.split()[1].startswith(kind)]
        largest = max(abs(cpu[name]).max() for name in names)
        expect(largest > 0, f"no wave arrived in {kind}")
        for name in names:
            off = abs(cpu[name] - device[name]).max() / largest
            expect(off < 1e-4, f"{name} differs by {off:.2e} of the largest")


def test_waves_in_air_agree_with_the_cpu():
    agree(lambda: [])


def test_waves_in_soil_with_a_pipe_agree_with_the_cpu():
    agree(lambda: [gprMax.Material(er=6, se=0.01, mr=1, sm=0, id="soil"),
                   gprMax.Box(p1=(0, 0, 0), p2=(0.08, 0.03, 0.06), material_id="soil"),
                   gprMax.Cylinder(p1=(0.04, 0.016, 0), p2=(0.04, 0.016, 0.06), r=0.006, material_id="pec")])


def test_waves_in_a_dispersive_material_agree_with_the_cpu():
    agree(lambda: [gprMax.Material(er=3, se=0, mr=1, sm=0, id="wet"),
                   gprMax.AddDebyeDispersion(poles=1, er_delta=[2.5], tau=[1e-10], material_ids=["wet"]),
                   gprMax.Sphere(p1=(0.055, 0.04, 0.03), r=0.012, material_id="wet")])


if __name__ == "__main__":
    print(f"# gprMax {gprMax.__version__}")
    main(globals())
