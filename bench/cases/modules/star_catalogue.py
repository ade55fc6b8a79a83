"""Positions of stars, computed when the module is imported."""

import math

BRIGHTNESS = [math.exp(-((index % 1000) / 250.0)) * math.sin(index / 97.0) ** 2 for index in range(9_000_000)]


def brightness(size):
    return BRIGHTNESS[:size]
