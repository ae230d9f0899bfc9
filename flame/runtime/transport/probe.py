"""Ask by hand whether an MQTT broker answers: the smallest conversation of MQTT 3.1.1.

    CONNECT (clean session) -> CONNACK -> DISCONNECT

A port that accepts a connection may belong to anything; a CONNACK belongs to a broker. The same
conversation under a client's own id makes the broker forget that client's persistent session.
"""

import os
import socket
import struct

from flame.runtime.transport.access import ANYBODY, Access

_CONNECT = 0x10
_CONNACK = b"\x20\x02"
_DISCONNECT = b"\xe0\x00"
_CLEAN_SESSION, _PASSWORD, _USER = 0x02, 0x40, 0x80
_REFUSALS = {3: "it is unavailable", 4: "bad user name or password", 5: "not authorised"}


def probe(host: str, port: int, timeout_s: float, client_id: str | None = None, access: Access = ANYBODY) -> None:
    """Return when a broker at `host`:`port` says welcome. Raises OSError saying what happened instead.

    client_id: None for one of this process, so that nobody else's probe is kicked off.
    """
    client_id = client_id or f"flame-probe-{socket.gethostname()[:20]}-{os.getpid()}"
    named = [each for each in (access.user, access.password) if each is not None]
    flags = _CLEAN_SESSION | (_USER if access.user is not None else 0) | (_PASSWORD if access.password is not None else 0)
    body = b"\x00\x04MQTT\x04" + bytes([flags]) + struct.pack(">H", 10) + b"".join(map(_text, (client_id, *named)))
    with _opened(host, port, timeout_s, access) as connection:
        connection.settimeout(timeout_s)
        connection.sendall(bytes([_CONNECT]) + _length(len(body)) + body)
        answer = _receive(connection, 4)
        if answer[:2] != _CONNACK:
            raise ConnectionError(f"what listens there is no MQTT broker: it answered {answer!r}")
        if answer[3] != 0:
            raise ConnectionError(f"the broker refused the connection: {_REFUSALS.get(answer[3], f'code {answer[3]}')}")
        connection.sendall(_DISCONNECT)


def _opened(host: str, port: int, timeout_s: float, access: Access) -> socket.socket:
    context, connection = access.context(), socket.create_connection((host, port), timeout=timeout_s)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise


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
