/// The flat AXI4-Lite ports of a top, which other tools need, as structs. Wires only.
module em_axil_flat
  import em_axi_pkg::*;
(
    input  logic                 s_axil_awvalid_i,
    output logic                 s_axil_awready_o,
    input  em_bus_pkg::address_t s_axil_awaddr_i,
    input  logic                 s_axil_wvalid_i,
    output logic                 s_axil_wready_o,
    input  logic [31:0]          s_axil_wdata_i,
    input  logic [3:0]           s_axil_wstrb_i,
    output logic                 s_axil_bvalid_o,
    input  logic                 s_axil_bready_i,
    output logic [1:0]           s_axil_bresp_o,
    input  logic                 s_axil_arvalid_i,
    output logic                 s_axil_arready_o,
    input  em_bus_pkg::address_t s_axil_araddr_i,
    output logic                 s_axil_rvalid_o,
    input  logic                 s_axil_rready_i,
    output logic [31:0]          s_axil_rdata_o,
    output logic [1:0]           s_axil_rresp_o,

    output lite_request_t  request_o,
    input  lite_response_t response_i
);

  assign request_o = '{
      aw_valid: s_axil_awvalid_i,
      aw_addr: s_axil_awaddr_i,
      w_valid: s_axil_wvalid_i,
      w_data: s_axil_wdata_i,
      w_strb: s_axil_wstrb_i,
      b_ready: s_axil_bready_i,
      ar_valid: s_axil_arvalid_i,
      ar_addr: s_axil_araddr_i,
      r_ready: s_axil_rready_i
  };

  assign s_axil_awready_o = response_i.aw_ready;
  assign s_axil_wready_o  = response_i.w_ready;
  assign s_axil_bvalid_o  = response_i.b_valid;
  assign s_axil_bresp_o   = response_i.b_resp;
  assign s_axil_arready_o = response_i.ar_ready;
  assign s_axil_rvalid_o  = response_i.r_valid;
  assign s_axil_rdata_o   = response_i.r_data;
  assign s_axil_rresp_o   = response_i.r_resp;

endmodule
