"""Positions of stars, computed as far as they are asked for."""

import math


def brightness(size):
    return [math.exp(-((index % 1000) / 250.0)) * math.sin(index / 97.0) ** 2 for index in range(size)]
