"""Images at URLs, which packfs reads itself, from a server in this process."""

import http.server
import pickle
import socket
import threading

import packfs
import pytest
from conftest import files_of


@pytest.fixture
def server(packed):
    """URL of a server that answers ranges of the image; it runs in a thread, so it needs the GIL."""
    data, requests = packed.read_bytes(), []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            requests.append(self.headers["Range"])
            start, end = self.headers["Range"].removeprefix("bytes=").split("-")
            if start == "":
                start, end = max(len(data) - int(end), 0), len(data) - 1
            part = data[int(start) : int(end or len(data) - 1) + 1]
            self.send_response(206)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Range", f"bytes {start}-{int(start) + len(part) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}/tree.img"
    assert requests
    served.shutdown()
    served.server_close()


def test_reads_images_at_urls(server, tree):
    names = files_of(tree)
    with packfs.open(server, disk_cache=0) as image:
        assert image.read("docs/hello.txt") == b"hello\nworld\n"
        assert image.read_many(names) == [(tree / name).read_bytes() for name in names]
        assert pickle.loads(pickle.dumps(image)).read("docs/link") == b"hello\nworld\n"


def test_fsspec_reads_images_at_urls(server):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("packfs", fo=server, open_options={"disk_cache": 0})
    assert fs.cat_file("docs/hello.txt") == b"hello\nworld\n"


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that answers with the status that the path is."""

    def do_GET(self):
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_answers_and_missing_servers_are_exceptions_of_python():
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    for status, exception in {404: FileNotFoundError, 403: PermissionError, 401: PermissionError}.items():
        url = f"http://127.0.0.1:{served.server_port}/{status}"
        for call in [packfs.open, packfs.check, packfs.digest]:
            with pytest.raises(exception) as caught:
                call(url, disk_cache=0)
            assert caught.value.filename == url
    served.shutdown()
    served.server_close()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            packfs.open(f"http://127.0.0.1:{closed.getsockname()[1]}/x.img", disk_cache=0)
