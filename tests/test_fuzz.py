"""A few cases of fuzz.py, with fixed seeds. The nightly workflow runs it for an hour with new seeds."""

import fuzz
import pytest
from effort import THOROUGH, examples

pytestmark = pytest.mark.slow
CASES = {"files": examples(540), "tables": examples(150), "ways": 36 if THOROUGH else 6, "signals": examples(3)}


@pytest.mark.parametrize("kind", CASES)
def test_fuzz(kind):
    found = fuzz.Fuzzer(kind, 0, CASES[kind]).run()
    print(found.summary())
    assert not found.failures, found.summary()


def test_fuzzer_finds_what_fails(monkeypatch, tmp_path):
    """Exceptions, signals and hangs of a case are reported with its seed, and the cases after it run."""
    program = tmp_path / "child.py"
    program.write_text(
        "import sys, os; sys.argv[0] = 'fuzz.py'; sys.path.insert(0, os.environ['FUZZ'])\n"
        "import fuzz\n"
        "def case(seed, folder):\n"
        "    if seed == 2: raise ValueError('no')\n"
        "    if seed == 4: os.abort()\n"
        "    while seed == 6: pass\n"
        "    return 'fine'\n"
        "fuzz.KINDS['files'], fuzz.SECONDS_PER_CASE = case, 1\n"
        "fuzz.run_child('files', int(sys.argv[4]), int(sys.argv[6]))\n"
    )
    monkeypatch.setenv("FUZZ", str(fuzz.Path(fuzz.__file__).parent))
    monkeypatch.setattr(fuzz, "__file__", str(program))
    found = fuzz.Fuzzer("files", 0, 8).run()
    assert sorted(found.failures) == [2, 4, 6]
    assert "ValueError: no" in found.failures[2]
    assert "ended with -6" in found.failures[4]
    assert "took more than a minute" in found.failures[6]
    assert found.outcomes == {"fine": 5}
    assert "python tests/fuzz.py files --seed 4 --cases 1" in found.summary()
    many = fuzz.Fuzzer("files", 8, 10**6, seconds=2).run()  # it stops at the time limit
    assert many.outcomes
    assert not many.failures
