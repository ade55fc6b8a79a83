"""Positions that a window visits, against counting them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.hlo.analysis.cost.linear import ConvolutionWindow, matmul_flops, positions
from jaxprof.hlo.shape import parse_shape


def _counted(window, input_size, output_size):
    found = 0
    for output in range(output_size):
        for at in range(window.size):
            place = output * window.stride + at * window.window_dilation - window.pad_low
            inside = 0 <= place <= (input_size - 1) * window.base_dilation
            found += inside and place % window.base_dilation == 0
    return found


@given(
    size=st.integers(1, 6),
    stride=st.integers(1, 5),
    low=st.integers(-3, 6),
    base=st.integers(1, 5),
    dilation=st.integers(1, 4),
    input_size=st.integers(1, 14),
    output_size=st.integers(0, 16),
)
def test_positions_are_those_that_counting_finds(size, stride, low, base, dilation, input_size, output_size):
    window = ConvolutionWindow(size, stride, low, base, dilation)
    assert positions(window, input_size, output_size) == _counted(window, input_size, output_size)


def test_a_product_without_dimension_numbers_gets_its_depth_from_the_sizes():
    shapes = map(parse_shape, ("f32[100,30]", "f32[50,30]", "f32[100,50]"))
    assert matmul_flops(*shapes) == 2 * 100 * 50 * 30


def test_a_window_with_holes_is_counted_without_walking_through_them():
    window = ConvolutionWindow(2, stride=3_000_003, base_dilation=999_999_937, window_dilation=2)
    assert positions(window, 10**9, 10**12) == 668, "not within 60 s if the holes are walked through"
