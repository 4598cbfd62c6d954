/// Executes atomics, one at a time, on the little-endian 8-byte word at an address. No other access
/// of this node is in flight meanwhile.
module em_host_rmw
  import em_pkg::*;
  import em_host_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic       start_i,
    /// The atomic; not StatusOk: why it is refused.
    input  command_t   command_i,
    input  logic [3:0] refusal_i,
    output logic       busy_o,

    output logic        done_o,
    input  logic        done_ready_i,
    output logic [63:0] old_o,
    output logic [3:0]  code_o,
    output command_t    command_o,

    output em_axi_pkg::request_t  m_axi_o,
    input  em_axi_pkg::response_t m_axi_i
);

  typedef enum logic [2:0] {
    StIdle,
    StAddress,
    StData,
    StWrite,
    StAnswer,
    StDone
  } state_e;

  state_e state_q;
  command_t command_q;
  logic [63:0] old_q, made;
  logic [3:0] code_q;
  logic address_q, word_q, stores, unused_known;

  em_rmw u_rmw (
      .opcode_i  (command_q.opcode),
      .operands_i(command_q.operands),
      .old_i     (old_q),
      .new_o     (made),
      .stores_o  (stores),
      .known_o   (unused_known)
  );

  assign busy_o    = state_q != StIdle;
  assign done_o    = state_q == StDone;
  assign old_o     = old_q;
  assign code_o    = code_q;
  assign command_o = command_q;
  // A whole word is written, and every answer is taken.
  always_comb begin
    m_axi_o                = '0;
    m_axi_o.write.aw_valid = state_q == StWrite && stores && !address_q;
    m_axi_o.write.aw.addr  = command_q.address;
    m_axi_o.write.w_valid  = state_q == StWrite && stores && !word_q;
    m_axi_o.write.w        = '{data: made, strb: '1, last: 1'b1};
    m_axi_o.write.b_ready  = 1'b1;
    m_axi_o.read.ar_valid  = state_q == StAddress;
    m_axi_o.read.ar.addr   = command_q.address;
    m_axi_o.read.r_ready   = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      code_q    <= StatusOk;
      address_q <= 1'b0;
      word_q    <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: begin
          code_q    <= refusal_i;
          address_q <= 1'b0;
          word_q    <= 1'b0;
          if (start_i) state_q <= (refusal_i == StatusOk) ? StAddress : StDone;
        end
        StAddress: if (m_axi_i.read.ar_ready) state_q <= StData;
        StData:
        if (m_axi_i.read.r_valid) begin
          state_q <= (m_axi_i.read.r.resp != '0) ? StDone : StWrite;
          if (m_axi_i.read.r.resp != '0) code_q <= StatusBadAddress;
        end
        StWrite: begin
          address_q <= address_q || m_axi_i.write.aw_ready;
          word_q    <= word_q || m_axi_i.write.w_ready;
          if (!stores) state_q <= StDone;
          else if ((address_q || m_axi_i.write.aw_ready) && (word_q || m_axi_i.write.w_ready)) begin
            state_q <= StAnswer;
          end
        end
        StAnswer:
        if (m_axi_i.write.b_valid) begin
          state_q <= StDone;
          if (m_axi_i.write.b_resp != '0) code_q <= StatusBadAddress;
        end
        default: if (done_ready_i) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) command_q <= command_i;
    if (state_q == StData && m_axi_i.read.r_valid) old_q <= m_axi_i.read.r.data;
  end

endmodule
