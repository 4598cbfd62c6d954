/// What the parts of a host tell each other, a struct for each way; em_host_pkg has what they say.
/// A field and its `_valid` are a stream, taken in a cycle in which its `_ready` on the way back is
/// high, too.
package em_host_ports_pkg;

  import em_host_pkg::*;

  // Between a host and its caller, in the transmit clock.

  typedef struct packed {
    logic        request_valid;
    request_t    request;
    logic        write_valid;
    write_data_t write;
    logic        completion_ready;
  } caller_to_host_t;

  typedef struct packed {
    logic        request_ready;
    logic        write_ready;
    logic        completion_valid;
    completion_t completion;
  } host_to_caller_t;

  /// A message had no effect, in the order in which the registers count.
  typedef struct packed {
    logic reply_lost;     // more statuses and ends of reads than can be kept
    logic grants_lost;    // more grants than can be kept
    logic posted_lost;    // memory refused a posted write
    logic write_dropped;  // a chunk without room or place
    logic duplicate;      // repeated
  } dropped_t;

  // Between the half in the receive clock and the half in the transmit clock.

  typedef struct packed {
    logic           item_valid;
    item_t          item;
    logic           event_valid;
    event_t         message_event;
    logic           reply_valid;
    reply_t         reply;
    logic           response_valid;
    response_word_t response;
    logic           read_ready;
  } rx_to_tx_t;

  typedef struct packed {
    logic          item_ready;
    logic          event_ready;
    logic          reply_ready;
    logic          response_ready;
    logic          read_valid;
    read_command_t read;
  } tx_to_rx_t;

  // Inside the transmit clock: the core decides, what is around it says and does.

  /// A request as em_host_check has it.
  typedef struct packed {
    logic     valid;
    logic     bad;
    logic     write;
    request_t request;
  } checked_request_t;

  typedef struct packed {
    checked_request_t request;
    logic             completion_ready;
    logic             control_ready;
    logic             read_ready;
    logic             event_valid;
    event_t           message_event;
  } to_core_t;

  typedef struct packed {
    logic            request_ready;
    logic            completion_valid;
    completion_t     completion;
    logic            control_valid;
    control_fields_t control;
    logic            read_valid;
    read_command_t   read;
    logic            event_ready;
  } from_core_t;

  /// How far open writes are, and word of peers: it is taken when all of it is done.
  typedef struct packed {
    logic  sent_valid;
    sent_t sent;
    logic  word_valid;
    word_t word;
  } progress_t;

  typedef struct packed {
    // The oldest write whose data is all there.
    logic      whole;
    slot_t     whole_slot;
    bytes_t    whole_words;
    progress_t progress;
  } data_to_core_t;

  typedef struct packed {
    logic    take;       // the data of the oldest whole write is of a request now
    logic    free;
    slot_t   free_slot;
    logic    open;
    opened_t opened;
    logic    sent_ready;
    logic    word_ready;
  } core_to_data_t;

  typedef struct packed {
    logic   expired;
    entry_t entry;
  } timers_to_core_t;

  typedef struct packed {
    logic   start;
    entry_t start_entry;
    logic   expired_ready;
  } core_to_timers_t;

  // Between what answers grants and the encoder of chunks with the data.

  typedef struct packed {
    logic          fields_valid;
    chunk_fields_t fields;
    logic          is_response;  // the chunk under way is of a response
    // The word that the encoder has next, of a write's slot or of a response's row.
    logic          read;
    bytes_t        read_word;
    slot_t         read_slot;
  } chunk_to_encoder_t;

  typedef struct packed {
    logic fields_ready;
    logic started;     // a block of a chunk was taken: from then on nothing overtakes it
    logic data_ready;
  } encoder_to_chunk_t;

endpackage
