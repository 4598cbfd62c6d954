/// The registers of a node: connects the register file of rtl/registers to the host's signals.
module em_host_counters
  import em_pkg::*;
  import em_bus_pkg::*;
  import em_host_pkg::completion_t;
  import em_host_pkg::EndDone;
  import em_host_pkg::EndTimeout;
  import em_host_pkg::EndIncomplete;
  import em_host_pkg::EndPeerDown;
  import em_host_pkg::EndLinkDown;
  import em_host_pkg::EndBadRequest;
#(
    parameter int unsigned Nodes = 4,
    parameter int unsigned X = 3,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes = 256
) (
    input logic clk_i,
    input logic rst_ni,

    input  em_bus_pkg::request_t bus_i,
    output response_t            bus_o,

    output node_t       node_o,
    output logic [30:0] timeout_cycles_o,
    output logic [63:0] memory_bytes_o,

    /// A completion is taken.
    input logic            completed_i,
    input completion_t     completion_i,
    /// How many of each the host dropped: `dropped_o` of em_host.
    input logic [4:0][3:0] dropped_i
);

  em_host_registers_pkg::em_host_registers__in_t said;
  em_host_registers_pkg::em_host_registers__out_t wanted;
  logic here, good;

  assign node_o           = wanted.node.node.value;
  assign timeout_cycles_o = wanted.node.timeout_cycles.value;
  assign memory_bytes_o   = wanted.memory.bytes.value;

  assign said.build.nodes.next         = 16'(Nodes);
  assign said.build.message_bytes.next = 16'(MessageBytes);
  assign said.build.chunk_bytes.next   = 16'(ChunkBytes);
  assign said.build.active.next        = 4'(X);

  assign here = completed_i && !completion_i.remote;
  assign good = completion_i.remote ? completion_i.code == StatusOk
                                    : completion_i.code == EndDone;

  assign said.completed.count     = '{incr: completed_i && good, incrvalue: 4'd1};
  assign said.timeouts.count      = '{
      incr: here && completion_i.code == EndTimeout, incrvalue: 4'd1
  };
  assign said.incomplete.count    = '{
      incr: here && completion_i.code == EndIncomplete, incrvalue: 4'd1
  };
  assign said.peer_down.count     = '{
      incr: here && completion_i.code == EndPeerDown, incrvalue: 4'd1
  };
  assign said.link_down.count     = '{
      incr: here && completion_i.code == EndLinkDown, incrvalue: 4'd1
  };
  assign said.bad_requests.count  = '{
      incr: here && completion_i.code == EndBadRequest, incrvalue: 4'd1
  };
  assign said.remote_errors.count = '{
      incr: completed_i && completion_i.remote && !good, incrvalue: 4'd1
  };

  // Whatever came in a cycle, none or several.
  assign said.duplicates.count     = '{incr: 1'b1, incrvalue: dropped_i[0]};
  assign said.writes_dropped.count = '{incr: 1'b1, incrvalue: dropped_i[1]};
  assign said.posted_lost.count    = '{incr: 1'b1, incrvalue: dropped_i[2]};
  assign said.grants_lost.count    = '{incr: 1'b1, incrvalue: dropped_i[3]};
  assign said.replies_lost.count   = '{incr: 1'b1, incrvalue: dropped_i[4]};

  em_host_registers u_registers (
      .clk     (clk_i),
      .arst_n  (rst_ni),
      .bus_i,
      .bus_o,
      .hwif_in (said),
      .hwif_out(wanted)
  );

endmodule
