// Replays frames of the Rust codec on the Verilated em_cxl_codec: each sound packet must leave as
// the frame's octets, and each frame must be read as its packet, or be dropped for its fault, two
// cycles behind its last beat. Reads a trace of `codec_trace` from the standard input.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../coverage.h"
#include "../cxl_trace.h"
#include "Vem_cxl_codec.h"
#include "verilated.h"

namespace {

using cxl_trace::equal;
using cxl_trace::fail;
using cxl_trace::number;
using cxl_trace::Packed;
using cxl_trace::word;

constexpr unsigned kBeat = 64;
// Bits of the fields from the lowest one on; the third is the data.
constexpr unsigned kFields[] = {16, 32, 512, 64, 2, 40, 8, 32, 1, 32, 32, 8, 48, 48};

struct Row {
  std::vector<uint8_t> octets;
  bool sent = false;
  unsigned fault = 0;
  // A failed check sequence, which the stream says.
  bool error = false;
  Packed<28> packet;
};

bool parse(Row* row) {
  std::string text;
  if (!std::getline(std::cin, text)) return false;
  std::istringstream in(text);
  *row = Row();
  const std::string octets = word(in);
  for (size_t i = 0; i < octets.size(); i += 2) {
    row->octets.push_back(static_cast<uint8_t>(number(octets.substr(i, 2))));
  }
  row->sent = word(in) == "1";
  row->fault = static_cast<unsigned>(number(word(in)));
  for (const unsigned bits : kFields) {
    const std::string field = word(in);
    if (bits == 512) {
      row->packet.put(cxl_trace::line_of(field.size() == 128 ? field : "-"));
    } else {
      row->packet.put(number(field), bits);
    }
  }
  return true;
}

class Bench {
 public:
  explicit Bench(unsigned share) : share_(share) {
    dut_.clk_i = dut_.rst_ni = 0;
    dut_.valid_i = dut_.beat_valid_i = dut_.beat_ready_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
    more_ = parse(&row_);
  }

  bool waits() const { return more_ || !sending_.empty() || !reading_.empty(); }

  // Each row is sent, if it is as it is sent, and read.
  void cycle() {
    dut_.clk_i = 0;
    if (more_ && !offered_ && chance()) {
      offered_ = true;
      sent_ = !row_.sent;
      at_ = 0;
      row_.error = draws_() % 16 == 0;
    }
    dut_.valid_i = offered_ && !sent_;
    for (unsigned i = 0; i < 28; i++) dut_.packet_i[i] = row_.packet.words[i];
    dut_.beat_ready_i = chance();
    const bool beats = offered_ && at_ < row_.octets.size() && chance();
    offer_beat(beats);
    dut_.eval();
    check_beat();
    check_packet();
    if (dut_.valid_i && dut_.ready_o) {
      sent_ = true;
      sending_.push_back(row_);
    }
    if (beats) {
      at_ += kBeat;
      if (at_ >= row_.octets.size()) reading_.push_back({now_ + 2, row_});
    }
    if (offered_ && sent_ && at_ >= row_.octets.size()) {
      offered_ = false;
      more_ = parse(&row_);
    }
    if (now_ > 10'000'000) fail(now_, "it does not end");
    dut_.clk_i = 1;
    dut_.eval();
    now_++;
  }

  void print() const {
    std::printf("cycles=%llu", static_cast<unsigned long long>(now_));
    for (const auto& [name, count] : counts_) {
      std::printf(" %s=%llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  bool chance() { return draws_() % 100 < share_; }

  // Lanes without an octet carry anything.
  void offer_beat(bool valid) {
    dut_.beat_valid_i = valid;
    Packed<19> beat;
    uint64_t keep = 0;
    const bool last = at_ + kBeat >= row_.octets.size();
    beat.put(last, 1);
    for (unsigned i = 0; i < kBeat; i++) {
      if (at_ + i < row_.octets.size()) keep |= uint64_t{1} << i;
    }
    beat.put(keep, 64);
    for (unsigned i = 0; i < kBeat; i++) {
      beat.put(at_ + i < row_.octets.size() ? row_.octets[at_ + i] : draws_() & 0xff, 8);
    }
    for (unsigned i = 0; i < 19; i++) dut_.beat_i[i] = beat.words[i];
    dut_.error_i = last ? row_.error : draws_() & 1;
  }

  uint64_t bits(unsigned from, unsigned count) const {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
      value |= static_cast<uint64_t>(dut_.beat_o[(from + i) / 32] >> (from + i) % 32 & 1) << i;
    }
    return value;
  }

  void check_beat() {
    if (!dut_.beat_valid_o || !dut_.beat_ready_i) return;
    if (sending_.empty()) fail(now_, "a beat of no frame");
    const std::vector<uint8_t>& octets = sending_.front().octets;
    const bool last = out_ + kBeat >= octets.size();
    if (bits(0, 1) != last) fail(now_, "the last beat, or not");
    for (unsigned i = 0; i < kBeat; i++) {
      const bool has = out_ + i < octets.size();
      if (bits(1 + i, 1) != has) fail(now_, "an octet, or none");
      if (has && bits(65 + 8 * i, 8) != octets[out_ + i]) fail(now_, "another octet");
    }
    out_ += kBeat;
    if (!last) return;
    counts_["sent"]++;
    counts_["longest"] += octets.size() == 97;
    sending_.pop_front();
    out_ = 0;
  }

  void check_packet() {
    const bool due = !reading_.empty() && reading_.front().cycle == now_;
    if (due != (dut_.valid_o || dut_.dropped_o)) fail(now_, "a frame has ended, or not");
    if (!due) return;
    const Row& row = reading_.front().row;
    const bool sound = row.fault == 0 && !row.error;
    if (dut_.valid_o != sound || dut_.dropped_o == sound) fail(now_, "sound, or not");
    const unsigned fault = row.error ? 0 : row.fault;
    if (dut_.fault_o != fault) {
      fail(now_, "fault " + std::to_string(dut_.fault_o) + ", not " + std::to_string(fault));
    }
    if (sound && !equal(dut_.packet_o, row.packet, 0)) fail(now_, "another packet");
    counts_[row.error ? "errors" : "fault_" + std::to_string(row.fault)]++;
    reading_.pop_front();
  }

  struct Due {
    uint64_t cycle;
    Row row;
  };

  Vem_cxl_codec dut_;
  em::Coverage coverage_;
  std::mt19937 draws_{1};
  unsigned share_;
  Row row_;
  bool more_ = false, offered_ = false, sent_ = false;
  size_t at_ = 0, out_ = 0;
  uint64_t now_ = 0;
  std::deque<Row> sending_;
  std::deque<Due> reading_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Bench bench(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100);
  while (bench.waits()) bench.cycle();
  bench.print();
  return 0;
}
