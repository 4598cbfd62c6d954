/// Tags, masks and ages of all sets of the cache, in a RAM: a set that is read is there in the next
/// cycle, with all that was written to it before, the write in the cycle of the read included.
///
/// A set is written while it is the one that was read last. After a reset each set is emptied, one
/// a cycle, and `ready_o` is low meanwhile.
module em_cxl_cache_tags
  import em_cxl_pkg::*;
#(
    /// A power of two, 2 at least.
    parameter int unsigned Sets = 128,
    localparam int unsigned SetBits = $clog2(Sets)
) (
    input logic clk_i,
    input logic rst_ni,
    output logic ready_o,

    input  logic               read_i,
    input  logic [SetBits-1:0] read_index_i,
    /// In the next cycle, until the next read.
    output set_t               set_o,

    input logic write_i,
    input set_t write_set_i
);

  localparam int unsigned TagBits = LineBits - SetBits;

  // A way as it is kept: its set says the low bits of its line.
  typedef struct packed {
    logic               present;
    logic [TagBits-1:0] tag;
    mask_t              valid;
    mask_t              dirty;
    logic               fetching;
    fetch_t             fetch;
    way_index_t         age;
  } kept_t;
  typedef kept_t [Ways-1:0] kept_set_t;

  logic [SetBits-1:0] index_q, clear_q, next_index;
  logic cleared_q, forward_q;
  kept_set_t forwarded_q, read, kept, written, empty;

  assign ready_o    = cleared_q;
  assign next_index = read_i ? read_index_i : index_q;
  assign kept       = forward_q ? forwarded_q : read;

  always_comb begin
    empty = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      empty[w].age = way_index_t'(w);
      set_o[w] = '{
          present: kept[w].present,
          line: {kept[w].tag, index_q},
          valid: kept[w].valid,
          dirty: kept[w].dirty,
          fetching: kept[w].fetching,
          fetch: kept[w].fetch,
          age: kept[w].age
      };
      written[w] = '{
          present: write_set_i[w].present,
          tag: write_set_i[w].line[LineBits-1:SetBits],
          valid: write_set_i[w].valid,
          dirty: write_set_i[w].dirty,
          fetching: write_set_i[w].fetching,
          fetch: write_set_i[w].fetch,
          age: write_set_i[w].age
      };
    end
  end

  em_ram #(
      .Width($bits(kept_set_t)),
      .Depth(Sets)
  ) u_ram (
      .clk_i,
      .write_i        (write_i || !cleared_q),
      .write_address_i(cleared_q ? index_q : clear_q),
      .write_data_i   (cleared_q ? written : empty),
      .read_i,
      .read_address_i (read_index_i),
      .read_data_o    (read)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {index_q, clear_q, cleared_q, forward_q} <= '0;
    end else begin
      index_q <= next_index;
      if (!cleared_q) {cleared_q, clear_q} <= {1'b0, clear_q} + 1'b1;
      // The RAM gives what was there before the write of the same cycle.
      if (write_i) forward_q <= next_index == index_q;
      else if (read_i) forward_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_i) forwarded_q <= written;
  end

endmodule
