/// AXI4 and AXI4-Lite as structs: a manager drives the request and reads the response. Ports end in
/// `_o` and `_i` as for any other signal; only the tops have flat ports.
package em_axi_pkg;

  localparam int unsigned AddressBits = 64;
  localparam int unsigned DataBits = 64;
  localparam int unsigned StrobeBits = DataBits / 8;

  typedef logic [AddressBits-1:0] address_t;
  typedef logic [DataBits-1:0] data_t;

  typedef enum logic [1:0] {
    RespOkay       = 2'b00,
    RespSlaveError = 2'b10
  } resp_e;

  /// What AW and AR say of every burst.
  typedef struct packed {
    logic [2:0] size;
    logic [1:0] burst;
  } burst_kind_t;

  /// INCR, in full beats of eight bytes.
  localparam burst_kind_t BurstKind = '{size: 3'd3, burst: 2'b01};

  /// AW or AR: INCR bursts of full beats, all of one id.
  typedef struct packed {
    address_t   addr;
    logic [7:0] len;   // beats less one
  } burst_t;

  typedef struct packed {
    data_t                 data;
    logic [StrobeBits-1:0] strb;
    logic                  last;
  } w_beat_t;

  typedef struct packed {
    data_t      data;
    logic [1:0] resp;
  } r_beat_t;

  // Half a manager each: channels AW, W and B; channels AR and R.

  typedef struct packed {
    logic    aw_valid;
    burst_t  aw;
    logic    w_valid;
    w_beat_t w;
    logic    b_ready;
  } write_request_t;

  typedef struct packed {
    logic       aw_ready;
    logic       w_ready;
    logic       b_valid;
    logic [1:0] b_resp;
  } write_response_t;

  typedef struct packed {
    logic   ar_valid;
    burst_t ar;
    logic   r_ready;
  } read_request_t;

  typedef struct packed {
    logic    ar_ready;
    logic    r_valid;
    r_beat_t r;
  } read_response_t;

  /// All five channels.
  typedef struct packed {
    write_request_t write;
    read_request_t  read;
  } request_t;

  typedef struct packed {
    write_response_t write;
    read_response_t  read;
  } response_t;

  // AXI4-Lite, 32 bits, with the addresses of the register bus.

  localparam int unsigned LiteDataBits = 32;

  typedef struct packed {
    logic                      aw_valid;
    em_bus_pkg::address_t      aw_addr;
    logic                      w_valid;
    logic [LiteDataBits-1:0]   w_data;
    logic [LiteDataBits/8-1:0] w_strb;
    logic                      b_ready;
    logic                      ar_valid;
    em_bus_pkg::address_t      ar_addr;
    logic                      r_ready;
  } lite_request_t;

  typedef struct packed {
    logic                    aw_ready;
    logic                    w_ready;
    logic                    b_valid;
    logic [1:0]              b_resp;
    logic                    ar_ready;
    logic                    r_valid;
    logic [LiteDataBits-1:0] r_data;
    logic [1:0]              r_resp;
  } lite_response_t;

endpackage
