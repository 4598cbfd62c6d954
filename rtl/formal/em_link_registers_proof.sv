/// A 64-bit counter is read as it was when its low word was read: two reads, each of both words,
/// differ by what was counted between them, whatever else is accessed and wherever the count
/// stands.
///
/// There is no reset: the counter begins anywhere, also one below a carry into its high word.
module em_link_registers_proof
  import em_link_registers_pkg::*;
(
    input logic                 clk_i,
    input logic                 request_i,
    input logic                 write_i,
    input logic [10:0]          address_i,
    input logic [31:0]          data_i,
    input em_link_registers__in_t events_i
);

  localparam logic [10:0] Low = 11'h78, High = 11'h7c;

  logic [31:0] data;
  logic acknowledged, unused_write_acknowledged;
  logic [1:0] unused_stalls, unused_errors;
  em_link_registers__out_t unused_out;

  em_link_registers u_dut (
      .clk                 (clk_i),
      .arst_n              (1'b1),
      .s_cpuif_req         (request_i),
      .s_cpuif_req_is_wr   (write_i),
      .s_cpuif_addr        (address_i),
      .s_cpuif_wr_data     (data_i),
      .s_cpuif_wr_biten    ('1),
      .s_cpuif_req_stall_wr(unused_stalls[0]),
      .s_cpuif_req_stall_rd(unused_stalls[1]),
      .s_cpuif_rd_ack      (acknowledged),
      .s_cpuif_rd_err      (unused_errors[0]),
      .s_cpuif_rd_data     (data),
      .s_cpuif_wr_ack      (unused_write_acknowledged),
      .s_cpuif_wr_err      (unused_errors[1]),
      .hwif_in             (events_i),
      .hwif_out            (unused_out)
  );

  typedef enum logic [2:0] {None, FirstLow, First, SecondLow, Done} state_e;
  state_e state_q = None;
  logic [63:0] first_q, counted_q, until_q;
  logic [31:0] second_low_q;
  logic low, high;
  logic [63:0] counts;

  assign low    = request_i && !write_i && address_i == Low;
  assign high   = request_i && !write_i && address_i == High;
  assign counts = events_i.memory_blocks_sent.count.incr ?
                  64'(events_i.memory_blocks_sent.count.incrvalue) : '0;

  always_ff @(posedge clk_i) begin
    counted_q <= counted_q + counts;
    if (low && (state_q == None || state_q == FirstLow)) begin
      state_q       <= FirstLow;
      first_q[31:0] <= data;
      counted_q     <= counts;
    end else if (high && state_q == FirstLow) begin
      state_q        <= First;
      first_q[63:32] <= data;
    end else if (low && (state_q == First || state_q == SecondLow)) begin
      state_q      <= SecondLow;
      second_low_q <= data;
      until_q      <= counted_q;
    end else if (high && state_q == SecondLow) begin
      state_q <= Done;
      assert ({data, second_low_q} - first_q == until_q);
    end
    if (low || high) assert (acknowledged);
  end

endmodule
