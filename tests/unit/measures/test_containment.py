"""The level of containment at its edges; its properties are in tests/properties/test_containment_properties.py."""

import numpy as np
import pytest
import scipy.sparse as sp

from sfumato.measures.containment import containment_level


@pytest.mark.parametrize(("shape", "level"), [((0, 3), 0), ((0, 0), 0), ((4, 0), 4), ((4, 3), 4)])
def test_no_rows_have_level_0_and_rows_without_ones_are_all_alike(shape, level):
    assert containment_level(sp.csr_matrix(np.zeros(shape, dtype=np.int8))) == level
