"""What another process compiles at the first use is what an estimate needs later."""

import subprocess
import sys

PROGRAM = """
import numpy as np
import torch
from oaccdepth.evidence import first_use, kernels, reach_kernels, sample_kernels, surface_kernels
from oaccdepth.estimation.inference import estimate
from oaccdepth.lightfield import LightField
from oaccdepth.networks.fast import FastNet

def kinds():
    modules = (sample_kernels, surface_kernels, reach_kernels)
    loops = {id(x): x for m in modules for x in vars(m).values() if hasattr(x, "signatures")}
    return {(name, str(k)) for x in loops.values() if (name := x.__name__)[0] != "_"
            for k in x.signatures}

first_use.use_all()
before = kinds()
views = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 40, 3), dtype=np.uint8)
estimate(LightField(views, disparity_range=(-1.0, 1.0)), network=FastNet().eval())
print(len(before), sorted({name for name, _ in kinds() - before}))
"""


def test_nothing_but_the_fit_is_left_to_compile():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    count, left = done.stdout.split(maxsplit=1)
    assert int(count) >= 8
    assert left == "['misfit']\n"
