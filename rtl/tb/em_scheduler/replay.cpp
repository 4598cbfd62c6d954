// Replays traces of golden/sched on a Verilated scheduler with the ports of em_scheduler: the same
// inputs in the same cycles, and every grant must come in its cycle, with every field. Reads a
// trace from the standard input.
//
// The model decides a cycle at once; the hardware stores what arrives in it, decides in one of the
// next two, and shows grants in the one after that. So grants are due GRANT_CYCLES after their row,
// and a refusal REFUSAL_CYCLES after its request.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define QUOTED(name) #name
#define HEADER(model) QUOTED(model.h)
#include HEADER(MODEL)
#include "../coverage.h"
#include "verilated.h"

namespace {

constexpr uint64_t kLatencyCycles = GRANT_CYCLES;
constexpr uint64_t kIterationCycles = 3;

struct Row {
  uint64_t cycle = 0;
  std::string event;
  unsigned source = 0, destination = 0;
  bool response = false;
  uint32_t tag = 0, bytes = 0, blocks = 0;
  uint64_t at_cycle = 0;
  bool first = false, last = false;
};

struct Totals {
  uint64_t grants = 0, notified = 0, refused = 0, demanded = 0, granted = 0;
};

[[noreturn]] void fail(uint64_t cycle, const std::string& what) {
  std::printf("cycle %llu: %s\n", static_cast<unsigned long long>(cycle), what.c_str());
  std::exit(1);
}

uint64_t number(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

Row parse(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line + ",");
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  if (fields.size() < 11) fail(0, "not a row: " + line);
  Row row;
  row.cycle = number(fields[0]);
  row.event = fields[1];
  row.source = static_cast<unsigned>(number(fields[2]));
  row.destination = static_cast<unsigned>(number(fields[3]));
  row.response = fields[4] == "response";
  row.tag = static_cast<uint32_t>(number(fields[5]));
  row.bytes = static_cast<uint32_t>(number(fields[6]));
  row.blocks = static_cast<uint32_t>(number(fields[7]));
  row.at_cycle = number(fields[8]);
  row.first = fields[9] == "1";
  row.last = fields[10] == "1";
  return row;
}

// A trace, a cycle's rows at a time.
class Trace {
 public:
  Trace() {
    std::string line;
    std::getline(std::cin, line);
    std::stringstream words(line.substr(2));
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      config_[word.substr(0, equals)] = word.substr(equals + 1);
    }
    std::getline(std::cin, line);
    advance();
  }

  const std::string& config(const std::string& name) const { return config_.at(name); }
  bool ended() const { return ended_; }

  // The next row, if it is of this cycle.
  bool take(uint64_t cycle, Row* row) {
    if (ended_ || next_.cycle != cycle) return false;
    *row = next_;
    advance();
    return true;
  }

 private:
  void advance() {
    std::string line;
    do {
      ended_ = !std::getline(std::cin, line);
    } while (!ended_ && line[0] == '#');
    if (!ended_) next_ = parse(line);
  }

  std::map<std::string, std::string> config_;
  Row next_;
  bool ended_ = false;
};

// em_sched_pkg::decision_t; the first field of a packed struct is the highest.
struct Grant {
  explicit Grant(uint64_t word)
      : valid(word >> 60 & 1),
        response(word >> 59 & 1),
        first(word >> 58 & 1),
        last(word >> 57 & 1),
        destination(word >> 48 & 0x1ff),
        tag(word >> 32 & 0xffff),
        bytes(word >> 16 & 0xffff),
        delay(word & 0xffff) {}

  bool valid, response, first, last;
  unsigned destination, tag, bytes, delay;
};

class Bench {
 public:
  explicit Bench(const Trace& trace) : ports_(number(trace.config("ports"))) {
    if (ports_ != PORTS || number(trace.config("slot_cycles")) != SLOT_CYCLES ||
        number(trace.config("chunk_bytes")) != CHUNK_BYTES) {
      fail(0, "the model was built for other parameters");
    }
    const std::string policy = trace.config("policy");
    const unsigned code = policy == "srpt" ? 2 : policy == "srpt-published" ? 1 : 0;
    const auto option = [&](const char* name, unsigned bits) -> uint32_t {
      const std::string& text = trace.config(name);
      return text == "none" ? 0 : 1u << bits | static_cast<uint32_t>(number(text));
    };
    // Packed structs: the first field is the highest.
    dut_.rank_config_i = code << 23 | option("late_bytes_min", 22);
    dut_.control_config_i = static_cast<uint16_t>(option("control_blocks_free", 8));
    dut_.window_cycles_i =
        static_cast<uint16_t>(kIterationCycles * number(trace.config("lookahead_iterations")));
    dut_.ahead_cycles_i = static_cast<uint16_t>(number(trace.config("ahead_blocks")) * SLOT_CYCLES);
    dut_.port_up_i = dut_.source_room_i = dut_.destination_room_i = (1u << ports_) - 1;
    dut_.clk_i = 0;
    dut_.rst_ni = 0;
    idle();
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  // One cycle with the rows that the trace has for it.
  void cycle(uint64_t now, Trace* trace) {
    idle();
    uint32_t refused = 0;
    for (Row row; trace->take(now, &row);) {
      if (row.event == "grant") {
        expected_.push_back(row);
      } else if (row.event == "uplink") {
        dut_.uplink_blocks_i[row.source] += row.blocks;
      } else if (row.event == "downlink") {
        dut_.downlink_blocks_i[row.destination] += row.blocks;
      } else {
        refused |= notify(now, row);
      }
    }
    dut_.clk_i = 0;
    dut_.eval();
    refused_.push_back(refused);
    if (refused_.size() > REFUSAL_CYCLES) {
      if (dut_.ask_refused_o != refused_.front()) fail(now, "a notification refused or not");
      refused_.pop_front();
    }
    check(now);
    dut_.clk_i = 1;
    dut_.eval();
  }

  bool waits() const { return !expected_.empty(); }
  const Totals& totals() const { return totals_; }

 private:
  void idle() {
    for (unsigned port = 0; port < ports_; port++) {
      dut_.ask_i[port] = 0;
      dut_.uplink_blocks_i[port] = 0;
      dut_.downlink_blocks_i[port] = 0;
    }
  }

  uint32_t notify(uint64_t now, const Row& row) {
    const unsigned asker = row.response ? row.destination : row.source;
    const uint32_t bit = 1u << asker;
    if (dut_.ask_i[asker] != 0) fail(now, "a port asks twice in the trace");
    const uint64_t peer = row.response ? row.source : row.destination;
    dut_.ask_i[asker] = 1ull << 48 | static_cast<uint64_t>(row.response) << 47 | peer << 38 |
                        static_cast<uint64_t>(row.bytes) << 16 | static_cast<uint16_t>(row.tag);
    if (row.event == "refused") {
      totals_.refused++;
      return bit;
    }
    totals_.notified++;
    totals_.demanded += row.bytes;
    return 0;
  }

  void check(uint64_t now) {
    std::vector<Grant> grants;
    for (unsigned port = 0; port < ports_; port++) grants.emplace_back(dut_.decision_o[port]);
    while (!expected_.empty() && expected_.front().cycle + kLatencyCycles == now) {
      const Row row = expected_.front();
      expected_.pop_front();
      Grant& found = grants.at(row.source);
      const uint64_t at_cycle = now - kLatencyCycles + found.delay;
      if (!found.valid || found.destination != row.destination || found.response != row.response ||
          found.tag != static_cast<uint16_t>(row.tag) || found.bytes != row.bytes ||
          found.first != row.first || found.last != row.last || at_cycle != row.at_cycle) {
        std::stringstream text;
        text << "source " << row.source << " has " << found.valid << " destination "
             << found.destination << " tag " << found.tag << " bytes " << found.bytes << " at "
             << at_cycle << ", not destination " << row.destination << " tag "
             << static_cast<uint16_t>(row.tag) << " bytes " << row.bytes << " at " << row.at_cycle;
        fail(now, text.str());
      }
      found.valid = false;
      totals_.grants++;
      totals_.granted += row.bytes;
    }
    for (const Grant& more : grants) {
      if (more.valid) fail(now, "a grant that the model does not make");
    }
  }

  unsigned ports_;
  MODEL dut_;
  em::Coverage coverage_;
  std::deque<Row> expected_;
  std::deque<uint32_t> refused_;
  Totals totals_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Trace trace;
  Bench bench(trace);
  uint64_t now = 0;
  for (; !trace.ended() || bench.waits(); now++) bench.cycle(now, &trace);
  for (const uint64_t end = now + 100; now < end; now++) bench.cycle(now, &trace);
  const Totals& totals = bench.totals();
  if (totals.granted != totals.demanded) fail(now, "bytes demanded and granted differ");
  std::printf("replayed %llu cycles, %llu notifications, %llu refused, %llu grants, all equal\n",
              static_cast<unsigned long long>(now),
              static_cast<unsigned long long>(totals.notified),
              static_cast<unsigned long long>(totals.refused),
              static_cast<unsigned long long>(totals.grants));
  return 0;
}
