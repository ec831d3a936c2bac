"""The passwords of users: invented and kept here, or given by the user and only read.

Called by `apply` (which hands them to the sites) and by whoever prints a client file. One file
each, readable by the owner only. Messages name the user and the place, never the password.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from twinlog.durable import make_private_directory, write_secret
from twinlog.errors import UsageError
from twinlog.spec.model import Password

FINGERPRINT_KEY = ".fingerprint"  # no user's name begins with a dot
LONGEST = 4096
GENERATED_BYTES = 24  # 32 characters of URL-safe base64


class Passwords:
    """The passwords of one bus. Given files are looked for from `base`, the directory of the bus's file."""

    def __init__(self, directory: Path, base: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._base = base
        self._environment = environment

    def password_of(self, user: str, given: Password | None) -> str:
        """A user's password, invented at first use unless it is given."""
        if given is not None:
            return _checked(user, *self._given(user, given))
        path = self._path(user)
        if not path.exists():
            self._invent(path)
        return _checked(user, path.read_text(), str(path))

    def fingerprint(self, user: str, given: Password | None) -> str:
        """What tells one password of a user from another without telling the password.

        Keyed with a secret of the bus, so that a guess cannot be tried on the state file alone.
        """
        path = self._directory / FINGERPRINT_KEY
        if not path.exists():
            self._invent(path)
        password = self.password_of(user, given)
        return hmac.new(path.read_bytes(), f"{user}\0{password}".encode(), "sha256").hexdigest()

    def known_fingerprint(self, user: str, given: Password | None) -> str | None:
        """As `fingerprint`, but nothing is invented: None for a password that is still to be."""
        if given is None and not self._path(user).exists():
            return None
        if not (self._directory / FINGERPRINT_KEY).exists():
            self.password_of(user, given)  # one that cannot be read is an error now, not when it is set
            return ""  # no site was ever given one
        return self.fingerprint(user, given)

    def is_kept(self, user: str, given: Password | None) -> bool:
        """True if there is one: it is given, or was invented."""
        return given is not None or self._path(user).exists()

    def rotate(self, user: str, given: Password | None) -> str:
        """Invent a new password in place of the kept one."""
        if given is not None:
            place = f"file {given.file}" if given.file is not None else f"variable {given.env}"
            raise UsageError(
                f"the password of user {user} is given by you, so Twinlog does not change it",
                where=place,
                hint="change it there, then: twinlog apply",
            )
        path = self._path(user)
        self._invent(path)
        return path.read_text().rstrip("\n")

    def _path(self, user: str) -> Path:
        return self._directory / user

    def _invent(self, path: Path) -> None:
        make_private_directory(self._directory)
        write_secret(path, secrets.token_urlsafe(GENERATED_BYTES) + "\n")

    def _given(self, user: str, given: Password) -> tuple[str, str]:
        if given.file is not None:
            path = self._base / given.file
            try:
                with path.open() as file:
                    return file.read(LONGEST + 1), str(path)  # it may be a device, without an end
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                raise UsageError(
                    f"the password of user {user} cannot be read: {reason}",
                    where=str(path),
                    hint="write it there, or leave `password` out and Twinlog invents one",
                ) from None
        assert given.env is not None, "the loader lets exactly one of the two through"
        try:
            return self._environment[given.env], f"variable {given.env}"
        except KeyError:
            raise UsageError(
                f"the password of user {user} is not in the environment",
                where=f"variable {given.env}",
                hint=f"read -rs {given.env} && export {given.env}",
            ) from None


def _checked(user: str, text: str, place: str) -> str:
    password = text.removesuffix("\n").removesuffix("\r")
    if len(password) > LONGEST:
        raise UsageError(
            f"the password of user {user} is longer than {LONGEST} characters",
            where=place,
            hint="does the file hold more than the password?",
        )
    if not password:
        raise UsageError(f"the password of user {user} is empty", where=place, hint="write one there")
    if any(ord(character) < ord(" ") or character == "\x7f" for character in password):
        raise UsageError(
            f"the password of user {user} has a line break or a control character in it",
            where=place,
            hint="one line of printable characters; does the file hold more than the password?",
        )
    return password
