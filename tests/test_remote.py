"""Tests of remote files: S3 (on a local server), the web and fsspec filesystems; and of patterns of file names."""

import functools
import http.server
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

import numpy as np
import pandas as pd
import pytest
from spark_sessions import free_port

import belief
from belief.cli import main
from belief.data.remote import hide_secrets

M = 200
rng = np.random.default_rng(4)
Y = rng.integers(0, 2, M)
TABLE = pd.DataFrame(rng.standard_normal((M, 4)), columns=[*"abcd"]).assign(y=Y)
TABLE["c"] += Y
SETTINGS = {"label": "y", "n_features_to_select": 2, "random_state": 0}
EXPECTED = belief.select(TABLE, **SETTINGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote")
    TABLE.to_parquet(folder / "whole.parquet", index=False)
    TABLE.to_csv(folder / "whole.csv", index=False)
    TABLE.to_feather(folder / "whole.feather")
    np.save(folder / "X.npy", TABLE.drop(columns="y").to_numpy())
    (folder / "parts").mkdir()
    TABLE[:90].to_parquet(folder / "parts" / "a.parquet", index=False)
    TABLE[90:].to_parquet(folder / "parts" / "b.parquet", index=False)
    (folder / "parts" / "_SUCCESS").touch()
    return folder


def check(result):
    np.testing.assert_array_equal(result.weights, EXPECTED.weights)
    assert list(result.feature_names) == [*"abcd"]


NAMES = ["whole.parquet", "whole.csv", "whole.feather", "parts", "parts/*.parquet"]

# --- local patterns ---


@pytest.mark.parametrize("name", ["parts/*.parquet", "part*/[ab].parquet"])
def test_local_patterns(name, folder):
    check(belief.select(str(folder / name), **SETTINGS))
    with pytest.raises(FileNotFoundError, match="no file matches this pattern"):
        belief.select(str(folder / "no*.csv"), **SETTINGS)


# --- S3 ---


@pytest.fixture(scope="module")
def s3(folder):
    """Start a local S3 server, and yield a function that returns the URL of a file on it."""
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("moto_server, a server with the S3 protocol, is not installed")
    fs = pytest.importorskip("pyarrow.fs")
    port = str(free_port())
    address = f"127.0.0.1:{port}"
    process = subprocess.Popen([server, "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://{address}/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        client = fs.S3FileSystem(
            access_key="key", secret_key="secret", endpoint_override=address, scheme="http",
            region="us-east-1", allow_bucket_creation=True,
        )  # fmt: skip
        client.create_dir("bucket")
        fs.copy_files(str(folder), "bucket/data", destination_filesystem=client)
        options = f"endpoint_override={address}&scheme=http&region=us-east-1"
        yield lambda name: f"s3://key:secret@bucket/data/{name}?{options}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("name", NAMES)
def test_s3(name, s3):
    check(belief.select(s3(name), **SETTINGS))


def test_s3_arrays_lists_and_errors(s3):
    result = belief.select(s3("X.npy"), Y, 2, random_state=0, feature_names=[*"abcd"])
    check(result)
    check(belief.select([s3("parts/a.parquet"), s3("parts/b.parquet")], **SETTINGS))
    for name, message in (("no.parquet", "no such file"), ("no*.csv", "no file matches")):
        with pytest.raises(FileNotFoundError, match=f"^s3://bucket/data/no.*: .*{message}") as error:
            belief.select(s3(name), **SETTINGS)
        assert "secret" not in str(error.value)
    with pytest.raises(ValueError, match="label: there is no column 'z'"):
        belief.select(s3("whole.parquet"), label="z")
    with pytest.raises(ValueError, match="Some of the files are URLs and some are local"):
        belief.select([s3("whole.csv"), "whole.csv"], label="y")


def test_s3_on_the_command_line(s3, capsys):
    assert main(["select", s3("whole.csv"), "--label", "y", "--top", "2", "--seed", "0", "--quiet"]) == 0
    assert "selected: the most relevant feature" in capsys.readouterr().out


# --- the web ---


@pytest.fixture(scope="module")
def web(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["whole.parquet", "whole.csv", "whole.feather"])
def test_web(name, web, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check(belief.select(f"{web}/{name}", **SETTINGS))
    assert not any(tmp_path.iterdir())  # the copy is deleted


def test_web_errors(web):
    with pytest.raises(ValueError, match=r"no\.csv: could not be copied: HTTP Error 404"):
        belief.select(f"{web}/no.csv", **SETTINGS)


# --- fsspec ---


def test_fsspec(folder):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in folder.rglob("*.*"):
        memory.pipe(f"/data/{path.relative_to(folder)}", path.read_bytes())
    for name in NAMES:
        check(belief.select(f"memory://data/{name}", **SETTINGS))
    with pytest.raises(ValueError, match=r"^sftp:// needs a package that is not installed: .*paramiko"):
        belief.select("sftp://host/table.csv", **SETTINGS)
    with pytest.raises(ValueError, match=r"^abc://host/table\.csv cannot be read: Protocol not known"):
        belief.select("abc://host/table.csv", **SETTINGS)


def test_no_secrets_in_messages():
    assert hide_secrets("s3://key:secret@bucket/a/b.csv?endpoint_override=x") == "s3://bucket/a/b.csv"
