// Runs em_system. Numbers go out as name=value.
//
//   check MESSAGES SEED ERRORS     random traffic, checked
//   speed CYCLES                   cycles a second of this process
//   stages read|write BYTES        where the cycles of one message go
//   ycsb DEPTH MEMORY_CYCLES       operations of the standard input, up to DEPTH at a time
//
// The environment's WAVES is a file for the waves of `stages` and `ycsb`, if the model has them.

#include <cstring>
#include <ctime>

#include "application.h"
#include "caller.h"
#include "stages.h"
#include "station.h"
#include "traffic.h"
#include "world.h"

namespace {

using em::kLines;
using em::kNodes;

using em::print;

uint64_t link_sum(em::World& world, uint32_t offset) {
  uint64_t sum = 0;
  for (unsigned end = 0; end < kLines; end++) {
    sum += world.read64(em::link_slave(end), em::link_base(end) + offset);
  }
  return sum;
}

// Everything that software can see go wrong; all of it zero where nothing was made to.
void report(em::World& world, const em::Traffic& traffic, const em::Stations& stations) {
  print("cycles", world.cycle());
  print("messages", traffic.done);
  print("failed", traffic.failed);
  print("frames", stations.heard);
  print("corrupt", link_sum(world, offsetof(em_host_top__link_t, corrupt)));
  print("remote_failed", link_sum(world, offsetof(em_host_top__link_t, remote_failed)));
  print("started", link_sum(world, offsetof(em_host_top__link_t, started)));
  print("memory_dry", link_sum(world, offsetof(em_host_top__link_t, memory_dry)));
  print("sent", link_sum(world, offsetof(em_host_top__link_t, memory_blocks_sent)));
  print("received", link_sum(world, offsetof(em_host_top__link_t, memory_blocks_received)));
  uint64_t completed = 0, ended = 0;
  for (unsigned n = 0; n < kNodes; n++) {
    completed += world.read64(n, offsetof(em_host_top_t, node.completed));
    for (uint32_t at = offsetof(em_host_top_t, node.timeouts);
         at <= offsetof(em_host_top_t, node.remote_errors); at += 8) {
      ended += world.read64(n, at);
    }
  }
  print("completed", completed);
  print("errors", ended);
  uint64_t host = 0, port = 0;
  for (unsigned n = 0; n < kNodes; n++) {
    for (uint32_t at = offsetof(em_host_top_t, node.duplicates);
         at <= offsetof(em_host_top_t, node.replies_lost); at += 8) {
      host += world.read64(n, at);
    }
    // But for what its start counts, and frames that are filtered or flooded.
    for (uint32_t at = offsetof(em_switch_top__portsx__port_t, chunks_astray);
         at <= offsetof(em_switch_top__portsx__port_t, frames_dropped); at += 8) {
      port += world.read64(kNodes, em::port_base(n) + at);
    }
  }
  print("dropped_by_hosts", host);
  print("dropped_by_switch", port);
}

// A link has failed by corruption and is held down, until software starts it anew.
void restart(em::World& world, unsigned end) {
  const uint32_t base = em::link_base(end);
  const unsigned slave = em::link_slave(end);
  const uint64_t status = world.read64(slave, base + offsetof(em_host_top__link_t, status));
  if ((status & EM_HOST_TOP__LINK__STATUS__HELD_bm) == 0) return;
  if ((status & EM_HOST_TOP__LINK__STATUS__UP_bm) != 0) em::stop(world.cycle(), "held, and up");
  world.start_link(end, false, true);
  world.idle(20);
  world.start_link(end, true, true);
}

void check(uint64_t messages, uint64_t seed, uint64_t errors) {
  em::Config config;
  em::Random random(seed);
  for (unsigned n = 0; n < kNodes; n++) {
    config.up[n] = static_cast<unsigned>(random.below(30));
    config.down[n] = static_cast<unsigned>(random.below(30));
  }
  config.memory_cycles = 32;
  config.memory_share = random.below(2) == 0 ? 1 : 0.8;
  config.strict = random.below(2) == 0;
  config.seed = random.next();
  config.timeout_cycles = 20000;
  em::World world(config);
  em::Stations stations(world, random.next());
  em::Traffic traffic(world, random, errors != 0, random.below(2) == 0 ? 1 : 0.7);
  world.start();
  stations.share = 0.002;
  stations.lossy = errors != 0;
  const bool hold = errors != 0 && random.below(2) == 0;
  if (hold) {
    for (unsigned end = 0; end < kLines; end++) world.start_link(end, true, true);
  }
  const auto software = [&] {
    if (!hold || world.cycle() % 1000 != 0) return;
    for (unsigned end = 0; end < kLines; end++) restart(world, end);
  };
  uint64_t injected = 0, next_error = 2000, last_done = 0, moved_at = world.cycle();
  while (traffic.asked < messages || !traffic.quiet()) {
    traffic.ask(messages);
    world.step();
    if (injected < errors && world.cycle() >= next_error) {
      uint64_t bits = 0;
      for (uint64_t left = 1 + random.below(3); left > 0; left--) bits |= 1ull << random.below(64);
      world.flip[random.below(kLines)] = bits;
      injected++;
      next_error = world.cycle() + 3000 + random.below(3000);
    }
    software();
    if (traffic.done != last_done) {
      last_done = traffic.done;
      moved_at = world.cycle();
    }
    if (world.cycle() - moved_at > 100000) em::stop(world.cycle(), "nothing ends any more");
  }
  stations.share = 0;
  for (unsigned i = 0; i < 20000; i++) {
    world.step();
    software();
  }
  traffic.check_memory();
  stations.check(errors == 0);
  print("seed", seed);
  print("injected", injected);
  report(world, traffic, stations);
  print("reached", traffic.reach());
  std::printf("\n");
}

// Cycles a second, under load.
void speed(uint64_t cycles) {
  em::Config config;
  config.memory_cycles = 32;
  em::Random random(1);
  em::World world(config);
  em::Traffic traffic(world, random, false, 1);
  world.start();
  // Of this process, whatever else the machine does.
  const std::clock_t start = std::clock();
  const uint64_t first = world.cycle();
  while (world.cycle() - first < cycles) {
    if (traffic.asked < traffic.done + 3) traffic.ask(~0ull);
    world.step();
  }
  const double took_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  print("nodes", kNodes);
  print("cycles", cycles);
  print("messages", traffic.done);
  print("cycles_per_second", static_cast<uint64_t>(static_cast<double>(cycles) / took_s));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) { return at < argc ? std::strtoull(argv[at], nullptr, 10) : 0; };
  if (what == "check") check(number(2), number(3), number(4));
  else if (what == "speed") speed(number(2));
  else if (what == "stages") em::stages(argc > 2 && argv[2] == std::string("write"), number(3));
  else if (what == "ycsb") em::application(number(2), number(3));
  else return 2;
  return 0;
}
