/// The candidate of a pair of ports: its response or its write, by class, equal ones in turn.
module em_size_class_candidate
  import em_sched_pkg::*;
#(
    parameter int unsigned Depth = 3,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    /// An end of the pair is down.
    input logic clear_i,

    // By flow: responses, which the destination asked for, then the source's writes.
    input  logic [1:0]            insert_i,
    input  size_class_t           insert_class_i[2],
    output logic [1:0]            refused_o,
    output logic [CountWidth-1:0] insert_slot_o[2],
    output logic [CountWidth-1:0] head_slot_o[2],
    output logic [1:0]            started_o,
    input  logic [1:0]            take_i,
    input  logic [1:0]            last_i,
    input  size_class_t           after_class_i[2],
    input  size_class_t           second_class_i[2],

    /// Requests of this pair that were not released, and whether one is now: for the other way's
    /// writes, which wait for the earlier ones.
    output logic [CountWidth-1:0] unreleased_o,
    output logic                  release_o,
    input  logic [CountWidth-1:0] reverse_unreleased_i,
    input  logic                  reverse_release_i,

    /// The candidate from the next cycle on, and now.
    output logic        valid_next_o,
    output size_class_t class_next_o,
    /// What each flow would have for it.
    output logic [1:0]  flow_valid_next_o,
    output size_class_t flow_class_next_o[2],
    output logic        valid_o,
    output size_class_t class_o,
    output logic        response_o
);

  localparam int unsigned Response = 0;
  localparam int unsigned Write = 1;

  typedef logic [CountWidth-1:0] count_t;

  count_t count[2], left[2];
  logic [1:0] kept_valid, taken_valid;
  size_class_t kept_class[2], taken_class[2];

  for (genvar f = 0; f < 2; f++) begin : gen_flows
    em_size_class_flow_head #(
        .Depth(Depth)
    ) u_flow (
        .clk_i,
        .rst_ni,
        .clear_i,
        .insert_i      (insert_i[f]),
        .insert_class_i(insert_class_i[f]),
        .refused_o     (refused_o[f]),
        .insert_slot_o (insert_slot_o[f]),
        .head_slot_o   (head_slot_o[f]),
        .take_i        (take_i[f]),
        .last_i        (last_i[f]),
        .after_class_i (after_class_i[f]),
        .second_class_i(second_class_i[f]),
        .left_o        (left[f]),
        .count_o       (count[f]),
        .started_o     (started_o[f]),
        .kept_valid_o  (kept_valid[f]),
        .kept_class_o  (kept_class[f]),
        .taken_valid_o (taken_valid[f]),
        .taken_class_o (taken_class[f])
    );
  end

  // With its first grant, or its only one, the first is released.
  assign unreleased_o = count[Response] - count_t'(take_i[Response] || started_o[Response]);
  assign release_o    = take_i[Response] && !started_o[Response];

  // For each waiting write, how many requests it waits for: those that were there when it came.
  count_t blocked_q[Depth], blocked_d[Depth];

  always_comb begin
    for (int unsigned i = 0; i < Depth; i++) begin
      blocked_d[i] = blocked_q[i];
      if (take_i[Write] && last_i[Write]) blocked_d[i] = blocked_q[(i+1<Depth)?i+1 : i];
      if (reverse_release_i && blocked_d[i] != '0) blocked_d[i] = blocked_d[i] - 1'b1;
      if (insert_i[Write] && left[Write] == count_t'(i)) blocked_d[i] = reverse_unreleased_i;
    end
  end

  always_ff @(posedge clk_i) blocked_q <= blocked_d;

  // The first write waits for no other message: if no write is granted now, and if one is.
  logic none_unreleased, write_only, kept_free, taken_free;

  function automatic logic waits_for_none(count_t blocked, logic release_now);
    return blocked == '0 || release_now && blocked == count_t'(1);
  endfunction

  assign none_unreleased = reverse_unreleased_i == '0;
  assign write_only      = count[Write] == count_t'(1);
  assign kept_free       = (count[Write] == '0) ? none_unreleased
                           : waits_for_none(blocked_q[0], reverse_release_i);
  assign taken_free      = !last_i[Write] || (write_only ? none_unreleased
                           : waits_for_none(blocked_q[1], reverse_release_i));

  // Of equal classes the flow goes first that was not granted last. Which flow goes first is found
  // for each that may be granted now, and for none.
  logic write_next_q, write_next_d, response_valid, write_valid, response_next, valid_q, response_q;
  logic kept_first, response_first, write_first;
  size_class_t response_class, write_class, class_q;

  assign write_next_d = (take_i != '0) ? take_i[Response] : write_next_q;

  assign kept_first     = (kept_class[Response] < kept_class[Write]) ||
                          (kept_class[Response] == kept_class[Write]) && !write_next_q;
  assign response_first = taken_class[Response] < kept_class[Write];
  assign write_first    = kept_class[Response] <= taken_class[Write];

  assign response_valid = take_i[Response] ? taken_valid[Response] : kept_valid[Response];
  assign response_class = take_i[Response] ? taken_class[Response] : kept_class[Response];
  assign write_valid    = take_i[Write] ? taken_valid[Write] && taken_free
                          : kept_valid[Write] && kept_free;
  assign write_class    = take_i[Write] ? taken_class[Write] : kept_class[Write];

  always_comb begin
    response_next = kept_first;
    if (take_i[Response]) response_next = response_first;
    if (take_i[Write]) response_next = write_first;
    if (!write_valid) response_next = 1'b1;
    if (!response_valid) response_next = 1'b0;
  end
  assign valid_next_o = response_valid || write_valid;
  assign class_next_o = response_next ? response_class : write_class;
  assign flow_valid_next_o = {write_valid, response_valid};
  assign flow_class_next_o = '{response_class, write_class};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_next_q <= 1'b0;
      valid_q      <= 1'b0;
    end else begin
      write_next_q <= write_next_d;
      valid_q      <= valid_next_o;
    end
  end

  always_ff @(posedge clk_i) begin
    class_q    <= class_next_o;
    response_q <= response_next;
  end

  assign valid_o    = valid_q;
  assign class_o    = class_q;
  assign response_o = response_q;

endmodule
