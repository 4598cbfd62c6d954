/// The memory node's TLB as a CAM (section III.C): all entries are compared at once, and are kept
/// in the order of their use, the most recently used first.
module em_cxl_tlb
  import em_cxl_pkg::*;
#(
    parameter int unsigned Entries = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input  mac_t  node_i,
    input  page_t page_i,
    output logic  hit_o,
    output page_t frame_o,

    /// The entry that is hit becomes the first.
    input logic  use_i,
    /// A new first entry; the last one is forgotten. Not of a page that is here.
    input logic  insert_i,
    input page_t frame_i,
    /// The entry that is hit is forgotten.
    input logic  forget_i
);

  translation_t [Entries-1:0] entries_q;
  logic [Entries-1:0] match, shift;
  translation_t found;

  always_comb begin
    found = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      match[i] = entries_q[i].valid && entries_q[i].node == node_i && entries_q[i].page == page_i;
      if (match[i]) found |= entries_q[i];
    end
  end

  assign hit_o   = |match;
  assign frame_o = found.frame;

  // All up to the one that is hit move by one.
  always_comb begin
    shift = {Entries{insert_i}};
    for (int unsigned i = 0; i < Entries; i++) begin
      for (int unsigned j = i; j < Entries; j++) begin
        if (use_i && match[j]) shift[i] = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) entries_q <= '0;
    else begin
      for (int unsigned i = 0; i < Entries; i++) begin
        if (shift[i]) begin
          if (i != 0) entries_q[i] <= entries_q[(i!=0)?i-1 : 0];
          else if (insert_i) begin
            entries_q[i] <= '{valid: 1'b1, node: node_i, page: page_i, frame: frame_i};
          end else entries_q[i] <= found;
        end else if (forget_i && match[i]) entries_q[i].valid <= 1'b0;
      end
    end
  end

endmodule
