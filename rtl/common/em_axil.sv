/// AXI4-Lite in, one access of the register bus at a time out. Reads and writes take turns; an
/// address without a register is answered by SLVERR.
module em_axil
  import em_bus_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  em_axi_pkg::lite_request_t  s_axil_i,
    output em_axi_pkg::lite_response_t s_axil_o,

    output request_t  request_o,
    input  response_t response_i
);

  request_t request_q, request_d;
  logic free, reads, writes, read_last_q;
  logic bvalid_q, rvalid_q;
  em_axi_pkg::resp_e resp_q;
  logic [31:0] data_q;

  // One access from its address to its answer.
  assign free   = !request_q.valid && !bvalid_q && !rvalid_q;
  assign writes = free && s_axil_i.aw_valid && s_axil_i.w_valid
      && (read_last_q || !s_axil_i.ar_valid);
  assign reads  = free && s_axil_i.ar_valid && !writes;

  always_comb begin
    request_d         = request_q;
    request_d.valid   = writes || reads;
    if (request_d.valid) begin
      request_d.write   = writes;
      request_d.address = writes ? s_axil_i.aw_addr : s_axil_i.ar_addr;
      // A word is four bytes, whichever of them the address names.
      request_d.address[1:0] = '0;
      request_d.data    = s_axil_i.w_data;
      for (int unsigned i = 0; i < 4; i++) request_d.enable[8*i+:8] = {8{s_axil_i.w_strb[i]}};
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
      resp_q   <= em_axi_pkg::RespOkay;
      data_q   <= '0;
    end else if (request_q.valid) begin
      bvalid_q <= request_q.write;
      rvalid_q <= !request_q.write;
      resp_q   <= (response_i.error || !response_i.done) ? em_axi_pkg::RespSlaveError
                                                         : em_axi_pkg::RespOkay;
      data_q   <= response_i.data;
    end else begin
      if (s_axil_i.b_ready) bvalid_q <= 1'b0;
      if (s_axil_i.r_ready) rvalid_q <= 1'b0;
    end
  end

  assign request_o = request_q;
  assign s_axil_o  = '{
      aw_ready: writes,
      w_ready: writes,
      b_valid: bvalid_q,
      b_resp: resp_q,
      ar_ready: reads,
      r_valid: rvalid_q,
      r_data: data_q,
      r_resp: resp_q
  };

endmodule
