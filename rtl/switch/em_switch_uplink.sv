/// The switch's state of a port as a sender: it sorts the arrivals, and keeps the open grants and
/// the requests of its node that wait for their release.
module em_switch_uplink
  import em_pkg::*;
  import em_link_pkg::*;
  import em_sched_pkg::ask_t;
  import em_sched_pkg::charge_t;
  import em_sched_pkg::decision_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter logic [$clog2(Ports)-1:0] Port = '0,
    parameter int unsigned CircuitDepth = 64,
    parameter int unsigned NotificationsMax = 3,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [Ports-1:0] port_up_i,
    input logic [Ports-1:0] joined_i,

    input logic  valid_i,
    input item_t item_i,

    /// What this port is granted as a source.
    input  decision_t grant_i,
    output logic      circuit_room_o,

    /// Requests of this port as a compute node: the source that may be granted, and the request
    /// that is released in the next cycle.
    input  logic [PortWidth-1:0] asked_source_i,
    output held_t                held_o,
    input  logic                 release_i,

    /// The port may refuse the first block of a chunk.
    output routed_chunk_t chunk_o,
    input  logic          chunk_refused_i,

    // Scheduler.
    output ask_t    ask_o,
    input  logic    ask_refused_i,
    /// A block of an Ethernet frame passed.
    input  logic    frame_i,
    output charge_t charge_o,

    output routed_status_t status_o,
    input  logic           status_refused_i,

    output heard_t  heard_o,
    output events_t events_o
);

  logic next_valid, used, allowed, skipped;
  logic [PortWidth-1:0] next_destination;
  logic [GrantBytesBits-1:0] used_bytes;
  held_t asked_held;
  charge_t control;

  em_switch_ingress #(
      .Ports(Ports),
      .Port (Port)
  ) u_ingress (
      .clk_i,
      .rst_ni,
      .port_up_i,
      .joined_i,
      .valid_i,
      .item_i,
      .next_valid_i      (next_valid),
      .next_destination_i(next_destination),
      .use_o             (used),
      .use_bytes_o       (used_bytes),
      .allowed_i         (allowed),
      .skip_o            (skipped),
      .chunk_o,
      .chunk_refused_i,
      .ask_o,
      .ask_refused_i,
      .held_o            (asked_held),
      .charge_o          (control),
      .status_o,
      .status_refused_i,
      .heard_o,
      .events_o
  );

  assign charge_o = control + charge_t'(frame_i);

  em_switch_circuits #(
      .Ports(Ports),
      .Depth(CircuitDepth)
  ) u_circuits (
      .clk_i,
      .rst_ni,
      .clear_i           (!port_up_i[Port]),
      .port_up_i,
      .open_i            (grant_i.valid),
      .open_destination_i(PortWidth'(grant_i.destination)),
      .open_bytes_i      (grant_i.bytes),
      .room_o            (circuit_room_o),
      .next_valid_o      (next_valid),
      .next_destination_o(next_destination),
      .use_i             (used),
      .use_bytes_i       (used_bytes),
      .allowed_o         (allowed),
      .skip_i            (skipped)
  );

  em_switch_requests #(
      .Ports           (Ports),
      .NotificationsMax(NotificationsMax)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .clear_i      (port_up_i[Port] ? ~port_up_i : '1),
      .insert_i     (ask_o.valid && ask_o.response && !ask_refused_i),
      .insert_peer_i(PortWidth'(ask_o.peer)),
      .insert_held_i(asked_held),
      .look_peer_i  (asked_source_i),
      .held_o,
      .release_i
  );

endmodule
