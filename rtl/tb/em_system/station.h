// The Ethernet of all nodes: frames to one another at random, each looked for where it must come.

#pragma once

#include "../em_phy_loop/ethernet.h"
#include "world.h"

namespace em {

class Stations {
 public:
  Stations(World& world, uint64_t seed) : world_(world), random_(seed) {
    world.drives.push_back([this] { drive(); });
    world.looks.push_back([this] { look(); });
  }

  // Frames of a node in a slot, on average.
  double share = 0;
  uint64_t sent = 0, heard = 0;

  // Every frame came once and in the order of its pair; if some may be lost, no other came.
  void check(bool lossless) {
    for (unsigned from = 0; from < kNodes; from++) {
      for (unsigned to = 0; to < kNodes; to++) {
        if (lossless && !pairs_[from][to].empty()) stop(world_.cycle(), "a frame did not come");
      }
    }
  }
  bool idle() const {
    for (unsigned n = 0; n < kNodes; n++) {
      if (macs_[n].waits() != 0) return false;
    }
    return true;
  }
  bool lossy = false;

 private:
  // Locally administered; the last octet is the node.
  static constexpr uint8_t kStation = 2;

  void send(unsigned from) {
    const bool all = random_.below(8) == 0;
    const unsigned to = static_cast<unsigned>(from + 1 + random_.below(kNodes - 1)) % kNodes;
    ethernet::Octets octets;
    for (int i = 0; i < 6; i++) {
      octets.push_back(all ? 0xff : i == 0 ? kStation : i == 5 ? static_cast<uint8_t>(to) : 0);
    }
    for (int i = 0; i < 6; i++) {
      octets.push_back(i == 0 ? kStation : i == 5 ? static_cast<uint8_t>(from) : 0);
    }
    const uint64_t size = random_.below(4) == 0 ? 46 + random_.below(1455) : 46 + random_.below(20);
    for (uint64_t i = 0; i < size + 2; i++) {
      octets.push_back(static_cast<uint8_t>(random_.next() >> 9));
    }
    const uint32_t check = ethernet::crc32(octets);
    for (int i = 0; i < 4; i++) octets.push_back(static_cast<uint8_t>(check >> 8 * i));
    for (unsigned n = 0; n < kNodes; n++) {
      if (n != from && (all || n == to)) pairs_[from][n].push_back(octets);
    }
    macs_[from].send(octets);
    sent++;
  }

  void drive() {
    Vem_system& dut = world_.dut();
    for (unsigned n = 0; n < kNodes; n++) {
      if (share > 0 && macs_[n].waits() < 400 && random_.chance(share)) send(n);
      const auto word = macs_[n].head();
      dut.xgmii_data_i[n] = word.data;
      dut.xgmii_control_i[n] = word.control;
    }
  }

  void look() {
    Vem_system& dut = world_.dut();
    for (unsigned n = 0; n < kNodes; n++) {
      if (dut.xgmii_ready_o[n]) macs_[n].taken();
      if (!dut.xgmii_valid_o[n]) continue;
      Sink& sink = sinks_[n];
      sink.may_be_cut = lossy;
      sink.hear(world_.cycle(), dut.xgmii_data_o[n], dut.xgmii_control_o[n]);
      if (!lossy && sink.errors != 0) stop(world_.cycle(), "an error between frames");
      for (const ethernet::Octets& frame : sink.frames) hear(n, frame);
      sink.frames.clear();
    }
  }

  // A flooded frame may come to a node that it is not for: a station that was not known yet.
  void hear(unsigned node, const ethernet::Octets& frame) {
    const unsigned from = frame.size() > 11 ? frame[11] : kNodes;
    if (from >= kNodes || from == node) stop(world_.cycle(), "a frame of nobody");
    if (frame[0] == kStation && frame[5] != node) return;
    auto& due = pairs_[from][node];
    while (lossy && !due.empty() && due.front() != frame) due.pop_front();
    if (due.empty() || due.front() != frame) stop(world_.cycle(), "another frame");
    due.pop_front();
    heard++;
  }

  using Sink = ethernet::Sink;

  World& world_;
  Random random_;
  std::array<ethernet::Mac, kNodes> macs_;
  std::array<Sink, kNodes> sinks_;
  std::deque<ethernet::Octets> pairs_[kNodes][kNodes];
};

}  // namespace em
