// A network between two stations with AXI4-Streams, for benches: frames are lost, doubled, damaged
// and overtaken.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cxl_trace {

constexpr uint64_t kFlightCycles = 120;
constexpr unsigned kBeatWords = 19;

using Beat = std::array<uint32_t, kBeatWords>;
using Counts = std::map<std::string, uint64_t>;

// Loss, duplicates and damage of 10,000 frames, how late a frame can be, and in which share of the
// cycles a MAC takes a beat.
struct Faults {
  uint64_t loss = 0, duplicates = 0, damage = 0, jitter_cycles = 0, ready_percent = 90;
};

template <typename Dut>
class Network {
 public:
  Network(const Faults& faults, uint64_t seed) : faults_(faults), draws_(seed) {}

  // Before a cycle: one beat to each station, of the frame that has come first.
  void offer(uint64_t now, Dut* dut) {
    dut->beat_valid_i = dut->error_i = dut->beat_ready_i = 0;
    for (unsigned to = 0; to < 2; to++) {
      dut->beat_ready_i |= (draws_() % 100 < faults_.ready_percent) << to;
      auto& flying = flying_[to];
      Frame& frame = arriving_[to];
      if (frame.beats.empty() && !flying.empty() && flying.begin()->first <= now) {
        frame = flying.begin()->second;
        flying.erase(flying.begin());
      }
      if (frame.beats.empty()) continue;
      dut->beat_valid_i |= 1u << to;
      dut->error_i |= frame.error << to;
      for (unsigned i = 0; i < kBeatWords; i++) dut->beat_i[to][i] = frame.beats.front()[i];
      frame.beats.erase(frame.beats.begin());
    }
  }

  // In a cycle: what leaves either station.
  void take(uint64_t now, const Dut& dut, Counts* counts) {
    for (unsigned from = 0; from < 2; from++) {
      if (((dut.beat_valid_o & dut.beat_ready_i) >> from & 1) == 0) continue;
      Beat beat;
      for (unsigned i = 0; i < kBeatWords; i++) beat[i] = dut.beat_o[from][i];
      leaving_[from].push_back(beat);
      // The lowest bit is the last beat's.
      if (beat[0] & 1) carry(from, now, counts);
    }
  }

 private:
  struct Frame {
    std::vector<Beat> beats;
    bool error = false;
  };

  bool chance(uint64_t of_10_000) { return draws_() % 10'000 < of_10_000; }

  void carry(unsigned from, uint64_t now, Counts* counts) {
    Frame frame;
    std::swap(frame.beats, leaving_[from]);
    (*counts)["frames"]++;
    if (chance(faults_.loss)) {
      (*counts)["lost"]++;
      return;
    }
    for (unsigned copies = chance(faults_.duplicates) ? 2 : 1; copies > 0; copies--) {
      Frame copy = frame;
      copy.error = chance(faults_.damage);
      if (copy.error) copy.beats.front()[draws_() % kBeatWords] ^= 2u << draws_() % 31;
      (*counts)["damaged"] += copy.error;
      const uint64_t late = faults_.jitter_cycles ? draws_() % faults_.jitter_cycles : 0;
      flying_[1 - from].emplace(now + kFlightCycles + late, copy);
    }
  }

  Faults faults_;
  std::mt19937 draws_;
  std::multimap<uint64_t, Frame> flying_[2];
  Frame arriving_[2];
  std::vector<Beat> leaving_[2];
};

}  // namespace cxl_trace
