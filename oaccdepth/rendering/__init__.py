"""Light fields of known disparity and visibility: for the demo, the tests and training."""
