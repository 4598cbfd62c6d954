/// A switch of EDM with its links and registers. docs/internals/rtl-tops.md describes it.
///
/// All transmitters, the switch and the registers have one clock, each receiver its own. Software
/// starts the links.
module em_switch_top
  import em_link_pkg::*;
#(
    // As those of em_switch: ChunkBytes is a multiple of 8, to 4096.
    parameter int unsigned Ports            = 8,
    parameter int unsigned NotificationsMax = 3,
    parameter int unsigned ChunkBytes       = 256,
    parameter int unsigned ElasticCycles    = 1,
    parameter int unsigned FrameBlocks      = 2048,
    parameter int unsigned Entries          = 1024,
    // As those of em_link.
    parameter bit          Scrambled        = 1'b1,
    /// The links have one register on either way instead of two.
    parameter bit          FewStages        = 1'b0,
    parameter int unsigned SlipBlocks       = 4
) (
    input logic             clk_i,
    input logic             rst_ni,
    /// Each goes on while its link is down. All resets must be asserted together.
    input logic [Ports-1:0] rx_clk_i,
    input logic [Ports-1:0] rx_rst_ni,

    // Lines, each in its receiver's clock. Clocks are those of blocks: while a link is up, a block
    // comes in each cycle and has a slot in each. Chunks go out as they come in, and one that
    // pauses runs dry: it is aborted, the link fails, and `memory_dry` counts it.
    input  logic [Ports-1:0]       line_rx_valid_i,
    input  logic [Ports-1:0][ 1:0] line_rx_hdr_i,
    input  logic [Ports-1:0][63:0] line_rx_data_i,
    input  logic [Ports-1:0]       line_signal_i,
    output logic [Ports-1:0]       line_slip_o,
    // Lines, in the switch's clock: a block leaves in each cycle with a slot.
    input  logic [Ports-1:0]       line_tx_slot_i,
    output logic [Ports-1:0]       line_tx_valid_o,
    output logic [Ports-1:0][ 1:0] line_tx_hdr_o,
    output logic [Ports-1:0][63:0] line_tx_data_o,

    /// In service: the link is up, and the switch has taken notice.
    output logic [Ports-1:0] port_up_o,

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

  /// Of a half of a window: a port's own registers, and those of its link.
  localparam int unsigned HalfBits = 10;

  em_axi_pkg::lite_request_t s_axil_request;
  em_axi_pkg::lite_response_t s_axil_response;

  em_axil_flat u_axil_flat (
      .request_o (s_axil_request),
      .response_i(s_axil_response),
      .*
  );

  em_bus_pkg::request_t bus_request;
  em_bus_pkg::response_t bus_response;
  em_bus_pkg::request_t [Ports:0] request;
  em_bus_pkg::response_t [Ports:0] response;

  em_axil u_axil (
      .clk_i,
      .rst_ni,
      .s_axil_i  (s_axil_request),
      .s_axil_o  (s_axil_response),
      .request_o (bus_request),
      .response_i(bus_response)
  );

  em_bus_split #(
      .Windows   (Ports + 1),
      .WindowBits(HalfBits + 1)
  ) u_split (
      .request_i (bus_request),
      .response_o(bus_response),
      .request_o (request),
      .response_i(response)
  );

  em_sched_pkg::rank_config_t rank_config;
  em_sched_pkg::control_config_t control_config;
  em_sched_pkg::left_t window_cycles, ahead_cycles;

  em_switch_config #(
      .Ports           (Ports),
      .NotificationsMax(NotificationsMax),
      .ChunkBytes      (ChunkBytes)
  ) u_config (
      .clk_i,
      .rst_ni,
      .bus_i           (request[0]),
      .bus_o           (response[0]),
      .rank_config_o   (rank_config),
      .control_config_o(control_config),
      .window_cycles_o (window_cycles),
      .ahead_cycles_o  (ahead_cycles)
  );

  logic [Ports-1:0] up, memory_ready, encoder_ready, encoded_rx_valid, encoded_tx_valid;
  rx_memory_t [Ports-1:0] memory_rx;
  tx_memory_t [Ports-1:0] memory_tx;
  block_t [Ports-1:0] encoded_rx, encoded_tx;
  em_switch_pkg::events_t [Ports-1:0] events;
  em_l2_pkg::l2_events_t [Ports-1:0] l2_events;

  em_switch #(
      .Ports           (Ports),
      .NotificationsMax(NotificationsMax),
      .ChunkBytes      (ChunkBytes),
      .ElasticCycles   (ElasticCycles),
      .FrameBlocks     (FrameBlocks),
      .Entries         (Entries)
  ) u_switch (
      .clk_i,
      .rst_ni,
      .rx_clk_i,
      .rx_rst_ni,
      .rank_config_i     (rank_config),
      .control_config_i  (control_config),
      .window_cycles_i   (window_cycles),
      .ahead_cycles_i    (ahead_cycles),
      .link_up_i         (up),
      .memory_i          (memory_rx),
      .encoded_rx_valid_i(encoded_rx_valid),
      .encoded_rx_i      (encoded_rx),
      .memory_o          (memory_tx),
      .memory_ready_i    (memory_ready),
      .encoder_ready_i   (encoder_ready),
      .encoded_tx_valid_o(encoded_tx_valid),
      .encoded_tx_o      (encoded_tx),
      .port_up_o,
      .events_o          (events),
      .l2_events_o       (l2_events)
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    em_bus_pkg::request_t [1:0] port_request;
    em_bus_pkg::response_t [1:0] port_response;

    em_bus_split #(
        .Windows   (2),
        .WindowBits(HalfBits)
    ) u_split (
        .request_i (request[p+1]),
        .response_o(response[p+1]),
        .request_o (port_request),
        .response_i(port_response)
    );

    em_switch_counters u_counters (
        .clk_i,
        .rst_ni,
        .bus_i      (port_request[0]),
        .bus_o      (port_response[0]),
        .events_i   (events[p]),
        .l2_events_i(l2_events[p])
    );

    line_slot_t line_rx, line_tx;

    assign line_rx = '{
        valid: line_rx_valid_i[p],
        block: '{payload: line_rx_data_i[p], header: line_rx_hdr_i[p]}
    };
    assign line_tx_valid_o[p] = line_tx.valid;
    assign line_tx_hdr_o[p]   = line_tx.block.header;
    assign line_tx_data_o[p]  = line_tx.block.payload;

    em_link #(
        .Scrambled (Scrambled),
        .FewStages (FewStages),
        .SlipBlocks(SlipBlocks)
    ) u_link (
        .tx_clk_i       (clk_i),
        .tx_rst_ni      (rst_ni),
        .rx_clk_i       (rx_clk_i[p]),
        .rx_rst_ni      (rx_rst_ni[p]),
        .line_i         (line_rx),
        .line_signal_i  (line_signal_i[p]),
        .line_slip_o    (line_slip_o[p]),
        .line_tx_slot_i (line_tx_slot_i[p]),
        .line_o         (line_tx),
        .settled_i      (1'b1),
        .fail_i         (1'b0),
        .up_o           (up[p]),
        .memory_o       (memory_rx[p]),
        .encoded_o      ({encoded_rx_valid[p], encoded_rx[p]}),
        .memory_i       (memory_tx[p]),
        .memory_ready_o (memory_ready[p]),
        .encoder_ready_o(encoder_ready[p]),
        .encoded_i      ({encoded_tx_valid[p], encoded_tx[p]}),
        .bus_i          (port_request[1]),
        .bus_o          (port_response[1])
    );
  end

endmodule
