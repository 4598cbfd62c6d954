/// Finds the addresses in a frame's blocks, whether the frame starts on lane 0 or on lane 4.
module em_l2_parse
  import em_pkg::*;
  import em_link_pkg::*;
  import em_l2_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic   valid_i,
    input  block_t block_i,
    /// The block is of a frame: its first, one after that, its last.
    output logic   first_o,
    output logic   within_o,
    output logic   last_o,
    /// From the third block of a frame on.
    output mac_t   destination_o,
    output mac_t   source_o
);

  logic control, open_q, late_q;
  logic [1:0] place_q;
  mac_t destination_q, source_q;

  assign control  = block_i.header == SyncControl;
  assign first_o  = valid_i && control && has_start(block_i.payload[7:0]);
  assign within_o = valid_i && open_q && !first_o;
  assign last_o   = within_o && control && has_terminate(block_i.payload[7:0]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      place_q <= '0;
      late_q  <= 1'b0;
    end else if (first_o) begin
      open_q  <= 1'b1;
      place_q <= '0;
      late_q  <= block_i.payload[7:0] != BlockStart;
    end else if (within_o) begin
      if (control) open_q <= 1'b0;
      if (place_q != '1) place_q <= place_q + 1'b1;
    end
  end

  // Octets of data blocks: behind the preamble six of the station, six of the sender.
  always_ff @(posedge clk_i) begin
    if (within_o && place_q == 2'd0) begin
      if (late_q) destination_q[31:0] <= block_i.payload[63:32];
      else {source_q[15:0], destination_q} <= block_i.payload;
    end
    if (within_o && place_q == 2'd1) begin
      if (late_q) {source_q, destination_q[47:32]} <= block_i.payload;
      else source_q[47:16] <= block_i.payload[31:0];
    end
  end

  assign destination_o = destination_q;
  assign source_o      = source_q;

endmodule
