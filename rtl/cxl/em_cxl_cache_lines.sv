/// The data of all lines of the cache. One operation a cycle reads its place, writes bytes of it,
/// or both: it reads what was there before.
///
/// What is read is there two cycles later, for a victim, and four cycles later for a response, with
/// the bytes of a fill merged into it: `victim_read` and `cache_read` of crates/cxl.
module em_cxl_cache_lines
  import em_cxl_pkg::*;
#(
    parameter int unsigned Places = 512,
    localparam int unsigned PlaceBits = $clog2(Places)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [PlaceBits-1:0] place_i,
    input mask_t                write_i,
    input data_t                data_i,
    /// A response is wanted: with the bytes that are written now, and good if the line is whole.
    input logic                 respond_i,
    input id_t                  id_i,
    input logic                 good_i,
    input logic                 victim_i,

    output logic  victim_valid_o,
    output data_t victim_data_o,
    output logic  valid_o,
    output id_t   id_o,
    output logic  good_o,
    output data_t data_o
);

  typedef struct packed {
    logic respond;
    logic good;
    id_t  id;
  } response_t;

  // Behind the RAM, behind the merger, and one more for the way to the output.
  response_t read_q, merged_q, moved_q, response_q;
  logic victim_read_q, victim_q;
  mask_t write_q;
  data_t written_q, merged_data_q, moved_data_q, data_q, old, merged;

  em_ram_bytes #(
      .Bytes(LineBytes),
      .Depth(Places)
  ) u_ram (
      .clk_i,
      .write_i,
      .write_address_i(place_i),
      .write_data_i   (data_i),
      .read_i         (respond_i || victim_i),
      .read_address_i (place_i),
      .read_data_o    (old)
  );

  always_comb begin
    merged = old;
    for (int unsigned i = 0; i < LineBytes; i++) begin
      if (write_q[i] && read_q.respond) merged[8*i+:8] = written_q[8*i+:8];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {read_q, merged_q, moved_q, response_q, victim_read_q, victim_q} <= '0;
    else begin
      read_q        <= '{respond: respond_i, good: good_i, id: id_i};
      merged_q      <= read_q;
      moved_q       <= merged_q;
      response_q    <= moved_q;
      victim_read_q <= victim_i;
      victim_q      <= victim_read_q;
    end
  end

  always_ff @(posedge clk_i) begin
    write_q       <= write_i;
    written_q     <= data_i;
    merged_data_q <= merged;
    moved_data_q  <= merged_data_q;
    data_q        <= moved_data_q;
  end

  assign victim_valid_o = victim_q;
  assign victim_data_o  = merged_data_q;
  assign valid_o        = response_q.respond;
  assign id_o           = response_q.id;
  assign good_o         = response_q.good;
  assign data_o         = data_q;

endmodule
