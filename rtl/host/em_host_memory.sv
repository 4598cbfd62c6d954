/// The memory of a node: executes commands in their order over AXI4.
///
/// AXI does not order reads against writes. A change of direction therefore waits until the other
/// direction is idle, and an atomic until both are.
module em_host_memory
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes      = 4,
    /// Data of writes that wait: a power of two, a multiple of the longest chunk.
    parameter int unsigned StoreBytes = 4096,
    parameter int unsigned Commands   = 16
) (
    input logic clk_i,
    input logic rst_ni,
    /// Size of the memory, from address 0.
    input logic [63:0] memory_bytes_i,

    // Words of a chunk of a write, kept if a command comes with the end of their message.
    input  logic        word_i,
    input  logic [63:0] data_i,
    input  logic        arrived_i,
    input  logic        is_write_i,
    output logic        fits_o,
    input  logic        command_valid_i,
    output logic        command_ready_o,
    input  command_t    command_i,

    output logic           response_valid_o,
    input  logic           response_ready_i,
    output response_word_t response_o,
    output logic           reply_valid_o,
    input  logic           reply_ready_i,
    output reply_t         reply_o,
    output logic           lost_o,
    output logic           quiet_o,

    output em_axi_pkg::request_t  m_axi_o,
    input  em_axi_pkg::response_t m_axi_i
);

  localparam int unsigned ReadTagBits = $bits(node_t) + RowBits + $bits(phase_t);
  localparam int unsigned WriteTagBits = $bits(node_t) + IdBits + 3;

  command_t command, atomic;
  logic command_valid, command_take, is_write, is_read, is_inside;
  logic write_ready, read_ready, write_quiet, read_quiet, acks_quiet, rmw_busy, rmw_done;
  logic goes_write, goes_read, goes_rmw, pop, unused_rmw_known, unused_rmw_stores, rmw_known;
  logic [63:0] ring_data, unused_rmw_new, rmw_old;
  logic [3:0] refusal, rmw_code;
  logic done_valid, done_ready, done_error;
  logic [WriteTagBits-1:0] done_tag;
  logic read_word_valid, read_word_last, read_word_error;
  logic [63:0] read_word;
  bytes_t read_number;
  logic [ReadTagBits-1:0] read_tag;
  node_t done_peer, read_peer;
  id_t done_id;
  row_t read_row;
  phase_t read_phase;
  logic done_acknowledged, done_first, done_last;
  em_axi_pkg::request_t rmw_axi;
  em_axi_pkg::write_request_t writer_axi;
  em_axi_pkg::read_request_t reader_axi;
  em_axi_pkg::response_t bulk_axi;
  logic [$clog2(Commands+1)-1:0] command_count;

  em_host_ring #(
      .Depth(StoreBytes / 8)
  ) u_ring (
      .clk_i,
      .rst_ni,
      .push_i  (word_i),
      .data_i,
      .commit_i(command_valid_i && is_write_i),
      .rewind_i(arrived_i && !(command_valid_i && is_write_i)),
      .fits_o,
      .pop_i   (pop),
      .skip_i  (1'b0),
      .data_o  (ring_data)
  );

  em_fifo_sync #(
      .Width($bits(command_t)),
      .Depth(Commands)
  ) u_commands (
      .clk_i,
      .rst_ni,
      .valid_i(command_valid_i),
      .ready_o(command_ready_o),
      .data_i (command_i),
      .valid_o(command_valid),
      .ready_i(command_take),
      .data_o (command),
      .count_o(command_count)
  );

  em_rmw u_known (
      .opcode_i  (command.opcode),
      .operands_i('0),
      .old_i     ('0),
      .new_o     (unused_rmw_new),
      .stores_o  (unused_rmw_stores),
      .known_o   (rmw_known)
  );

  assign is_write   = command.opcode inside {OpPostedWrite, OpAcknowledgedWrite};
  assign is_read    = command.opcode == OpRead;
  assign is_inside  = {1'b0, command.address} + 65'(command.bytes) <= {1'b0, memory_bytes_i};
  assign goes_write = command_valid && is_write && read_quiet && !rmw_busy;
  assign goes_read  = command_valid && is_read && write_quiet && !rmw_busy;
  assign goes_rmw   = command_valid && !is_write && !is_read && write_quiet && read_quiet
      && !rmw_busy;
  assign command_take = (goes_write && write_ready) || (goes_read && read_ready) || goes_rmw;
  assign quiet_o      = command_count == '0 && write_quiet && read_quiet && !rmw_busy && acks_quiet;

  always_comb begin
    refusal = StatusOk;
    if (!is_inside) refusal = StatusBadAddress;
    if (command.address[2:0] != '0) refusal = StatusMisaligned;
    if (!rmw_known) refusal = StatusBadOpcode;
  end

  em_axi_write #(
      .BytesBits(BytesBits),
      .TagBits  (WriteTagBits)
  ) u_write (
      .clk_i,
      .rst_ni,
      .job_valid_i  (goes_write),
      .job_ready_o  (write_ready),
      .job_address_i(command.address),
      .job_bytes_i  (command.bytes),
      .job_tag_i    ({command.peer, command.id, command.opcode == OpAcknowledgedWrite,
                      command.first, command.last}),
      .job_refused_i(!is_inside),
      .pop_o        (pop),
      .data_i       (ring_data),
      .done_valid_o (done_valid),
      .done_ready_i (done_ready),
      .done_tag_o   (done_tag),
      .done_error_o (done_error),
      .quiet_o      (write_quiet),
      .m_axi_o      (writer_axi),
      .m_axi_i      (bulk_axi.write)
  );

  assign {done_peer, done_id, done_acknowledged, done_first, done_last} = done_tag;

  em_host_acks #(
      .Nodes(Nodes)
  ) u_acks (
      .clk_i,
      .rst_ni,
      .valid_i       (done_valid),
      .ready_o       (done_ready),
      .peer_i        (done_peer),
      .id_i          (done_id),
      .acknowledged_i(done_acknowledged),
      .first_i       (done_first),
      .last_i        (done_last),
      .error_i       (done_error),
      .reply_valid_o,
      .reply_ready_i,
      .reply_o,
      .lost_o,
      .quiet_o       (acks_quiet)
  );

  em_axi_read #(
      .BytesBits(BytesBits),
      .TagBits  (ReadTagBits)
  ) u_read (
      .clk_i,
      .rst_ni,
      .job_valid_i  (goes_read),
      .job_ready_o  (read_ready),
      .job_address_i(command.address),
      .job_bytes_i  (command.bytes),
      .job_tag_i    ({command.peer, command.id[RowBits-1:0], command.phase}),
      .job_refused_i(!is_inside),
      .word_valid_o (read_word_valid),
      .word_ready_i (response_ready_i),
      .word_o       (read_word),
      .word_number_o(read_number),
      .word_last_o  (read_word_last),
      .word_error_o (read_word_error),
      .word_tag_o   (read_tag),
      .quiet_o      (read_quiet),
      .m_axi_o      (reader_axi),
      .m_axi_i      (bulk_axi.read)
  );

  em_host_rmw u_rmw (
      .clk_i,
      .rst_ni,
      .start_i     (goes_rmw),
      .command_i   (command),
      .refusal_i   (refusal),
      .busy_o      (rmw_busy),
      .done_o      (rmw_done),
      .done_ready_i(response_ready_i),
      .old_o       (rmw_old),
      .code_o      (rmw_code),
      .command_o   (atomic),
      .m_axi_o     (rmw_axi),
      .m_axi_i
  );

  // An atomic has the memory alone: bulk reads and writes get no handshake meanwhile.
  assign m_axi_o = rmw_busy ? rmw_axi : '{write: writer_axi, read: reader_axi};
  always_comb begin
    bulk_axi = m_axi_i;
    if (rmw_busy) begin
      bulk_axi.write.aw_ready = 1'b0;
      bulk_axi.write.w_ready  = 1'b0;
      bulk_axi.write.b_valid  = 1'b0;
      bulk_axi.read.ar_ready  = 1'b0;
      bulk_axi.read.r_valid   = 1'b0;
    end
  end

  assign {read_peer, read_row, read_phase} = read_tag;
  assign response_valid_o = rmw_busy ? rmw_done : read_word_valid;
  assign response_o = rmw_busy
      ? '{peer: atomic.peer, row: atomic.id[RowBits-1:0], phase: atomic.phase, last: 1'b1,
          code: rmw_code, word: '0, data: rmw_old}
      : '{peer: read_peer, row: read_row, phase: read_phase, last: read_word_last,
          code: read_word_error ? StatusBadAddress : StatusOk, word: read_number,
          data: read_word};

endmodule
