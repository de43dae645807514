"""The estimates of one rank against steps on several cards that were traced to the byte."""

from statistics import median

import pytest

from tests.estimator.cases import answered, report


@pytest.mark.parametrize("name", ["traced_parallel.jsonl", "traced_parallel_more.jsonl"])
def test_traced_ranks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes, refused = answered(name)
    with capsys.disabled():
        print(f"\n{name}:", report(outcomes), "\nrefused:", len(refused))
    assert refused == []
    found = sorted(abs(outcome.error) for outcome in outcomes)
    assert median(found) <= 0.002
    assert found[int(0.9 * (len(found) - 1))] <= 0.01
    assert found[-1] <= 0.05
