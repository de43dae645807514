"""Two thousand channels share what is the same for them: the work of a post is done once."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from bot.digest import make
from bot.digest.make import Maker
from tests.bot.digest.worlds import wish

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_posts_and_workloads_are_made_once_for_all_that_want_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced: list[str] = []
    real = make.workload_cost

    def counted(text: str, *rest: object) -> object:
        priced.append(text)
        return real(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(make, "workload_cost", counted)
    maker, day = Maker(tmp_path, NOW), date(2026, 11, 30)
    for channel in range(50):
        gpus = ("RTX 4090",) if channel % 2 else ("L40S",)
        maker.post(wish(channel, gpus=gpus, workloads=("qlora 0.5b",)), day, None)
    assert priced == ["qlora 0.5b"], "the same run at the same classes, language and currency is priced once"
    assert maker.post(wish(1, gpus=("L40S",)), day, None) is maker.post(wish(2, gpus=("L40S",)), day, None)
    assert maker.post(wish(3, gpus=("L40S",), lang="zh"), day, None) is not maker.post(
        wish(4, gpus=("L40S",)), day, None
    )
