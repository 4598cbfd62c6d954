// Where the cycles of one message go, alone in the network: Table 1 of the paper, from the RTL.
//
// Each stage is from one event to the next on the message's own way, so that their sum is the whole
// way. Lines have no length, and memory answers in the next cycle.

#pragma once

#include "caller.h"

namespace em {

// The cycles in which something happened, in order.
struct Events {
  std::vector<uint64_t> sent[kLines], came[kLines];
  std::vector<uint64_t> queue_in, queue_out, address, answer, write, data;
};

inline Config alone() {
  Config config;
  // The published testbed: 19 ns at each end of a line and 10 ns between, four lines on a way.
  for (unsigned n = 0; n < kNodes; n++) {
    config.up[n] = 19;
    config.down[n] = 19;
  }
  config.down[0] = 18;
  return config;
}

inline void watch(World& world, unsigned compute, unsigned memory, Events* events) {
  world.looks.push_back([&world, compute, memory, events] {
    Vem_system& dut = world.dut();
    const uint64_t now = world.cycle();
    for (unsigned end = 0; end < kLines; end++) {
      if (dut.probe_sent_o >> end & 1) events->sent[end].push_back(now);
      if (dut.probe_came_o >> end & 1) events->came[end].push_back(now);
    }
    if (dut.probe_queue_in_o >> compute & 1) events->queue_in.push_back(now);
    if (dut.probe_queue_out_o >> compute & 1) events->queue_out.push_back(now);
    if (dut.arvalid_o[memory]) events->address.push_back(now);
    if (dut.rvalid_i[memory] && dut.rready_o[memory]) events->answer.push_back(now);
    if (dut.wvalid_o[memory]) events->write.push_back(now);
    if (dut.read_valid_o[compute]) events->data.push_back(now);
  });
}

// The last block of a unit that began as number `first` of an end's blocks.
inline size_t unit_end(const std::vector<uint64_t>& sent, size_t first) {
  size_t at = first;
  while (at + 1 < sent.size() && sent[at + 1] == sent[at] + 1) at++;
  return at;
}

inline void print_stage(const char* name, uint64_t from, uint64_t to, uint64_t* sum) {
  print(name, to - from);
  *sum += to - from;
}

inline uint64_t read_stages(const Events& e, uint64_t start, unsigned memory) {
  const unsigned port0 = kNodes, port1 = kNodes + memory;
  uint64_t sum = 0, blocks = 0;
  const auto& request = e.sent[0];
  const auto& released = e.sent[port1];
  const auto& response = e.sent[memory];
  const auto& forwarded = e.sent[port0];
  print_stage("generate_request", start, request.front(), &sum);
  print_stage("request_blocks_1", request.front(), request.back(), &blocks);
  print_stage("pcs_1", request.back(), e.came[port0].front(), &sum);
  print_stage("switch_release", e.came[port0].front(), released.front(), &sum);
  print_stage("request_blocks_2", released.front(), released.back(), &blocks);
  print_stage("pcs_2", released.back(), e.came[memory].front(), &sum);
  print_stage("receive_request", e.came[memory].front(), e.address.front(), &sum);
  print_stage("memory", e.address.front(), e.answer.back(), &blocks);
  print_stage("generate_response", e.answer.back(), response.front(), &sum);
  print_stage("response_blocks", response.front(), response.back(), &blocks);
  print_stage("pcs_3", response.back(), e.came[port1].back(), &sum);
  print_stage("switch_forward", e.came[port1].back(), forwarded.back(), &sum);
  print_stage("pcs_4", forwarded.back(), e.came[0].back(), &sum);
  print_stage("receive_response", e.came[0].back(), e.data.front(), &sum);
  if (sum + blocks != e.data.front() - start) stop(e.data.front(), "stages are not the whole way");
  print("blocks", response.size());
  return sum;
}

inline uint64_t write_stages(const Events& e, uint64_t start, unsigned memory) {
  const unsigned port0 = kNodes, port1 = kNodes + memory;
  uint64_t sum = 0, blocks = 0;
  const auto& own = e.sent[0];
  const auto& chunk = e.sent[port1];
  print_stage("generate_notification", start, own.front(), &sum);
  print_stage("pcs_1", own.front(), e.came[port0].front(), &sum);
  print_stage("switch_grant", e.came[port0].front(), e.sent[port0].front(), &sum);
  print_stage("pcs_2", e.sent[port0].front(), e.came[0].front(), &sum);
  print_stage("receive_grant", e.came[0].front(), e.queue_in.front(), &sum);
  print_stage("grant_queue", e.queue_in.front(), e.queue_out.front(), &sum);
  print_stage("generate_write", e.queue_out.front(), own.at(1), &sum);
  print_stage("write_blocks", own.at(1), own.back(), &blocks);
  print_stage("pcs_3", own.back(), e.came[port0].back(), &sum);
  print_stage("switch_forward", e.came[port0].back(), chunk.back(), &sum);
  print_stage("pcs_4", chunk.back(), e.came[memory].back(), &sum);
  print_stage("receive_write", e.came[memory].back(), e.write.front(), &sum);
  if (sum + blocks != e.write.front() - start) {
    stop(e.write.front(), "stages are not the whole way");
  }
  print("blocks", chunk.size());
  return sum;
}

inline void stages(bool writes, uint64_t bytes) {
  const unsigned memory = kNodes - 1;
  World world((Config()));
  Caller caller(world, 0, 1, 1);
  world.start();
  Events events;
  watch(world, 0, memory, &events);
  world.trace();
  Op op;
  op.opcode = writes ? kPosted : kRead;
  op.peer = memory;
  op.length = static_cast<unsigned>(bytes);
  if (writes) op.data.assign(bytes, 0x5a);
  caller.submit(&op);
  world.idle(400);
  if (!op.good()) stop(world.cycle(), "the message did not end");
  // A write is a request once its data is there.
  const uint64_t start = op.taken_at;
  const uint64_t sum =
      writes ? write_stages(events, start, memory) : read_stages(events, start, memory);
  print("cycles", sum);
  print("start", start);
  std::printf("\n");
}

}  // namespace em
