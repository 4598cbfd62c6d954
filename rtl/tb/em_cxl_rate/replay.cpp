// Replays what the Rust model's congestion control and token bucket do on the Verilated
// em_cxl_rate: in each cycle the state must be the model's, and so must be what becomes of a PFC
// frame and of a frame that is there. Reads a trace of `rate_trace` from the standard input.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../coverage.h"
#include "../cxl_trace.h"
#include "Vem_cxl_rate.h"
#include "verilated.h"

namespace {

using cxl_trace::fail;

// Of the packed struct: its fields from the lowest bit on.
constexpr unsigned kDeaf = 24, kTimer = 24, kTimed = 1, kIncrease = 17, kSpeedups = 3, kTarget = 17,
                   kCurrent = 17, kPhase = 3;

struct State {
  unsigned long long phase = 0, current = 0, target = 0, speedups = 0, increase = 0;
  unsigned long long timed = 0, timer = 0, deaf = 0;
  bool operator==(const State&) const = default;
};

State state_of(const Vem_cxl_rate& dut) {
  unsigned at = 0;
  const auto take = [&](unsigned bits) {
    unsigned long long value = 0;
    for (unsigned i = 0; i < bits; i++, at++) {
      value |= static_cast<unsigned long long>(dut.state_o[at / 32] >> at % 32 & 1) << i;
    }
    return value;
  };
  State state;
  state.deaf = take(kDeaf);
  state.timer = take(kTimer);
  state.timed = take(kTimed);
  state.increase = take(kIncrease);
  state.speedups = take(kSpeedups);
  state.target = take(kTarget);
  state.current = take(kCurrent);
  state.phase = take(kPhase);
  if (!state.timed) state.timer = 0;
  return state;
}

std::string text_of(const State& s) {
  std::string text;
  for (const auto field :
       {s.phase, s.current, s.target, s.speedups, s.increase, s.timed, s.timer, s.deaf}) {
    text += " " + std::to_string(field);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Vem_cxl_rate dut;
  em::Coverage coverage;
  dut.clk_i = dut.rst_ni = 0;
  dut.pfc_i = dut.valid_i = 0;
  for (int half = 0; half < 6; half++) {
    dut.eval();
    dut.clk_i = !dut.clk_i;
  }
  dut.rst_ni = 1;
  uint64_t cycle = 0, phases[6] = {}, acted = 0, duplicates = 0, sent = 0, held = 0;
  unsigned long long last_phase = 0;
  State wanted;
  char timer[32];
  unsigned pfc, bytes, may;
  while (std::scanf("%llu %llu %llu %llu %llu %31s %llu %u %u %u", &wanted.phase, &wanted.current,
                    &wanted.target, &wanted.speedups, &wanted.increase, timer, &wanted.deaf, &pfc,
                    &bytes, &may) == 10) {
    wanted.timed = timer[0] != '-';
    wanted.timer = wanted.timed ? std::strtoull(timer, nullptr, 10) : 0;
    dut.clk_i = 0;
    dut.pfc_i = pfc != 0;
    dut.valid_i = bytes != 0;
    dut.bytes_i = static_cast<uint8_t>(bytes);
    dut.eval();
    const State state = state_of(dut);
    if (state != wanted) fail(cycle, "state" + text_of(state) + ", not" + text_of(wanted));
    if (dut.acted_o != (pfc == 1) || dut.duplicate_o != (pfc == 2)) fail(cycle, "a PFC frame");
    if (bytes != 0 && dut.ready_o != may) fail(cycle, "a frame may go, or not");
    if (state.phase != last_phase || cycle == 0) phases[state.phase % 6]++;
    last_phase = state.phase;
    acted += pfc == 1;
    duplicates += pfc == 2;
    sent += bytes != 0 && may;
    held += bytes != 0 && !may;
    dut.clk_i = 1;
    dut.eval();
    cycle++;
  }
  const auto print = [](const char* name, uint64_t count) {
    std::printf("%s=%llu ", name, static_cast<unsigned long long>(count));
  };
  print("cycles", cycle);
  print("acted", acted);
  print("duplicates", duplicates);
  print("sent", sent);
  print("held", held);
  const char* names[] = {"stable",       "pfc_response", "recovery",
                         "recovery_pfc", "exploration",  "guessing"};
  for (unsigned i = 0; i < 6; i++) print(names[i], phases[i]);
  return 0;
}
