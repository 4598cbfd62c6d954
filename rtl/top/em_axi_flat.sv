/// The flat AXI4 ports of a top, which other tools need, as structs. Wires only.
module em_axi_flat
  import em_axi_pkg::*;
(
    output logic        m_axi_awvalid_o,
    input  logic        m_axi_awready_i,
    output logic [63:0] m_axi_awaddr_o,
    output logic [7:0]  m_axi_awlen_o,
    output logic [2:0]  m_axi_awsize_o,
    output logic [1:0]  m_axi_awburst_o,
    output logic        m_axi_wvalid_o,
    input  logic        m_axi_wready_i,
    output logic [63:0] m_axi_wdata_o,
    output logic [7:0]  m_axi_wstrb_o,
    output logic        m_axi_wlast_o,
    input  logic        m_axi_bvalid_i,
    output logic        m_axi_bready_o,
    input  logic [1:0]  m_axi_bresp_i,
    output logic        m_axi_arvalid_o,
    input  logic        m_axi_arready_i,
    output logic [63:0] m_axi_araddr_o,
    output logic [7:0]  m_axi_arlen_o,
    output logic [2:0]  m_axi_arsize_o,
    output logic [1:0]  m_axi_arburst_o,
    input  logic        m_axi_rvalid_i,
    output logic        m_axi_rready_o,
    input  logic [63:0] m_axi_rdata_i,
    input  logic [1:0]  m_axi_rresp_i,

    input  request_t  request_i,
    output response_t response_o
);

  assign m_axi_awvalid_o                   = request_i.write.aw_valid;
  assign m_axi_awaddr_o                    = request_i.write.aw.addr;
  assign m_axi_awlen_o                     = request_i.write.aw.len;
  assign {m_axi_awsize_o, m_axi_awburst_o} = BurstKind;
  assign m_axi_wvalid_o                    = request_i.write.w_valid;
  assign m_axi_wdata_o                     = request_i.write.w.data;
  assign m_axi_wstrb_o                     = request_i.write.w.strb;
  assign m_axi_wlast_o                     = request_i.write.w.last;
  assign m_axi_bready_o                    = request_i.write.b_ready;
  assign m_axi_arvalid_o                   = request_i.read.ar_valid;
  assign m_axi_araddr_o                    = request_i.read.ar.addr;
  assign m_axi_arlen_o                     = request_i.read.ar.len;
  assign {m_axi_arsize_o, m_axi_arburst_o} = BurstKind;
  assign m_axi_rready_o                    = request_i.read.r_ready;

  assign response_o.write = '{
      aw_ready: m_axi_awready_i,
      w_ready: m_axi_wready_i,
      b_valid: m_axi_bvalid_i,
      b_resp: m_axi_bresp_i
  };
  assign response_o.read = '{
      ar_ready: m_axi_arready_i,
      r_valid: m_axi_rvalid_i,
      r: '{data: m_axi_rdata_i, resp: m_axi_rresp_i}
  };

endmodule
