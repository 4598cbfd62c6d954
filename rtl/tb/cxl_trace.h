// What the benches that replay traces of crates/cxl share: what a trace's text holds, and
// the packed structs of em_cxl_pkg.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string>

namespace cxl_trace {

using Line = std::array<uint32_t, 16>;

[[noreturn]] inline void fail(uint64_t cycle, const std::string& what) {
  std::printf("cycle %llu: %s\n", static_cast<unsigned long long>(cycle), what.c_str());
  std::exit(1);
}

// Hexadecimal; `-` is nothing.
inline uint64_t number(const std::string& text) {
  return text == "-" ? 0 : std::stoull(text, nullptr, 16);
}

// The byte at the highest address is written first.
inline Line line_of(const std::string& text) {
  Line line = {};
  if (text == "-") return line;
  for (unsigned i = 0; i < 16; i++) {
    line[15 - i] = static_cast<uint32_t>(std::stoul(text.substr(8 * i, 8), nullptr, 16));
  }
  return line;
}

// Writes the bytes of a mask.
inline void store(Line* line, const Line& data, uint64_t mask) {
  for (unsigned i = 0; i < 64; i++) {
    if (mask >> i & 1) {
      const uint32_t lane = 0xffu << 8 * (i % 4);
      (*line)[i / 4] = ((*line)[i / 4] & ~lane) | (data[i / 4] & lane);
    }
  }
}

// Packed structs as words of 32 bits, filled from the lowest bit on.
template <size_t kWords>
struct Packed {
  uint32_t words[kWords] = {};
  unsigned at = 0;
  void put(uint64_t value, unsigned bits) {
    for (unsigned i = 0; i < bits; i++, at++) {
      words[at / 32] |= static_cast<uint32_t>(value >> i & 1) << at % 32;
    }
  }
  void put(const Line& line) {
    for (const uint32_t word : line) put(word, 32);
  }
};

using Request = Packed<20>;
using Response = Packed<17>;

// True if a port has the bits of a struct from one of them on.
template <typename Wide, size_t kWords>
bool equal(const Wide& have, const Packed<kWords>& want, unsigned from) {
  for (unsigned bit = from; bit < want.at; bit++) {
    if ((have[bit / 32] >> bit % 32 & 1) != (want.words[bit / 32] >> bit % 32 & 1)) return false;
  }
  return true;
}

inline std::string word(std::istream& in) {
  std::string text;
  in >> text;
  return text;
}

// `IS_READ ID STATUS DATA`.
inline Response response_of(std::istream& in, bool* has_data) {
  Response response;
  const uint64_t is_read = number(word(in)), id = number(word(in)), status = number(word(in));
  const std::string data = word(in);
  *has_data = data != "-";
  response.put(line_of(data));
  response.put(status, 2);
  response.put(id, 8);
  response.put(is_read, 1);
  return response;
}

// `ASK ID LINE MASK DATA`.
inline Request request_of(std::istream& in, bool* has_data) {
  Request request;
  const uint64_t ask = number(word(in)), id = number(word(in)), line = number(word(in));
  const uint64_t mask = number(word(in));
  const std::string data = word(in);
  *has_data = data != "-";
  request.put(line_of(data));
  request.put(mask, 64);
  request.put(line, 40);
  request.put(id, 8);
  request.put(ask, 2);
  return request;
}

}  // namespace cxl_trace
