"""Interchangeable words, each set from frequent to rare.

The order is what the naturalness dial goes by; a test compares it with the
frequencies of ``wordfreq``.
"""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """A set of interchangeable words or phrases, written with slashes between them."""
    return tuple(word.strip() for word in text.split("/"))


PEOPLE = {
    "person": words("Sam / Maria / Alice / Emma / Leo / Felix / Clara / Omar / Nadia / Ingrid"),
    "friend": words("Tom / Kate / Oscar / Nina / Rosa / Hugo / Amir / Greta / Yusuf / Priya"),
    "relative": words("friend / brother / sister / uncle / cousin / aunt / niece / neighbour"),
}

SHOPPING = {
    "items": words(
        "books / cards / flowers / balls / eggs / coins / apples / stamps / candles"
        " / oranges / pencils / marbles"
    ),
    "goods": words(
        "plants / tickets / bags / shirts / bottles / hats / lamps / mugs / notebooks"
        " / lanterns / cushions / scarves"
    ),
    "place": words(
        "at school / at the market / in town / at the store / at the fair / at the mall"
        " / at the bazaar / at the kiosk"
    ),
    "got": words("got / bought / ordered / collected / obtained / purchased / acquired"),
    "gets": words("gets / takes / orders / finds / receives / buys / collects / acquires"),
    "gave": words("left / gave / sent / sold / handed / donated / lent / mailed"),
    "has": words("has / keeps / stores / holds / owns / possesses / stockpiles / hoards"),
    "in_all": words(
        "in all / now / by then / in the end / all together / in total / at the finish / overall"
    ),
    "on_day": words(
        "today / this week / this morning / on Friday / on Sunday / on Monday"
        " / this afternoon / on Tuesday"
    ),
    "then": words("then / after that / next / later / soon after / afterwards / subsequently"),
    "box": words("case / box / bag / basket / jar / drawer / tray / crate / hamper"),
    "boxes": words("cases / bags / boxes / shelves / baskets / jars / drawers / crates / tins"),
}

TIME = {
    "day": words("Friday / Sunday / Saturday / Monday / Tuesday / Thursday / Wednesday"),
    "month": words(
        "May / March / June / April / July / September / October / August / January / February"
    ),
}
