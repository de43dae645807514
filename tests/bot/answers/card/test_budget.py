"""The least important lines go first, and the card says so."""

from bot.answers.card.budget import LONGEST_LINE, Section, kept


def test_what_fits_is_kept_whole() -> None:
    sections = [Section(0, ("a",)), Section(3, ("b", "c"), "heading")]
    found, out = kept(sections, 100)
    assert [one.text for one in found] == ["a", "heading\nb\nc"]
    assert out == 0


def test_lines_of_the_highest_rank_go_first_from_the_end() -> None:
    sections = [Section(1, ("a" * 40, "b" * 40)), Section(5, ("c" * 40, "d" * 40))]
    found, out = kept(sections, 125)
    assert [len(one.lines) for one in found] == [2, 1]
    assert found[1].text == "c" * 40
    assert out == 1


def test_a_section_without_lines_has_no_heading() -> None:
    (found,), out = kept([Section(2, ("a" * 50,), "heading")], 10)
    assert (found.text, out) == ("", 1)


def test_what_must_stay_stays() -> None:
    (found,), out = kept([Section(0, ("a" * 50,))], 10)
    assert (found.text, out) == ("a" * 50, 0)


def test_a_line_is_no_longer_than_a_paragraph() -> None:
    (found,), _ = kept([Section(1, ("word " * 1_000,))], 4_000)
    assert len(found.text) <= LONGEST_LINE and found.text.endswith("…")
