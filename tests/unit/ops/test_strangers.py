"""Who sites know beside the users of the file."""

from __future__ import annotations

from twinlog.ops.rights import rights_of
from twinlog.ops.strangers import Known, Stranger, strangers
from twinlog.spec.model import Auth, Bus, Role, Site, User
from twinlog.wire.access import Mechanism
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.users import Credential

BUS = Bus(bus="orders", sites={"a": Site(brokers=1)})
GUEST = User(
    produce=("invoices",),
    consume=("orders", "stock-*"),
    create=("new-*",),
    groups=("guest-*",),
    transactions=("guest-tx",),
)


def credential(user: str, mechanism: Mechanism = Mechanism.SCRAM_SHA_512) -> Credential:
    return Credential(user, mechanism, 8192)


def known(*users: str, rules: frozenset[Acl] = frozenset()) -> Known:
    return Known(frozenset(credential(user) for user in users), rules)


def test_users_of_the_file_are_no_strangers() -> None:
    told = {"a": known("shop", rules=rights_of(BUS, "shop", GUEST, Role.ACTIVE))}
    assert strangers({"shop"}, told) == []


def test_a_stranger_has_what_it_was_given_and_not_what_is_implied() -> None:
    told = {
        "a": known("guest", rules=rights_of(BUS, "guest", GUEST, Role.ACTIVE)),
        "b": known("guest", rules=rights_of(BUS, "guest", GUEST, Role.STANDBY)),
    }
    found = Stranger(
        "guest",
        Auth.SCRAM,
        produce=("invoices",),
        consume=("orders", "stock-*"),
        create=("new-*",),
        groups=("guest-*",),
        transactions=("guest-tx",),
        sites=("a", "b"),
    )
    assert strangers(set(), told) == [found]


def test_a_stranger_is_at_the_sites_that_know_it() -> None:
    told = {"a": known(), "b": known("zoe", "adam")}
    assert [(one.user, one.sites) for one in strangers((), told)] == [("adam", ("b",)), ("zoe", ("b",))]


def test_who_has_rules_and_no_password_comes_in_nobody_knows_how() -> None:
    (found,) = strangers((), {"a": known(rules=rights_of(BUS, "card", GUEST, Role.ACTIVE))})
    assert (found.user, found.auth) == ("card", None)


def test_the_way_in_is_named_as_the_file_would() -> None:
    told = Known(frozenset([credential("old", Mechanism.SCRAM_SHA_256)]), frozenset())
    assert [one.auth for one in strangers((), {"a": told})] == [Auth.SCRAM_256]


def test_twinlogs_own_and_everybody_are_left_out() -> None:
    names = ("User:twinlog:mirror", "User:*", "Group:admins")
    rules = frozenset(Acl(Resource.TOPIC, "orders", name, Operation.READ) for name in names)
    assert strangers((), {"a": known("twinlog:node", rules=rules)}) == []
