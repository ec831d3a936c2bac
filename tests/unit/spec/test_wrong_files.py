"""Files that are wrong, one mistake each: every one is refused at the right place, with a hint.

The files stand in `wrong_files`; a row gives the line and column, a part of the message and a part
of the hint. A file without a row, or a row without a file, fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import FileProblems
from twinlog.spec.load import load

FILES = Path(__file__).parent / "wrong_files"

WRONG = [
    ("empty", "1:1", "the file is empty", "twinlog init writes a file to start"),
    ("only_a_marker", "1:1", "the file is empty", "twinlog init writes a file to start"),
    (
        "top_level_is_a_list",
        "1:1",
        "expected keys such as `bus:` and `sites:`",
        "twinlog init writes a file to start",
    ),
    (
        "top_level_is_text",
        "1:1",
        "expected keys such as `bus:` and `sites:`",
        "twinlog init writes a file to start",
    ),
    ("tab_for_indent", "3:1", "a tab cannot indent YAML", "indent with two blanks"),
    (
        "bracket_left_open",
        "3:1",
        "this is not YAML: expected ',' or '}', but",
        "is the bracket of line 2, column 8",
    ),
    ("quote_left_open", "1:6", "this quote is never closed", "close it on the same line"),
    ("no_blank_after_colon", "4:3", "'b:{brokers' is not a site name", "is there a blank after the colon?"),
    (
        "indentation_off",
        "4:3",
        "this is not YAML: expected <block end>, but",
        "do the lines of this block start in",
    ),
    ("second_document", "5:1", "the file holds a second document", "remove the line `---` and what"),
    (
        "control_character",
        "1:9",
        "character 0x07 cannot stand in a YAML file",
        "was the file saved as plain UTF-8",
    ),
    ("duplicate_key", "6:1", "the key active stands here twice", "the first one is in line 5; keep one"),
    ("duplicate_site", "4:3", "the key a stands here twice", "the first one is in line 3; keep one"),
    ("alias_cycle", "6:11", "the anchor &t holds itself", "remove one of its aliases"),
    ("merge_of_itself", "7:5", "&t merges itself", "remove this <<"),
    ("merge_of_text", "7:9", "<< takes a mapping", "name one with an anchor: <<: *name"),
    ("alias_without_anchor", "6:11", "there is no anchor 'base'", "an anchor (&name) must stand above"),
    ("alias_bomb", "1:1", "the file comes to", "write it with fewer aliases"),
    ("tag", "5:9", "the tag !site means nothing here", "write the value without a tag"),
    ("key_is_a_list", "3:5", "a key must be plain text", "write it as `name: value`"),
    ("bus_missing", "1:1", "bus is missing", "add a line such as `bus: orders`"),
    ("sites_missing", "1:1", "sites is missing", "add a line such as `sites: {a:"),
    ("bus_name_in_capitals", "1:6", "'Orders' is not a bus name", "lower-case letters, digits and"),
    ("site_name_with_dash", "4:3", "'site-b' is not a site name", "lower-case letters and digits, a"),
    ("unknown_top_key", "5:1", "unknown key topic", "did you mean topics?"),
    ("unknown_site_key", "3:7", "unknown key broker", "did you mean brokers?"),
    ("unknown_gate_key", "7:3", "unknown key failoverafter", "did you mean failover_after?"),
    ("unknown_key_unlike_any", "5:1", "unknown key xyzzy", "known here: bus, sites, active,"),
    (
        "brokers_in_words",
        "3:16",
        "expected a whole number or a list, found",
        "write how many, or a list with one",
    ),
    ("brokers_in_quotes", "3:16", "expected a whole number or a list, found '3'", "remove the quotes"),
    ("brokers_zero", "3:16", "brokers must be at least 1, found 0", "use 1 or more"),
    (
        "brokers_true",
        "3:16",
        "expected a whole number or a list, found",
        "write how many, or a list with one",
    ),
    ("brokers_empty_list", "3:16", "a site has at least one broker", "brokers: 3"),
    (
        "brokers_half",
        "3:16",
        "expected a whole number or a list, found 2.5",
        "write how many, or a list with one",
    ),
    ("broker_port_too_high", "3:24", "port must be at most 65535, found 70000", "use 65535 or less"),
    ("mirror_yes", "7:13", "expected true or false, found 'yes'", "YAML 1.2 writes true"),
    ("rack_is_a_number", "3:15", "expected text, found 1", 'put it in quotes: "1"'),
    ("produce_not_a_list", "8:14", "expected a list, found 'orders'", "write it as a list: [orders]"),
    ("topics_is_a_list", "5:9", "expected a mapping, found a list", "write each name as a key, with what"),
    (
        "kafka_value_is_a_list",
        "6:23",
        "expected one value, found a list",
        'write the parts as one text: "a,b"',
    ),
    ("kafka_value_missing", "6:3", "expected one value, found nothing", "give it a value or remove it"),
    ("cleanup_misspelled", "6:21", "cleanup cannot be 'compakt'", "did you mean compact?"),
    ("kafka_version_unknown", "2:16", "kafka_version cannot be '4.1.0'", "did you mean 4.3.1?"),
    ("kafka_version_too_short", "4:50", "kafka_version cannot be 4.3", "one of 4.2.1, 4.3.1"),
    (
        "kafka_version_of_existing_site",
        "7:5",
        "kafka_version cannot be set for a site that exists",
        "Twinlog does not run its brokers;",
    ),
    ("auth_unknown", "6:32", "auth cannot be 'kerberos'", "one of scram, scram-sha-256, mtls"),
    ("size_unit_unknown", "3:15", "'GX' is not a unit of size", "did you mean 1GB?"),
    ("size_without_number", "3:15", "'lots' is not a size", "write a number and a unit, as in"),
    ("size_without_unit", "3:15", "Kafka does not run in less than 64MiB", "write a unit, as in 512MiB"),
    ("duration_without_unit", "6:19", "'10' has no unit of time", "did you mean 10s, 10m or 10ms?"),
    ("duration_unit_in_words", "6:19", "'seconds' is not a unit of time", "did you mean 10s?"),
    ("duration_zero", "6:19", "failover_after must be more than 0: a pause", "failover_after: 10s"),
    ("retention_unknown", "6:23", "'always' is not a duration", "write a number and a unit, as in"),
    ("rate_without_per_second", "7:46", "'5MB' is a size, not a rate", "did you mean 5MB/s?"),
    ("quota_zero", "7:46", "a quota of 0 lets nothing through", "leave it out for no limit"),
    ("three_sites", "5:3", "a bus has at most two sites, found 3", "an active and a standby are a bus;"),
    ("no_sites", "2:1", "a bus has at least one site", "sites: {a: {brokers: 3}, b:"),
    ("active_unknown", "5:9", "there is no site 'c'", "the sites are a, b"),
    (
        "controllers_even",
        "3:32",
        "4 controllers survive no more losses than 3",
        "a quorum needs more than half: use",
    ),
    ("client_without_bootstrap", "4:3", "bootstrap is missing", "a site that exists already needs"),
    (
        "bootstrap_without_client",
        "4:3",
        "client is missing for a site that exists",
        "name the file with the settings of",
    ),
    ("bootstrap_without_port", "5:30", "'kafka2' has no port", "write host:port, as in kafka2:9092"),
    (
        "bootstrap_with_protocol",
        "5:17",
        "'SASL_SSL://kafka1:9093' has a protocol in",
        "did you mean kafka1:9093?",
    ),
    (
        "existing_site_with_memory",
        "7:5",
        "memory cannot be set for a site that exists",
        "Twinlog does not run its brokers;",
    ),
    (
        "replication_above_brokers",
        "7:18",
        "4 copies need 4 brokers, and site a has 3",
        "use at most 3, or add brokers",
    ),
    ("min_insync_above_replication", "7:17", "min_insync 4 is above the 3 copies on site", "use at most 2"),
    (
        "message_above_request",
        "6:22",
        "message.max.bytes (200000000) is not below",
        "a request holds at least one",
    ),
    (
        "request_below_message",
        "6:29",
        "message.max.bytes (1048588) is not below",
        "a request holds at least one",
    ),
    ("topic_message_above_request", "7:18", "messages of 209715200 bytes do not fit a", "lower it, or raise"),
    (
        "heap_below_messages",
        "3:15",
        "memory of 100MiB is too little for messages",
        "a broker holds a batch several",
    ),
    (
        "kafka_setting_unknown",
        "6:3",
        "Kafka has no broker setting mesage.max.bytes",
        "did you mean message.max.bytes?",
    ),
    (
        "kafka_setting_of_topics",
        "6:3",
        "Kafka has no broker setting retention.ms",
        "did you mean log.retention.ms?",
    ),
    (
        "kafka_setting_owned",
        "4:15",
        "advertised.listeners is set by Twinlog",
        "use `advertise:` and `port:` of the",
    ),
    (
        "kafka_setting_removed",
        "6:3",
        "zookeeper.connect is gone since Kafka 4.0",
        "Kafka 4 keeps its metadata in",
    ),
    (
        "kafka_setting_of_old_consumers",
        "8:3",
        "fetch.message.max.bytes is a setting of",
        "an old consumer setting; the",
    ),
    ("kafka_value_of_wrong_kind", "6:19", "num.io.threads is a whole number, found", "Kafka's default is 8"),
    ("kafka_value_below_limit", "6:19", "num.io.threads cannot be 0", "Kafka takes whole numbers from 1 to"),
    ("kafka_value_not_a_choice", "6:21", "compression.type cannot be 'gzipp'", "did you mean gzip?"),
    ("kafka_listener_unknown", "6:3", "there is no listener 'public'", "the listeners are client and"),
    (
        "topic_setting_unknown",
        "7:14",
        "Kafka has no topic setting message.max.bytes",
        "did you mean max.message.bytes?",
    ),
    (
        "topic_setting_contradicts",
        "8:30",
        "cleanup.policy is delete here, but cleanup",
        "keep cleanup and remove this",
    ),
    ("topic_called_dot", "6:3", "a topic cannot be called '.'", "give it a name with letters"),
    (
        "topic_internal",
        "6:3",
        "__consumer_offsets is a name for internal",
        "names with two underscores in front",
    ),
    ("topic_with_blank", "6:3", "'my orders' is not a topic name", "letters, digits, dots, dashes and"),
    (
        "topics_collide",
        "7:3",
        "new_orders and new.orders are one name to",
        "dots and underscores count as the",
    ),
    ("user_names_unknown_topic", "7:20", "there is no topic order", "did you mean orders?"),
    ("group_reserved", "7:46", "names with standby. in front are kept for", "choose another name"),
    (
        "pattern_with_two_asterisks",
        "7:20",
        "'*or*' is not a name or prefix",
        "an exact name, a prefix and an",
    ),
    ("password_as_text", "7:39", "expected a mapping, found something else", "name where it is kept: {file:"),
    ("password_twice", "7:29", "a password comes from one place", "password: {file: shop.password} or"),
    (
        "password_from_nowhere",
        "7:29",
        "where does the password come from?",
        "password: {file: shop.password} or",
    ),
    (
        "password_with_mtls",
        "7:41",
        "a user with auth: mtls has a certificate",
        "remove password, or use auth: scram",
    ),
    ("user_called_nobody", "7:3", "nobody is what Kafka calls clients that are", "choose another name"),
    ("gate_without_port", "5:17", "'bus.example.org' has no port", "write host:port, as in"),
    (
        "gate_address_with_blank",
        "5:17",
        "'127.0.0.1: 9092' has a blank in it",
        "did you mean 127.0.0.1:9092?",
    ),
    (
        "gate_port_taken",
        "3:13",
        "broker 1 of site a and the gate would both",
        "a broker takes three ports from",
    ),
    (
        "broker_ports_overlap",
        "3:38",
        "broker 2 of site a and broker 1 of site a",
        "a broker takes three ports from",
    ),
    (
        "site_ports_overlap",
        "4:13",
        "broker 1 of site b and broker 1 of site a",
        "a broker takes three ports from",
    ),
    ("listen_with_port", "3:15", "'127.0.0.1:9092' is not a host", "write the host alone; the port is"),
    (
        "listen_everywhere_without_advertise",
        "3:15",
        "clients cannot connect to 0.0.0.0",
        "add advertise: with the name that",
    ),
    ("racks_more_than_brokers", "3:14", "4 racks for 3 brokers", "a rack without a broker does"),
    ("data_twice", "3:24", "/d1 stands here twice", "remove one"),
    ("heap_among_jvm_options", "3:13", "-Xmx1g contradicts memory", "use memory: of the site"),
    (
        "renewal_after_end",
        "6:13",
        "certificates of 20d would be renewed 30d",
        "renew_before must be shorter than",
    ),
    ("authority_ends_first", "6:16", "the authority would end before the", "ca_validity must be at least"),
]


@pytest.mark.parametrize(("name", "place", "what", "hint"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_file_is_refused_at_its_place_with_a_hint(name: str, place: str, what: str, hint: str) -> None:
    with pytest.raises(FileProblems) as caught:
        load(FILES / f"{name}.yaml", {})
    (problem,) = caught.value.problems
    assert f"{problem.line}:{problem.column}" == place
    assert what in problem.what
    assert hint and hint in problem.hint


def test_table_of_wrong_files_is_complete() -> None:
    assert sorted(row[0] for row in WRONG) == sorted(file.stem for file in FILES.iterdir())


def test_secret_written_into_the_file_is_not_repeated() -> None:
    with pytest.raises(FileProblems) as caught:
        load(FILES / "password_as_text.yaml", {})
    assert "hunter2" not in str(caught.value)
