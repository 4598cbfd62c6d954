/// AXI4-Lite in, one access of the register bus at a time out. Reads and writes take turns; an
/// address without a register is answered by SLVERR.
module em_axil
  import em_bus_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic        s_axil_awvalid_i,
    output logic        s_axil_awready_o,
    input  address_t    s_axil_awaddr_i,
    input  logic        s_axil_wvalid_i,
    output logic        s_axil_wready_o,
    input  logic [31:0] s_axil_wdata_i,
    input  logic [ 3:0] s_axil_wstrb_i,
    output logic        s_axil_bvalid_o,
    input  logic        s_axil_bready_i,
    output logic [ 1:0] s_axil_bresp_o,
    input  logic        s_axil_arvalid_i,
    output logic        s_axil_arready_o,
    input  address_t    s_axil_araddr_i,
    output logic        s_axil_rvalid_o,
    input  logic        s_axil_rready_i,
    output logic [31:0] s_axil_rdata_o,
    output logic [ 1:0] s_axil_rresp_o,

    output request_t  request_o,
    input  response_t response_i
);

  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;

  request_t request_q, request_d;
  logic free, reads, writes, read_last_q;
  logic bvalid_q, rvalid_q;
  logic [1:0] resp_q;
  logic [31:0] data_q;

  // One access from its address to its answer.
  assign free   = !request_q.valid && !bvalid_q && !rvalid_q;
  assign writes = free && s_axil_awvalid_i && s_axil_wvalid_i && (read_last_q || !s_axil_arvalid_i);
  assign reads  = free && s_axil_arvalid_i && !writes;

  assign s_axil_awready_o = writes;
  assign s_axil_wready_o  = writes;
  assign s_axil_arready_o = reads;

  always_comb begin
    request_d         = request_q;
    request_d.valid   = writes || reads;
    if (request_d.valid) begin
      request_d.write   = writes;
      request_d.address = writes ? s_axil_awaddr_i : s_axil_araddr_i;
      // A word is four bytes, whichever of them the address names.
      request_d.address[1:0] = '0;
      request_d.data    = s_axil_wdata_i;
      for (int unsigned i = 0; i < 4; i++) request_d.enable[8*i+:8] = {8{s_axil_wstrb_i[i]}};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q   <= '0;
      read_last_q <= 1'b0;
    end else begin
      request_q <= request_d;
      if (writes || reads) read_last_q <= reads;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
      resp_q   <= Okay;
      data_q   <= '0;
    end else if (request_q.valid) begin
      bvalid_q <= request_q.write;
      rvalid_q <= !request_q.write;
      resp_q   <= (response_i.error || !response_i.done) ? SlaveError : Okay;
      data_q   <= response_i.data;
    end else begin
      if (s_axil_bready_i) bvalid_q <= 1'b0;
      if (s_axil_rready_i) rvalid_q <= 1'b0;
    end
  end

  assign request_o       = request_q;
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_bresp_o  = resp_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_rresp_o  = resp_q;
  assign s_axil_rdata_o  = data_q;

endmodule
