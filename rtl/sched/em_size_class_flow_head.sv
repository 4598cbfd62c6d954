/// What decides of the messages of one pair and flow: how many wait, and the class of the first.
/// The messages are in the memory of the port that asked for them (`em_size_class_message_bank`).
module em_size_class_flow_head
  import em_sched_pkg::*;
#(
    /// Places: X.
    parameter int unsigned Depth = 3,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    /// Nothing waits, and nothing is taken in.
    input  logic                  clear_i,
    input  logic                  insert_i,
    input  size_class_t           insert_class_i,
    /// All places are taken: it is not inserted.
    output logic                  refused_o,
    /// Where in the memory the inserted one goes, and where the first is.
    output logic [CountWidth-1:0] insert_slot_o,
    output logic [CountWidth-1:0] head_slot_o,

    /// The first is granted: whether it ends with that, its class after it, the second's class.
    input logic        take_i,
    input logic        last_i,
    input size_class_t after_class_i,
    input size_class_t second_class_i,

    output logic [CountWidth-1:0] count_o,
    /// How many are left before an insertion in this cycle.
    output logic [CountWidth-1:0] left_o,
    output logic                  started_o,
    /// From the next cycle on: if the first is not granted now, and if it is.
    output logic                  kept_valid_o,
    output size_class_t           kept_class_o,
    output logic                  taken_valid_o,
    output size_class_t           taken_class_o
);

  typedef logic [CountWidth-1:0] count_t;

  count_t count_q, count_d, head_q, head_d, left;
  size_class_t class_q, class_d;
  logic started_q, started_d, pop, insert;

  /// A place of the memory, which is a ring.
  function automatic count_t place(logic [CountWidth:0] slot);
    return count_t'((slot >= (CountWidth + 1)'(Depth)) ? slot - (CountWidth + 1)'(Depth) : slot);
  endfunction

  assign pop           = take_i && last_i;
  assign left          = count_q - count_t'(pop);
  assign refused_o     = insert_i && (clear_i || left == count_t'(Depth));
  assign insert        = insert_i && !refused_o;
  assign insert_slot_o = place({1'b0, head_q} + {1'b0, count_q});
  assign head_slot_o   = head_q;

  assign count_d       = clear_i ? '0 : left + count_t'(insert);
  assign head_d        = pop ? place({1'b0, head_q} + 1'b1) : head_q;
  assign started_d     = !clear_i && (take_i ? !last_i : started_q);

  // Both are found before it is known which it will be. With places for all that are left, what
  // comes is not refused.
  logic only, comes;
  assign only          = count_q == count_t'(1);
  assign comes         = insert_i && !clear_i;
  assign kept_valid_o  = !clear_i && (count_q != '0 || insert_i);
  assign kept_class_o  = (count_q == '0) ? insert_class_i : class_q;
  assign taken_valid_o = !clear_i && !(last_i && only) || comes;
  always_comb begin
    taken_class_o = after_class_i;
    if (last_i) taken_class_o = only ? insert_class_i : second_class_i;
  end
  assign class_d = take_i ? taken_class_o : kept_class_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q   <= '0;
      head_q    <= '0;
      started_q <= 1'b0;
    end else begin
      count_q   <= count_d;
      head_q    <= head_d;
      started_q <= started_d;
    end
  end

  always_ff @(posedge clk_i) class_q <= class_d;

  assign left_o         = left;
  assign count_o        = count_q;
  assign started_o      = started_q;

endmodule
