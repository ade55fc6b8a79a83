"""One small program in all its stages, as JAX writes them: two layers with tanh, and the gradient of the second.

Written by hand, so that every line is known: `model.py:10` is the product, `model.py:11` the tanh, `model.py:20` the
sum, and the backward pass is `transpose(jvp(...))`.
"""

# ruff: noqa: E501  (a line of HLO is one line)

from jaxprof import events as e
from tui.session_tapes import Tape

FILE = "/src/model.py"

TABLES = f"""
FileNames
1 "{FILE}"

FunctionNames
1 "layer"
2 "loss"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=10 end_line=10 column=8 end_column=13}}
2 {{file_name_id=1 function_name_id=1 line=11 end_line=11 column=11 end_column=22}}
3 {{file_name_id=1 function_name_id=2 line=20 end_line=20 column=11 end_column=20}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=1}}
3 {{file_location_id=3 parent_frame_id=1}}

"""

HLO = (
    "HloModule jit_loss, is_scheduled=true, "
    "entry_computation_layout={(f32[256,512]{1,0}, f32[512,512]{1,0})->(f32[], f32[256,512]{1,0})}\n"
    + TABLES
    + """
%region_0.1 (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a.1, %b.1), metadata={op_name="jit(loss)/jvp()/reduce_sum" stack_frame_id=3}
}

%fused_tanh (param_0: f32[256,512]) -> f32[256,512] {
  %param_0 = f32[256,512]{1,0} parameter(0)
  %constant.7 = f32[] constant(0.5)
  %broadcast.7 = f32[256,512]{1,0} broadcast(%constant.7), dimensions={}
  %multiply.7 = f32[256,512]{1,0} multiply(%param_0, %broadcast.7), metadata={op_name="jit(loss)/jvp(attn)/mul" stack_frame_id=2}
  ROOT %tanh.7 = f32[256,512]{1,0} tanh(%multiply.7), metadata={op_name="jit(loss)/jvp(attn)/tanh" stack_frame_id=2}
}

%fused_grad (param_1: f32[256,512], param_2: f32[256,512]) -> f32[256,512] {
  %param_1 = f32[256,512]{1,0} parameter(0)
  %param_2 = f32[256,512]{1,0} parameter(1)
  %multiply.9 = f32[256,512]{1,0} multiply(%param_1, %param_1), metadata={op_name="jit(loss)/transpose(jvp(attn))/mul" stack_frame_id=2}
  ROOT %subtract.9 = f32[256,512]{1,0} subtract(%param_2, %multiply.9), metadata={op_name="jit(loss)/transpose(jvp(attn))/sub" stack_frame_id=2}
}

ENTRY %main.9 (x.1: f32[256,512], w.1: f32[512,512]) -> (f32[], f32[256,512]) {
  %x.1 = f32[256,512]{1,0} parameter(0), metadata={op_name="x"}
  %w.1 = f32[512,512]{1,0} parameter(1), metadata={op_name="w"}
  %constant.1 = f32[] constant(0)
  %dot.1 = f32[256,512]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(loss)/jvp(attn)/dot_general" stack_frame_id=1}
  %tanh_fusion = f32[256,512]{1,0} fusion(%dot.1), kind=kLoop, calls=%fused_tanh, metadata={op_name="jit(loss)/jvp(attn)/tanh" stack_frame_id=2}
  %reduce.1 = f32[] reduce(%tanh_fusion, %constant.1), dimensions={0,1}, to_apply=%region_0.1, metadata={op_name="jit(loss)/jvp()/reduce_sum" stack_frame_id=3}
  %grad_fusion = f32[256,512]{1,0} fusion(%tanh_fusion, %dot.1), kind=kLoop, calls=%fused_grad, metadata={op_name="jit(loss)/transpose(jvp(attn))/sub" stack_frame_id=2}
  ROOT %tuple.1 = (f32[], f32[256,512]{1,0}) tuple(%reduce.1, %grad_fusion)
}
"""
)

STABLEHLO = f"""#loc1 = loc("x")
module @jit_loss attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func public @main(%arg0: tensor<256x512xf32> loc("x"), %arg1: tensor<512x512xf32> loc("w")) -> tensor<f32> {{
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32> loc(#loc10)
    %1 = stablehlo.tanh %0 : tensor<256x512xf32> loc(#loc11)
    %2 = call @total(%1) : (tensor<256x512xf32>) -> tensor<f32> loc(#loc12)
    return %2 : tensor<f32> loc(#loc)
  }} loc(#loc)
  func.func private @total(%arg0: tensor<256x512xf32> loc("y")) -> tensor<f32> {{
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc12)
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x512xf32>, tensor<f32>) -> tensor<f32> loc(#loc12)
    return %0 : tensor<f32> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("{FILE}":10:8 to :13)
#loc3 = loc("{FILE}":11:11 to :22)
#loc4 = loc("{FILE}":20:11 to :20)
#loc5 = loc("layer"(#loc2))
#loc6 = loc("layer"(#loc3))
#loc7 = loc("loss"(#loc4))
#loc8 = loc(callsite(#loc5 at #loc7))
#loc9 = loc(callsite(#loc6 at #loc7))
#loc10 = loc("jit(loss)/jvp(attn)/dot_general"(#loc8))
#loc11 = loc("jit(loss)/jvp(attn)/tanh"(#loc9))
#loc12 = loc("jit(loss)/jvp()/reduce_sum"(#loc7))
"""

JAXPR = f"""{{ lambda ; a:f32[256,512] b:f32[512,512]. let
    c:f32[256,512] = dot_general[                        # {FILE}:10:8 (layer)
                                                         # [jvp(attn)]
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] a b
    d:f32[256,512] = tanh c                              # {FILE}:11:11 (layer)
                                                         # [jvp(attn)]
    e:f32[] = reduce_sum[axes=(0, 1)] d                  # {FILE}:20:11 (loss)
                                                         # [jvp()]
  in (e,) }}"""


def program_tape(file=FILE, hlo=HLO, **texts):
    tape = Tape()
    tape.plan("r1", "jit", workload="two-layers")
    tape.start("r1")
    for name, text in {"jaxpr": JAXPR, "stablehlo": STABLEHLO, "hlo": hlo, **texts}.items():
        shown = text.replace(FILE, file)
        tape.add(e.TextRecorded, "r1", name=name, text=shown, bytes=len(shown))
    tape.finish("r1")
    tape.close()
    return tape


def program_session(**given):
    return program_tape(**given).session()


def large_hlo(computations, each):
    parts = ["HloModule large"]
    for number in range(computations):
        parts.append(f"%fused.{number} (p.{number}: f32[64,256]) -> f32[64,256] {{")
        parts.append(f"  %p.{number} = f32[64,256]{{1,0}} parameter(0)")
        parts += [
            f"  %v.{number}.{i} = f32[64,256]{{1,0}} multiply(%p.{number}, %p.{number}), "
            f'metadata={{op_name="jit(f)/jvp(attn)/mul" source_file="m.py" source_line={i}}}'
            for i in range(each - 1)
        ]
        parts.append("}")
    return "\n".join(parts)
