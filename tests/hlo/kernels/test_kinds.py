# ruff: noqa: E501 - an instruction of HLO is one line
"""What kernels of CPU, GPU and TPU modules are called, and what library calls cost."""

import pytest

from hlo.kernels.programs import fused, only_kernel, parameters, written
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.stages import ParsedTexts
from tables import rows


def _call(target, operands, result, more=""):
    names = ", ".join(f"p{number}" for number in range(len(operands)))
    call = f'ROOT call = {result} custom-call({names}), custom_call_target="{target}"{more}'
    return only_kernel(parameters(*operands) + call)


_CUBLAS = (
    ', backend_config={"operation_queue_id":"0","gemm_backend_config":{"dot_dimension_numbers":{'
    '"lhs_contracting_dimensions":["0"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],'
    '"rhs_batch_dimensions":[]},"epilogue":"DEFAULT"}}'
)
_WINDOW = ", window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"
_SCORES = (
    ', backend_config={"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"dimensions":["2","8","128","256"]}}}'
)
_QKV = ["bf16[2,128,8,64]", "bf16[2,256,8,64]", "bf16[2,256,8,64]"]
_STATED = ', backend_config={"custom_call_config":{"body":"abc","cost_estimate":{"flops":"1000","transcendentals":"10","bytes_accessed":"64"}}}'
_OF_A_LAYER = 2 * 8 * 16 * 24 * (3 * 32 - 2) ** 2


@pytest.mark.parametrize(
    ("target", "operands", "result", "more", "kind", "flops"),
    [
        # from the dimension numbers; without them from the shapes
        ("__cublas$gemm", ["bf16[128,512]", "bf16[128,256]"], "(bf16[512,256], s8[4194304])", _CUBLAS,
         "GEMM", 2 * 512 * 256 * 128),
        ("__onednn$matmul", ["f32[8,64,32]", "f32[8,32,48]"], "f32[8,64,48]", "", "GEMM", 2 * 8 * 64 * 48 * 32),
        # the three convolutions of a layer cost the same
        ("__cudnn$convForward", ["f32[8,16,32,32]", "f32[24,16,3,3]"], "(f32[8,24,32,32], u8[0])", _WINDOW,
         "convolution", _OF_A_LAYER),
        ("__cudnn$convBackwardInput", ["f32[8,24,32,32]", "f32[24,16,3,3]"], "(f32[8,16,32,32], u8[0])", _WINDOW,
         "convolution", _OF_A_LAYER),
        ("__cudnn$convBackwardFilter", ["f32[8,16,32,32]", "f32[8,24,32,32]"], "(f32[24,16,3,3], u8[0])", _WINDOW,
         "convolution", _OF_A_LAYER),
        # attention is two products over the scores, and five in its gradient
        ("__cudnn$fmhaSoftmax", _QKV, "(bf16[2,128,8,64], u8[0])", _SCORES, "attention", 2 * 2 * (2 * 8 * 128 * 256) * 64),
        ("__cudnn$fmhaSoftmaxBackward", _QKV, "(bf16[2,128,8,64], u8[0])", _SCORES,
         "attention", 5 * 2 * (2 * 8 * 128 * 256) * 64),
        # what its author states
        ("tpu_custom_call", ["f32[8,128]"], "f32[8,128]", _STATED, "Pallas kernel", 1000),
        ("tpu_custom_call", ["f32[8,128]"], "f32[8,128]", "", "Pallas kernel", None),
        # factorisations as LAPACK counts them
        ("lapack_spotrf_ffi", ["f32[5,60,60]"], "f32[5,60,60]", "", "Cholesky", 5 * 60**3 / 3),
        ("lapack_sgeqrf_ffi", ["f32[50,20]"], "f32[50,20]", "", "QR", 2 * 50 * 20**2 - 2 / 3 * 20**3),
        ("lapack_strsm_ffi", ["f32[40,40]", "f32[40,7]"], "f32[40,7]", "", "triangular solve", 40 * 40 * 7),
        ("cublas_trsm", ["c64[40,40]", "c64[40,7]"], "c64[40,7]", "", "triangular solve", 4 * 40 * 40 * 7),
    ],
)  # fmt: skip
def test_library_calls_are_counted(target, operands, result, more, kind, flops):
    kernel = _call(target, operands, result, more)
    assert (kernel.kind, kernel.target, kernel.flops) == (kind, target, pytest.approx(flops, rel=1e-12))


def test_what_else_is_known_of_library_calls():
    product = _call("__cublas$gemm", ["bf16[128,512]", "bf16[128,256]"], "(bf16[512,256], s8[4194304])", _CUBLAS)
    assert product.dtype == "bf16"
    assert product.estimated is False
    assert product.bytes_written == 512 * 256 * 2  # not the scratch memory
    assert _call("__cudnn$fmhaSoftmax", _QKV, "(bf16[2,128,8,64], u8[0])", _SCORES).estimated
    assert _call("tpu_custom_call", ["f32[8,128]"], "f32[8,128]", _STATED).transcendentals == 10


def test_targets_in_words():
    for target, kind in rows("""
        triton_kernel_call           Triton kernel
        xla_ffi_python_gpu_callback  host callback
        __cub$DeviceRadixSort        sort
        xla.gpu.ext.cub_sort_pairs   sort
        cu_norm_fwd                  normalisation
        SliceToDynamic               library call
        MoveToHost                   transfer
    """):
        assert _call(target, ["f32[8,8]"], "f32[8,8]").kind == kind


_DOT = "ROOT d = f32[64,64]{1,0} dot(p0, p0), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_REDUCE = "z = f32[] constant(0)\n r = f32[64]{0} reduce(p0, z), dimensions={1}, to_apply=add"


@pytest.mark.parametrize(
    ("kind", "inside", "config", "words", "target"),
    [
        ("kLoop", "y = f32[64,64] negate(p0)\n ROOT z = f32[64,64] add(p0, y)", "", "loop fusion", ""),
        ("kInput", f"{_REDUCE}\n n = f32[64] negate(r)\n ROOT b = f32[64,64] broadcast(n), dimensions={{0}}", "",
         "reduction fusion", ""),
        ("kInput", "n = f32[64,64]{1,0} negate(p0)\n ROOT t = f32[64,64]{1,0} transpose(n), dimensions={1,0}", "",
         "transpose fusion", ""),
        ("kLoop", "ROOT t = f32[64,64]{1,0} transpose(p0), dimensions={1,0}", "", "transpose", ""),
        ("kCustom", _DOT, ', backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}', "GEMM", "__triton_gemm"),
        ("kCustom", _DOT, ', backend_config={"fusion_config":{"kind":"__ynn_fusion"}}', "GEMM", "__ynn_fusion"),
        ("kOutput", _DOT, "", "GEMM", ""),
        ("kOutput", "ROOT c = f32[64,64]{1,0} convolution(p0, p0), dim_labels=bf_io->bf", "", "GEMM", ""),
        ("kCustom", "ROOT n = f32[64,64] negate(p0)", ', backend_config={"fusion_backend_config":{"kind":"__triton"}}',
         "Triton fusion", "__triton"),
        ("kCustom", "ROOT n = f32[64,64] negate(p0)",
         ', backend_config={"fusion_backend_config":{"kind":"__custom_fusion","custom_fusion_config":{"name":"address_computation"}}}',
         "copy", "address_computation"),
        ("kOutput", "y = f32[64,64] negate(p0)\n ROOT z = f32[64,64] add(p0, y)", "", "output fusion", ""),
        ("kCustom", "y = f32[64,64] negate(p0)\n ROOT z = f32[64,64] add(p0, y)", "", "custom fusion", ""),
    ],
)  # fmt: skip
def test_fusions_in_words(kind, inside, config, words, target):
    kernel = only_kernel(fused(inside, "f32[64,64]{1,0}", kind=kind, more=config))
    assert (kernel.kind, kernel.target, kernel.opcode) == (words, target, "fusion")


def test_a_copy_to_the_host_is_a_transfer():
    kernel = only_kernel("""
        x = f32[1024]{0} parameter(0)
        out = (f32[1024]{0:S(5)}, f32[1024]{0}, u32[]) copy-start(x)
        ROOT done = f32[1024]{0:S(5)} copy-done(out)
    """)
    assert (kernel.kind, kernel.bytes_read, kernel.bytes_written) == ("transfer", 4096, 4096)


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("x = f32[8,128]{1,0:T(8,128)} parameter(0)", "tpu"),
        ('x = f32[8] custom-call(), custom_call_target="__cublas$gemm"', "gpu"),
        ('x = f32[8] custom-call(), backend_config={"fusion_config":{"kind":"__ynn_fusion"}}', "cpu"),
        ("%multiply_add_fusion.1 = f32[8] fusion(x), kind=kLoop, calls=c", "cpu"),
        ("%loop_add_fusion = f32[8] fusion(x), kind=kLoop, calls=c", "gpu"),
        ("x = f32[8] parameter(0)", ""),
    ],
)
def test_platforms_are_told_from_their_marks(text, platform):
    assert platform_of(written(f"ROOT {text}")) == platform


@pytest.mark.parametrize(
    ("device", "platform"), [("cpu:0", "cpu"), ("cuda:1", "gpu"), ("tpu:0", "tpu"), ("profile", ""), ("", "")]
)
def test_a_module_without_marks_is_of_its_device(device, platform):
    small, marked = "ENTRY m { ROOT x = f32[8] parameter(0) }", "ENTRY m { ROOT x = f32[8]{0:T(8)} parameter(0) }"
    texts = ParsedTexts()
    assert platform_of(texts.modules(small)[0]) == ""
    assert platform_of(texts.modules(small, device)[0]) == platform
    assert platform_of(texts.modules(marked, device)[0]) == "tpu"


def test_a_batched_product_as_a_tpu_writes_it():
    """The batch stands in the window: no element meets another batch's."""
    kernel = only_kernel("""
        q = bf16[2,128,8,64]{1,3,2,0:T(8,128)(2,1)} parameter(0)
        k = bf16[2,256,8,64]{1,3,2,0:T(8,128)(2,1)} parameter(1)
        ROOT c = f32[2,8,128,256]{3,2,1,0:T(8,128)} convolution(q, k), window={size=2x8 stride=1x7 lhs_dilate=2x8}, dim_labels=0b1f_0o1i->01bf, metadata={op_name="jit(f)/bqhd,bkhd->bhqk/dot_general"}
    """)
    assert (kernel.kind, kernel.flops) == ("GEMM", 2 * 2 * 8 * 128 * 256 * 64)
