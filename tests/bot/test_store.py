"""What the bot remembers, for how long, and that it can forget."""

from pathlib import Path

import pytest

from bot.store import DAY, Store, StoredCard, Talk

CARD = StoredCard("zh", "fit", [{"model": "7b"}], [{"kind": "math", "label": "x", "argument": "0", "change": {}}])
TALK = Talk("fit", [{"model": "7b", "method": "lora"}])


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return Store(tmp_path / "deep" / "bot.db", keep_days=30, clock=clock)


def test_what_is_kept_is_found_again_after_a_restart(store: Store, tmp_path: Path, clock: Clock) -> None:
    name = store.keep_card(7, CARD)
    store.keep_talk(1, 7, TALK)
    store.keep_note("commands", "abc")
    store.close()
    again = Store(tmp_path / "deep" / "bot.db", keep_days=30, clock=clock)
    assert again.card(name) == CARD and again.talk(1, 7) == TALK and again.note("commands") == "abc"
    again.close()


def test_names_cannot_be_guessed(store: Store) -> None:
    names = {store.keep_card(7, CARD) for _ in range(50)}
    assert len(names) == 50 and all(len(name) == 12 for name in names)


def test_the_last_question_of_a_person_in_a_channel_counts(store: Store) -> None:
    store.keep_talk(1, 7, TALK)
    store.keep_talk(1, 7, Talk("fit", [{"model": "8b"}]))
    assert store.talk(1, 7) == Talk("fit", [{"model": "8b"}])
    assert store.talk(2, 7) is None and store.talk(1, 8) is None


def test_old_rows_are_not_found_and_then_deleted(store: Store, clock: Clock) -> None:
    name = store.keep_card(7, CARD)
    store.keep_talk(1, 7, TALK)
    clock.now += 1.5 * DAY
    assert store.talk(1, 7) is None and store.card(name) == CARD
    clock.now += 30 * DAY
    assert store.card(name) is None
    store.keep_card(8, CARD)
    assert store.forget(7) == 1, "the old talk is still there, the old card went with the new one"


def test_forgetting_deletes_every_row_of_the_user_and_no_other(store: Store) -> None:
    name, other = store.keep_card(7, CARD), store.keep_card(8, CARD)
    store.keep_talk(1, 7, TALK)
    assert store.forget(7) == 2
    assert store.card(name) is None and store.talk(1, 7) is None and store.card(other) == CARD
    assert store.forget(7) == 0


def test_every_table_with_users_can_be_forgotten(store: Store) -> None:
    database = store._database
    with_users = {table.name for table in database.tables if "user" in table.columns_dict}
    assert with_users == {"cards", "talks"}
    assert {table.name for table in database.tables} == with_users | {"notes"}


def test_writers_do_not_block_readers(store: Store) -> None:
    assert store._database.journal_mode == "wal"
