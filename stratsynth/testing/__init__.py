"""Check of any mechanism against the contract that the project's own mechanisms must pass.

    from stratsynth.testing import check_contract

    assert check_contract(lambda world, rows: MyMechanism()) == []

A mechanism that learns from rows in any way but by asking is detected by running it on neighbouring tables: every
question's exact answers may differ by no more than was charged, and with the answers frozen nothing else may differ at
all. The idea is Cebere et al.'s record and replay (arXiv 2602.17454).
"""

from stratsynth.testing.contract import Finding, check_contract
from stratsynth.testing.worlds import World, worlds

__all__ = ["Finding", "World", "check_contract", "worlds"]
