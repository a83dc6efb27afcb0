"""A real mariadbd on a free port, with a data directory of its own, and tables as key-value storages want them."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql

from tests.kit.ports import free_port
from tests.kit.servers import Running

USER, PASSWORD, DATABASE = "proxy", "p'a\"s%s", "app"

FULL_TABLE = (
    "CREATE TABLE {name} (id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARBINARY(2000) NOT NULL UNIQUE, v LONGBLOB NOT NULL,"
    " f INT UNSIGNED NOT NULL DEFAULT 0, e DOUBLE, ver BIGINT NOT NULL DEFAULT 0)"
)
FULL_COLUMNS = 'key = "k", value = "v", flags = "f", expires = "e", version = "ver", id = "id"'


class MariaDb(Running):
    """Root logs in without a password; USER with PASSWORD has all rights in DATABASE and all
    whose names begin with it. Stopped, it leaves nothing."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
        data = self.folder / "data"
        shutil.copytree(template(), data)
        port = free_port()
        listen = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={self.folder}/sock", "--user=root"]
        # As small and quick as it gets. What was committed survives the server's death, though not the machine's.
        quick = ["--innodb-buffer-pool-size=24M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=2",
                 "--skip-name-resolve", "--performance-schema=OFF", "--innodb-doublewrite=0"]  # fmt: skip
        super().__init__(["mariadbd", "--no-defaults", f"--datadir={data}", *listen, *quick, *options], port)

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def shut_down(self) -> None:
        """End it in good order, with all that was committed; `start` brings it back."""
        self.process.terminate()
        self.process.wait(20)

    def connect(self, user: str = "root", password: str = "") -> Any:
        """A connection of the tests' own, in DATABASE, that commits each statement."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, database=DATABASE, autocommit=True,
            charset="utf8mb4",
        )  # fmt: skip

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, tuple(parameters) or None)
            return list(cursor.fetchall())

    def make_table(self, text: str = FULL_TABLE, name: str = "kv") -> None:
        """The table anew, empty."""
        self.sql(f"DROP TABLE IF EXISTS {name}")
        self.sql(text.format(name=name))

    def level(self, columns: str = FULL_COLUMNS, settings: str = "", name: str = "kv") -> str:
        """The level of a configuration over that table."""
        password = PASSWORD.replace('"', '\\"')
        return f"""
  [[instance.level]]
  storage = "mysql"
  servers = ["{self.address}"]
  username = "{USER}"
  password = "{password}"
  database = "{DATABASE}"
  table = {{ name = "{name}", {columns} }}
  {settings}
"""


_TEMPLATE: list[Path] = []


def template() -> Path:
    """A fresh data directory, made once in a run of the tests and copied for every server."""
    if not _TEMPLATE:
        folder = Path(tempfile.mkdtemp(prefix="mariadb-template-"))
        data, port, sock = folder / "data", free_port(), f"{folder}/sock"
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", "--user=root",
                   "--auth-root-authentication-method=normal", "--innodb-log-file-size=4M"]  # fmt: skip
        if shutil.which(install[0]) is None:
            raise FileNotFoundError(f"{install[0]} is missing: apt-get install mariadb-server-core mariadb-client-core")
        subprocess.run(install, check=True, capture_output=True)
        server = Running(
            ["mariadbd", "--no-defaults", f"--datadir={data}", f"--port={port}", f"--socket={sock}", "--user=root",
             "--bind-address=127.0.0.1", "--innodb-log-file-size=4M", "--skip-name-resolve"], port,
        )  # fmt: skip
        try:
            with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
                cursor.execute(f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY %s", (PASSWORD,))
                cursor.execute(f"GRANT ALL ON `{DATABASE}%`.* TO {USER}@'127.0.0.1'")
        finally:
            server.stop()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _TEMPLATE.append(data)
    return _TEMPLATE[0]
