"""An extender of kube-scheduler that writes down the nodes which it is offered for a pod, and takes none of them.

https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#kubescheduler-config-k8s-io-v1-Extender
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Extender:
    """What was offered.

    Attributes:
        url: Where it listens.
        offers: Nodes by uid of the pod, in the order of names.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.offers: dict[str, list[str]] = {}


@contextlib.contextmanager
def running_extender() -> Iterator[Extender]:
    """An extender that listens on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            asked = json.loads(self.rfile.read(size))
            extender.offers[asked["Pod"]["metadata"]["uid"]] = sorted(asked["NodeNames"])
            refused = dict.fromkeys(asked["NodeNames"], "written down")
            answer = json.dumps({"NodeNames": [], "FailedNodes": refused}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # kube-scheduler was killed while it asked again

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    extender = Extender(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield extender
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
