/// The grant scheduler by size classes: the ports of `em_scheduler`, in a form that can have many.
///
/// A pair of ports keeps in flip-flops what decides: how many messages wait and the class of the
/// first. The messages are in memories, one a port and flow (`em_size_class_message_bank`). Nothing
/// compares ranks or times: of a class, the pairs take turns (`em_size_class_matcher`). It decides
/// as the model does whose policy is `srpt-classes`, and answers a cycle later than `em_scheduler`.
module em_size_class_scheduler
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// Active notifications a pair and flow: X.
    parameter int unsigned NotificationsMax = 3,
    parameter int unsigned TagWidth = 16,
    /// Cycles of this clock in a block slot of the link.
    parameter int unsigned SlotCycles = 1,
    parameter int unsigned ChunkBytes = 256,
    /// Slots that a chunk takes beside its data.
    parameter int unsigned ChunkOverheadBlocks = 2,
    /// 0 if the caller registers grants itself: they then leave in the cycle of the mark.
    parameter bit RegisterGrants = 1'b1,
    /// How candidates are compared, and the matcher chooses.
    parameter bit ByOrder = (Ports <= 8),
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

  localparam int unsigned CountWidth = $clog2(NotificationsMax + 1);
  localparam int unsigned OfferWidth = TagWidth + BytesBits + 2;  // tag, bytes, first, last
  localparam int unsigned Response = 0, Write = 1;
  typedef logic [PortWidth-1:0] port_t;
  typedef logic [CountWidth-1:0] count_t;

  // Ranks are classes, whatever the configuration says.
  logic unused_config;
  assign unused_config = ^rank_config_i;

  phase_e phase;
  // The model decides about what came two cycles ago.
  port_t turn_q, turn_d;

  assign turn_d = turn_q + 1'b1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) turn_q <= port_t'(-2);
    else turn_q <= turn_d;
  end

  // By port that asks: what it asked for in the last cycle, by flow and peer.
  logic [Ports-1:0] asks[2][Ports], refused_by_port;
  demand_t ask_demand[Ports];
  size_class_t ask_class[Ports];
  logic [TagWidth-1:0] ask_tag[Ports];

  // By source and destination.
  logic [Ports-1:0] valid[Ports], response[Ports], source_least[Ports], destination_least[Ports];
  size_class_t pair_class[Ports][Ports], class_next[Ports][Ports];
  logic [1:0] refused[Ports][Ports], started[Ports][Ports];
  count_t insert_slot[Ports][Ports][2], head_slot[Ports][Ports][2];
  logic [Ports-1:0] asked[Ports], granted[Ports], matched[Ports], match[Ports];

  // By flow and port that asked.
  logic [OfferWidth-1:0] offer[2][Ports];
  logic [Ports-1:0] last[2];
  port_t bank_peer[2][Ports];
  size_class_t after_class[2][Ports], second_class[2][Ports];

  // By port.
  logic [Ports-1:0] source_ready, destination_ready, match_response;
  left_t grant_start[Ports], busy_less[2][Ports];  // the latter by flow too

  em_size_class_candidates #(
      .Ports  (Ports),
      .Depth  (NotificationsMax),
      .ByOrder(ByOrder)
  ) u_pairs (
      .clk_i,
      .rst_ni,
      .port_up_i,
      .asks_i             (asks),
      .ask_class_i        (ask_class),
      .match_i            (match),
      .match_response_i   (match_response),
      .last_i             (last),
      .after_class_i      (after_class),
      .second_class_i     (second_class),
      .refused_o          (refused),
      .insert_slot_o      (insert_slot),
      .head_slot_o        (head_slot),
      .started_o          (started),
      .valid_o            (valid),
      .class_o            (pair_class),
      .class_next_o       (class_next),
      .response_o         (response),
      .source_least_o     (source_least),
      .destination_least_o(destination_least)
  );

  em_size_class_matcher #(
      .Ports  (Ports),
      .ByOrder(ByOrder)
  ) u_matcher (
      .clk_i,
      .rst_ni,
      .valid_i            (valid),
      .class_i            (pair_class),
      .class_next_i       (class_next),
      .response_i         (response),
      .source_least_i     (source_least),
      .destination_least_i(destination_least),
      .source_ready_i     (source_ready),
      .destination_ready_i(destination_ready),
      .source_room_i,
      .destination_room_i,
      .turn_i             (turn_q),
      .turn_next_i        (turn_d),
      .phase_o            (phase),
      .asked_o            (asked),
      .granted_o          (granted),
      .match_o            (matched),
      .response_o         (match_response)
  );

  em_size_class_port_ends #(
      .Ports     (Ports),
      .SlotCycles(SlotCycles)
  ) u_ends (
      .clk_i,
      .rst_ni,
      .control_config_i,
      .window_cycles_i,
      .ahead_cycles_i,
      .phase_i            (phase),
      .uplink_blocks_i,
      .downlink_blocks_i,
      .asked_i            (asked),
      .match_i            (match),
      .response_i         (match_response),
      .response_busy_less_i(busy_less[Response]),
      .write_busy_less_i  (busy_less[Write]),
      .start_o            (grant_start),
      .source_ready_o     (source_ready),
      .destination_ready_o(destination_ready)
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    logic [Ports-1:0] refused_here;

    assign match[p] = port_up_i[p] ? matched[p] & port_up_i : '0;

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      assign refused_here[o] = refused[o][p][Response] || refused[p][o][Write];
    end

    em_size_class_demand #(
        .Ports     (Ports),
        .TagWidth  (TagWidth),
        .ChunkBytes(ChunkBytes),
        .Port      (port_t'(p))
    ) u_ask (
        .clk_i,
        .rst_ni,
        .ask_i      (ask_i[p]),
        .responses_o(asks[Response][p]),
        .writes_o   (asks[Write][p]),
        .demand_o   (ask_demand[p]),
        .tag_o      (ask_tag[p]),
        .invalid_o  (refused_by_port[p])
    );
    assign ask_class[p]     = ask_demand[p].size_class;
    assign ask_refused_o[p] = refused_by_port[p] || refused_here != '0;

    // The memories of what this port asked for.
    for (genvar f = 0; f < 2; f++) begin : gen_banks
      count_t slots[Ports], heads[Ports];
      logic [Ports-1:0] head_started, taken;
      for (genvar o = 0; o < Ports; o++) begin : gen_peers
        localparam int unsigned Source = (f == Response) ? o : p;
        localparam int unsigned Destination = (f == Response) ? p : o;
        assign slots[o]        = insert_slot[Source][Destination][f];
        assign heads[o]        = head_slot[Source][Destination][f];
        assign head_started[o] = started[Source][Destination][f];
        assign taken[o]        = match[Source][Destination] &&
                                 match_response[Destination] == (f == Response);
      end

      em_size_class_message_bank #(
          .Ports              (Ports),
          .Depth              (NotificationsMax),
          .TagWidth           (TagWidth),
          .ChunkBytes         (ChunkBytes),
          .ChunkOverheadBlocks(ChunkOverheadBlocks),
          .SlotCycles         (SlotCycles)
      ) u_bank (
          .clk_i,
          .insert_i      (asks[f][p]),
          .refused_i     (ask_refused_o[p]),
          .insert_slot_i (slots),
          .insert_demand_i(ask_demand[p]),
          .insert_tag_i  (ask_tag[p]),
          .read_i        (phase == PhaseGrant),
          .read_peer_i   ((f == Response) ? asked[p] : granted[p]),
          .read_slot_i   (heads),
          .read_started_i(head_started),
          .offer_o       (offer[f][p]),
          .last_o        (last[f][p]),
          .busy_less_o   (busy_less[f][p]),
          .after_class_o (after_class[f][p]),
          .second_class_o(second_class[f][p]),
          .peer_o        (bank_peer[f][p]),
          .take_i        (taken != '0)
      );
    end
    assign asked_source_o[p] = bank_peer[Response][p];
    em_size_class_grant #(
        .Ports   (Ports),
        .TagWidth(TagWidth),
        .Register(RegisterGrants)
    ) u_grant (
        .clk_i,
        .rst_ni,
        .match_i   (match[p]),
        .response_i(match_response),
        .own_i     (offer[Write][p]),
        .others_i  (offer[Response]),
        .start_i   (grant_start[p]),
        .decision_o(decision_o[p])
    );
  end

endmodule
