"""Networks so small that they need no time to build."""

from oaccdepth.networks.fast import FastConfig
from oaccdepth.networks.paper import OACCNetConfig

FAST = FastConfig(channels=(16,) * 4, refine_channels=(16,) * 3)
PAPER = OACCNetConfig(
    feature_blocks=1, matching_channels=4, cost_channels=24, volume_channels=6, attention_channels=2
)
