"""Finding the brokers and the topics, and which of Kafka's errors do not pass by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException

from predsession.errors import AuthError, ConnectError, PredSessionError, SourceError
from predsession.stream.kafkaoptions import Plan, without_secrets

_SLICE = 2.0
"""Seconds between two looks at whether somebody has closed the source."""
_PAUSE = 0.5
_MOST_SHOWN = 30
_DENIED = {
    KafkaError._AUTHENTICATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_HOPELESS = {KafkaError._AUTO_OFFSET_RESET, KafkaError._FATAL, KafkaError.INVALID_GROUP_ID, KafkaError._SSL}


def find_topics(consumer: Consumer, plan: Plan, *, over: Callable[[], bool]) -> None:
    """Wait until brokers answer, and all topics are there.

    Parameters
    ----------
    consumer : Consumer
        Not subscribed yet.
    plan : Plan
        Which topics, and how long to wait.
    over : callable
        Whether it is no longer wanted.

    Raises
    ------
    ConnectError
        If nobody has answered in time.
    SourceError
        If a topic is missing.
    """
    wanted = {each for each in (*plan.topics, plan.letters or "") if each and not each.startswith("^")}
    ends = time.monotonic() + plan.patience
    there: set[str] | None = None
    while not over():
        left = ends - time.monotonic()
        if left <= 0:
            if there is None:
                raise ConnectError(_nobody(plan), url=plan.servers)
            raise SourceError(_missing(plan, wanted, there))
        asked = time.monotonic()
        try:
            there = set(consumer.list_topics(timeout=min(left, _SLICE)).topics)
        except KafkaException:
            pass  # its reason comes to error_cb, from the next line
        else:
            if wanted <= there:
                return
        consumer.poll(max(0.0, min(_PAUSE - (time.monotonic() - asked), left)))


def _nobody(plan: Plan) -> str:
    """Return what to say where no broker answers."""
    return (
        f"no Kafka broker at {plan.servers} has answered for {plan.patience:g} s; "
        "is it there, and do security.protocol and its like fit?"
    )


def _missing(plan: Plan, wanted: set[str], there: set[str]) -> str:
    """Return what to say where topics are missing."""
    names = sorted(each for each in there if not each.startswith("__"))
    more = f" and {len(names) - _MOST_SHOWN} others" if len(names) > _MOST_SHOWN else ""
    shown = ", ".join(map(repr, names[:_MOST_SHOWN])) + more
    return (
        f"{plan.servers} has no topic {', '.join(map(repr, sorted(wanted - there)))}; "
        f"it has {shown or 'none at all'}"
    )


def refusal(error: KafkaError, plan: Plan) -> PredSessionError | None:
    """Return an error of ours for what does not pass by itself.

    Parameters
    ----------
    error : KafkaError
        As it came.
    plan : Plan
        What is read.

    Returns
    -------
    PredSessionError or None
        None for what passes.
    """
    text = f"{plan.shown}: {without_secrets(error.str(), plan.options)}"
    if error.code() in _DENIED:
        return AuthError(
            f"{text}; consumer_options= takes sasl.username, sasl.password and so on", url=plan.servers
        )
    if error.code() in _HOPELESS or error.fatal():
        return SourceError(text)
    return None
