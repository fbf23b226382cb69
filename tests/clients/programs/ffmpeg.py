"""FFmpeg's filters for CUDA, each against a model of its arithmetic. CLIENT_ROOT has Debian's ffmpeg."""
import os
import sys
import tempfile
from pathlib import Path

import numpy

from tap import expect, main

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import debian  # noqa: E402  pylint: disable=wrong-import-position

ROOT = Path(os.environ["CLIENT_ROOT"])
LIBRARIES = os.pathsep.join(part for part in (debian.libraries(ROOT), os.environ.get("LD_LIBRARY_PATH")) if part)
RANDOM = numpy.random.default_rng(11)
WIDTH, HEIGHT = 72, 48
F32 = numpy.float32


def smooth(width, height, frames):
    """Pictures with slopes and edges, in which neighbours differ little: filters do nothing to noise."""
    y, x = numpy.mgrid[0:height, 0:width]
    pictures = [127 + 80 * numpy.sin((x + 3 * t) / 5) * numpy.cos(y / (7 + t)) + 40 * (x > width / 2 + t)
                + RANDOM.integers(-6, 7, (height, width)) for t in range(frames)]
    return numpy.clip(pictures, 0, 255).astype(numpy.uint8)


def shapes_of(width, height, alpha=False):
    """Of the planes of yuv420p, and of yuva420p."""
    return [(height, width), (height // 2, width // 2), (height // 2, width // 2)] + [(height, width)] * alpha


def planes(frames, width=WIDTH, height=HEIGHT, alpha=False):
    """Each plane with all its frames."""
    return [smooth(columns, rows, frames) for rows, columns in shapes_of(width, height, alpha)]


def packed(parts):
    """The bytes of planes, frame by frame, what their format is called, and the pictures' size."""
    data = b"".join(part[frame].tobytes() for frame in range(len(parts[0])) for part in parts)
    return data, "yuva420p" if len(parts) == 4 else "yuv420p", parts[0].shape[:0:-1]


def unpacked(data, width=WIDTH, height=HEIGHT, alpha=False):
    shapes = shapes_of(width, height, alpha)
    ends = numpy.cumsum([numpy.prod(shape) for shape in shapes])
    frames = numpy.frombuffer(data, numpy.uint8).reshape(-1, ends[-1])
    return [frames[:, end - numpy.prod(shape):end].reshape(-1, *shape) for end, shape in zip(ends, shapes)]


def ffmpeg(graph, *inputs, result="yuv420p"):
    """The bytes that a graph of filters makes of raw pictures."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for number, (data, pixels, size) in enumerate(inputs):
            path = Path(folder) / f"{number}.raw"
            path.write_bytes(data)
            words += ["-f", "rawvideo", "-pixel_format", pixels, "-video_size", f"{size[0]}x{size[1]}", "-i", path]
        return debian.output(ROOT / "usr" / "bin" / "ffmpeg", "-hide_banner", "-v", "error", "-init_hw_device", "cuda=c",
                             "-filter_hw_device", "c", *words, "-filter_complex", f"{graph},hwdownload,format={result}",
                             "-fps_mode", "passthrough", "-f", "rawvideo", "-",
                             environment=dict(os.environ, LD_LIBRARY_PATH=LIBRARIES))


def within(got, wanted, difference=0):
    for plane, (one, other) in enumerate(zip(got, wanted, strict=True)):
        expect(one.shape == other.shape, f"plane {plane}: {one.shape}, wanted {other.shape}")
        off = numpy.abs(one.astype(int) - other)
        expect(off.max() <= difference, f"plane {plane}: {numpy.count_nonzero(off > difference)} of {off.size} pixels "
               f"differ, by up to {off.max()}")


def test_pictures_come_back_as_they_were_uploaded():
    for pixels, size in (("yuv420p", 3 / 2), ("nv12", 3 / 2), ("yuv444p", 3), ("p010le", 3), ("p016le", 3),
                         ("yuv444p16le", 6), ("bgr0", 4)):
        data = RANDOM.bytes(int(WIDTH * HEIGHT * size) * 2)
        if pixels == "p010le":  # its low six bits are zero
            data = (numpy.frombuffer(data, numpy.uint16) & 0xffc0).tobytes()
        for upload in ("hwupload", "hwupload_cuda"):
            back = ffmpeg(upload, (data, pixels, (WIDTH, HEIGHT)), result=pixels)
            expect(back == data, f"{upload}, {pixels}")


def overlaid(below, above, x, y, alpha):
    weight = F32(1) if alpha is None else alpha.astype(F32) / F32(255)
    result = below.copy()
    where = result[:, y:y + above.shape[1], x:x + above.shape[2]]
    rest = (F32(1) - weight) * where.astype(F32)
    where[...] = (numpy.float64(weight) * above + rest).astype(F32).astype(numpy.uint8)  # the compiler fuses the sum
    return result


def test_a_picture_is_laid_over_another():
    below, above = planes(2, 2 * WIDTH, 2 * HEIGHT), planes(2, alpha=True)
    for upper, alpha in ((above[:3], None), (above, above[3])):
        got = ffmpeg("[0]hwupload[a];[1]hwupload[b];[a][b]overlay_cuda=x=10:y=4", packed(below), packed(upper))
        wanted = [overlaid(below[n], above[n], 10 // part, 4 // part, alpha if alpha is None else alpha[:, ::part, ::part])
                  for n, part in enumerate((1, 2, 2))]
        within(unpacked(got, 2 * WIDTH, 2 * HEIGHT), wanted)


def positions(size, result):
    """Where in a line of `size` pixels the centre of each of `result` pixels lies."""
    return (numpy.arange(result, dtype=F32) + F32(0.5)) * (F32(size) / F32(result))


def cubic(x):
    """Keys' weights of four neighbours, with a = 0 as the filter takes it without a parameter."""
    return [0 * x, 2 * x ** 3 - 3 * x ** 2 + 1, 2 * (1 - x) ** 3 - 3 * (1 - x) ** 2 + 1, 0 * x]


def lanczos(x):
    weights = numpy.array([numpy.sinc(x - k) * numpy.sinc((x - k) / 2) for k in (-1, 0, 1, 2)])
    return list(weights / weights.sum(0))


def with_four_taps(weights):
    def scaled(line, result):
        """Along the last axis."""
        at = positions(line.shape[-1], result) - 0.5
        first = numpy.floor(at).astype(int)
        taps = [numpy.clip(first + k, 0, line.shape[-1] - 1) for k in (-1, 0, 1, 2)]
        return sum(weight * line[..., tap] for weight, tap in zip(weights(at - first), taps))
    return scaled


def linear(line, result):
    """Two samples of a texture that weighs two neighbours, as far apart as the picture shrinks."""
    scale = line.shape[-1] / result
    half = min(max(0.5 * (scale - 1), 0), 1)
    total = 0
    for side in (-1, 1):
        at = positions(line.shape[-1], result) + side * half / (0.5 + half) - 0.5
        first = numpy.floor(at).astype(int)
        low, high = (numpy.clip(first + k, 0, line.shape[-1] - 1) for k in (0, 1))
        total = total + (line[..., low] * (1 - at + first) + line[..., high] * (at - first)) / 2
    return total


def nearest(line, result):
    return line[..., positions(line.shape[-1], result).astype(int)]


def test_pictures_are_scaled():
    """A texture's weights have eight bits, and four samples are rounded each: linear samples may differ by one."""
    picture = planes(2)
    for name, one_way, difference in (("nearest", nearest, 0), ("bilinear", linear, 1),
                                      ("bicubic", with_four_taps(cubic), 1), ("lanczos", with_four_taps(lanczos), 1)):
        for width, height in ((WIDTH // 2, HEIGHT // 3 * 2), (100, 80)):
            got = unpacked(ffmpeg(f"hwupload,scale_cuda={width}:{height}:interp_algo={name}", packed(picture)), width, height)
            wanted = [one_way(one_way(plane.astype(float), columns).swapaxes(1, 2), rows).swapaxes(1, 2)
                      for plane, (rows, columns) in zip(picture, shapes_of(width, height))]
            wanted = [numpy.clip(numpy.rint(plane), 0, 255).astype(int) for plane in wanted]
            try:
                within(got, wanted, difference)
            except AssertionError as error:
                raise AssertionError(f"{name}, {width}x{height}: {error}") from error


def test_formats_are_converted():
    y, u, v = planes(2)
    chroma = numpy.stack((u, v), -1).reshape(2, HEIGHT // 2, WIDTH)
    got = ffmpeg("hwupload,scale_cuda=format=nv12", packed([y, u, v]), result="nv12")
    expect(got == b"".join(y[n].tobytes() + chroma[n].tobytes() for n in range(2)), "yuv420p to nv12")
    got = ffmpeg("hwupload,scale_cuda=format=yuv420p", (got, "nv12", (WIDTH, HEIGHT)))
    within(unpacked(got), [y, u, v])


def deinterlaced(frames, number, parity):
    """Line by line what one field of a frame lacks: by the best direction in it, bounded by the fields around."""
    before, now, after = (frames[min(max(number + k, 0), len(frames) - 1)].astype(int) for k in (-1, 0, 1))
    height, width = now.shape
    earlier, later = (before, now) if parity == 0 else (now, after)
    rows, columns = numpy.arange(height), numpy.arange(width)

    def at(picture, down, right=0):
        return picture[numpy.clip(rows + down, 0, height - 1)][:, numpy.clip(columns + right, 0, width - 1)]

    def score(slope):
        return sum(abs(at(now, -1, slope + k) - at(now, 1, k - slope)) for k in (-1, 0, 1))

    def mean(slope):
        return (at(now, -1, slope) + at(now, 1, -slope)) // 2

    best, guess = score(0), mean(0)
    for side in (-1, 1):
        nearer = score(side) < best
        best, guess = numpy.where(nearer, score(side), best), numpy.where(nearer, mean(side), guess)
        nearer &= score(2 * side) < best
        best, guess = numpy.where(nearer, score(2 * side), best), numpy.where(nearer, mean(2 * side), guess)
    middle = (at(earlier, 0) + at(later, 0)) // 2
    above, below = at(now, -1), at(now, 1)
    spread = numpy.maximum(abs(at(earlier, 0) - at(later, 0)),
                           numpy.maximum((abs(at(before, -1) - above) + abs(at(before, 1) - below)) // 2,
                                         (abs(at(after, -1) - above) + abs(at(after, 1) - below)) // 2))
    up, down = (at(earlier, -2) + at(later, -2)) // 2 - above, (at(earlier, 2) + at(later, 2)) // 2 - below
    most = numpy.maximum(numpy.maximum(middle - below, middle - above), numpy.minimum(up, down))
    least = numpy.minimum(numpy.minimum(middle - below, middle - above), numpy.maximum(up, down))
    spread = numpy.maximum(spread, numpy.maximum(least, -most))
    guess = numpy.minimum(numpy.maximum(guess, middle - spread), middle + spread)
    return numpy.where((rows % 2 == parity)[:, None], now, guess)


def test_fields_become_frames():
    picture = planes(4)
    for mode, fields in (("send_frame", (0,)), ("send_field", (0, 1))):
        got = unpacked(ffmpeg(f"hwupload,yadif_cuda={mode}:tff", packed(picture)))
        within(got, [numpy.array([deinterlaced(plane, number, parity) for number in range(4) for parity in fields])
                     for plane in picture])


def between(plane):
    """The mean of four pixels, which a texture that weighs neighbours has at whole coordinates."""
    wide = numpy.pad(plane.astype(F32), ((0, 0), (1, 0), (1, 0)), mode="edge")
    return (wide[:, 1:, 1:] + wide[:, :-1, 1:] + wide[:, 1:, :-1] + wide[:, :-1, :-1]) / 4


def test_a_colour_becomes_transparent():
    """The mean distance of a place and its neighbours to the colour decides. Its sum may be rounded otherwise."""
    picture = planes(2)
    u, v = 140, 120
    distance = numpy.sqrt(((between(picture[1]) - u) ** 2 + (between(picture[2]) - v) ** 2) / (255 * 255 * 2))
    padded = numpy.pad(distance, ((0, 0), (1, 1), (1, 1)), constant_values=numpy.nan)
    rows, columns = distance.shape[1:]
    mean = numpy.nanmean([padded[:, i:i + rows, j:j + columns] for i in range(3) for j in range(3)], 0)
    for similarity, blend in ((0.1, 0.2), (0.15, 0)):
        got = unpacked(ffmpeg(f"hwupload,chromakey_cuda=0x00{u:02x}{v:02x}:{similarity}:{blend}:yuv=1", packed(picture),
                              result="yuva420p"), alpha=True)
        within(got[:3], [numpy.floor(between(plane)).astype(int) for plane in picture])
        alpha = numpy.clip((mean - similarity) / blend, 0, 1) * 255 if blend else (mean >= similarity) * 255
        expect(0 < alpha.mean() < 255, "the model decides nothing")
        within(got[3:], [alpha.astype(int).repeat(2, 1).repeat(2, 2)], 1)


def test_the_frame_nearest_to_the_mean_is_chosen():
    """By histograms. The frames are brighter and brighter, but one that repeats the middle of what is common."""
    picture = planes(6)
    for plane in picture:
        plane[1:] = numpy.clip(plane[1:].astype(int) // 2 + numpy.array([0, 40, 50, 60, 120])[:, None, None], 0, 255)
    got = unpacked(ffmpeg("hwupload,thumbnail_cuda=6", packed(picture)))
    histograms = numpy.array([numpy.concatenate([numpy.bincount(plane[n].ravel(), minlength=256) * part
                                                 for plane, part in zip(picture, (1, 4, 4))]) for n in range(6)])
    errors = ((histograms - histograms.mean(0)) ** 2).sum(1)
    within(got, [plane[[errors.argmin()]] for plane in picture])


if __name__ == "__main__":
    main(globals())
