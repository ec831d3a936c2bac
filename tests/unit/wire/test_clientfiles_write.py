"""Client files: as they look, and that they say what they should."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.clientfiles.files import ClientFiles
from twinlog.wire.clientfiles.read import read_client_file
from twinlog.wire.clientfiles.tuning import Tuning, java_request_bytes, librdkafka_tuning
from twinlog.wire.clientfiles.write import Client, Format, render
from twinlog.wire.stores import StoreType

HERE = Path(__file__).parent
CA = (HERE / "data" / "ca.crt").read_text()
CHAIN = (HERE / "data" / "shop.crt").read_text()
KEY = (HERE / "data" / "shop.key").read_text()
SCRAM = Access(
    ("kafka.example:9092",),
    Protocol.SASL_SSL,
    CA,
    mechanism=Mechanism.SCRAM_SHA_512,
    username="shop",
    password="not-a-secret",
)
MTLS = Access(("kafka.example:9093",), Protocol.SSL, CA, CHAIN, KEY)
LARGE = Tuning(message_max_bytes=15_728_640)
JAVA_LIKE = [Format.JAVA, Format.SPARK, Format.SPRING, Format.QUARKUS]
LINES = [Format.LIBRDKAFKA, Format.KCAT]
ODD = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("\"'\\ #=;:!${}")), min_size=1
)


def files(
    access: Access, form: Format, store: StoreType = StoreType.PEM, folder: Path = Path("/srv/clients")
) -> ClientFiles:
    return render(Client("shop", access, LARGE, store, folder), form)


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(("kind", "access"), [("scram", SCRAM), ("mtls", MTLS)])
def test_file_looks_as_agreed(form: Format, kind: str, access: Access) -> None:
    assert files(access, form).text == (HERE / "golden" / f"{kind}-{form}.txt").read_text()


@pytest.mark.parametrize("form", [Format.JAVA, Format.QUARKUS, *LINES])
@pytest.mark.parametrize("access", [SCRAM, MTLS], ids=["scram", "mtls"])
def test_file_reads_back_as_the_same_access(tmp_path: Path, form: Format, access: Access) -> None:
    written = files(access, form, folder=tmp_path)
    written.write(tmp_path)
    read = read_client_file(tmp_path / written.main.name)
    assert (read.access, read.warnings) == (access, ())


@pytest.mark.parametrize("form", LINES)
def test_file_for_librdkafka_explains_its_words_for_a_record_that_is_too_large(form: Format) -> None:
    lines = files(SCRAM, form).text.splitlines()
    (said,) = [number for number, line in enumerate(lines) if "'Message size too large' means" in line]
    assert lines[said].startswith("# ") and len(lines[said].encode()) < 510  # kcat breaks longer lines
    assert "max.message.bytes of the topic" in lines[said] and "message.max.bytes of the site" in lines[said]
    assert lines[said + 1] == f"message.max.bytes={LARGE.message_max_bytes}"


@pytest.mark.parametrize("store", [StoreType.PKCS12, StoreType.JKS])
@pytest.mark.parametrize("access", [SCRAM, MTLS], ids=["scram", "mtls"])
def test_file_with_stores_reads_back_as_the_same_access(
    tmp_path: Path, store: StoreType, access: Access
) -> None:
    written = files(access, Format.JAVA, store, tmp_path)
    written.write(tmp_path)
    assert read_client_file(tmp_path / written.main.name).access == access


@pytest.mark.parametrize("store", [StoreType.PKCS12, StoreType.JKS])
def test_stores_printed_again_fit_files_printed_earlier(tmp_path: Path, store: StoreType) -> None:
    first = files(MTLS, Format.JAVA, store, tmp_path)
    first.write(tmp_path)
    files(MTLS, Format.SPRING, store, tmp_path).write_beside(tmp_path)
    assert read_client_file(tmp_path / first.main.name).access == MTLS


def test_all_files_are_for_the_owner_only(tmp_path: Path) -> None:
    files(MTLS, Format.KCAT, folder=tmp_path).write(tmp_path)
    written = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert written == dict.fromkeys(("shop.kcat.conf", "shop.ca.crt", "shop.crt", "shop.key"), 0o600)


@given(username=ODD, password=ODD)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_java_file_keeps_odd_names_and_passwords(tmp_path: Path, username: str, password: str) -> None:
    access = Access(("a:1",), Protocol.SASL_SSL, "", "", "", Mechanism.SCRAM_SHA_256, username, password)
    path = tmp_path / "client"
    path.write_text(files(access, Format.JAVA).text)
    assert read_client_file(path).access == access


@given(username=ODD, password=ODD)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_line_file_keeps_odd_names_and_passwords_or_refuses_them(
    tmp_path: Path, username: str, password: str
) -> None:
    access = Access(("a:1",), Protocol.SASL_SSL, "", "", "", Mechanism.PLAIN, username, password)
    try:
        text = files(access, Format.KCAT).text
    except UsageError as error:
        assert any(value != value.strip() or "\\" in value for value in (username, password))
        assert password not in error.hint or len(password) < 4
        return
    path = tmp_path / "client"
    path.write_text(text)
    assert read_client_file(path).access == access


@given(username=ODD, password=ODD)
def test_python_files_keep_odd_names_and_passwords(username: str, password: str) -> None:
    access = Access(("a:1",), Protocol.SASL_SSL, "", "", "", Mechanism.PLAIN, username, password)
    client: dict[str, dict[str, str]] = {}
    exec(files(access, Format.PYTHON).text, client)
    assert (client["PRODUCER"]["sasl.username"], client["CONSUMER"]["sasl.password"]) == (username, password)
    spark: dict[str, dict[str, str]] = {}
    exec(files(access, Format.SPARK).text, spark)
    assert "kafka.sasl.jaas.config" in spark["OPTIONS"]


@pytest.mark.parametrize("form", [Format.SPRING, Format.QUARKUS])
def test_value_that_a_framework_would_replace_is_refused(form: Format) -> None:
    access = Access(("a:1",), Protocol.SASL_SSL, CA, "", "", Mechanism.PLAIN, "shop", "a${b}c")
    with pytest.raises(UsageError, match="would replace") as caught:
        files(access, form)
    assert "a${b}c" not in str(caught.value)


@pytest.mark.parametrize("form", [*LINES, Format.PYTHON])
def test_stores_are_for_java_only(form: Format) -> None:
    with pytest.raises(UsageError, match="PEM only"):
        files(SCRAM, form, StoreType.JKS)


@pytest.mark.parametrize("form", JAVA_LIKE)
def test_java_cannot_be_told_to_trust_anybody(form: Format) -> None:
    with pytest.raises(UsageError, match="always verify"):
        files(Access(("a:1",), Protocol.SSL, CA, verify_peer=False), form)


def test_path_too_long_for_kcat_is_refused() -> None:
    with pytest.raises(UsageError, match="too long"):
        files(SCRAM, Format.KCAT, folder=Path("/srv") / ("x" * 250) / ("y" * 250))


@pytest.mark.parametrize(
    ("batch", "estimate"),
    [(1000, 1016), (8000, 8016), (8300, 8315), (1_048_588, 1_048_603), (15_728_640, 15_728_654)],
)
def test_request_size_is_what_java_estimates_for_the_biggest_batch(batch: int, estimate: int) -> None:
    assert java_request_bytes(batch) == estimate


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_librdkafka_sizes_fit_each_other_for_any_limit(limit: int) -> None:
    tuned = librdkafka_tuning(Tuning(limit))
    values = {setting.key: int(setting.value) for setting in tuned if setting.value.isdigit()}
    assert values["receive.message.max.bytes"] >= values["fetch.max.bytes"] + 512
    assert values["fetch.max.bytes"] >= values["max.partition.fetch.bytes"]


@pytest.mark.parametrize("form", Format)
def test_a_rack_is_in_the_file_of_every_format(tmp_path: Path, form: Format) -> None:
    here = Client("shop", SCRAM, Tuning(rack="r1"), StoreType.PEM, tmp_path)
    lines = [line for line in render(here, form).text.splitlines() if "client.rack" in line]
    assert lines and all("r1" in line for line in lines)
