/// The registers of the switch as a whole: converts the register file of rtl/registers to the
/// scheduler's configuration.
module em_switch_config
  import em_bus_pkg::*;
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned NotificationsMax = 3,
    parameter int unsigned ChunkBytes = 256
) (
    input logic clk_i,
    input logic rst_ni,

    input  request_t  bus_i,
    output response_t bus_o,

    output rank_config_t    rank_config_o,
    output control_config_t control_config_o,
    output left_t           window_cycles_o,
    output left_t           ahead_cycles_o
);

  em_switch_registers_pkg::em_switch_registers__in_t said;
  em_switch_registers_pkg::em_switch_registers__out_t wanted;

  assign said.build.ports.next       = 16'(Ports);
  assign said.build.active.next      = 16'(NotificationsMax);
  assign said.build.chunk_bytes.next = 16'(ChunkBytes);

  assign rank_config_o.policy         = policy_e'(wanted.policy.policy.value);
  assign rank_config_o.counts_late    = wanted.policy.counts_late.value;
  assign rank_config_o.late_bytes_min = wanted.policy.late_bytes_min.value;
  assign control_config_o.counts      = wanted.policy.counts_control.value;
  assign control_config_o.blocks_free = wanted.policy.control_blocks_free.value;
  assign window_cycles_o              = left_t'(wanted.horizon.window_cycles.value);
  assign ahead_cycles_o               = left_t'(wanted.horizon.ahead_cycles.value);

  em_switch_registers u_registers (
      .clk     (clk_i),
      .arst_n  (rst_ni),
      .bus_i,
      .bus_o,
      .hwif_in (said),
      .hwif_out(wanted)
  );

endmodule
