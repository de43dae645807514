"""Columns line up whatever the language."""

from bot.answers.layout import padded, table, width, wrapped


def test_a_chinese_character_takes_two_columns() -> None:
    assert width("激活值 a") == 8


def test_padding_to_either_side() -> None:
    assert padded("激活", 6) == "激活  "
    assert padded("1.9", 6, right=True) == "   1.9"


def test_columns_line_up_in_both_scripts() -> None:
    lines = table([["权重", "0.92 GiB", "x"], ["activations", "12.4 GiB", "y"]]).splitlines()
    assert [width(line[: line.index("GiB")]) for line in lines] == [20, 20]
    assert lines[0].endswith("x")


def test_an_empty_last_cell_leaves_no_trailing_space() -> None:
    assert table([["a", "1", ""], ["b", "2", "why"]]).splitlines()[0] == "  a  1"


def test_long_lines_break_at_spaces() -> None:
    assert wrapped("aaa bbb ccc", indent="> ", columns=7) == "aaa bbb\n> ccc"
