"""The CPU interface of every register file that PeakRDL makes: em_bus_pkg's request and response.

A module hooks up its register file by two ports, `bus_i` and `bus_o`. A register file answers in
the cycle of the request: it has no external register, and reads and writes take as long as each
other, so neither is ever stalled.
"""

from peakrdl_regblock.cpuif.base import CpuifBase

IMPLEMENTATION = """
assign cpuif_req       = bus_i.valid;
assign cpuif_req_is_wr = bus_i.write;
assign cpuif_addr      = bus_i.address[em_bus_pkg::FileBits-1:0];
assign cpuif_wr_data   = bus_i.data;
assign cpuif_wr_biten  = bus_i.enable;
assign bus_o.done      = cpuif_rd_ack || cpuif_wr_ack;
assign bus_o.error     = cpuif_rd_err || cpuif_wr_err;
assign bus_o.data      = cpuif_rd_data;
"""


class RegisterBusCpuif(CpuifBase):
    """Ports and wiring of a register file on the register bus."""

    @property
    def port_declaration(self):
        """The two ports, in place of PeakRDL's twelve."""
        return "input em_bus_pkg::request_t bus_i,\noutput em_bus_pkg::response_t bus_o"

    def get_implementation(self):
        """The bus, joined to PeakRDL's internal signals; refuses a register file that can stall."""
        state = self.exp.ds
        if state.has_external_addressable or state.min_read_latency or state.min_write_latency:
            raise ValueError(
                f"{state.module_name}: read latency {state.min_read_latency}, write latency "
                f"{state.min_write_latency}, external {state.has_external_addressable}: must be 0, "
                "0 and False, as em_bus_pkg answers in the cycle of the request"
            )
        return IMPLEMENTATION.strip()
