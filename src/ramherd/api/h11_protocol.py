"""uvicorn's h11 protocol with limits: for the API, which answers few requests."""

from uvicorn.protocols.http.h11_impl import H11Protocol

from ramherd.api.connection_limits import ConnectionLimits


class LimitedProtocol(ConnectionLimits, H11Protocol):
    pass
