"""The audit of linked tables: both worlds answer a fit's questions, and faulty rows weigh a household each."""

import numpy as np
import pandas as pd

from stratsynth import Budget
from stratsynth.adapters import Linked
from stratsynth.data.linked_rows import LinkedRows, slots_of
from stratsynth.data.sources import open_source
from stratsynth.evaluation.audit.linked import HOMES, UnsharedRows, linked_pair


def test_faulty_rows_answer_and_weigh_a_household_each():
    homes = pd.DataFrame({"HOME": [0], "TEN": ["1"]})
    persons = pd.DataFrame({"HOME": [0] * 4, "PLACE": range(4), "SEX": ["1", "2", "1", "2"], "AGE": [40, 41, 5, 6]})
    tables = (open_source(each).all_columns() for each in (homes, persons))
    slots = slots_of(HOMES, *tables, HOMES.counted.row_weight.most)
    asked = [((), [("rest.SEX",)])]
    sound, faulty = (kind(HOMES.counted, slots).counts(asked)[0][0] for kind in (LinkedRows, UnsharedRows))
    most = HOMES.counted.row_weight.most
    assert np.sum(sound) == most
    assert np.sum(faulty) == 3 * most


def test_a_fit_is_audited_with_sound_and_faulty_rows():
    sound, faulty = linked_pair(Linked(base="mst"), Budget(3, 1e-6), neighbours=2, declared=500)
    assert 0 < sound.cost < faulty.cost
