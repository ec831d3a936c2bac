"""SCRAM users: who has a password at a cluster, and giving and taking passwords.

Used by `ops` for the users of the file. A password never goes over the wire: what goes is made
of it with a salt that is drawn here, so the same password looks different at each site.
Setting the same password twice is harmless.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

from twinlog.wire import codes
from twinlog.wire.access import Mechanism
from twinlog.wire.cluster import Cluster
from twinlog.wire.scram import salted_password

# Kafka's own default. Clients go through them at each login, and at a move all log in at once, several times;
# our passwords are random, so more would protect nothing.
DEFAULT_ITERATIONS = 4096
_SALT_BYTES = 24
_NUMBERS = {Mechanism.SCRAM_SHA_256: 1, Mechanism.SCRAM_SHA_512: 2}
_MECHANISMS = {number: mechanism for mechanism, number in _NUMBERS.items()}


@dataclass(frozen=True, order=True)
class Credential:
    """That a user has a password for a mechanism; never the password."""

    user: str
    mechanism: Mechanism
    iterations: int


def describe(cluster: Cluster) -> frozenset[Credential]:
    """Every user's credentials."""
    what = "reading the SCRAM users"

    def judge(answer: DescribeUserScramCredentialsResponse) -> None:
        codes.check(answer.error_code, answer.error_message, what, cluster.where)
        for result in answer.results:
            codes.check(result.error_code, result.error_message, what, cluster.where)

    # Both no list and an empty one mean everybody, but with no list Kafka 4.3.1 fails inside when
    # it wants to refuse, and never answers.
    request = DescribeUserScramCredentialsRequest(users=[])
    answer = cluster.ask(request, DescribeUserScramCredentialsResponse, judge)
    return frozenset(
        Credential(result.user, _MECHANISMS[info.mechanism], info.iterations)
        for result in answer.results
        for info in result.credential_infos
        if info.mechanism in _MECHANISMS
    )


def upsert(
    cluster: Cluster,
    user: str,
    password: str,
    mechanism: Mechanism = Mechanism.SCRAM_SHA_512,
    iterations: int = DEFAULT_ITERATIONS,
) -> None:
    """Give a user a password, in place of the one it may have."""
    salt = secrets.token_bytes(_SALT_BYTES)
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=_NUMBERS[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(password, salt, iterations, mechanism),
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    _alter(cluster, request, f"setting the password of user '{user}'")


def delete(cluster: Cluster, user: str, mechanism: Mechanism = Mechanism.SCRAM_SHA_512) -> None:
    """Take a user's password for a mechanism away; fine if there is none."""
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(
        name=user, mechanism=_NUMBERS[mechanism]
    )
    request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
    _alter(cluster, request, f"deleting the password of user '{user}'", gone_is_fine=True)


def _alter(
    cluster: Cluster, request: AlterUserScramCredentialsRequest, what: str, *, gone_is_fine: bool = False
) -> None:
    def judge(answer: AlterUserScramCredentialsResponse) -> None:
        for result in answer.results:
            if gone_is_fine and result.error_code == codes.RESOURCE_NOT_FOUND:
                continue
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    cluster.ask(request, AlterUserScramCredentialsResponse, judge, repeatable=True)
