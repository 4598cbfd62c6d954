/// The rules of AXI4 between a master and a slave of `em_cxl_axi_pkg`, to be bound to either or to
/// stand beside both: an output says in which cycle a side breaks one.
///
/// What is offered stays as it is until it is taken; a burst stays within 4 KiB, and its data ends
/// with its last beat; R and B answer what was asked for, each once, with as many beats. Responses
/// are watched by identifier. `shared` is what the nodes promise beyond AXI4: an identifier has one
/// burst in each direction under way, and the data of one burst ends before the next address.
module em_axi_rules
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    /// Identifiers that are watched.
    parameter int unsigned Watches = 1,
    /// The rules are assertions, too; a proof makes some of them assumptions.
    parameter bit Asserts = 1'b1
) (
    input logic clk_i,
    input logic rst_ni,

    input axi_request_t  request_i,
    input axi_response_t response_i,
    input id_t           watch_i[Watches],

    output logic request_broken_o,
    output logic response_broken_o,
    output logic shared_broken_o
);

  logic ar_takes, aw_takes, w_takes, r_takes, b_takes;
  logic ar_waits_q, aw_waits_q, w_waits_q, r_waits_q, b_waits_q;
  axi_request_t request_q;
  axi_response_t response_q;

  assign ar_takes = request_i.ar_valid && response_i.ar_ready;
  assign aw_takes = request_i.aw_valid && response_i.aw_ready;
  assign w_takes  = request_i.w_valid && response_i.w_ready;
  assign r_takes  = response_i.r_valid && request_i.r_ready;
  assign b_takes  = response_i.b_valid && request_i.b_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {ar_waits_q, aw_waits_q, w_waits_q, r_waits_q, b_waits_q} <= '0;
    else begin
      ar_waits_q <= request_i.ar_valid && !ar_takes;
      aw_waits_q <= request_i.aw_valid && !aw_takes;
      w_waits_q  <= request_i.w_valid && !w_takes;
      r_waits_q  <= response_i.r_valid && !r_takes;
      b_waits_q  <= response_i.b_valid && !b_takes;
    end
  end

  always_ff @(posedge clk_i) begin
    request_q  <= request_i;
    response_q <= response_i;
  end

  // The burst whose data or address is not complete: the data can come before the address.
  logic known_q, data_ended_q, known, closes, w_last_takes;
  burst_t len_q, len, beat_q;
  id_t id_q, id;

  assign known        = known_q || request_i.aw_valid;
  assign len          = known_q ? len_q : request_i.aw_len;
  assign id           = known_q ? id_q : request_i.aw_id;
  assign w_last_takes = w_takes && request_i.w_last;
  assign closes       = (known_q || aw_takes) && (data_ended_q || w_last_takes);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {known_q, data_ended_q, beat_q} <= '0;
    else if (closes) {known_q, data_ended_q, beat_q} <= '0;
    else begin
      if (aw_takes) known_q <= 1'b1;
      if (w_last_takes) data_ended_q <= 1'b1;
      if (w_takes && !request_i.w_last) beat_q <= beat_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_takes) begin
      len_q <= request_i.aw_len;
      id_q  <= request_i.aw_id;
    end
  end

  /// A burst leaves the 4 KiB in which it begins: its first line within them, its beats less one.
  function automatic logic leaves(burst_t first, burst_t beats);
    return first > ~beats;
  endfunction

  logic ar_changes, aw_changes, w_changes, data_wrong;
  assign ar_changes = ar_waits_q
      && {request_i.ar_valid, request_i.ar_id, request_i.ar_line, request_i.ar_len}
      != {1'b1, request_q.ar_id, request_q.ar_line, request_q.ar_len};
  assign aw_changes = aw_waits_q
      && {request_i.aw_valid, request_i.aw_id, request_i.aw_line, request_i.aw_len}
      != {1'b1, request_q.aw_id, request_q.aw_line, request_q.aw_len};
  assign w_changes = w_waits_q
      && {request_i.w_valid, request_i.w_data, request_i.w_strb, request_i.w_last}
      != {1'b1, request_q.w_data, request_q.w_strb, request_q.w_last};
  assign data_wrong = known && (data_ended_q ? beat_q != len :
                      beat_q > len || (request_i.w_valid && request_i.w_last != (beat_q == len)));
  assign request_broken_o = ar_changes || aw_changes || w_changes || data_wrong
      || (request_i.ar_valid && leaves(request_i.ar_line[BurstBits-1:0], request_i.ar_len))
      || (request_i.aw_valid && leaves(request_i.aw_line[BurstBits-1:0], request_i.aw_len));

  // By identifier.
  logic [Watches-1:0] reading_q, writing_q, written_q, answers_wrong, doubled;
  burst_t left_q[Watches];

  for (genvar i = 0; i < Watches; i++) begin : gen_watches
    logic reads, writes, r_here, b_here, r_changes, b_changes;
    assign reads  = ar_takes && request_i.ar_id == watch_i[i];
    assign writes = aw_takes && request_i.aw_id == watch_i[i];
    assign r_here = response_i.r_valid && response_i.r_id == watch_i[i];
    assign b_here = response_i.b_valid && response_i.b_id == watch_i[i];

    assign r_changes = r_waits_q && response_q.r_id == watch_i[i]
        && {r_here, response_i.r_data, response_i.r_error, response_i.r_last}
        != {1'b1, response_q.r_data, response_q.r_error, response_q.r_last};
    assign b_changes = b_waits_q && response_q.b_id == watch_i[i]
        && {b_here, response_i.b_error} != {1'b1, response_q.b_error};
    assign answers_wrong[i] = r_changes || b_changes
        || (r_here && (!reading_q[i] || response_i.r_last != (left_q[i] == '0)))
        || (b_here && !written_q[i]);
    assign doubled[i] = (reads && reading_q[i]) || (writes && writing_q[i]);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {reading_q[i], writing_q[i], written_q[i]} <= '0;
      else begin
        if (reads) reading_q[i] <= 1'b1;
        else if (r_takes && r_here && response_i.r_last) reading_q[i] <= 1'b0;
        if (writes) writing_q[i] <= 1'b1;
        else if (b_takes && b_here) writing_q[i] <= 1'b0;
        if (closes && id == watch_i[i]) written_q[i] <= 1'b1;
        else if (b_takes && b_here) written_q[i] <= 1'b0;
      end
    end

    always_ff @(posedge clk_i) begin
      if (reads) left_q[i] <= request_i.ar_len;
      else if (r_takes && r_here) left_q[i] <= left_q[i] - 1'b1;
    end
  end

  assign response_broken_o = answers_wrong != '0;
  assign shared_broken_o   = doubled != '0 || (aw_takes && known_q) || (w_takes && data_ended_q);

  if (Asserts) begin : gen_asserts
    logic began_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) began_q <= 1'b0;
      else began_q <= 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (began_q) begin
        assert (!request_broken_o);
        assert (!response_broken_o);
        assert (!shared_broken_o);
      end
    end
  end

endmodule
