"""A service on the web that takes connections and never answers: `mute_service.py KIND`. Prints its port.

KIND: `silent`: nothing at all; `headers`: the beginning of a stream of events, and nothing more.
"""

import socketserver
import sys
import time

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


class Mute(socketserver.BaseRequestHandler):
    def handle(self):
        if sys.argv[1] == "headers":
            self.request.sendall(HEADERS)
        time.sleep(60)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Mute) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
