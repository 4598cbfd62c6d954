/// AXI4 with 512 bits and INCR bursts: a beat is a line or bytes of it. A burst stays within 4 KiB,
/// which are 64 lines. A master drives the request, a slave the response.
package em_cxl_axi_pkg;

  import em_cxl_pkg::*;

  /// Beats of a burst, less one: bits of their number.
  localparam int unsigned BurstBits = 6;
  typedef logic [BurstBits-1:0] burst_t;

  typedef struct packed {
    logic   ar_valid;
    id_t    ar_id;
    line_t  ar_line;
    burst_t ar_len;
    logic   r_ready;
    logic   aw_valid;
    id_t    aw_id;
    line_t  aw_line;
    burst_t aw_len;
    logic   w_valid;
    data_t  w_data;
    mask_t  w_strb;
    logic   w_last;
    logic   b_ready;
  } axi_request_t;

  typedef struct packed {
    logic  ar_ready;
    logic  r_valid;
    id_t   r_id;
    data_t r_data;
    logic  r_error;
    logic  r_last;
    logic  aw_ready;
    logic  w_ready;
    logic  b_valid;
    id_t   b_id;
    logic  b_error;
  } axi_response_t;

  /// Where a burst goes on.
  typedef struct packed {
    logic   active;
    id_t    id;
    line_t  line;
    burst_t left;    // beats behind the next one
  } burst_state_t;

endpackage
