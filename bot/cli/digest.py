"""``vram-bot digest``: the post of a day, printed instead of posted."""

from datetime import UTC, datetime, time

import click

from bot.cli import ANSWERED, WrongInput
from bot.cli.output import show
from bot.language import language_of
from bot.texts import say


@click.command("digest", short_help="The daily price post, printed.")
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="The day to tell; else today (UTC).")
@click.option("--gpus", default="", help="Cards to follow, separated by commas; else the usual ten.")
@click.option("--workload", "workloads", multiple=True, help='A run to price, such as "qlora 8b at 4k".')
@click.option("--currency", default="", help="USD or CNY; else VRAM_BOT_CURRENCY, else by the language.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the post; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print the post as JSON.")
def command(
    day: datetime | None, gpus: str, workloads: tuple[str, ...], currency: str, lang: str | None, as_json: bool
) -> int:
    """Print the digest as a channel with the usual wishes would get it, compared with the day before."""
    from bot.digest.make import printed
    from bot.digest.subscription import BadDigest
    from bot.prices.money import UnknownCurrency

    language, now = language_of("", lang), datetime.now(UTC)
    chosen = day.date() if day else now.date()
    if chosen > now.date():
        raise WrongInput(say(language, "digest.future", day=chosen.isoformat()))
    moment = now if chosen == now.date() else datetime.combine(chosen, time(23, 59), UTC)
    try:
        post = printed(chosen, moment, language, gpus, "; ".join(workloads), currency)
    except BadDigest as error:
        raise WrongInput(str(error)) from None
    except UnknownCurrency as error:
        raise WrongInput(error.message_zh if language == "zh" else error.message) from None
    if as_json:
        click.echo(_json(post))
    else:
        from bot.answers.digest import digest_text

        show(plain(digest_text(post, language)))
    return ANSWERED


def plain(text: str) -> str:
    """The post without the marks that only Discord reads."""
    return text.replace("### ", "").replace("-# ", "").replace("**", "")


def _json(post: object) -> str:
    from pydantic import TypeAdapter

    from bot.digest.content import Post

    return TypeAdapter(Post).dump_json(post, indent=2).decode()  # type: ignore[arg-type]
