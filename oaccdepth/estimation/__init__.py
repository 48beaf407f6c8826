"""LightField -> DisparityMap: device, tiles, sweeps and the range to search."""
