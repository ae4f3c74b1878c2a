"""Numbers that are none in tensor data, and tensors of zeros."""

import math

from ..enums import GGMLQuantizationType as Q
from .case import Pair
from .draft import QUANTISED, blank, plant, tensor, toy

PLAIN = toy(tensors=(tensor("a.weight"),))
QUANTS = toy(QUANTISED, tensors=(tensor("a.weight", Q.Q8_0, 64),))
MATRIX = toy(tensors=(tensor("a.weight", Q.F32, 4, 2),))
WEIGHT, SCALE, DATA = "tensor_data[0][2].value", "tensor_data[0][1].d", "tensor_data[0]"

PAIRS = (
    Pair("weight-nan", PLAIN, plant(WEIGHT, math.nan), WEIGHT),
    Pair("weight-inf", PLAIN, plant(WEIGHT, -math.inf), WEIGHT),
    Pair("scale-nan", QUANTS, plant(SCALE, math.nan), SCALE),
    Pair("scale-inf", QUANTS, plant(SCALE, math.inf), SCALE),
    Pair("weights-zero", MATRIX, blank(DATA), DATA),
)
