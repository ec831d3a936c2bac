"""`twinlog certs` where no node runs: what is due, what is signed, in which order an authority goes."""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import Twinlog
from tests.program.prepared_bus import prepare
from twinlog.ops.inventory import Verdict, verdict
from twinlog.ops.rotation import Step, steps_from
from twinlog.sites.authorities import Kind
from twinlog.sites.certificates import State, utc_now
from twinlog.sites.home import Home
from twinlog.sites.pki import Phase


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return prepare(tmp_path / "bus")


def request_for(name: str, file: Path) -> Path:
    """A signing request, and its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    file.write_bytes(request.public_bytes(serialization.Encoding.PEM))
    return file


def status_of(twinlog: Twinlog, home: Home, exit_code: int) -> dict[str, Any]:
    end = twinlog("certs", "status", "-o", "json", cwd=home.file.parent)
    assert end.returncode == exit_code, end.stderr
    found: dict[str, Any] = json.loads(end.stdout)
    return found


@pytest.mark.parametrize(
    ("state", "used", "shown_otherwise", "expected"),
    [
        (State.OK, True, [], Verdict.OK),
        (State.RENEW, True, [], Verdict.RENEW),
        (State.OK, True, ["a/broker-1 client"], Verdict.STALE),
        (State.RENEW, True, ["a/broker-1 client"], Verdict.STALE),
        (State.EXPIRED, True, ["a/broker-1 client"], Verdict.EXPIRED),
        (State.EXPIRED, False, [], Verdict.UNUSED),
    ],
)
def test_verdict_names_the_worst(
    state: State, used: bool, shown_otherwise: list[str], expected: Verdict
) -> None:
    assert verdict(state, used=used, shown_otherwise=shown_otherwise) is expected


def test_steps_left_are_those_after_the_phase() -> None:
    assert steps_from(Phase.STEADY) == (Step.BEGIN, Step.SWITCH, Step.FINISH)
    assert steps_from(Phase.BEGUN) == (Step.SWITCH, Step.FINISH)
    assert steps_from(Phase.SWITCHED) == (Step.FINISH,)


def test_fresh_certificates_are_ok_and_nobody_is_said_to_serve_them(twinlog: Twinlog, home: Home) -> None:
    found = status_of(twinlog, home, 0)
    assert found["authorities"] == [
        {"authority": "clients", "phase": "steady"},
        {"authority": "link", "phase": "steady"},
    ]
    assert {item["state"] for item in found["certificates"]} == {"ok"}
    assert {item["served"] for item in found["certificates"]} == {None}
    assert len(found["certificates"]) == 2 + 2 * 3 + 1


@pytest.mark.parametrize(("age_days", "state"), [(340, "renew"), (366, "expired")])
def test_old_certificates_are_found_and_renewed(
    twinlog: Twinlog, tmp_path: Path, age_days: int, state: str
) -> None:
    home = prepare(tmp_path / "bus", now=lambda: utc_now() - timedelta(days=age_days))
    found = status_of(twinlog, home, 3)
    assert {item["state"] for item in found["certificates"] if not item["is_authority"]} == {state}
    assert "hint: twinlog certs renew" in twinlog("certs", "status", cwd=home.file.parent).stderr
    end = twinlog("certs", "renew", "-o", "json", cwd=home.file.parent)
    assert len(json.loads(end.stdout)["renewed"]) == 2 * 3 + 1
    status_of(twinlog, home, 0)


def test_renewal_of_one_site_leaves_the_other_alone(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("certs", "renew", "--force", "--site", "a", "-o", "json", cwd=home.file.parent)
    names = sorted(Path(row["certificate"]).stem for row in json.loads(end.stdout)["renewed"])
    assert names == ["admin", "node-1", "node-901", "server-1"]


def test_certificate_of_a_user_that_is_gone_is_unused_and_no_finding(
    twinlog: Twinlog, tmp_path: Path
) -> None:
    home = prepare(tmp_path / "bus")
    prepare(tmp_path / "bus", now=lambda: utc_now() - timedelta(days=366)).pki.issue(Kind.USER, "gone")
    states = {
        Path(item["certificate"]).stem: item["state"] for item in status_of(twinlog, home, 0)["certificates"]
    }
    assert states["gone"] == "unused"


def test_request_of_a_declared_user_is_signed_beside_it(twinlog: Twinlog, home: Home, tmp_path: Path) -> None:
    request = request_for("till", tmp_path / "till.csr")
    end = twinlog("certs", "sign", str(request), "-o", "json", cwd=home.file.parent)
    answer = json.loads(end.stdout)
    assert answer["certificate"] == str(tmp_path / "till.crt")
    signed = x509.load_pem_x509_certificate((tmp_path / "till.crt").read_bytes())
    assert signed.subject.rfc4514_string() == "CN=till,OU=user,O=orders"
    authority = x509.load_pem_x509_certificate(Path(answer["trust"]).read_bytes())
    signed.verify_directly_issued_by(authority)


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("nobody", "nobody.csr", "the file has no user 'nobody'"),
        ("shop", "shop.csr", "user shop has a password"),
        ("till", "till.pem", "is a file named .csr"),
    ],
)
def test_request_that_must_not_be_signed_is_refused(
    twinlog: Twinlog, home: Home, tmp_path: Path, name: str, file: str, said: str
) -> None:
    request = request_for(name, tmp_path / file)
    end = twinlog("certs", "sign", str(request), cwd=home.file.parent)
    assert end.returncode == 2 and said in end.stderr
    assert not request.with_suffix(".crt").exists()


def test_request_that_is_not_there_is_named(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("certs", "sign", "till.csr", cwd=home.file.parent)
    assert end.returncode == 2
    assert "the request cannot be read: No such file" in end.stderr


def test_fetch_where_nobody_listens_says_so(twinlog: Twinlog) -> None:
    end = twinlog("certs", "fetch", "127.0.0.1:1")
    assert end.returncode == 1 and "no connection" in end.stderr
    assert twinlog("certs", "fetch", "nowhere").returncode == 2


def test_exchange_goes_through_its_phases_and_leaves_one_authority(twinlog: Twinlog, home: Home) -> None:
    for step, phase in (("begin", "begun"), ("switch", "switched"), ("finish", "steady")):
        end = twinlog("certs", "rotate-ca", "clients", f"--{step}", "-o", "json", cwd=home.file.parent)
        assert end.returncode == 0, end.stderr
        (row,) = json.loads(end.stdout)
        assert (row["authority"], row["phase"]) == ("clients", phase)
    found = status_of(twinlog, home, 0)["certificates"]
    assert [item["subject"].split(",")[0] for item in found if item["is_authority"]] == [
        "CN=clients-2",
        "CN=link-1",
    ]


def test_exchange_in_the_wrong_order_is_refused_with_the_right_step(twinlog: Twinlog, home: Home) -> None:
    def refused(step: str) -> str:
        end = twinlog("certs", "rotate-ca", "link", step, cwd=home.file.parent)
        assert end.returncode == 2
        return end.stderr

    assert "hint: twinlog certs rotate-ca link --begin" in refused("--switch")
    assert twinlog("certs", "rotate-ca", "link", "--begin", cwd=home.file.parent).returncode == 0
    assert "hint: twinlog certs rotate-ca link --switch" in refused("--finish")
    assert twinlog("certs", "rotate-ca", "link", "--switch", cwd=home.file.parent).returncode == 0
    assert "hint: twinlog certs rotate-ca link --finish" in refused("--begin")


def test_whole_exchange_at_once_needs_yes_where_clients_are_shut_out(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("certs", "rotate-ca", "--all", cwd=home.file.parent)
    assert end.returncode == 2 and "hint: twinlog certs rotate-ca both --all --yes" in end.stderr
    assert twinlog("certs", "rotate-ca", "link", "--all", cwd=home.file.parent).returncode == 0
    assert twinlog("certs", "rotate-ca", "--all", "--yes", cwd=home.file.parent).returncode == 0
    subjects = [item["subject"] for item in status_of(twinlog, home, 0)["certificates"][:2]]
    assert [subject.split(",")[0] for subject in subjects] == ["CN=clients-2", "CN=link-3"]


def test_exchange_without_a_step_asks_for_one(twinlog: Twinlog, home: Home) -> None:
    end = twinlog("certs", "rotate-ca", cwd=home.file.parent)
    assert end.returncode == 2 and "name the step to take" in end.stderr


def test_secrets_that_others_can_read_are_a_finding_with_the_command_that_closes_them(
    twinlog: Twinlog, home: Home
) -> None:
    home.user_access("shop", "a")
    assert twinlog("client", "till", "--format", "kcat", cwd=home.file.parent).returncode == 0
    assert status_of(twinlog, home, 0)["exposed"] == []
    opened = [
        home.directory / "secrets" / "shop",
        home.directory / "clients" / "a" / "till" / "till.key",
        home.directory / "pki" / "clients" / "ca-1.key",
        home.directory / "pki" / "link" / "link" / "admin.pem",
    ]
    for path, mode in zip(opened, (0o640, 0o604, 0o644, 0o660), strict=True):
        path.chmod(mode)
    found = status_of(twinlog, home, 3)["exposed"]
    assert found == [
        {"file": str(path), "mode": mode}
        for path, mode in zip(opened, ("640", "604", "644", "660"), strict=True)
    ]
    end = twinlog("certs", "status", cwd=home.file.parent)
    assert "4 secrets can be read by others" in end.stderr
    (hint,) = [line for line in end.stderr.splitlines() if "chmod" in line]
    subprocess.run(shlex.split(hint.split("hint: ", 1)[1]), check=True)
    assert status_of(twinlog, home, 0)["exposed"] == []
