"""What PyTorch itself asks of the runtime: memory, streams, events, graphs of copies, other processes. On softgpu also
what is refused: its own kernels, which are machine code without PTX, cuBLAS and cuDNN. On hardware these compute, with
the runtime inside cuBLAS and cuDNN beside ours in one process.

CLIENT_RUNTIME names the libcudart that must be the only one loaded as a library, or its folder."""
import ctypes
import os
from pathlib import Path

import torch
import torch.multiprocessing

from tap import expect, expect_equal, main, raises

HERE = torch.device("cuda", 0)
TWO = torch.cuda.device_count() > 1
NUMBERS = torch.arange(4096, dtype=torch.float32)


def sent(tensor):
    """On the device, without a kernel: by a copy."""
    return torch.empty_like(tensor, device=HERE).copy_(tensor)


def loaded(name):
    return {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if name in line}


def test_devices():
    expect(torch.cuda.is_available())
    expect_equal((torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0)), ("NVIDIA H200", (9, 0)))
    properties = torch.cuda.get_device_properties(0)
    expect(properties.multi_processor_count > 100 and properties.total_memory > 1 << 29, str(properties))
    expect(not TWO or torch.cuda.can_device_access_peer(0, 1))


def test_the_runtime_is_the_one_that_is_wanted():
    wanted = os.environ.get("CLIENT_RUNTIME") or os.environ.get("GPUMEM_RUNTIME")
    if wanted:
        found = loaded("libcudart")
        expect(len(found) == 1 and all(path.startswith(os.path.realpath(wanted)) for path in found), str(found))


def test_copies_in_every_direction():
    there = sent(NUMBERS)
    expect(torch.equal(there.cpu(), NUMBERS))
    expect(torch.equal(there.clone().cpu(), NUMBERS))
    pinned = NUMBERS.pin_memory()
    expect(pinned.is_pinned())
    there = pinned.to(HERE, non_blocking=True)
    back = torch.empty_like(NUMBERS).pin_memory()
    back.copy_(there, non_blocking=True)
    torch.cuda.synchronize()
    expect(torch.equal(back, NUMBERS))
    expect(not TWO or torch.equal(there.to("cuda:1").cpu(), NUMBERS))
    expect(not torch.zeros(1000, device=HERE).cpu().any())
    rows = sent(NUMBERS.reshape(64, 64))
    expect(torch.equal(rows[3].cpu(), NUMBERS[192:256]))


def test_memory_is_counted_and_returned():
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    before = torch.cuda.memory_allocated()
    block = torch.empty(64 << 20, dtype=torch.uint8, device=HERE)
    expect_equal(torch.cuda.memory_allocated() - before, 64 << 20)
    expect_equal((free - torch.cuda.mem_get_info()[0], torch.cuda.mem_get_info()[1]), (64 << 20, total))
    del block
    torch.cuda.empty_cache()
    expect_equal(torch.cuda.mem_get_info()[0], free)
    why = raises(torch.OutOfMemoryError, torch.empty, 2 * total, dtype=torch.uint8, device=HERE)
    expect("CUDA out of memory. Tried to allocate" in str(why), str(why))


def test_streams_and_events():
    stream, other = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        first.record()
        there = NUMBERS.pin_memory().to(HERE, non_blocking=True)
        last.record()
    other.wait_event(last)
    with torch.cuda.stream(other):
        back = there.to("cpu", non_blocking=True)
    other.synchronize()
    expect(torch.equal(back, NUMBERS) and last.query() and other.query())
    expect(first.elapsed_time(last) >= 0 and other.priority == -1)


def test_graphs():
    source, target, graph = sent(NUMBERS), torch.zeros(4096, device=HERE), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        target.copy_(source)
    expect(not target.cpu().any())
    graph.replay()
    expect(torch.equal(target.cpu(), NUMBERS))
    source.copy_(NUMBERS.flip(0))
    graph.replay()
    expect(torch.equal(target.cpu(), NUMBERS.flip(0)))


def test_what_other_libraries_take():
    there = sent(NUMBERS)
    expect_equal(there.__cuda_array_interface__["data"][0], there.data_ptr())
    again = torch.from_dlpack(there)
    expect_equal(again.data_ptr(), there.data_ptr())
    stream = torch.cuda.Stream()
    runtime = torch.cuda.cudart()
    expect_equal(int(runtime.cudaMemGetInfo(0)[1]), torch.cuda.mem_get_info()[1])
    external = torch.cuda.ExternalStream(stream.cuda_stream)
    external.synchronize()
    host = (ctypes.c_char * 4096)()
    expect_equal(int(runtime.cudaHostRegister(ctypes.addressof(host), 4096, 0)), 0)
    expect_equal(int(runtime.cudaHostUnregister(ctypes.addressof(host))), 0)


def child(queue, answers):
    tensor, event = queue.get()
    event.synchronize()
    answers.put(tensor.cpu().sum().item())
    tensor.zero_()
    torch.cuda.synchronize()
    answers.put("cleared")
    del tensor
    queue.get()


def test_memory_and_events_of_another_process():
    context = torch.multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, answers), daemon=True)
    process.start()
    there, event = sent(NUMBERS), torch.cuda.Event(interprocess=True)
    event.record()
    queue.put((there, event))
    expect_equal(answers.get(timeout=600), NUMBERS.sum().item())
    expect_equal(answers.get(timeout=600), "cleared")
    expect(not there.cpu().any())
    queue.put("end")
    process.join()
    expect_equal(process.exitcode, 0)


torch.cuda.init()
if loaded("libsoftgpu"):
    def test_kernels_that_are_machine_code_alone_are_refused_and_nothing_is_broken():
        there = sent(NUMBERS)
        for compute in (lambda: there + 1, lambda: there.sum(), lambda: there.sort()):
            why = raises(RuntimeError, compute)
            expect("operation not supported" in str(why), str(why))
        expect(torch.equal(there.cpu(), NUMBERS))

    def test_cublas_and_cudnn_are_refused():
        there = sent(NUMBERS.reshape(64, 64))
        expect("CUBLAS_STATUS_NOT_INITIALIZED" in str(raises(RuntimeError, torch.mm, there, there)))
        picture, weights = sent(NUMBERS.reshape(1, 1, 64, 64)), sent(NUMBERS[:9].reshape(1, 1, 3, 3))
        why = raises(RuntimeError, torch.nn.functional.conv2d, picture, weights)
        expect("CUDNN" in str(why).upper(), str(why))
        expect(torch.equal(there.cpu(), NUMBERS.reshape(64, 64)))
else:
    def near(there, here, most=1e-4):
        difference = (there.cpu().double() - here).abs().max().item()
        expect(difference <= most * max(1.0, here.abs().max().item()), f"off by {difference}")

    def test_its_own_kernels_cublas_cudnn_and_others_compute():
        here = torch.sin(NUMBERS.double()).reshape(64, 64)
        there = sent(here.float())
        near(there + 1, here + 1)
        near(there.sum(1), here.sum(1))
        near(there.sort().values, here.sort().values)
        near(torch.mm(there, there), here @ here)
        near(torch.mm(there.half(), there.half()), here @ here, 1e-2)
        near(torch.linalg.solve(there + 9 * sent(torch.eye(64)), there),
             torch.linalg.solve(here + 9 * torch.eye(64, dtype=torch.float64), here))
        near(torch.fft.fft(there).abs(), torch.fft.fft(here).abs())
        near(torch.nn.functional.conv2d(there[None, None], there[None, None, :3, :3]),
             torch.nn.functional.conv2d(here[None, None], here[None, None, :3, :3]), 1e-2)
        expect(torch.rand(1000, device=HERE).cpu().mean().item() < 1)

    def test_a_model_is_trained_and_replayed_as_a_graph():
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(HERE)
        steps, given = torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(32, 64, device=HERE)
        losses = []
        for _ in range(20):
            steps.zero_grad()
            loss = ((model(given) - given.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            steps.step()
            losses.append(loss.item())
        expect(losses[-1] < losses[0], str(losses))
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            replayed = model(given)
        graph.replay()
        near(replayed, model(given).detach().cpu().double())


if __name__ == "__main__":
    main(globals())
