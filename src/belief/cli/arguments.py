"""What the parameters of Python are called on the command line: as its options, and in what it says.

The package speaks of `n_jobs` and `label='y'`; a person at the command line reads `--n-jobs` and `--label y`.
"""

from __future__ import annotations

import re
import shlex
from ast import literal_eval

from belief.method.settings import Settings

CLI_NAMES = {"top": "n_features_to_select", "seed": "random_state", "discrete": "discrete_features"}
OTHER_NAMES = {"header": "no_header"} | {parameter: name for name, parameter in CLI_NAMES.items()}
PARAMETERS = (
    *(f.name for f in Settings.definitions()),
    *(
        "task",
        "label",
        "drop",
        "keep",
        "encoding",
        "separator",
        "header",
        "discrete_features",
        "n_jobs",
        "working_memory",
        "device",
        "checkpoint",
        "restart",
        "force",
        "selectors",
        "seconds",
    ),
)
ANY = "|".join(PARAMETERS)
CLEAR = "|".join(name for name in PARAMETERS if "_" in name)  # no word of English is written so
QUOTED = r"'[^']*'|\"[^\"]*\""
GIVEN = re.compile(rf"(?<!['\"\w])({ANY})=(\[(?:{QUOTED})\]|{QUOTED}|[\w+-]+(?:\.\d+)?)")
NAMED = re.compile(rf"(?<!['\"\w])(?:{CLEAR})\b(?!['\"])|^(?:{ANY})(?=:| must)")


def option(parameter: str) -> str:
    """The option for a parameter."""
    return "--" + OTHER_NAMES.get(parameter, parameter).replace("_", "-")


def in_options(sentence: str) -> str:
    """What the package says, with the options of the command line in place of its parameters."""
    return NAMED.sub(lambda found: option(found[0]), GIVEN.sub(lambda found: _given(found[1], found[2]), sentence))


def _given(parameter: str, shown: str) -> str:
    if parameter == "header":
        return option(parameter)  # there only to be switched off
    value = literal_eval(shown) if shown[0] in "['\"" else shown
    words = [] if value == "True" else value if isinstance(value, list) else [value]
    return " ".join([option(parameter), *(shlex.quote(word).replace("\t", "\\t") for word in words)])
