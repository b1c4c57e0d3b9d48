"""Names of models that an audit takes: those of the lab, and those of ``models.source``."""

from __future__ import annotations

import re

from contamination.audit.settings import CLEAN, CONTAMINATED
from contamination.models import source

_ANOTHER_CLEAN = re.compile(rf"{CLEAN}:\d+")  # "lab:clean:2" is one more clean model


def check_name(name: str) -> str:
    """What could not be checked about a model's name, in one line; "" if there is such a model.

    Args:
        name: "lab:contaminated", "lab:clean", "lab:clean:1" and so on, or as for
            :func:`source.check_name`, whose errors it has.
    """
    is_another = _ANOTHER_CLEAN.fullmatch(name)
    return source.check_name(CLEAN if is_another else name, (CONTAMINATED, CLEAN))
