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

  em_bus_pkg::request_t request;
  em_bus_pkg::response_t response;
  em_link_registers__out_t unused_out;

  assign request = '{
      valid: request_i,
      write: write_i,
      address: em_bus_pkg::address_t'(address_i),
      data: data_i,
      enable: '1
  };

  em_link_registers u_dut (
      .clk     (clk_i),
      .arst_n  (1'b1),
      .bus_i   (request),
      .bus_o   (response),
      .hwif_in (events_i),
      .hwif_out(unused_out)
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
      first_q[31:0] <= response.data;
      counted_q     <= counts;
    end else if (high && state_q == FirstLow) begin
      state_q        <= First;
      first_q[63:32] <= response.data;
    end else if (low && (state_q == First || state_q == SecondLow)) begin
      state_q      <= SecondLow;
      second_low_q <= response.data;
      until_q      <= counted_q;
    end else if (high && state_q == SecondLow) begin
      state_q <= Done;
      assert ({response.data, second_low_q} - first_q == until_q);
    end
    if (low || high) assert (response.done && !response.error);
  end

endmodule
