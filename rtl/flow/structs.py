"""Packed structs of the RTL as names and numbers: a simulator shows a bench one vector."""

from types import SimpleNamespace


class Packed:
    """The layout of a packed struct: its fields with their bits, the highest first."""

    def __init__(self, **widths):
        self.widths = widths
        self.bits = sum(widths.values())

    def pack(self, **fields):
        """The struct as a number; a field that is not named is 0."""
        word = 0
        for name, bits in self.widths.items():
            value = int(fields.pop(name, 0))
            assert 0 <= value < 1 << bits, f"{name} = {value}: must have at most {bits} bits"
            word = word << bits | value
        assert not fields, f"no field {', '.join(fields)}: must be one of {', '.join(self.widths)}"
        return word

    def unpack(self, word):
        """The fields of a number or of a signal, by name."""
        word = int(word)
        found = {}
        for name, bits in reversed(self.widths.items()):
            found[name] = word & (1 << bits) - 1
            word >>= bits
        return SimpleNamespace(**found)


class Driver:
    """An input of the module under test that is a struct: fields stay until they are set anew."""

    def __init__(self, signal, layout):
        self.signal, self.layout, self.fields = signal, layout, {}
        self.set()

    def set(self, **fields):
        """Drives these fields, and the others as before."""
        self.fields |= fields
        self.signal.value = self.layout.pack(**self.fields)


# em_link_pkg::line_slot_t, its block by parts.
LINE_SLOT = Packed(valid=1, payload=64, header=2)

# em_axi_pkg, with the fields of a channel behind its name.
AXI_WRITE_REQUEST = Packed(
    aw_valid=1, aw_addr=64, aw_len=8, w_valid=1, w_data=64, w_strb=8, w_last=1, b_ready=1
)
AXI_WRITE_RESPONSE = Packed(aw_ready=1, w_ready=1, b_valid=1, b_resp=2)
AXI_READ_REQUEST = Packed(ar_valid=1, ar_addr=64, ar_len=8, r_ready=1)
AXI_READ_RESPONSE = Packed(ar_ready=1, r_valid=1, r_data=64, r_resp=2)
AXI_LITE_REQUEST = Packed(
    aw_valid=1,
    aw_addr=21,
    w_valid=1,
    w_data=32,
    w_strb=4,
    b_ready=1,
    ar_valid=1,
    ar_addr=21,
    r_ready=1,
)
AXI_LITE_RESPONSE = Packed(
    aw_ready=1, w_ready=1, b_valid=1, b_resp=2, ar_ready=1, r_valid=1, r_data=32, r_resp=2
)
# em_host_ports_pkg::rx_to_tx_t, a field of it whole.
HOST_RX_TO_TX = Packed(
    item_valid=1,
    item=38,
    event_valid=1,
    message_event=24,
    reply_valid=1,
    reply=21,
    response_valid=1,
    response=99,
    read_ready=1,
)
