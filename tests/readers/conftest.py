"""What tests of readers share."""

import lightfield_files as files
import pytest


@pytest.fixture(scope="module")
def views():
    """Small views, 3x3, of a rendered scene."""
    return files.render((3, 3), (20, 28))[0]
