"""The laws every probe keeps, as a battery to run on any: `check(MyProbe)` or `weakspot laws module:MyProbe`."""

from weakspot.laws.battery import LAWS, LawBroken, Trial, check

__all__ = ["LAWS", "LawBroken", "Trial", "check"]
