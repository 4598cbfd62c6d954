/// Two hosts side by side, for a bench that is the switch between them, their callers and memories.
module em_host_pair
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256
) (
    input logic        tx_clk_i,
    input logic        tx_rst_ni,
    input logic        rx_clk_i,
    input logic        rx_rst_ni,
    input node_t [1:0] node_i,
    input logic [30:0] timeout_cycles_i,
    input logic [63:0] memory_bytes_i,

    input  rx_memory_t [1:0] memory_i,
    input  logic [1:0]       up_i,
    output logic [1:0]       fail_o,
    output logic [1:0]       settled_o,
    output tx_memory_t [1:0] memory_o,
    input  logic [1:0]       memory_ready_i,

    input  logic [1:0]        request_valid_i,
    output logic [1:0]        request_ready_o,
    input  request_t [1:0]    request_i,
    input  logic [1:0]        write_valid_i,
    output logic [1:0]        write_ready_o,
    input  write_data_t [1:0] write_i,
    output logic [1:0]        completion_valid_o,
    input  logic [1:0]        completion_ready_i,
    output completion_t [1:0] completion_o,
    output logic [1:0]        read_valid_o,
    input  logic [1:0]        read_ready_i,
    output read_data_t [1:0]  read_o,
    output logic [1:0][4:0]   dropped_o,

    output logic [1:0]       awvalid_o,
    input  logic [1:0]       awready_i,
    output logic [1:0][63:0] awaddr_o,
    output logic [1:0][7:0]  awlen_o,
    output logic [1:0]       wvalid_o,
    input  logic [1:0]       wready_i,
    output logic [1:0][63:0] wdata_o,
    output logic [1:0][7:0]  wstrb_o,
    output logic [1:0]       wlast_o,
    input  logic [1:0]       bvalid_i,
    output logic [1:0]       bready_o,
    input  logic [1:0][1:0]  bresp_i,
    output logic [1:0]       arvalid_o,
    input  logic [1:0]       arready_i,
    output logic [1:0][63:0] araddr_o,
    output logic [1:0][7:0]  arlen_o,
    input  logic [1:0]       rvalid_i,
    output logic [1:0]       rready_o,
    input  logic [1:0][63:0] rdata_i,
    input  logic [1:0][1:0]  rresp_i
);

  for (genvar h = 0; h < 2; h++) begin : gen_hosts
    em_axi_pkg::request_t request;
    em_axi_pkg::response_t response;

    assign awvalid_o[h]                         = request.write.aw_valid;
    assign {awaddr_o[h], awlen_o[h]}            = request.write.aw;
    assign wvalid_o[h]                          = request.write.w_valid;
    assign {wdata_o[h], wstrb_o[h], wlast_o[h]} = request.write.w;
    assign bready_o[h]                          = request.write.b_ready;
    assign arvalid_o[h]                         = request.read.ar_valid;
    assign {araddr_o[h], arlen_o[h]}            = request.read.ar;
    assign rready_o[h]                          = request.read.r_ready;

    assign response.write = '{
        aw_ready: awready_i[h],
        w_ready: wready_i[h],
        b_valid: bvalid_i[h],
        b_resp: bresp_i[h]
    };
    assign response.read = '{
        ar_ready: arready_i[h],
        r_valid: rvalid_i[h],
        r: '{data: rdata_i[h], resp: rresp_i[h]}
    };

    caller_to_host_t caller_request;
    host_to_caller_t caller_response;

    assign caller_request = '{
        request_valid: request_valid_i[h],
        request: request_i[h],
        write_valid: write_valid_i[h],
        write: write_i[h],
        completion_ready: completion_ready_i[h]
    };
    assign request_ready_o[h]    = caller_response.request_ready;
    assign write_ready_o[h]      = caller_response.write_ready;
    assign completion_valid_o[h] = caller_response.completion_valid;
    assign completion_o[h]       = caller_response.completion;

    em_host #(
        .Nodes       (Nodes),
        .X           (X),
        .MessageBytes(MessageBytes),
        .ChunkBytes  (ChunkBytes)
    ) u_host (
        .tx_clk_i,
        .tx_rst_ni,
        .rx_clk_i,
        .rx_rst_ni,
        .node_i              (node_i[h]),
        .timeout_cycles_i,
        .memory_bytes_i,
        .memory_i            (memory_i[h]),
        .up_i                (up_i[h]),
        .fail_o              (fail_o[h]),
        .settled_o           (settled_o[h]),
        .memory_o            (memory_o[h]),
        .memory_ready_i      (memory_ready_i[h]),
        .caller_i            (caller_request),
        .caller_o            (caller_response),
        .m_axis_read_tvalid_o(read_valid_o[h]),
        .m_axis_read_tready_i(read_ready_i[h]),
        .m_axis_read_tdata_o (read_o[h]),
        .dropped_o           (dropped_o[h]),
        .m_axi_o             (request),
        .m_axi_i             (response)
    );
  end

endmodule
