"""Rules for Kafka settings under `kafka:` and `config:`. Pure; called by `check` and its parts."""

from __future__ import annotations

from twinlog.spec.document import Path
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.kafka_settings import Scope, SettingError, canonical, is_known, nearest
from twinlog.spec.model import Settings
from twinlog.spec.refused import refusal

_DOUBTFUL = {
    ("unclean.leader.election.enable", "true"): (
        "a broker that missed acknowledged records may become leader, and they are lost",
        "leave it out, unless losing records is better than waiting",
    ),
    ("auto.create.topics.enable", "true"): (
        "topics appear that the file does not declare, with rights and sizes nobody chose",
        "declare them under topics:",
    ),
}


def broker_settings(settings: Settings, path: Path) -> Findings:
    """Each broker setting of one place: known, allowed and of the right kind."""
    for name, value in settings.items():
        here = (*path, name)
        if refused := refusal(name):
            yield Finding(here, refused.what, refused.hint, at_key=True)
        else:
            yield from _setting(name, value, here, "broker")


def topic_settings(settings: Settings, path: Path) -> Findings:
    """Each topic setting of one place: known and of the right kind."""
    for name, value in settings.items():
        yield from _setting(name, value, (*path, name), "topic")


def _setting(name: str, value: object, path: Path, scope: Scope) -> Findings:
    if not is_known(name, scope):
        near = nearest(name, scope)
        hint = f"did you mean {near}?" if near else "is the name right, for this version of Kafka?"
        yield Finding(path, f"Kafka has no {scope} setting {name}", hint, at_key=True)
        return
    try:
        text = canonical(name, value, scope)
    except SettingError as error:
        yield Finding(path, error.what, error.hint)
        return
    if doubt := _DOUBTFUL.get((name, text)):
        yield warning(path, *doubt)
