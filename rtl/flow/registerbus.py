"""The register bus as numbers: em_bus_pkg's request and response."""

from dataclasses import dataclass

MASK32 = (1 << 32) - 1


@dataclass(frozen=True)
class Request:
    """An access."""

    valid: bool
    write: bool
    address: int
    data: int
    enable: int = MASK32

    def bits(self):
        """As request_t."""
        head = self.valid << 1 | self.write
        return ((head << 21 | self.address) << 32 | self.data) << 32 | self.enable


def request(bits):
    """Of request_t."""
    return Request(
        bool(bits >> 86 & 1),
        bool(bits >> 85 & 1),
        bits >> 64 & (1 << 21) - 1,
        bits >> 32 & MASK32,
        bits & MASK32,
    )


def response(data, done=True, error=False):
    """As response_t."""
    return (done << 1 | error) << 32 | data
