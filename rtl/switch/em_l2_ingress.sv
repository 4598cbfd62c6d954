/// Stores the frames of a port, whole, until they have left by all of their ports. A frame without
/// room is dropped whole.
module em_l2_ingress
  import em_link_pkg::*;
  import em_l2_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter logic [$clog2(Ports)-1:0] Port = '0,
    /// A power of two: more than the longest frame's 1,132.
    parameter int unsigned FrameBlocks = 2048,
    /// Frames.
    parameter int unsigned Frames = 64,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [Ports-1:0] port_up_i,

    input logic   valid_i,
    input block_t block_i,

    // The table.
    output logic                 ask_o,
    output mac_t                 destination_o,
    output mac_t                 source_o,
    input  logic                 taken_i,
    input  logic                 known_i,
    input  logic [PortWidth-1:0] known_port_i,

    /// Ports that the oldest frame is still for, and the one that it goes to now.
    output logic [Ports-1:0] wants_o,
    input  logic [Ports-1:0] accepted_i,
    output logic             valid_o,
    output logic             last_o,
    output block_t           block_o,
    input  logic             ready_i,

    output l2_events_t events_o
);

  localparam int unsigned AddressWidth = $clog2(FrameBlocks);
  typedef logic [AddressWidth-1:0] address_t;
  typedef struct packed {
    logic [Ports-1:0] targets;
    address_t         length;
  } frame_t;

  // --- In.

  logic first, follows, last, up;
  logic full, keeping_q, asking_q, answered_q, busy, whole;
  address_t place, write_q, start_q, free_q, length_q;
  mac_t destination, source, asked_destination_q, asked_source_q;
  frame_t queued, head;
  logic queue_ready, head_valid, head_done;
  logic [$clog2(Frames+1)-1:0] unused_count;

  assign up = port_up_i[Port];

  em_l2_parse u_parse (
      .clk_i,
      .rst_ni,
      .valid_i      (valid_i && up),
      .block_i,
      .first_o      (first),
      .within_o     (follows),
      .last_o       (last),
      .destination_o(destination),
      .source_o     (source)
  );

  // A frame that did not end is written over. One place stays empty, so that a full memory is no
  // empty one. The answer for a frame is there before the next one ends, unless too many ask.
  assign place = first ? start_q : write_q;
  assign full  = place + 1'b1 == free_q;
  assign busy  = asking_q || answered_q || !queue_ready;
  assign whole = last && keeping_q && !full && !busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {write_q, start_q, keeping_q, asking_q, answered_q} <= '0;
    end else begin
      if (first || follows && keeping_q) write_q <= place + 1'b1;
      if (first) keeping_q <= !full;
      else if (!up || last || follows && full) keeping_q <= 1'b0;
      if (whole) start_q <= place + 1'b1;
      if (whole || taken_i) asking_q <= whole;
      answered_q <= taken_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (whole) begin
      asked_destination_q <= destination;
      asked_source_q      <= source;
      length_q            <= place + 1'b1 - start_q;
    end
  end

  assign ask_o         = asking_q;
  assign destination_o = asked_destination_q;
  assign source_o      = asked_source_q;

  // --- Where it goes.

  logic [Ports-1:0] others;
  logic known, reserved;
  assign others   = port_up_i & ~(Ports'(1) << Port);
  assign known    = known_i && !asked_destination_q[0] && port_up_i[known_port_i];
  assign reserved = asked_destination_q[39:0] == ReservedGroup && asked_destination_q[47:44] == '0;

  always_comb begin
    queued = '{targets: others, length: length_q};
    if (known) queued.targets = others & (Ports'(1) << known_port_i);
    if (reserved) queued.targets = '0;
  end

  em_fifo_sync #(
      .Width($bits(frame_t)),
      .Depth(Frames)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .valid_i(answered_q),
      .ready_o(queue_ready),
      .data_i (queued),
      .valid_o(head_valid),
      .ready_i(head_done),
      .data_o (head),
      .count_o(unused_count)
  );

  always_comb begin
    events_o                = '0;
    events_o.frame_dropped  = keeping_q && (follows && full || last && busy) || first && full;
    events_o.frame_filtered = answered_q && queued.targets == '0;
    events_o.frame_flooded  = answered_q && !known && !reserved;
  end

  // --- Out: by one port after the other. Blocks are fetched ahead, across frames, so that one
  // frame follows the other; before a frame goes out again what was fetched of the next one is
  // forgotten.

  localparam int unsigned Ahead = 4;
  localparam int unsigned AheadWidth = $clog2(Ahead + 1);

  logic [Ports-1:0] sent_q, current_q, remaining;
  logic sending_q, flushing_q, fetch, fetched_q, ends, again, skips, ahead_valid, unused_ready;
  logic [AheadWidth-1:0] ahead;
  address_t read_q, unsent_q;
  block_t fetched;

  assign remaining = head_valid ? head.targets & ~sent_q & port_up_i : '0;
  assign wants_o   = (sending_q || flushing_q) ? '0 : remaining;
  assign fetch     = read_q != start_q && !flushing_q &&
                     ahead + AheadWidth'(fetched_q) != AheadWidth'(Ahead);
  assign valid_o   = sending_q && ahead_valid;
  assign last_o    = unsent_q == address_t'(1);
  assign ends      = valid_o && ready_i && last_o;
  assign again     = ends && (remaining & ~current_q) != '0;
  assign skips     = head_valid && !sending_q && !flushing_q && remaining == '0;
  assign head_done = ends && !again || skips;

  em_ram #(
      .Width($bits(block_t)),
      .Depth(FrameBlocks)
  ) u_blocks (
      .clk_i,
      .write_i        (first || follows && keeping_q),
      .write_address_i(place),
      .write_data_i   (block_i),
      .read_i         (fetch),
      .read_address_i (read_q),
      .read_data_o    (fetched)
  );

  em_fifo_sync #(
      .Width($bits(block_t)),
      .Depth(Ahead)
  ) u_ahead (
      .clk_i,
      .rst_ni,
      .valid_i(fetched_q),
      .ready_o(unused_ready),
      .data_i (fetched),
      .valid_o(ahead_valid),
      .ready_i(sending_q && ready_i || flushing_q),
      .data_o (block_o),
      .count_o(ahead)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {free_q, read_q, sent_q, current_q, sending_q, flushing_q, fetched_q, unsent_q} <= '0;
    end else begin
      fetched_q <= fetch;
      if (fetch) read_q <= read_q + 1'b1;
      if (head_done) free_q <= free_q + head.length;
      if (head_done) sent_q <= '0;
      else if (again) sent_q <= sent_q | current_q;
      if (accepted_i != '0) current_q <= accepted_i;
      if (accepted_i != '0) unsent_q <= head.length;
      else if (valid_o && ready_i) unsent_q <= unsent_q - 1'b1;
      if (accepted_i != '0) sending_q <= 1'b1;
      else if (ends) sending_q <= 1'b0;
      if (again || skips) flushing_q <= 1'b1;
      else if (flushing_q && ahead == '0 && !fetched_q) begin
        flushing_q <= 1'b0;
        read_q     <= free_q;
      end
    end
  end

endmodule
