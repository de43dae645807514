"""Long, coloured and interleaved logs: what is kept is small and holds the error."""

from knowledge.logs.phase import phase_of, steps_done
from knowledge.logs.reading import read_log
from knowledge.logs.text import EXCERPT, bounded, cleaned, excerpt
from knowledge.phrases import Text

ERROR = (
    'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    self.accelerator.backward(loss)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 134.00 MiB. GPU 0 has a total capacity of 39.39 GiB "
    "of which 107.94 MiB is free. Of the allocated memory 37.86 GiB is allocated by PyTorch, and 93.47 MiB is reserved "
    "by PyTorch but unallocated.\n"
)
LAUNCH = "accelerate launch train.py --per_device_train_batch_size 4 --bf16\n"


def log_of(characters: int) -> str:
    """A launch line and many steps, with bars and colours."""
    steps, size, number = [LAUNCH], 0, 0
    while size < characters:
        bar = "".join(
            f" {number % 100}%|####    | {number}/2800 [10:0{part}<1:20:11,  1.71s/it]\r" for part in range(5)
        )
        steps.append(f"{bar}\x1b[32m{{'loss': 1.{number % 97}, 'epoch': 0.{number % 10}}}\x1b[0m\n")
        size += len(steps[-1])
        number += 1
    return "".join(steps)


def test_the_error_at_the_end_of_a_large_log_is_found() -> None:
    log = read_log(log_of(20_000_000) + ERROR)
    assert log.message.format == "torch_2.2_plus"
    assert log.phase == "after_steps"
    assert "per_device_train_batch_size 4" in log.about_the_run()
    assert len(log.flat) < EXCERPT


def test_an_error_far_from_the_end_is_found_too() -> None:
    log = read_log(log_of(3_000_000) + ERROR + log_of(3_000_000))
    assert log.message.size("tried") == 134 * 2**20


def test_a_log_is_bounded_by_its_head_and_its_tail() -> None:
    kept = bounded(log_of(5_000_000) + ERROR)
    assert kept.startswith(LAUNCH)
    assert kept.endswith(ERROR)
    assert len(kept) < 2_000_000


def test_colours_bars_and_ranks_go() -> None:
    text, ranks = cleaned("\x1b[31m[rank3]: boom\x1b[0m\n 1%|#  | 1/9\r 2%|## | 2/9\r\n[rank4]: bang\x00")
    assert text == "boom\n 2%|## | 2/9\nbang"
    assert ranks == {3, 4}


def test_lines_that_differ_in_numbers_only_are_told_once() -> None:
    assert excerpt("\n".join(f"step {number}: loss 0.{number}" for number in range(900))) == "step 0: loss 0.0"


def test_steps_are_counted_from_a_bar_of_training_only() -> None:
    assert steps_done(" 12%|###     | 340/2800 [10:02<1:20:11,  1.71s/it]") == 340
    assert steps_done("Loading checkpoint shards:  53%|     | 8/15 [00:04<00:03]") is None


def test_phases() -> None:
    frame = 'file "x.py", line 1, in {} \n'
    assert phase_of(Text("traceback (most recent call last): " + frame.format("from_pretrained"))) == "load"
    assert phase_of(Text(frame.format("evaluate") + frame.format("forward"))) == "evaluation"
    assert phase_of(Text("it dies while saving the checkpoint")) == "save"
    assert phase_of(Text("断点续训就爆显存")) == "resume"
    assert phase_of(Text("loss.backward() fails after 300 steps")) == "after_steps"
    assert phase_of(Text("no words of ours")) == "unknown"
