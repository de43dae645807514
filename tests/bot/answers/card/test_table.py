"""Tables and labels that a phone shows in full."""

from hypothesis import given
from hypothesis import strategies as st

from bot.answers.card.table import COLUMNS, clipped, code, figures
from bot.answers.layout import width

LETTERS = st.text(st.sampled_from("ab 显存…·1"), max_size=60)


@given(LETTERS, st.integers(min_value=2, max_value=40))
def test_a_clipped_text_is_never_wider(text: str, columns: int) -> None:
    found = clipped(text, columns)
    assert width(found) <= columns
    assert found == text or found.endswith("…")


@given(st.lists(LETTERS, max_size=5))
def test_code_lines_are_as_wide_as_a_phone(lines: list[str]) -> None:
    assert all(width(line) <= COLUMNS for line in code(lines).splitlines())


def test_figures_end_flush_and_stand_before_their_names() -> None:
    rows = [("GiB", "反向阶段"), ("5.45", "模型权重"), ("12.01", "激活值")]
    assert figures(rows, ("17.46", "峰值")) == [
        "  GiB 反向阶段", " 5.45 模型权重", "12.01 激活值", "-----", "17.46 峰值"
    ]  # fmt: skip
