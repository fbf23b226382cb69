"""OpenMM's CUDA platform, whose kernels NVRTC compiles: forces and energies as its Reference platform has them."""
import itertools

import numpy
import openmm
from openmm import unit

from tap import expect, main

RANDOM = numpy.random.default_rng(17)
SIDE = 2.5


def lattice(count):
    points = numpy.array(list(itertools.islice(itertools.product(range(6), repeat=3), count)), float)
    return points * SIDE / 6 + RANDOM.uniform(-0.04, 0.04, (count, 3))


def system_of(count):
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*row) for row in numpy.eye(3) * SIDE))
    for _ in range(count):
        system.addParticle(12.0)
    return system


def nonbonded(count, method):
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(method)
    force.setCutoffDistance(0.9)
    for number in range(count):
        force.addParticle(0.2 * (-1) ** number, 0.3, 0.6)
    return force


def chains(count):
    """Bonds, angles and torsions along chains of eight, and constraints between every other pair."""
    bonds, angles, torsions = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce(), openmm.PeriodicTorsionForce()
    for first in range(0, count - 7, 8):
        for k in range(first, first + 7):
            bonds.addBond(k, k + 1, 0.4, 2000)
        for k in range(first, first + 6):
            angles.addAngle(k, k + 1, k + 2, 1.9, 30)
        for k in range(first, first + 5):
            torsions.addTorsion(k, k + 1, k + 2, k + 3, 3, 0.3, 4)
    return [bonds, angles, torsions]


def computed(platform, forces, count, steps):
    system = system_of(count)
    for force in forces:
        system.addForce(force)
    properties = {"Precision": "mixed"} if platform == "CUDA" else {}
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName(platform), properties)
    context.setPositions(POSITIONS[:count])
    before = context.getState(getForces=True, getEnergy=True)
    context.getIntegrator().step(steps)
    after = context.getState(getPositions=True)
    return (before.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer),
            before.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole),
            after.getPositions(asNumpy=True).value_in_unit(unit.nanometer))


POSITIONS = lattice(216)


def agree(forces, count=216, steps=10):
    """Single precision in sums of some hundred terms."""
    reference, device = (computed(platform, forces(), count, steps) for platform in ("Reference", "CUDA"))
    scale = abs(reference[0]).max()
    expect(scale > 1, "there are no forces")
    off = abs(device[0] - reference[0]).max() / scale
    expect(off < 1e-4, f"forces differ by {off:.2e} of the largest")
    numpy.testing.assert_allclose(device[1], reference[1], rtol=1e-4)
    numpy.testing.assert_allclose(device[2], reference[2], atol=1e-5)


def test_forces_within_a_cutoff_agree_with_the_reference():
    agree(lambda: [nonbonded(216, openmm.NonbondedForce.CutoffPeriodic)])


def test_forces_without_a_cutoff_agree_with_the_reference():
    agree(lambda: [nonbonded(150, openmm.NonbondedForce.NoCutoff)], 150)


def test_ewald_sums_agree_with_the_reference():
    """Not over a mesh: that is cuFFT's, which holds CUDA's runtime library."""
    agree(lambda: [nonbonded(216, openmm.NonbondedForce.Ewald)], steps=3)


def test_bonds_angles_and_torsions_agree_with_the_reference():
    agree(lambda: [*chains(216), nonbonded(216, openmm.NonbondedForce.CutoffPeriodic)])


def test_a_force_of_ones_own_agrees_with_the_reference():
    def forces():
        force = openmm.CustomNonbondedForce("a*exp(-r/0.2)/(1+r^2); a=sqrt(s1*s2)")
        force.addPerParticleParameter("s")
        force.setNonbondedMethod(force.CutoffPeriodic)
        force.setCutoffDistance(0.8)
        for number in range(216):
            force.addParticle([50 + number % 5])
        return [force]
    agree(forces)


if __name__ == "__main__":
    print(f"# OpenMM {openmm.__version__}")
    main(globals())
