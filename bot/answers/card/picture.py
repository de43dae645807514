"""The picture of a card: what lives at the peak as stacked bars against the card's usable memory."""

from dataclasses import dataclass
from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from bot.answers.card import fonts
from bot.answers.card.shape import LONGEST_ALT, Picture
from bot.answers.card.table import clipped
from bot.answers.card.voice import Voice, coarse, gib, per_gpu
from estimator.schema import Estimate, PerGpu

WIDTH, EDGE = 400, 14
"""Units of the drawing; a phone shows it some 270 pixels wide, so nothing is set smaller than 14 units."""
ROOM_FOR_FIGURE = 44
"""A stretch of this width carries its figure."""
MOST_BARS = 8
"""As many as a message has runs."""
LONGEST_LABEL = 36
MOST_SEGMENTS = 7
"""Items with a colour of their own; the smaller ones are drawn as one."""
SMALLEST_SHARE = 0.004
SMALLEST_TOLD = 5 * 2**20
ROOM = 1.06
"""The axis ends this much behind the largest figure."""

COLOURS = {
    "weights": "#5b9dff", "master_weights": "#3a6fd0", "weight_casts": "#9cc4ff", "adapter": "#2bc4b4",
    "gradients": "#ff8f4c", "optimizer_states": "#f2c94c", "optimizer_temp": "#c9a227", "activations": "#6fcf6f",
    "recompute": "#3fa66a", "logits_loss": "#c792ea", "kv_cache": "#3ec6ff", "reference_model": "#7f8cff",
    "reward_model": "#a78bfa", "value_model": "#d38bfa", "vision_tower": "#ff7eb6", "communication": "#e06c75",
}  # fmt: skip
OTHER, SMALLER, OUTSIDE = "#b5bac1", "#80848e", "url(#outside)"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a bar in units of the drawing, with its name and figure for the legend."""

    name: str
    bytes: int
    colour: str
    x: float
    width: float

    def middle(self, line: float | None, room: float) -> float | None:
        """Where its figure stands: within the larger piece where a line cuts it; None where it has no room."""
        start, end = self.x, self.x + self.width
        if line is not None and abs(line - (start + end) / 2) < room / 2:
            start, end = (start, line) if line - start > end - line else (line, end)
        return (start + end) / 2 if end - start > room else None


@dataclass(frozen=True, slots=True)
class Bar:
    """A run: what is allocated in stretches, then up to what the card shows (expected, low and high)."""

    label: str
    value: str
    segments: tuple[Segment, ...]
    end: float
    low: float
    high: float
    usable: float | None
    over: bool


def picture_of(voice: Voice) -> Picture | None:
    """The picture of an answer's runs; None where no run has an estimate or this machine has no font at all."""
    shown = [index for index, found in enumerate(voice.answer.estimates) if found.per_gpu][:MOST_BARS]
    lang = label_language(voice.lang)
    if not shown or lang is None:
        return None
    own = voice if lang == voice.lang else Voice(voice.answer, lang)
    draw = partial(one_svg, own) if len(voice.answer.estimates) == 1 else partial(several_svg, own, shown)
    return Picture(alt=alt_text(voice, shown), draw=draw)


def label_language(lang: str) -> str | None:
    """The reader's language where this machine can draw it, else English; None where it has no fonts."""
    return next((one for one in dict.fromkeys((lang, "en")) if fonts.family(one)), None)


def one_svg(voice: Voice) -> str:
    """One run: the bar at the peak, its legend, and the peak of each phase."""
    found = voice.answer.estimates[0]
    return _svg("one", voice, bars=[bar(voice, 0, axis([found]))], phases=_phases(voice, per_gpu(found)))


def several_svg(voice: Voice, shown: list[int]) -> str:
    """A bar for each run on one axis."""
    end = axis([voice.answer.estimates[index] for index in shown])
    return _svg("several", voice, bars=[bar(voice, index, end) for index in shown], phases=[])


def axis(estimates: list[Estimate]) -> float:
    """Bytes at the right edge."""
    sizes = [max(per_gpu(one).device_peak.high, one.fit.usable or 0) for one in estimates]
    return max(1, *sizes) * ROOM


def bar(voice: Voice, index: int, end: float) -> Bar:
    """The bar of a run on an axis that ends at so many bytes."""
    found = voice.answer.estimates[index]
    memory = per_gpu(found)
    device, usable = memory.device_peak, found.fit.usable
    scale = (WIDTH - 2 * EDGE) / end
    return Bar(
        label=drawable(voice, voice.label(index) if len(voice.answer.estimates) > 1 else ""),
        value=gib(memory.allocated_peak),
        segments=_segments(voice, memory, scale),
        end=EDGE + device.expected * scale,
        low=EDGE + device.low * scale,
        high=EDGE + device.high * scale,
        usable=EDGE + usable * scale if usable else None,
        over=bool(usable and device.expected > usable),
    )


def drawable(voice: Voice, text: str) -> str:
    """A label without the letters that a font might lack: every Chinese font has those of GB 2312."""
    coding = "gb2312" if voice.lang == "zh" else "ascii"
    return clipped("".join(one for one in text if one == "·" or one.encode(coding, "ignore")), LONGEST_LABEL)


def _segments(voice: Voice, memory: PerGpu, scale: float) -> tuple[Segment, ...]:
    ordered = sorted(memory.at_peak, key=lambda block: -block.bytes)
    shown = [one for one in ordered[:MOST_SEGMENTS] if one.bytes >= SMALLEST_SHARE * memory.allocated_peak]
    stretches = [(voice.name("item", one.item), one.bytes, COLOURS.get(one.item, OTHER)) for one in shown]
    rest = memory.allocated_peak - sum(one.bytes for one in shown)
    if rest > 0:
        stretches.append((voice.say("smaller_short"), rest, SMALLER))
    outside = memory.device_peak.expected - memory.allocated_peak
    if outside > 0:
        stretches.append((voice.say("outside"), outside, OUTSIDE))
    segments, start = [], float(EDGE)
    for name, size, colour in stretches:
        segments.append(Segment(name, size, colour, start, size * scale))
        start += size * scale
    return tuple(segments)


def _phases(voice: Voice, memory: PerGpu) -> list[tuple[str, str, float, bool]]:
    """Name, figure, share of the largest, and whether it is the peak, of every phase."""
    largest = max((one.allocated_peak for one in memory.phases), default=0) or 1
    return [
        (voice.name("phase", one.phase), gib(one.allocated_peak), one.allocated_peak / largest,
         one.phase == memory.peak_phase)
        for one in memory.phases
    ]  # fmt: skip


def alt_text(voice: Voice, shown: list[int]) -> str:
    """The picture in words, with its figures."""
    alone = len(voice.answer.estimates) == 1
    told = _told_alone(voice) if alone else [voice.say("alt_compared"), *(_told(voice, index) for index in shown)]
    text = voice.name("sign", "space").join(told)
    return text if len(text) <= LONGEST_ALT else text[: LONGEST_ALT - 1] + "…"


def _told(voice: Voice, index: int) -> str:
    """One of several runs."""
    found = voice.answer.estimates[index]
    verdict = voice.verdict(found.fit.verdict)
    return voice.say("alt_row", run=voice.line(voice.label(index)), verdict=verdict, **_figures(voice, found))


def _told_alone(voice: Voice) -> list[str]:
    """The only run, with its items and its phases."""
    found = voice.answer.estimates[0]
    memory, comma = per_gpu(found), voice.name("sign", "comma")
    items = [one for one in sorted(memory.at_peak, key=lambda block: -block.bytes) if one.bytes >= SMALLEST_TOLD]
    listed = comma.join(f"{voice.name('item', one.item)} {gib(one.bytes)}" for one in items[:MOST_SEGMENTS])
    usable = voice.say("alt_usable", usable=coarse(found.fit.usable)) if found.fit.usable else ""
    phases = comma.join(f"{name} {figure}" for name, figure, *_ in _phases(voice, memory))
    return [
        voice.say("alt_run", run=voice.title(), usable=usable, items=listed, **_figures(voice, found)),
        voice.say("alt_phases", phases=phases),
    ]


def _figures(voice: Voice, found: Estimate) -> dict[str, str]:
    memory = per_gpu(found)
    return {"allocated": gib(memory.allocated_peak), "span": voice.span(memory.device_peak)}


@cache
def picture_templates() -> Environment:
    """The templates of pictures."""
    loader = PackageLoader("bot.answers", "templates/picture")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def _svg(name: str, voice: Voice, **values: object) -> str:
    template = picture_templates().get_template(f"{name}.svg.j2")
    return template.render(
        width=WIDTH, edge=EDGE, font=fonts.family(voice.lang), say=voice.say, gib=gib, coarse=coarse, voice=voice,
        a=voice.answer, room=ROOM_FOR_FIGURE, **values,
    )  # fmt: skip
