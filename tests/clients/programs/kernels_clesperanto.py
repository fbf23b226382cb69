"""pyclesperanto's CUDA form, whose kernels NVRTC compiles, against models of what its functions say they do.

The package loads its OpenCL form first, and without a device for that it loads nothing: it is loaded again once
the CUDA form is chosen."""
import importlib
import warnings

import numpy

from tap import expect, expect_equal, main

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyclesperanto as cle
if not hasattr(cle, "select_device"):
    cle.select_backend("cuda")
    cle = importlib.reload(cle)
cle.select_backend("cuda")
cle.select_device(0)

RANDOM = numpy.random.default_rng(9)
IMAGE = RANDOM.integers(0, 256, (23, 41)).astype(numpy.float32)
VOLUME = RANDOM.integers(0, 100, (7, 12, 15)).astype(numpy.float32)


def pulled(function, *arguments, **options):
    arrays = [cle.push(value) if isinstance(value, numpy.ndarray) else value for value in arguments]
    result = getattr(cle, function)(*arrays, **options)
    return cle.pull(result) if hasattr(result, "shape") else result


def windows(image, radius):
    """All shifts of an image whose border is repeated."""
    wide = numpy.pad(image, radius, mode="edge")
    return numpy.array([wide[tuple(slice(k, k + size) for k, size in zip(shift, image.shape))]
                        for shift in numpy.ndindex(*(2 * radius + 1,) * image.ndim)])


def test_the_cuda_form_runs():
    expect_equal(cle.get_backend_name(), "cuda")


def test_arithmetic_of_images_agrees_with_numpy():
    other = IMAGE[::-1].copy()
    for function, arguments, options, wanted in (
            ("add_images_weighted", (IMAGE, other), {"factor1": 2, "factor2": -1}, 2 * IMAGE - other),
            ("multiply_images", (IMAGE, other), {}, IMAGE * other),
            ("maximum_images", (IMAGE, other), {}, numpy.maximum(IMAGE, other)),
            ("absolute_difference", (IMAGE, other), {}, abs(IMAGE - other)),
            ("greater_constant", (IMAGE,), {"scalar": 99}, IMAGE > 99),
            ("power", (IMAGE,), {"scalar": 2}, IMAGE ** 2),
            ("transpose_xy", (IMAGE,), {}, IMAGE.T),
            ("flip", (IMAGE,), {"flip_x": True, "flip_y": False, "flip_z": False}, IMAGE[:, ::-1])):
        numpy.testing.assert_allclose(pulled(function, *arguments, **options), wanted, rtol=1e-6, err_msg=function)


def test_projections_and_sums_agree_with_numpy():
    for function, wanted in (("maximum_z_projection", VOLUME.max(0)), ("sum_z_projection", VOLUME.sum(0)),
                             ("mean_z_projection", VOLUME.mean(0)), ("minimum_y_projection", VOLUME.min(1))):
        numpy.testing.assert_allclose(numpy.squeeze(pulled(function, VOLUME)), numpy.squeeze(wanted), rtol=1e-5,
                                      err_msg=function)
    expect_equal(pulled("sum_of_all_pixels", VOLUME), VOLUME.sum())
    expect_equal(pulled("maximum_of_all_pixels", VOLUME), VOLUME.max())


def test_filters_agree_with_models():
    for image in (IMAGE, VOLUME):
        around = windows(image, 1)
        depth = 1 if image.ndim == 3 else 0
        for function, wanted in (("mean_filter", around.mean(0)), ("maximum_filter", around.max(0)),
                                 ("minimum_filter", around.min(0)), ("median", numpy.median(around, 0))):
            got = pulled(function, image, radius_x=1, radius_y=1, radius_z=depth, connectivity="box")
            numpy.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=f"{function}, {image.ndim} dimensions")


def test_a_gaussian_blur_agrees_with_a_model():
    """Weights that are normed, of a window of eight deviations, with the border repeated."""
    sigma, radius = 1.5, 6
    weights = numpy.exp(-numpy.arange(-radius, radius + 1) ** 2 / (2 * sigma ** 2))
    weights /= weights.sum()
    wanted = IMAGE.astype(float)
    for axis in (0, 1):
        wide = numpy.pad(wanted, [(radius, radius) if k == axis else (0, 0) for k in (0, 1)], mode="edge")
        wanted = numpy.apply_along_axis(numpy.convolve, axis, wide, weights, "valid")
    numpy.testing.assert_allclose(pulled("gaussian_blur", IMAGE, sigma_x=sigma, sigma_y=sigma), wanted, rtol=1e-3)


def test_connected_parts_are_labelled():
    image = numpy.zeros((20, 30), numpy.float32)
    boxes = [(slice(1, 4), slice(2, 9)), (slice(6, 15), slice(3, 5)), (slice(7, 9), slice(12, 28)), (slice(17, 19), slice(0, 30))]
    for box in boxes:
        image[box] = 1
    labels = pulled("connected_component_labeling", image)
    expect_equal(len(numpy.unique(labels)), 1 + len(boxes))
    for box in boxes:
        expect(len(numpy.unique(labels[box])) == 1 and labels[box].min() > 0, box)


def test_a_threshold_separates_two_peaks():
    """Where the bins of the histogram end, one brightness of the lower peak may count as above."""
    image = numpy.where(RANDOM.random((40, 40)) < 0.4, 30, 200) + RANDOM.integers(-9, 10, (40, 40))
    above = pulled("threshold_otsu", image.astype(numpy.float32)) > 0
    expect(above[image > 100].all() and not above[image < 38].any())


if __name__ == "__main__":
    main(globals())
