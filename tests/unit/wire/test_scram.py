"""SCRAM against the examples of the RFCs, and both sides of it against each other."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.wire.access import Mechanism
from twinlog.wire.scram import ScramClient, ScramRefused, salted_password

# RFC 7677, section 3: user "user", password "pencil".
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
ANSWER = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def rfc_client() -> ScramClient:
    return ScramClient("user", "pencil", Mechanism.SCRAM_SHA_256, nonce=NONCE)


def test_the_example_of_rfc_7677_is_answered_as_it_says() -> None:
    client = rfc_client()
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.answer(CHALLENGE) == ANSWER
    client.verify(FINAL)


def test_a_salted_password_is_the_hi_function_of_rfc_5802() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    block = hmac.digest(b"pencil", salt + b"\0\0\0\1", "sha256")
    total = int.from_bytes(block, "big")
    for _ in range(4095):
        block = hmac.digest(b"pencil", block, "sha256")
        total ^= int.from_bytes(block, "big")
    assert salted_password("pencil", salt, 4096, Mechanism.SCRAM_SHA_256) == total.to_bytes(32, "big")


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    client = rfc_client()
    client.answer(CHALLENGE)
    with pytest.raises(ScramRefused, match="prove"):
        client.verify(b"v=" + base64.b64encode(bytes(32)))


def test_a_server_that_speaks_too_early_is_refused() -> None:
    with pytest.raises(ScramRefused):
        rfc_client().verify(b"v=")


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999",
        b"e=other-error",
        b"",
    ],
)
def test_a_challenge_that_is_not_allowed_is_refused(challenge: bytes) -> None:
    with pytest.raises(ScramRefused):
        rfc_client().answer(challenge)


def test_commas_and_equals_signs_of_a_user_are_escaped() -> None:
    assert b"n=a=3Db=2Cc," in ScramClient("a=b,c", "x", Mechanism.SCRAM_SHA_512, nonce="n").first()


@settings(max_examples=25)
@given(st.text(max_size=30), st.binary(min_size=1, max_size=40), st.sampled_from(["sha256", "sha512"]))
def test_a_server_that_knows_the_password_accepts_the_proof(password: str, salt: bytes, name: str) -> None:
    mechanism = Mechanism.SCRAM_SHA_256 if name == "sha256" else Mechanism.SCRAM_SHA_512
    client = ScramClient("user", password, mechanism)
    first = client.first().decode().removeprefix("n,,")
    nonce = first.partition(",r=")[2] + "server"
    challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i=5".encode()
    answer = client.answer(challenge).decode()
    bare, _, proof = answer.partition(",p=")
    said = f"{first},{challenge.decode()},{bare}".encode()
    # What follows is the server's side: it knows the stored key only.
    salted = salted_password(password, salt, 5, mechanism)
    stored_key = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    signature = hmac.digest(stored_key, said, name)
    client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(name, client_key).digest() == stored_key
    shown = hmac.digest(hmac.digest(salted, b"Server Key", name), said, name)
    client.verify(b"v=" + base64.b64encode(shown))
