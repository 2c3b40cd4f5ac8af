"""fairlearn's constraint objects as constraints of `reductions`, where they mean the same.

fairlearn compares each group with everybody, so parities come with `versus = "overall"`. What has no equal here is
refused by name: bounds on ratios, and losses other than the zero-one loss.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from stratsynth.errors import Unsupported

PARITIES = {
    "EqualizedOdds": "equalized_odds",
    "DemographicParity": "demographic_parity",
    "TruePositiveRateParity": "true_positive_parity",
    "FalsePositiveRateParity": "false_positive_parity",
    "ErrorRateParity": "error_parity",
}
DEFAULT = 0.01
"""Default bound of fairlearn's constraints."""


def constraints_from(given: Any, versus: str) -> tuple[dict[str, Any], str]:
    """Return (mapping from constraint to bound, comparison that parities make, a value of `versus`).

    Args:
        given: A name, whose bound is then fairlearn's default; a table of names and bounds; or one of fairlearn's
            objects.
        versus: The estimator's parameter; an object of fairlearn's decides for itself.

    Raises:
        Unsupported: An object that means something that `reductions` does not hold.
    """
    if given is None:
        return {}, versus
    if isinstance(given, str):
        return {given: DEFAULT}, versus
    if isinstance(given, Mapping):
        return dict(given), versus
    # whoever made such an object has imported fairlearn: we need not
    if "fairlearn" not in sys.modules or not type(given).__module__.startswith("fairlearn."):
        raise Unsupported(
            "constraints: give a table such as {'equalized_odds': 0.05}, one name, or one of fairlearn's constraint "
            f"objects, not {type(given).__name__}."
        )
    return _moment(given), "overall"


def _moment(given: Any) -> dict[str, Any]:
    """Return a dict of one entry, {name of our constraint: its bound, a float}, for a fairlearn moment `given`.

    Raise Unsupported for one that has no equal here.
    """
    name = type(given).__name__
    if name in PARITIES:
        if given.ratio != 1:
            raise Unsupported(f"constraints: {name} with a ratio_bound has no equal here; give a difference_bound.")
        return {PARITIES[name]: float(given.eps)}
    bound = getattr(given, "upper_bound", None)
    if name == "BoundedGroupLoss" and type(given.reduction_loss).__name__ == "ZeroOneLoss" and bound is not None:
        return {"bounded_loss": float(bound)}
    known = ", ".join([*PARITIES, "BoundedGroupLoss(ZeroOneLoss(), upper_bound=...)"])
    raise Unsupported(f"constraints: {name} as it was made has no equal here; what has is {known}.")
