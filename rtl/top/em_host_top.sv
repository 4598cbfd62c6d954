/// A node: link, host, encoder and decoder for its Ethernet, registers. docs/internals/rtl-tops.md
/// describes it.
///
/// Towards the line it has 66-bit blocks and a gearbox that can slip. Towards the node it has
/// requests as AXI4-Stream, memory as an AXI4 master of one id, Ethernet as XGMII, and registers as
/// AXI4-Lite. The registers are in the transmitter's clock. Software starts the link.
module em_host_top
  import em_pkg::node_t;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    // As those of em_host.
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned Entries      = 16,
    parameter int unsigned WriteSlots   = 4,
    parameter int unsigned ReadSlots    = 4,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256,
    parameter int unsigned StoreBytes   = 4096,
    parameter int unsigned Commands     = 16,
    parameter int unsigned Circuits     = 64,
    parameter int unsigned GrantDepth   = Circuits + 2 * Nodes - 8,
    // As those of em_link.
    parameter bit          Scrambled    = 1'b1,
    /// The link has one register on either way instead of two.
    parameter bit          FewStages    = 1'b0,
    parameter int unsigned SlipBlocks   = 4
) (
    input logic tx_clk_i,
    input logic tx_rst_ni,
    /// Goes on while the link is down. Both resets must be asserted together.
    input logic rx_clk_i,
    input logic rx_rst_ni,

    // Line, receiver's clock.
    input  logic        line_rx_valid_i,
    input  logic [ 1:0] line_rx_hdr_i,
    input  logic [63:0] line_rx_data_i,
    input  logic        line_signal_i,
    output logic        line_slip_o,
    // Line, transmitter's clock: a block leaves in each cycle with a slot.
    input  logic        line_tx_slot_i,
    output logic        line_tx_valid_o,
    output logic [ 1:0] line_tx_hdr_o,
    output logic [63:0] line_tx_data_o,

    // Ethernet: out in the receiver's clock, in in the transmitter's, a word taken with ready.
    output logic        xgmii_rx_valid_o,
    output logic [63:0] xgmii_rx_data_o,
    output logic [ 7:0] xgmii_rx_control_o,
    output logic        xgmii_tx_ready_o,
    input  logic [63:0] xgmii_tx_data_i,
    input  logic [ 7:0] xgmii_tx_control_i,

    // Requests and completions, transmitter's clock; data of reads, receiver's clock.
    input  logic        s_axis_request_tvalid_i,
    output logic        s_axis_request_tready_o,
    input  request_t    s_axis_request_tdata_i,
    input  logic        s_axis_write_tvalid_i,
    output logic        s_axis_write_tready_o,
    input  write_data_t s_axis_write_tdata_i,
    output logic        m_axis_completion_tvalid_o,
    input  logic        m_axis_completion_tready_i,
    output completion_t m_axis_completion_tdata_o,
    output logic        m_axis_read_tvalid_o,
    input  logic        m_axis_read_tready_i,
    output read_data_t  m_axis_read_tdata_o,

    // Memory, receiver's clock: words of eight bytes, INCR.
    output logic        m_axi_awvalid_o,
    input  logic        m_axi_awready_i,
    output logic [63:0] m_axi_awaddr_o,
    output logic [ 7:0] m_axi_awlen_o,
    output logic [ 2:0] m_axi_awsize_o,
    output logic [ 1:0] m_axi_awburst_o,
    output logic        m_axi_wvalid_o,
    input  logic        m_axi_wready_i,
    output logic [63:0] m_axi_wdata_o,
    output logic [ 7:0] m_axi_wstrb_o,
    output logic        m_axi_wlast_o,
    input  logic        m_axi_bvalid_i,
    output logic        m_axi_bready_o,
    input  logic [ 1:0] m_axi_bresp_i,
    output logic        m_axi_arvalid_o,
    input  logic        m_axi_arready_i,
    output logic [63:0] m_axi_araddr_o,
    output logic [ 7:0] m_axi_arlen_o,
    output logic [ 2:0] m_axi_arsize_o,
    output logic [ 1:0] m_axi_arburst_o,
    input  logic        m_axi_rvalid_i,
    output logic        m_axi_rready_o,
    input  logic [63:0] m_axi_rdata_i,
    input  logic [ 1:0] m_axi_rresp_i,

    // Registers: docs/reference/registers.md.
    input  logic                     s_axil_awvalid_i,
    output logic                     s_axil_awready_o,
    input  em_bus_pkg::address_t     s_axil_awaddr_i,
    input  logic                     s_axil_wvalid_i,
    output logic                     s_axil_wready_o,
    input  logic              [31:0] s_axil_wdata_i,
    input  logic              [ 3:0] s_axil_wstrb_i,
    output logic                     s_axil_bvalid_o,
    input  logic                     s_axil_bready_i,
    output logic              [ 1:0] s_axil_bresp_o,
    input  logic                     s_axil_arvalid_i,
    output logic                     s_axil_arready_o,
    input  em_bus_pkg::address_t     s_axil_araddr_i,
    output logic                     s_axil_rvalid_o,
    input  logic                     s_axil_rready_i,
    output logic              [31:0] s_axil_rdata_o,
    output logic              [ 1:0] s_axil_rresp_o
);

  em_axi_pkg::request_t m_axi_request;
  em_axi_pkg::response_t m_axi_response;

  em_axi_flat u_axi_flat (
      .request_i (m_axi_request),
      .response_o(m_axi_response),
      .*
  );

  caller_to_host_t caller_request;
  host_to_caller_t caller_response;

  assign caller_request = '{
      request_valid: s_axis_request_tvalid_i, request: s_axis_request_tdata_i,
      write_valid: s_axis_write_tvalid_i, write: s_axis_write_tdata_i,
      completion_ready: m_axis_completion_tready_i
  };
  assign s_axis_request_tready_o    = caller_response.request_ready;
  assign s_axis_write_tready_o      = caller_response.write_ready;
  assign m_axis_completion_tvalid_o = caller_response.completion_valid;
  assign m_axis_completion_tdata_o  = caller_response.completion;

  em_axi_pkg::lite_request_t s_axil_request;
  em_axi_pkg::lite_response_t s_axil_response;

  em_axil_flat u_axil_flat (
      .request_o (s_axil_request),
      .response_i(s_axil_response),
      .*
  );

  em_bus_pkg::request_t bus_request;
  em_bus_pkg::response_t bus_response;
  em_bus_pkg::request_t [1:0] request;
  em_bus_pkg::response_t [1:0] response;

  em_axil u_axil (
      .clk_i     (tx_clk_i),
      .rst_ni    (tx_rst_ni),
      .s_axil_i  (s_axil_request),
      .s_axil_o  (s_axil_response),
      .request_o (bus_request),
      .response_i(bus_response)
  );

  em_bus_split u_split (
      .request_i (bus_request),
      .response_o(bus_response),
      .request_o (request),
      .response_i(response)
  );

  node_t own_node;
  logic [30:0] timeout_cycles;
  logic [63:0] memory_bytes;
  dropped_t dropped;
  logic [4:0][3:0] dropped_counts;

  em_event_cross #(
      .Events(5)
  ) u_dropped (
      .event_clk_i (rx_clk_i),
      .event_rst_ni(rx_rst_ni),
      .event_i     (dropped),
      .clk_i       (tx_clk_i),
      .rst_ni      (tx_rst_ni),
      .count_o     (dropped_counts)
  );

  em_host_counters #(
      .Nodes       (Nodes),
      .X           (X),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes)
  ) u_counters (
      .clk_i           (tx_clk_i),
      .rst_ni          (tx_rst_ni),
      .bus_i           (request[0]),
      .bus_o           (response[0]),
      .node_o          (own_node),
      .timeout_cycles_o(timeout_cycles),
      .memory_bytes_o  (memory_bytes),
      .completed_i     (m_axis_completion_tvalid_o && m_axis_completion_tready_i),
      .completion_i    (m_axis_completion_tdata_o),
      .dropped_i       (dropped_counts)
  );

  logic up, settled, fail, memory_ready;
  rx_memory_t memory_rx;
  tx_memory_t memory_tx;
  logic encoder_ready;
  line_slot_t line_rx, line_tx, encoded_rx, encoded_tx;

  assign line_rx = '{
      valid: line_rx_valid_i,
      block: '{payload: line_rx_data_i, header: line_rx_hdr_i}
  };
  assign line_tx_valid_o = line_tx.valid;
  assign line_tx_hdr_o   = line_tx.block.header;
  assign line_tx_data_o  = line_tx.block.payload;

  em_link #(
      .Scrambled (Scrambled),
      .FewStages (FewStages),
      .SlipBlocks(SlipBlocks)
  ) u_link (
      .settled_i      (settled),
      .fail_i         (fail),
      .up_o           (up),
      .memory_o       (memory_rx),
      .line_i         (line_rx),
      .line_o         (line_tx),
      .encoded_o      (encoded_rx),
      .memory_i       (memory_tx),
      .memory_ready_o (memory_ready),
      .encoder_ready_o(encoder_ready),
      .encoded_i      (encoded_tx),
      .bus_i          (request[1]),
      .bus_o          (response[1]),
      .*
  );

  em_xgmii_enc u_enc (
      .clk_i             (tx_clk_i),
      .rst_ni            (tx_rst_ni),
      .slot_i            (line_tx_slot_i),
      .xgmii_data_i      (xgmii_tx_data_i),
      .xgmii_control_i   (xgmii_tx_control_i),
      .xgmii_ready_o     (xgmii_tx_ready_o),
      .encoder_ready_i   (encoder_ready),
      .encoded_tx_valid_o(encoded_tx.valid),
      .encoded_tx_hdr_o  (encoded_tx.block.header),
      .encoded_tx_data_o (encoded_tx.block.payload)
  );

  em_xgmii_dec u_dec (
      .clk_i             (rx_clk_i),
      .rst_ni            (rx_rst_ni),
      .encoded_rx_valid_i(encoded_rx.valid),
      .encoded_rx_hdr_i  (encoded_rx.block.header),
      .encoded_rx_data_i (encoded_rx.block.payload),
      .xgmii_valid_o     (xgmii_rx_valid_o),
      .xgmii_data_o      (xgmii_rx_data_o),
      .xgmii_control_o   (xgmii_rx_control_o)
  );

  em_host #(
      .Nodes       (Nodes),
      .X           (X),
      .Entries     (Entries),
      .WriteSlots  (WriteSlots),
      .ReadSlots   (ReadSlots),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes),
      .StoreBytes  (StoreBytes),
      .Commands    (Commands),
      .Circuits    (Circuits),
      .GrantDepth  (GrantDepth)
  ) u_host (
      .node_i          (own_node),
      .timeout_cycles_i(timeout_cycles),
      .memory_bytes_i  (memory_bytes),
      .memory_i        (memory_rx),
      .up_i            (up),
      .settled_o       (settled),
      .fail_o          (fail),
      .memory_o        (memory_tx),
      .memory_ready_i  (memory_ready),
      .dropped_o       (dropped),
      .caller_i        (caller_request),
      .caller_o        (caller_response),
      .m_axi_o         (m_axi_request),
      .m_axi_i         (m_axi_response),
      .*
  );

endmodule
