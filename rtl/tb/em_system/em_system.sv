/// A network of nodes and a switch, for benches and applications in C++: they are the lines, the
/// memories, the callers and the software. All clocks are one.
module em_system
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes         = 3,
    parameter int unsigned X             = 3,
    parameter int unsigned Entries       = 16,
    parameter int unsigned Slots         = 8,
    parameter int unsigned MessageBytes  = 1024,
    parameter int unsigned ChunkBytes    = 256,
    /// More than all nodes' writes that are under way: none is dropped where memory is busy.
    parameter int unsigned StoreBytes    = 32768,
    /// Of all links: a register less at each end, in each direction.
    parameter bit          FewStages     = 1'b0,
    /// Sizes of the switch's bridge.
    parameter int unsigned FrameBlocks   = 512,
    parameter int unsigned Stations      = 64
) (
    input logic clk_i,
    input logic rst_ni,

    // Lines, by the end that sends: nodes, then the switch's ports.
    output logic        line_valid_o[2*Nodes],
    output logic [ 1:0] line_hdr_o  [2*Nodes],
    output logic [63:0] line_data_o [2*Nodes],
    // By the end that receives.
    input  logic        line_valid_i [2*Nodes],
    input  logic [ 1:0] line_hdr_i   [2*Nodes],
    input  logic [63:0] line_data_i  [2*Nodes],
    input  logic        line_signal_i[2*Nodes],
    output logic        line_slip_o  [2*Nodes],
    output logic [Nodes-1:0] port_up_o,

    output logic        xgmii_valid_o  [Nodes],
    output logic [63:0] xgmii_data_o   [Nodes],
    output logic [ 7:0] xgmii_control_o[Nodes],
    output logic        xgmii_ready_o  [Nodes],
    input  logic [63:0] xgmii_data_i   [Nodes],
    input  logic [ 7:0] xgmii_control_i[Nodes],

    input  logic        request_valid_i  [Nodes],
    output logic        request_ready_o  [Nodes],
    input  logic [15:0] request_token_i  [Nodes],
    input  logic [ 3:0] request_opcode_i [Nodes],
    input  logic [ 8:0] request_peer_i   [Nodes],
    input  logic [15:0] request_bytes_i  [Nodes],
    input  logic [63:0] request_address_i[Nodes],
    input  logic [63:0] request_first_i  [Nodes],
    input  logic [63:0] request_second_i [Nodes],
    input  logic        write_valid_i    [Nodes],
    output logic        write_ready_o    [Nodes],
    input  logic        write_last_i     [Nodes],
    input  logic [63:0] write_data_i     [Nodes],
    output logic        completion_valid_o [Nodes],
    input  logic        completion_ready_i [Nodes],
    output logic [15:0] completion_token_o [Nodes],
    output logic        completion_remote_o[Nodes],
    output logic [ 3:0] completion_code_o  [Nodes],
    output logic        read_valid_o[Nodes],
    input  logic        read_ready_i[Nodes],
    output logic [15:0] read_token_o[Nodes],
    output logic        read_last_o [Nodes],
    output logic [ 7:0] read_keep_o [Nodes],
    output logic [63:0] read_data_o [Nodes],

    // Inside, for stages: a memory block that leaves its source, the last one of a message that
    // came, of nodes and then of ports; the grant queue's ends, of nodes.
    output logic [2*Nodes-1:0] probe_sent_o,
    output logic [2*Nodes-1:0] probe_came_o,
    output logic [Nodes-1:0]   probe_queue_in_o,
    output logic [Nodes-1:0]   probe_queue_out_o,

    output logic        awvalid_o[Nodes],
    input  logic        awready_i[Nodes],
    output logic [63:0] awaddr_o [Nodes],
    output logic [ 7:0] awlen_o  [Nodes],
    output logic        wvalid_o [Nodes],
    input  logic        wready_i [Nodes],
    output logic [63:0] wdata_o  [Nodes],
    output logic [ 7:0] wstrb_o  [Nodes],
    output logic        wlast_o  [Nodes],
    input  logic        bvalid_i [Nodes],
    output logic        bready_o [Nodes],
    input  logic [ 1:0] bresp_i  [Nodes],
    output logic        arvalid_o[Nodes],
    input  logic        arready_i[Nodes],
    output logic [63:0] araddr_o [Nodes],
    output logic [ 7:0] arlen_o  [Nodes],
    input  logic        rvalid_i [Nodes],
    output logic        rready_o [Nodes],
    input  logic [63:0] rdata_i  [Nodes],
    input  logic [ 1:0] rresp_i  [Nodes],

    // Registers of the nodes, then those of the switch.
    input  logic        s_axil_awvalid_i[Nodes+1],
    output logic        s_axil_awready_o[Nodes+1],
    input  logic [20:0] s_axil_awaddr_i [Nodes+1],
    input  logic        s_axil_wvalid_i [Nodes+1],
    output logic        s_axil_wready_o [Nodes+1],
    input  logic [31:0] s_axil_wdata_i  [Nodes+1],
    input  logic [ 3:0] s_axil_wstrb_i  [Nodes+1],
    output logic        s_axil_bvalid_o [Nodes+1],
    input  logic        s_axil_bready_i [Nodes+1],
    output logic [ 1:0] s_axil_bresp_o  [Nodes+1],
    input  logic        s_axil_arvalid_i[Nodes+1],
    output logic        s_axil_arready_o[Nodes+1],
    input  logic [20:0] s_axil_araddr_i [Nodes+1],
    output logic        s_axil_rvalid_o [Nodes+1],
    input  logic        s_axil_rready_i [Nodes+1],
    output logic [31:0] s_axil_rdata_o  [Nodes+1],
    output logic [ 1:0] s_axil_rresp_o  [Nodes+1]
);

  for (genvar n = 0; n < Nodes; n++) begin : gen_nodes
    request_t request;
    completion_t completion;
    read_data_t read;

    assign request.operands = {request_second_i[n], request_first_i[n]};
    assign request.address  = request_address_i[n];
    assign request.bytes    = request_bytes_i[n];
    assign request.peer     = request_peer_i[n];
    assign request.opcode   = request_opcode_i[n];
    assign request.token    = request_token_i[n];

    assign probe_sent_o[n]      = u_node.memory_tx.valid && u_node.memory_ready;
    assign probe_came_o[n]      = u_node.memory_rx.valid && u_node.memory_rx.last;
    assign probe_queue_in_o[n]  = u_node.u_host.rx_out.item_valid && u_node.u_host.rx_in.item_ready;
    assign probe_queue_out_o[n] = u_node.u_host.tx_in.item_valid && u_node.u_host.tx_out.item_ready;

    assign completion_token_o[n]  = completion.token;
    assign completion_remote_o[n] = completion.remote;
    assign completion_code_o[n]   = completion.code;
    assign read_token_o[n]        = read.token;
    assign read_last_o[n]         = read.last;
    assign read_keep_o[n]         = read.keep;
    assign read_data_o[n]         = read.data;

    em_host_top #(
        .Nodes       (Nodes),
        .X           (X),
        .Entries     (Entries),
        .WriteSlots  (Slots),
        .ReadSlots   (Slots),
        .MessageBytes(MessageBytes),
        .FewStages   (FewStages),
        .ChunkBytes  (ChunkBytes),
        .StoreBytes  (StoreBytes),
        .Commands    (64)
    ) u_node (
        .tx_clk_i                  (clk_i),
        .tx_rst_ni                 (rst_ni),
        .rx_clk_i                  (clk_i),
        .rx_rst_ni                 (rst_ni),
        .line_rx_valid_i           (line_valid_i[n]),
        .line_rx_hdr_i             (line_hdr_i[n]),
        .line_rx_data_i            (line_data_i[n]),
        .line_signal_i             (line_signal_i[n]),
        .line_slip_o               (line_slip_o[n]),
        .line_tx_slot_i            (1'b1),
        .line_tx_valid_o           (line_valid_o[n]),
        .line_tx_hdr_o             (line_hdr_o[n]),
        .line_tx_data_o            (line_data_o[n]),
        .xgmii_rx_valid_o          (xgmii_valid_o[n]),
        .xgmii_rx_data_o           (xgmii_data_o[n]),
        .xgmii_rx_control_o        (xgmii_control_o[n]),
        .xgmii_tx_ready_o          (xgmii_ready_o[n]),
        .xgmii_tx_data_i           (xgmii_data_i[n]),
        .xgmii_tx_control_i        (xgmii_control_i[n]),
        .s_axis_request_tvalid_i   (request_valid_i[n]),
        .s_axis_request_tready_o   (request_ready_o[n]),
        .s_axis_request_tdata_i    (request),
        .s_axis_write_tvalid_i     (write_valid_i[n]),
        .s_axis_write_tready_o     (write_ready_o[n]),
        .s_axis_write_tdata_i      ({write_last_i[n], write_data_i[n]}),
        .m_axis_completion_tvalid_o(completion_valid_o[n]),
        .m_axis_completion_tready_i(completion_ready_i[n]),
        .m_axis_completion_tdata_o (completion),
        .m_axis_read_tvalid_o      (read_valid_o[n]),
        .m_axis_read_tready_i      (read_ready_i[n]),
        .m_axis_read_tdata_o       (read),
        .m_axi_awvalid_o           (awvalid_o[n]),
        .m_axi_awready_i           (awready_i[n]),
        .m_axi_awaddr_o            (awaddr_o[n]),
        .m_axi_awlen_o             (awlen_o[n]),
        .m_axi_awsize_o            (),
        .m_axi_awburst_o           (),
        .m_axi_wvalid_o            (wvalid_o[n]),
        .m_axi_wready_i            (wready_i[n]),
        .m_axi_wdata_o             (wdata_o[n]),
        .m_axi_wstrb_o             (wstrb_o[n]),
        .m_axi_wlast_o             (wlast_o[n]),
        .m_axi_bvalid_i            (bvalid_i[n]),
        .m_axi_bready_o            (bready_o[n]),
        .m_axi_bresp_i             (bresp_i[n]),
        .m_axi_arvalid_o           (arvalid_o[n]),
        .m_axi_arready_i           (arready_i[n]),
        .m_axi_araddr_o            (araddr_o[n]),
        .m_axi_arlen_o             (arlen_o[n]),
        .m_axi_arsize_o            (),
        .m_axi_arburst_o           (),
        .m_axi_rvalid_i            (rvalid_i[n]),
        .m_axi_rready_o            (rready_o[n]),
        .m_axi_rdata_i             (rdata_i[n]),
        .m_axi_rresp_i             (rresp_i[n]),
        .s_axil_awvalid_i          (s_axil_awvalid_i[n]),
        .s_axil_awready_o          (s_axil_awready_o[n]),
        .s_axil_awaddr_i           (s_axil_awaddr_i[n]),
        .s_axil_wvalid_i           (s_axil_wvalid_i[n]),
        .s_axil_wready_o           (s_axil_wready_o[n]),
        .s_axil_wdata_i            (s_axil_wdata_i[n]),
        .s_axil_wstrb_i            (s_axil_wstrb_i[n]),
        .s_axil_bvalid_o           (s_axil_bvalid_o[n]),
        .s_axil_bready_i           (s_axil_bready_i[n]),
        .s_axil_bresp_o            (s_axil_bresp_o[n]),
        .s_axil_arvalid_i          (s_axil_arvalid_i[n]),
        .s_axil_arready_o          (s_axil_arready_o[n]),
        .s_axil_araddr_i           (s_axil_araddr_i[n]),
        .s_axil_rvalid_o           (s_axil_rvalid_o[n]),
        .s_axil_rready_i           (s_axil_rready_i[n]),
        .s_axil_rdata_o            (s_axil_rdata_o[n]),
        .s_axil_rresp_o            (s_axil_rresp_o[n])
    );
  end

  logic [Nodes-1:0] rx_valid, rx_signal, rx_slip, tx_valid;
  logic [Nodes-1:0][1:0] rx_hdr, tx_hdr;
  logic [Nodes-1:0][63:0] rx_data, tx_data;

  for (genvar p = 0; p < Nodes; p++) begin : gen_ports
    assign probe_sent_o[Nodes+p] = u_switch.memory_tx[p].valid && u_switch.memory_ready[p];
    assign probe_came_o[Nodes+p] = u_switch.memory_rx[p].valid && u_switch.memory_rx[p].last;

    assign rx_valid[p]            = line_valid_i[Nodes+p];
    assign rx_hdr[p]              = line_hdr_i[Nodes+p];
    assign rx_data[p]             = line_data_i[Nodes+p];
    assign rx_signal[p]           = line_signal_i[Nodes+p];
    assign line_slip_o[Nodes+p]   = rx_slip[p];
    assign line_valid_o[Nodes+p]  = tx_valid[p];
    assign line_hdr_o[Nodes+p]    = tx_hdr[p];
    assign line_data_o[Nodes+p]   = tx_data[p];
  end

  em_switch_top #(
      .Ports           (Nodes),
      .NotificationsMax(X),
      .ChunkBytes      (ChunkBytes),
      .ElasticCycles   (0),
      .FewStages       (FewStages),
      .FrameBlocks     (FrameBlocks),
      .Entries         (Stations)
  ) u_switch (
      .clk_i,
      .rst_ni,
      .rx_clk_i        ({Nodes{clk_i}}),
      .rx_rst_ni       ({Nodes{rst_ni}}),
      .line_rx_valid_i (rx_valid),
      .line_rx_hdr_i   (rx_hdr),
      .line_rx_data_i  (rx_data),
      .line_signal_i   (rx_signal),
      .line_slip_o     (rx_slip),
      .line_tx_slot_i  ('1),
      .line_tx_valid_o (tx_valid),
      .line_tx_hdr_o   (tx_hdr),
      .line_tx_data_o  (tx_data),
      .port_up_o,
      .s_axil_awvalid_i(s_axil_awvalid_i[Nodes]),
      .s_axil_awready_o(s_axil_awready_o[Nodes]),
      .s_axil_awaddr_i (s_axil_awaddr_i[Nodes]),
      .s_axil_wvalid_i (s_axil_wvalid_i[Nodes]),
      .s_axil_wready_o (s_axil_wready_o[Nodes]),
      .s_axil_wdata_i  (s_axil_wdata_i[Nodes]),
      .s_axil_wstrb_i  (s_axil_wstrb_i[Nodes]),
      .s_axil_bvalid_o (s_axil_bvalid_o[Nodes]),
      .s_axil_bready_i (s_axil_bready_i[Nodes]),
      .s_axil_bresp_o  (s_axil_bresp_o[Nodes]),
      .s_axil_arvalid_i(s_axil_arvalid_i[Nodes]),
      .s_axil_arready_o(s_axil_arready_o[Nodes]),
      .s_axil_araddr_i (s_axil_araddr_i[Nodes]),
      .s_axil_rvalid_o (s_axil_rvalid_o[Nodes]),
      .s_axil_rready_i (s_axil_rready_i[Nodes]),
      .s_axil_rdata_o  (s_axil_rdata_o[Nodes]),
      .s_axil_rresp_o  (s_axil_rresp_o[Nodes])
  );

endmodule
