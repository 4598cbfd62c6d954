/// The data of writes between the caller and their chunks: a buffer for each of a few writes.
module em_host_write_data
  import em_host_pkg::*;
#(
    parameter int unsigned WriteSlots   = 4,
    /// Bytes of the longest message: a multiple of 8.
    parameter int unsigned MessageBytes = 1024,
    localparam int unsigned SlotBits = (WriteSlots > 1) ? $clog2(WriteSlots) : 1,
    localparam int unsigned Words    = MessageBytes / 8,
    localparam int unsigned WordBits = $clog2(Words)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic        valid_i,
    output logic        ready_o,
    input  write_data_t data_i,

    /// A write whose data is all there, the oldest; words beyond the longest message are counted
    /// and not kept.
    output logic                whole_o,
    output logic [SlotBits-1:0] whole_slot_o,
    output bytes_t              whole_words_o,
    input  logic                take_i,
    /// Its slot is free again.
    input  logic                free_i,
    input  logic [SlotBits-1:0] free_slot_i,
    /// This slot is still read: it is free only after that.
    input  logic                hold_i,
    input  logic [SlotBits-1:0] hold_slot_i,

    input  logic                read_i,
    input  logic [SlotBits-1:0] read_slot_i,
    input  logic [WordBits-1:0] read_word_i,
    output logic [63:0]         read_data_o
);

  localparam int unsigned Depth = WriteSlots * Words;

  typedef logic [WriteSlots-1:0] slots_t;
  slots_t used_q, used_d, done_q, done_d, released, lowest;
  logic [SlotBits-1:0] slot, slot_q;
  bytes_t words_q;
  logic push, ends;
  logic [$clog2(WriteSlots+1)-1:0] unused_count;

  em_arb_prio #(
      .Requests(WriteSlots)
  ) u_lowest (
      .request_i(~used_q),
      .grant_o  (lowest)
  );

  always_comb begin
    slot = slot_q;
    for (int unsigned i = 0; i < WriteSlots; i++) begin
      if (words_q == '0 && lowest[i]) slot = SlotBits'(i);
    end
  end

  logic fifo_ready;
  assign ready_o = fifo_ready && (words_q != '0 || used_q != '1);
  assign push    = valid_i && ready_o;
  assign ends    = push && data_i.last;

  em_fifo_sync #(
      .Width(SlotBits + BytesBits),
      .Depth(WriteSlots)
  ) u_whole (
      .clk_i,
      .rst_ni,
      .valid_i(ends),
      .ready_o(fifo_ready),
      .data_i ({slot, words_q + 1'b1}),
      .valid_o(whole_o),
      .ready_i(take_i),
      .data_o ({whole_slot_o, whole_words_o}),
      .count_o(unused_count)
  );

  em_host_ram #(
      .Width(64),
      .Depth(Depth)
  ) u_words (
      .clk_i,
      .write_i        (push && words_q < bytes_t'(Words)),
      .write_address_i($clog2(Depth)'(slot) * $clog2(Depth)'(Words) + $clog2(Depth)'(words_q)),
      .write_data_i   (data_i.data),
      .read_i,
      .read_address_i ($clog2(Depth)'(read_slot_i) * $clog2(Depth)'(Words)
                       + $clog2(Depth)'(read_word_i)),
      .read_data_o
  );

  always_comb begin
    done_d   = done_q;
    if (free_i) done_d[free_slot_i] = 1'b1;
    released = done_d;
    if (hold_i) released[hold_slot_i] = 1'b0;
    used_d   = used_q & ~released;
    if (ends) used_d[slot] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q  <= '0;
      done_q  <= '0;
      words_q <= '0;
      slot_q  <= '0;
    end else begin
      used_q <= used_d;
      done_q <= done_d & ~released;
      slot_q <= slot;
      if (ends) words_q <= '0;
      else if (push && words_q != '1) words_q <= words_q + 1'b1;
    end
  end

endmodule
