"""A cluster that exists already, as a site: one of our own, declared in a second file by its client file.

Its broker also takes PLAIN, which Twinlog's own sites never offer: the test adds that to the broker's
configuration behind Twinlog's back. Its role record is the second bus's from the beginning, but for
the test that takes it away: a cluster belongs to one bus.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.durable import write_secret
from twinlog.sites import fencing, processes, properties
from twinlog.sites.authorities import Realm
from twinlog.sites.java import find_java
from twinlog.sites.layout import Listener
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Role
from twinlog.wire import acls, quotas, roles, topics, users
from twinlog.wire.acls import CLUSTER_NAME, Acl, Operation, Resource
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

KEYTOOL_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
READY_TIMEOUT_S = 120
PASSWORD = "Kept.by-its=owner 1"
OWNER = """\
bus: owner
kafka: {broker.session.timeout.ms: 5s, broker.heartbeat.interval.ms: 500ms}
sites: {a: {brokers: 1}}
topics: {theirs: {}}
users:
  my-user: {password: {file: password.txt}}
  old-user: {auth: scram-sha-256, password: {file: password.txt}}
  resident: {consume: [theirs], groups: [resident-*], quota: {consume: 1MB/s}}
"""
# What an administrator of somebody else's cluster may be given, instead of everything.
GIVEN = {
    (Resource.CLUSTER, CLUSTER_NAME): ("ALTER", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"),
    (Resource.TOPIC, "*"): ("CREATE", "DESCRIBE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"),
    (Resource.TOPIC, roles.TOPIC): ("READ", "WRITE"),
}
GUEST = roles.Standing("guest", "a", Role.ACTIVE, 1)


def seed_form(folder: Path, owner: Bus) -> str:
    """As the readers of Kafka's documentation write it: a JKS store of keytool's, a login in lines."""
    ca = folder / "ca.crt"
    ca.write_text(owner.home().pki.trust_pem(Realm.CLIENTS))
    store = ["-keystore", "kafka.client.truststore.jks", "-storetype", "JKS", "-storepass", "test1234"]
    subprocess.run(
        ["keytool", *store, "-alias", "CARoot", "-import", "-file", "ca.crt", "-noprompt"],
        cwd=folder,
        capture_output=True,
        timeout=KEYTOOL_TIMEOUT_S,
        check=True,
    )
    return f"""\
 \tsecurity.protocol=SASL_SSL
\tssl.truststore.location=kafka.client.truststore.jks
\tssl.truststore.password=test1234
\tssl.endpoint.identification.algorithm=HTTPS

\tsasl.mechanism=SCRAM-SHA-512
\tsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
          username="my-user" \\
          password="{PASSWORD}";
"""


def librdkafka_form(folder: Path, owner: Bus, *extra: str) -> str:
    """As kcat reads it."""
    (folder / "ca.crt").write_text(owner.home().pki.trust_pem(Realm.CLIENTS))
    lines = ["security.protocol = sasl_ssl", "ssl.ca.location = ca.crt", "sasl.mechanisms = SCRAM-SHA-512"]
    return "\n".join([*lines, "sasl.username = my-user", f"sasl.password = {PASSWORD}", *extra, ""])


def sha_256_form(folder: Path, owner: Bus) -> str:
    """The older digest."""
    text = librdkafka_form(folder, owner).replace("SCRAM-SHA-512", "SCRAM-SHA-256")
    return text.replace("my-user", "old-user")


def plain_form(folder: Path, owner: Bus) -> str:
    """The password itself, inside TLS, in Java's form."""
    (folder / "ca.pem").write_text(owner.home().pki.trust_pem(Realm.CLIENTS))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'sasl.jaas.config = {module} required username="plain-user" password="{PASSWORD}";'
    lines = ["security.protocol = SASL_SSL", "sasl.mechanism = PLAIN", login]
    return "\n".join([*lines, "ssl.truststore.type = PEM", "ssl.truststore.location = ca.pem", ""])


def certificate_form(folder: Path, owner: Bus) -> str:
    """A certificate instead of a password, in Java's PEM form."""
    access = owner.home().admin_access("a")
    (folder / "trust.pem").write_text(access.ca_pem)
    write_secret(folder / "admin.pem", access.key_pem + access.cert_pem)
    lines = ["security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=trust.pem"]
    return "\n".join([*lines, "ssl.keystore.type=PEM", "ssl.keystore.location=admin.pem", ""])


def addresses(owner: Bus, listener: Listener = Listener.CLIENT) -> tuple[str, ...]:
    return owner.home().layout("a").bootstrap(listener)


def offer_plain(bus: Bus) -> None:
    """Start the broker again so that it takes PLAIN too."""
    home = bus.home()
    layout = home.layout("a")
    (broker,) = layout.brokers
    old = list(processes.find([broker]).values())
    processes.end(old, signal.SIGTERM)
    assert not processes.wait(old, STOP_TIMEOUT_S)
    file = broker.directory / "server.properties"
    settings = properties.written(file.read_text())
    settings["listener.name.client.sasl.enabled.mechanisms"] += ",PLAIN"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings["listener.name.client.plain.sasl.jaas.config"] = (
        f'{module} required user_plain-user="{PASSWORD}";'
    )
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    process, _ = processes.start(broker, find_java())
    threading.Thread(target=process.wait, daemon=True).start()  # it is our child, and `destroy` ends it
    running = processes.find(layout.nodes)
    wait_until_ready(layout, home.admin_access("a"), running, READY_TIMEOUT_S)


@pytest.fixture(scope="module")
def owner(make_bus: MakeBus) -> Bus:
    """The cluster, and administrators of it with no more rights than they need."""
    bus = make_bus(OWNER, up=False)
    write_secret(bus.directory / "password.txt", PASSWORD + "\n")
    bus.done("up")
    offer_plain(bus)
    rules = {
        Acl(resource, name, f"User:{user}", Operation[operation])
        for user in ("my-user", "old-user", "plain-user")
        for (resource, name), operations in GIVEN.items()
        for operation in operations
    }
    with Cluster(bus.home().admin_access("a")) as cluster:
        acls.add(cluster, rules)
        acls.wait_until_everywhere(cluster, present=rules)
        roles.write(cluster, GUEST)
    return bus


def declared(folder: Path, bootstrap: tuple[str, ...], client: str, rest: str) -> Bus:
    """A second bus whose only site is that cluster."""
    folder.mkdir(exist_ok=True)
    bus = Bus(folder)
    bus.file.write_text(
        f"bus: guest\nsites: {{a: {{bootstrap: {json.dumps(bootstrap)}, client: a.properties}}}}\n"
    )
    bus.file.write_text(bus.file.read_text() + rest)
    write_secret(folder / "a.properties", client)
    return bus


@pytest.mark.parametrize(
    ("form", "listener"),
    [
        (seed_form, Listener.CLIENT),
        (librdkafka_form, Listener.CLIENT),
        (sha_256_form, Listener.CLIENT),
        (plain_form, Listener.CLIENT),
        (certificate_form, Listener.LINK),
    ],
)
def test_declared_topic_is_made_through_every_form_of_client_file(
    form: Callable[[Path, Bus], str], listener: Listener, owner: Bus, tmp_path: Path
) -> None:
    topic = form.__name__
    text = form(tmp_path, owner)
    bus = declared(tmp_path, addresses(owner, listener), text, f"topics: {{{topic}: {{partitions: 2}}}}\n")
    assert [step["what"] for step in bus.json("plan", exit_code=3)] == [
        f"create {topic}: 2 partitions, 1 copies"
    ]
    bus.done("apply")
    bus.done("plan")
    with Cluster(owner.home().admin_access("a")) as cluster:
        (found,) = topics.describe(cluster, [topic])
    assert len(found.partitions) == 2
    (site,) = bus.json("status")["sites"]
    assert (site["state"], site["brokers"]) == ("up", 1)


def test_cluster_without_a_role_is_told_its_own(owner: Bus, tmp_path: Path) -> None:
    bus = declared(tmp_path, addresses(owner), librdkafka_form(tmp_path, owner), "")
    with Cluster(owner.home().admin_access("a")) as cluster:
        topics.delete(cluster, roles.TOPIC)
        assert [step["what"] for step in bus.json("plan", exit_code=3)] == [f"say that it is the {GUEST}"]
        bus.done("apply")
        assert roles.read(cluster) == GUEST
    bus.done("plan")


def test_what_others_made_stays_and_what_the_file_gives_comes(owner: Bus, tmp_path: Path) -> None:
    rest = """\
topics: {orders: {}}
users:
  shop: {produce: [orders]}
  older: {auth: scram-sha-256, produce: [orders]}
"""
    bus = declared(tmp_path, addresses(owner), seed_form(tmp_path, owner), rest)
    with Cluster(owner.home().admin_access("a")) as cluster:
        before = (acls.describe(cluster), users.describe(cluster), quotas.describe(cluster))
        bus.done("apply", "--prune", "--yes")
        bus.done("plan", "--prune")
        after = (acls.describe(cluster), users.describe(cluster), quotas.describe(cluster))
        names = {topic.name for topic in topics.describe(cluster)}
    assert before[0] < after[0]
    assert before[1] < after[1]
    assert before[2] == after[2]
    assert {"theirs", "orders"} <= names
    assert {rule.principal for rule in after[0] - before[0]} == {"User:shop", "User:older"}
    for user in ("shop", "older"):
        with Cluster(bus.home().user_access(user, "a")) as cluster:
            (found,) = topics.describe(cluster, ["orders"])
            assert found.partitions


def test_password_that_somebody_else_set_is_not_replaced_unasked(owner: Bus, tmp_path: Path) -> None:
    rest = "topics: {theirs: {}}\nusers: {resident: {produce: [theirs]}}\n"
    bus = declared(tmp_path, addresses(owner), seed_form(tmp_path, owner), rest)
    refused = bus.run("apply")
    assert refused.returncode == 2
    assert "it has one there that Twinlog did not set" in refused.stderr
    with Cluster(owner.home().user_access("resident", "a")) as cluster:
        assert cluster.brokers()
    kinds = {step["kind"] for step in bus.json("plan", exit_code=3)}
    assert kinds == {"user", "rights"}  # its old rights and its quota are somebody else's business


@pytest.mark.parametrize("command", [["up"], ["down"], ["destroy", "--yes"]])
def test_what_only_its_owner_can_do_is_refused_with_the_reason(
    command: list[str], owner: Bus, tmp_path: Path
) -> None:
    bus = declared(tmp_path, addresses(owner), librdkafka_form(tmp_path, owner), "")
    ended = bus.run(*command, "--site", "a")
    assert ended.returncode == 2
    assert "exists already, and Twinlog only reaches it" in ended.stderr


def test_commands_for_all_sites_leave_it_alone_and_say_so(owner: Bus, tmp_path: Path) -> None:
    bus = declared(tmp_path, addresses(owner), librdkafka_form(tmp_path, owner), "users: {clerk: {}}\n")
    brought_up = bus.run("up")
    assert brought_up.returncode == 0, brought_up.stderr
    assert "site a exists already: Twinlog only reaches it" in brought_up.stderr
    assert bus.json("down") == {"sites": [], "stopped": 0, "only_reached": ["a"]}
    destroyed = bus.json("destroy", "--yes")
    assert (destroyed["sites"], destroyed["only_reached"]) == ([], ["a"])
    assert not (tmp_path / ".twinlog").exists()
    assert owner.json("status")["sites"][0]["state"] == "up"


@pytest.mark.parametrize(
    ("setting", "warning"),
    [
        ("enable.ssl.certificate.verification=false", "certificates are not verified"),
        ("ssl.endpoint.identification.algorithm=none", "names in the brokers' certificates are not verified"),
    ],
)
def test_switched_off_verification_works_with_a_warning(
    setting: str, warning: str, owner: Bus, tmp_path: Path
) -> None:
    bus = declared(tmp_path, addresses(owner), librdkafka_form(tmp_path, owner, setting), "")
    ended = bus.run("plan")
    assert ended.returncode == 0, ended.stderr
    assert f"{tmp_path / 'a.properties'}:6:1: warning: " in ended.stderr
    assert warning in ended.stderr


def test_plaintext_is_tried_with_a_warning(owner: Bus, tmp_path: Path) -> None:
    bus = declared(tmp_path, addresses(owner), "security.protocol=PLAINTEXT\n", "")
    ended = bus.run("plan", "-o", "json")
    assert ended.returncode == 3
    said = [json.loads(line) for line in ended.stderr.splitlines()]
    assert "everything travels unencrypted" in said[1]["warning"]["what"]


def test_a_fence_is_refused_where_it_would_shut_us_out(owner: Bus, tmp_path: Path) -> None:
    bus = declared(tmp_path, addresses(owner), librdkafka_form(tmp_path, owner), "")
    with Cluster(bus.home().admin_access("a")) as cluster:
        assert "a listener that the fence would close" in fencing.harm_at(cluster)
    with Cluster(owner.home().admin_access("a")) as cluster:
        assert fencing.harm_at(cluster) == ""


def test_wrong_password_is_told_from_a_missing_cluster(owner: Bus, tmp_path: Path) -> None:
    text = librdkafka_form(tmp_path, owner).replace(PASSWORD, "something else")
    bus = declared(tmp_path, addresses(owner), text, "")
    ended = bus.run("apply")
    assert ended.returncode == 1
    assert "site a cannot be read" in ended.stderr
    assert "something else" not in ended.stdout + ended.stderr
    assert "credentials" in ended.stderr or "authentication" in ended.stderr.lower()
