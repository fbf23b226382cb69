"""IREE's kernels: what its compiler writes for CUDA computes what it writes for the CPU."""
import iree.compiler
import iree.runtime
import numpy

from tap import expect, main

RANDOM = numpy.random.default_rng(5)
FORMS = (("llvm-cpu", ["--iree-llvmcpu-target-cpu=generic"], "local-task"), ("cuda", ["--iree-cuda-target=sm_80"], "cuda"))


def both(text, *arguments):
    """What the function `main` of a module in MLIR returns on the CPU and on the device."""
    results = []
    for backend, options, driver in FORMS:
        code = iree.compiler.compile_str(text, target_backends=[backend], extra_args=options)
        context = iree.runtime.SystemContext(config=iree.runtime.Config(driver))
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
        results.append(context.modules.module.main(*arguments).to_host())
    return results


def product(rows, inner, columns, kind, wide):
    zero = "0" if wide[0] == "i" else "0.0"
    return f"""
    func.func @main(%a: tensor<{rows}x{inner}x{kind}>, %b: tensor<{inner}x{columns}x{kind}>)
            -> tensor<{rows}x{columns}x{wide}> {{
      %zero = arith.constant {zero} : {wide}
      %empty = tensor.empty() : tensor<{rows}x{columns}x{wide}>
      %start = linalg.fill ins(%zero : {wide}) outs(%empty : tensor<{rows}x{columns}x{wide}>)
          -> tensor<{rows}x{columns}x{wide}>
      %sum = linalg.matmul ins(%a, %b : tensor<{rows}x{inner}x{kind}>, tensor<{inner}x{columns}x{kind}>)
          outs(%start : tensor<{rows}x{columns}x{wide}>) -> tensor<{rows}x{columns}x{wide}>
      return %sum : tensor<{rows}x{columns}x{wide}>
    }}"""


def small_numbers(*shape, dtype):
    """All sums of their products are exact."""
    return RANDOM.integers(-8, 9, shape).astype(dtype)


def test_products_of_matrices_agree_with_the_cpu():
    for shape, kind, dtype, wide in (((37, 19, 53), "f32", numpy.float32, "f32"), ((64, 48, 32), "f16", numpy.float16, "f32"),
                                     ((32, 64, 32), "i8", numpy.int8, "i32")):
        a, b = small_numbers(*shape[:2], dtype=dtype), small_numbers(*shape[1:], dtype=dtype)
        cpu, device = both(product(*shape, kind, wide), a, b)
        expect(numpy.array_equal(cpu, a.astype(int) @ b.astype(int)), f"the CPU, {shape} {kind}")
        expect(numpy.array_equal(device, cpu), f"{shape} {kind}")


def test_a_convolution_agrees_with_the_cpu():
    text = """
    func.func @main(%image: tensor<2x18x21x4xf32>, %filter: tensor<3x3x4x8xf32>) -> tensor<2x16x19x8xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<2x16x19x8xf32>
      %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x16x19x8xf32>) -> tensor<2x16x19x8xf32>
      %sum = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
          ins(%image, %filter : tensor<2x18x21x4xf32>, tensor<3x3x4x8xf32>) outs(%start : tensor<2x16x19x8xf32>)
          -> tensor<2x16x19x8xf32>
      return %sum : tensor<2x16x19x8xf32>
    }"""
    image = RANDOM.standard_normal((2, 18, 21, 4), dtype=numpy.float32)
    weights = RANDOM.standard_normal((3, 3, 4, 8), dtype=numpy.float32)
    cpu, device = both(text, image, weights)
    wanted = sum(numpy.einsum("nyxc,cf->nyxf", image[:, i:i + 16, j:j + 19], weights[i, j]) for i in range(3) for j in range(3))
    numpy.testing.assert_allclose(cpu, wanted, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(device, cpu, rtol=1e-5, atol=1e-5)


def test_softmax_agrees_with_the_cpu():
    for rows, columns in ((12, 100), (3, 2000)):
        text = f"""
        func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32> {{
          %empty = tensor.empty() : tensor<{rows}x{columns}xf32>
          %y = linalg.softmax dimension(1) ins(%x : tensor<{rows}x{columns}xf32>) outs(%empty : tensor<{rows}x{columns}xf32>)
              -> tensor<{rows}x{columns}xf32>
          return %y : tensor<{rows}x{columns}xf32>
        }}"""
        x = RANDOM.standard_normal((rows, columns), dtype=numpy.float32) * 4
        cpu, device = both(text, x)
        power = numpy.exp(x.astype(float) - x.max(1, keepdims=True))
        numpy.testing.assert_allclose(device, power / power.sum(1, keepdims=True), rtol=1e-5)
        numpy.testing.assert_allclose(device, cpu, rtol=5e-5)  # the CPU's exponential is less exact


if __name__ == "__main__":
    main(globals())
