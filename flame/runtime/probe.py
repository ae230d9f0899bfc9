"""Ask by hand whether an MQTT broker answers: the smallest conversation of MQTT 3.1.1.

    CONNECT (clean session) -> CONNACK -> DISCONNECT

A port that accepts a connection may belong to anything; a CONNACK belongs to a broker. The same
conversation under a client's own id makes the broker forget that client's persistent session.
"""

import os
import socket
import struct

_CONNECT = 0x10
_CONNACK = b"\x20\x02"
_DISCONNECT = b"\xe0\x00"
_CLEAN_SESSION = 0x02


def probe(host: str, port: int, timeout_s: float, client_id: str | None = None) -> None:
    """Return when a broker at `host`:`port` says welcome. Raises OSError saying what happened instead.

    client_id: None for one of this process, so that nobody else's probe is kicked off.
    """
    client_id = client_id or f"flame-probe-{socket.gethostname()[:20]}-{os.getpid()}"
    body = b"\x00\x04MQTT\x04" + bytes([_CLEAN_SESSION]) + struct.pack(">H", 10) + _text(client_id)
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.settimeout(timeout_s)
        connection.sendall(bytes([_CONNECT]) + _length(len(body)) + body)
        answer = _receive(connection, 4)
        if answer[:2] != _CONNACK:
            raise ConnectionError(f"what listens there is no MQTT broker: it answered {answer!r}")
        if answer[3] != 0:
            raise ConnectionError(f"the broker refused a connection with code {answer[3]}")
        connection.sendall(_DISCONNECT)


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError(f"the connection was closed after {len(data)} of {count} bytes of an answer")
        data += part
    return data


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def _length(value: int) -> bytes:
    """MQTT's variable length: seven bits a byte, the lowest first."""
    out = bytearray()
    while True:
        value, digit = divmod(value, 128)
        out.append(digit | (128 if value else 0))
        if not value:
            return bytes(out)
