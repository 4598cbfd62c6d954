// Frames as a MAC sends and hears them by XGMII, eight octets a word.

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "../em_phy_rx/link_trace.h"

namespace ethernet {

using link_trace::fail;
using Octets = std::vector<uint8_t>;

constexpr uint64_t kIdleWord = 0x0707070707070707;

inline uint32_t crc32(const Octets& octets) {
  uint32_t crc = ~0u;
  for (const uint8_t octet : octets) {
    crc ^= octet;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

template <typename Random>
Octets frame(unsigned bytes, Random* random) {
  Octets octets(bytes - 4);
  for (uint8_t& octet : octets) octet = static_cast<uint8_t>(random->next());
  const uint32_t check = crc32(octets);
  for (int i = 0; i < 4; i++) octets.push_back(static_cast<uint8_t>(check >> 8 * i));
  return octets;
}

// The words of a MAC: frames with the shortest gaps that begin on lane 0.
class Mac {
 public:
  void send(const Octets& octets) {
    Octets all = {0xfb, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5};
    all.insert(all.end(), octets.begin(), octets.end());
    const size_t end = all.size();
    all.push_back(0xfd);
    // Twelve octets of gap, the terminate among them, on average: deficit idle count.
    deficit_ += 12;
    size_t gap = (8 - end % 8) % 8;
    while (gap + 4 < deficit_ || gap == 0) gap += 8;
    deficit_ -= gap < deficit_ ? gap : deficit_;
    all.resize(end + gap, 0x07);
    all[end] = 0xfd;
    for (size_t at = 0; at < all.size(); at += 8) {
      Word word;
      for (size_t i = 0; i < 8; i++) {
        word.data |= static_cast<uint64_t>(all[at + i]) << 8 * i;
        if (at + i == 0 || at + i >= end) word.control |= static_cast<uint8_t>(1u << i);
      }
      words_.push_back(word);
    }
  }

  struct Word {
    uint64_t data = 0;
    uint8_t control = 0;
  };
  size_t waits() const { return words_.size(); }
  Word head() const { return words_.empty() ? Word{kIdleWord, 0xff} : words_.front(); }
  void taken() {
    if (!words_.empty()) words_.pop_front();
  }

 private:
  std::deque<Word> words_;
  size_t deficit_ = 0;
};

// What comes out of the decoder, back into frames; they must come in consecutive words.
class Sink {
 public:
  std::vector<Octets> frames;
  // Error characters between frames: of an idle that changed on the way.
  uint64_t errors = 0;
  // A link that fails may cut a frame that goes up: idles within it, for which a MAC drops it.
  bool may_be_cut = false;

  void hear(uint64_t slot, uint64_t data, uint8_t control) {
    for (unsigned i = 0; i < 8; i++) {
      const uint8_t octet = static_cast<uint8_t>(data >> 8 * i);
      const bool character = (control >> i & 1) != 0;
      if (character && octet == 0xfb) {
        if (open_) fail(slot, "a start within a frame");
        open_ = true;
        octets_.clear();
      } else if (character && octet == 0xfd) {
        if (!open_ || octets_.size() < 7) fail(slot, "an end without a frame");
        frames.emplace_back(octets_.begin() + 7, octets_.end());
        open_ = false;
      } else if (character) {
        if (open_ && !may_be_cut) fail(slot, "an idle within a frame, or an error");
        open_ = false;
        errors += octet != 0x07;
      } else {
        if (!open_) fail(slot, "data without a frame");
        octets_.push_back(octet);
      }
    }
  }

 private:
  Octets octets_;
  bool open_ = false;
};

}  // namespace ethernet
