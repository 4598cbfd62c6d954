/// The grant scheduler of the switch: notifications in, grants out (sections 3.1.1 and 3.1.2).
///
/// What arrives in a cycle takes part from the next cycle on. A grant leaves a cycle after the
/// ports were marked busy, and says how many cycles after that mark it may be used. Each port
/// asks once a cycle: its /N/ for a write of its own, or its request for a response of the peer.
///
/// A port that is not up has nothing waiting and is not granted; it must be down for the three
/// cycles of an iteration at least.
module em_scheduler
  import em_pkg::*;
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// Active notifications a pair and flow: X.
    parameter int unsigned NotificationsMax = 3,
    parameter int unsigned TagWidth = 16,
    /// Bits of the cycle counter that orders arrivals; it must not wrap.
    parameter int unsigned TimeWidth = 42,
    /// Cycles of this clock in a block slot of the link.
    parameter int unsigned SlotCycles = 1,
    parameter int unsigned ChunkBytes = 256,
    /// Slots that a chunk takes beside its data.
    parameter int unsigned ChunkOverheadBlocks = 2,
    /// 0 if the caller registers grants itself: they then leave in the cycle of the mark.
    parameter bit RegisterGrants = 1'b1,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    // Set once, while nothing waits.
    input rank_config_t    rank_config_i,
    input control_config_t control_config_i,
    /// How long before its release a port is matched.
    input left_t           window_cycles_i,
    /// How long before its last block a destination is granted again.
    input left_t           ahead_cycles_i,

    input  logic [Ports-1:0] port_up_i,
    /// A source, or a destination, without room is not granted. No port is held for a window.
    input  logic [Ports-1:0] source_room_i,
    input  logic [Ports-1:0] destination_room_i,

    /// By the port that asks.
    input  ask_t             ask_i[Ports],
    /// The pair and flow has X already, a port is down, peer or size are invalid: nothing changes.
    output logic [Ports-1:0] ask_refused_o,

    /// Control blocks that pass a port.
    input charge_t uplink_blocks_i[Ports],
    input charge_t downlink_blocks_i[Ports],

    /// By destination, in the cycle before grants are marked: the source that would be granted.
    output logic [PortWidth-1:0] asked_source_o[Ports],
    /// By source.
    output decision_t            decision_o[Ports]
);

  localparam int unsigned KeyWidth = BytesBits + TimeWidth + PortWidth;
  localparam bytes_t Chunk = bytes_t'(ChunkBytes);
  localparam left_t Slot = left_t'(SlotCycles);

  typedef logic [KeyWidth-1:0] key_t;
  typedef logic [PortWidth-1:0] port_t;

  logic [TimeWidth-1:0] now_q;
  phase_e phase, unused_phase_next;
  logic asked, mark;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 1'b1;
  end
  assign mark = phase == PhaseMark;

  // By source and destination.
  logic [Ports-1:0] valid[Ports], accepted[Ports], response[Ports];
  logic [Ports-1:0] response_refused[Ports], write_refused[Ports], unreleased[Ports];
  key_t key[Ports][Ports];
  head_t head[Ports][Ports];
  logic [TimeWidth-1:0] unreleased_time[Ports][Ports];

  // By port.
  log_t ask_log[Ports], take_log[Ports];
  logic [Ports-1:0] sound, source_ready, destination_ready;
  left_t source_left[Ports], destination_left[Ports];
  left_t start[Ports], busy[Ports], destination_start[Ports], destination_busy[Ports];
  left_t destination_from[Ports];
  bytes_t granted[Ports], left[Ports];
  logic [Ports-1:0] last, destination_match;

  // By source.
  logic [Ports-1:0] match, matched, match_response;
  port_t match_destination[Ports];

  for (genvar s = 0; s < Ports; s++) begin : gen_sources
    for (genvar d = 0; d < Ports; d++) begin : gen_pairs
      if (s == d) begin : gen_none
        assign valid[s][d]            = 1'b0;
        assign response[s][d]         = 1'b0;
        assign response_refused[s][d] = 1'b0;
        assign write_refused[s][d]    = 1'b0;
        assign unreleased[s][d]       = 1'b0;
        assign key[s][d]              = '0;
        assign head[s][d]             = '0;
        assign unreleased_time[s][d]  = '0;
      end else begin : gen_pair
        take_t take;

        assign take = '{
            valid: match[s] && match_destination[s] == port_t'(d), left_log: take_log[s]};

        em_sched_pair #(
            .Depth      (NotificationsMax),
            .TagWidth   (TagWidth),
            .TimeWidth  (TimeWidth),
            .SlotCycles (SlotCycles),
            .ChunkBytes (ChunkBytes),
            .PortWidth  (PortWidth),
            .Source     (PortWidth'(s)),
            .Destination(PortWidth'(d))
        ) u_pair (
            .clk_i,
            .rst_ni,
            .config_i          (rank_config_i),
            .now_i             (now_q),
            .clear_i           (!port_up_i[s] || !port_up_i[d]),
            .response_i        (insert_of(ask_i[d], sound[d], ask_log[d], 1'b1, node_t'(s))),
            .response_refused_o(response_refused[s][d]),
            .write_i           (insert_of(ask_i[s], sound[s], ask_log[s], 1'b0, node_t'(d))),
            .write_refused_o   (write_refused[s][d]),
            .take_response_i   (match_response[s]),
            .head_o            (head[s][d]),
            .take_i            (take),
            .seen_i            (asked),
            .mark_i            (mark),
            .valid_o           (valid[s][d]),
            .key_o             (key[s][d]),
            .response_o        (response[s][d]),
            .unreleased_valid_o(unreleased[s][d]),
            .unreleased_time_o (unreleased_time[s][d]),
            .reverse_valid_i   (unreleased[d][s]),
            .reverse_time_i    (unreleased_time[d][s])
        );
      end
    end
  end

  em_sched_hold #(
      .Ports   (Ports),
      .KeyWidth(KeyWidth)
  ) u_hold (
      .enable_i           (rank_config_i.policy == PolicySrpt),
      .valid_i            (valid),
      .key_i              (key),
      .source_ready_i     (source_ready),
      .destination_ready_i(destination_ready),
      .accepted_o         (accepted)
  );

  em_sched_matcher #(
      .Ports   (Ports),
      .KeyWidth(KeyWidth)
  ) u_matcher (
      .clk_i,
      .rst_ni,
      .candidate_i        (accepted),
      .key_i              (key),
      .response_i         (response),
      .source_ready_i     (source_ready & source_room_i),
      .destination_ready_i(destination_ready & destination_room_i),
      .phase_o            (phase),
      .phase_next_o       (unused_phase_next),
      .asked_o            (asked),
      .asked_source_o,
      .match_o            (matched),
      .match_destination_o(match_destination),
      .match_response_o   (match_response)
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    logic [Ports-1:0] refused;
    port_t d;

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      assign refused[o] = response_refused[o][p] || write_refused[p][o];
    end
    assign sound[p] = ask_i[p].bytes != '0 && ask_i[p].peer != node_t'(p) &&
                      (NodeBits + 1)'(ask_i[p].peer) < (NodeBits + 1)'(Ports) &&
                      port_up_i[p] && port_up_i[port_t'(ask_i[p].peer)];
    assign ask_refused_o[p] = refused != '0 || ask_i[p].valid && !sound[p];
    assign ask_log[p]       = log2_eighths(ask_i[p].bytes);

    // What the match of this source allows.
    assign d           = match_destination[p];
    assign match[p]    = matched[p] && port_up_i[p] && port_up_i[d];
    assign last[p]     = head[p][d].remaining <= Chunk;
    assign granted[p]  = last[p] ? head[p][d].remaining : Chunk;
    assign left[p]     = head[p][d].remaining - granted[p];
    assign take_log[p] = log2_eighths(left[p]);
    assign busy[p]     = left_t'((blocks_of(granted[p]) + bytes_t'(ChunkOverheadBlocks))
                                 * bytes_t'(SlotCycles));

    // From the next cycle on, when the source is free and the destination nearly so.
    always_comb begin
      start[p] = left_t'(1);
      if (source_left[p] > start[p]) start[p] = source_left[p];
      if (destination_left[d] - ahead_cycles_i > start[p]) begin
        start[p] = destination_left[d] - ahead_cycles_i;
      end
    end

    // The source that is matched with this destination.
    always_comb begin
      destination_match[p] = 1'b0;
      destination_start[p] = '0;
      destination_busy[p]  = '0;
      for (int unsigned s = 0; s < Ports; s++) begin
        if (match[s] && match_destination[s] == port_t'(p)) begin
          destination_match[p] = 1'b1;
          destination_start[p] |= start[s];
          destination_busy[p]  |= busy[s];
        end
      end
    end
    assign destination_from[p] = (destination_left[p] > destination_start[p])
                                 ? destination_left[p] : destination_start[p];

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_source (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .limit_i     (window_cycles_i),
        .phase_i     (phase),
        .charge_i    (uplink_blocks_i[p]),
        .take_i      (match[p]),
        .from_i      (start[p]),
        .idle_slots_i(whole_slots(start[p] - source_left[p], Slot)),
        .busy_less_i (busy[p] - 1'b1),
        .left_o      (source_left[p]),
        .ready_o     (source_ready[p])
    );

    em_sched_port #(
        .SlotCycles(SlotCycles)
    ) u_destination (
        .clk_i,
        .rst_ni,
        .config_i    (control_config_i),
        .limit_i     (window_cycles_i + ahead_cycles_i),
        .phase_i     (phase),
        .charge_i    (downlink_blocks_i[p]),
        .take_i      (destination_match[p]),
        .from_i      (destination_from[p]),
        .idle_slots_i(whole_slots(destination_start[p] - destination_left[p], Slot)),
        .busy_less_i (destination_busy[p] - 1'b1),
        .left_o      (destination_left[p]),
        .ready_o     (destination_ready[p])
    );

    decision_t chosen, shown;
    logic shows;

    always_comb begin
      chosen             = '0;
      chosen.response    = match_response[p];
      chosen.first       = !head[p][d].started;
      chosen.last        = last[p];
      chosen.destination = node_t'(d);
      chosen.tag         = head[p][d].tag;
      chosen.bytes       = granted[p][GrantBytesBits-1:0];
      chosen.delay       = start[p];
    end

    em_stage #(
        .Width   ($bits(decision_t)),
        .Register(RegisterGrants)
    ) u_grant (
        .clk_i,
        .rst_ni,
        .valid_i(match[p]),
        .data_i (chosen),
        .valid_o(shows),
        .data_o (shown)
    );

    always_comb begin
      decision_o[p]       = shown;
      decision_o[p].valid = shows;
    end
  end

endmodule
