"""What a node is told: every listener secured, whatever the user sets."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.layout import SiteLayout, allocate, lay_out
from twinlog.sites.properties import (
    TlsFiles,
    archive_options,
    argument_file,
    jvm_options,
    log_configuration,
    render,
    server_properties,
    written,
)
from twinlog.sites.state import BusState
from twinlog.spec.model import Broker, Bus, Site
from twinlog.spec.units import Bytes

HOME = Path("/bus/.twinlog")
TLS = TlsFiles("c.pem", "c.crt", "l.pem", "l.crt")


def laid_out(site: Site) -> SiteLayout:
    bus = Bus(bus="orders", sites={"a": site})
    state = BusState(bus="orders", active="a")
    ports = count(20000)
    allocate(bus, state, HOME, lambda host, wanted: [next(ports) for _ in range(wanted)])
    return lay_out(bus, "a", state, HOME)


def test_no_listener_of_any_node_is_plain() -> None:
    layout = laid_out(Site(brokers=3, controllers=3))
    for node in layout.nodes:
        settings = server_properties(node, layout, TLS)
        assert "PLAINTEXT" not in settings["listener.security.protocol.map"].replace("SASL_PLAINTEXT", "")
        for listener in settings["listeners"].split(","):
            name = listener.partition("://")[0].lower()
            assert settings[f"listener.name.{name}.ssl.keystore.type"] == "PEM"
            assert settings[f"listener.name.{name}.ssl.endpoint.identification.algorithm"] == "https"
        assert settings["allow.everyone.if.no.acl.found"] == "false"
        assert settings["authorizer.class.name"].endswith("StandardAuthorizer")


def test_every_listener_but_client_asks_for_a_certificate() -> None:
    layout = laid_out(Site(brokers=1))
    settings = server_properties(layout.brokers[0], layout, TLS)
    for name in ("client_tls", "link", "controller"):
        assert settings[f"listener.name.{name}.ssl.client.auth"] == "required"
    assert settings["listener.name.client.sasl.enabled.mechanisms"] == "SCRAM-SHA-512,SCRAM-SHA-256"


def test_link_is_outside_the_limit_of_connections() -> None:
    layout = laid_out(Site(brokers=1))
    settings = server_properties(layout.brokers[0], layout, TLS)
    assert settings["listener.name.link.max.connections"] == "2147483647"


def test_a_node_without_client_ports_is_told_of_on_link_only() -> None:
    layout = laid_out(Site(brokers=1))
    settings = server_properties(layout.brokers[0], layout, TLS, open_to_clients=False)
    assert settings["listeners"].startswith("LINK://")
    assert "CLIENT" not in settings["listeners"]
    assert settings["advertised.listeners"].startswith("LINK://")
    assert "," not in settings["advertised.listeners"]


def test_a_node_without_client_ports_has_link_outside_the_fence_that_it_was_lost_with() -> None:
    """Kafka protects the brokers' own listener only where there is another one."""
    layout = laid_out(Site(brokers=1))
    settings = server_properties(layout.brokers[0], layout, TLS, open_to_clients=False)
    _, spare = settings["listeners"].split(",")
    assert spare == "SPARE://127.0.0.1:0"
    assert settings["listener.name.spare.ssl.client.auth"] == "required"
    assert settings["listener.name.spare.ssl.truststore.location"] == TLS.link_trust
    assert "listener.name.spare.max.connections" not in settings


def test_copies_follow_the_number_of_brokers() -> None:
    for brokers, copies, at_least in ((1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (9, "3", "2")):
        layout = laid_out(Site(brokers=brokers))
        settings = server_properties(layout.brokers[0], layout, TLS)
        assert settings["offsets.topic.replication.factor"] == copies
        assert settings["transaction.state.log.min.isr"] == at_least


def test_settings_of_the_broker_win_over_those_of_the_site() -> None:
    site = Site(brokers=(Broker(kafka={"num.io.threads": 3}), Broker()), kafka={"num.io.threads": 5})
    layout = laid_out(site)
    first, second = (server_properties(node, layout, TLS) for node in layout.brokers)
    assert (first["num.io.threads"], second["num.io.threads"]) == ("3", "5")


def test_buffers_of_sockets_are_the_kernels_unless_the_file_says_otherwise() -> None:
    names = ("socket.send.buffer.bytes", "socket.receive.buffer.bytes")
    for kafka, expected in (({}, "-1"), (dict.fromkeys(names, 1 << 20), "1048576")):
        layout = laid_out(Site(brokers=1, kafka=kafka))
        settings = server_properties(layout.brokers[0], layout, TLS)
        assert [settings[name] for name in names] == [expected] * 2


values = st.text(st.sampled_from("ab =:#!\\\nu0\r\té\u2028\U0001f40d"), max_size=20) | st.text(max_size=20)


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,20}", fullmatch=True), values))
def test_what_is_written_is_one_line_a_setting(settings: dict[str, str]) -> None:
    text = render(settings)
    assert len(text.splitlines()) == len(settings)
    assert text.isascii()
    assert written(text) == settings


def test_paths_that_are_not_ascii_are_written_as_java_reads_them() -> None:
    assert render({"log.dirs": "/srv/büro/🐍"}) == "log.dirs=/srv/b\\u00fcro/\\ud83d\\udc0d\n"
    assert "fileName = /srv/b\\u00fcro/server.log\n" in log_configuration("/srv/büro")


def test_small_heaps_get_the_small_collector_and_large_ones_the_large() -> None:
    layout = laid_out(Site(brokers=(Broker(memory=Bytes(256 << 20)), Broker(memory=Bytes(4 << 30)))))
    small, large = (jvm_options(node, layout, ("x.jar",), None) for node in layout.brokers)
    assert "-XX:+UseSerialGC" in small
    assert "-Xmx256m" in small
    assert "-XX:+UseG1GC" in large
    assert "-Xmx4096m" in large


def test_options_of_the_user_come_after_our_own() -> None:
    layout = laid_out(Site(brokers=1, jvm=("-XX:MaxGCPauseMillis=7",)))
    options = jvm_options(layout.brokers[0], layout, ("x.jar",), "a.jsa", ("-Dlast=1",))
    assert options.index("-XX:MaxGCPauseMillis=7") > options.index("-XX:SharedArchiveFile=a.jsa")
    assert options[-3:] == ["-Dlast=1", "-cp", "x.jar"]


def test_archives_of_new_javas_are_mapped_by_their_own_option() -> None:
    assert "-XX:AOTCache=a.aot" in archive_options("a.aot")
    assert "-XX:SharedArchiveFile=a.jsa" in archive_options("a.jsa")


def test_an_argument_file_quotes_what_the_launcher_would_take_apart() -> None:
    assert argument_file(['-Dx=a "b" c\\d']) == '"-Dx=a \\"b\\" c\\\\d"\n'
