"""Flags are the fields of Run."""

from typing import Any

import pytest

from bot.cli.flags import flag_names, options, run_fields, value_of
from estimator.schema import Run


def given(**flags: str) -> dict[str, Any]:
    return run_fields({"run_" + name: value for name, value in flags.items()})


def test_every_field_of_run_has_a_flag() -> None:
    assert {name.split(".")[0] for name, _ in flag_names()} == set(Run.model_fields)


def test_nested_fields_have_dots_and_dashes_work() -> None:
    spellings = {spelling for option in options() for spelling in option.opts}
    assert {"--parallel.zero", "--adapter.rank", "--micro_batch", "--micro-batch", "--stack.flash-attn"} <= spellings


def test_no_two_flags_share_a_name() -> None:
    names = [option.name for option in options()]
    assert len(names) == len(set(names))


def test_flags_build_a_run() -> None:
    fields = given(
        model="7b", adapter__rank="16", parallel__zero="3", micro_batch="2", gpu="A100,H100", stack__torch="2.9"
    )
    run = Run.model_validate(fields)
    assert (run.micro_batch, run.gpu) == (2, ["A100", "H100"])
    assert run.adapter is not None
    assert run.adapter.rank == 16
    assert run.parallel is not None
    assert run.parallel.zero == 3
    assert run.stack == {"torch": "2.9"}


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ({"compile": "true"}, "compile", True),
        ({"gradient_clipping": "1.0"}, "gradient_clipping", 1.0),
        ({"gradient_checkpointing": "every-2"}, "gradient_checkpointing", "every-2"),
        ({"fused_kernels": "norm,rope"}, "fused_kernels", ["norm", "rope"]),
        ({"fused_kernels": "norm"}, "fused_kernels", ["norm"]),
        ({"seq_len": "4096"}, "seq_len", 4096),
        ({"details": '{"grad_scaler": true}'}, "details", {"grad_scaler": True}),
    ],
)
def test_values_take_the_type_of_their_field(flags: dict[str, str], field: str, value: Any) -> None:
    assert getattr(Run.model_validate(given(model="7b", **flags)), field) == value


def test_a_config_is_a_model() -> None:
    assert given(model='{"model_type": "llama"}') == {"model": {"model_type": "llama"}}


def test_broken_json_stays_a_text() -> None:
    assert value_of('{"model_type"', str | dict[str, Any]) == '{"model_type"'
