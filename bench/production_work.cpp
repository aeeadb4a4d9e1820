// Two test programs. production.sh runs them with and without recording, to measure the cost of
// recording. Usage: production_work tokenizer|service.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <lotus/lotus.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

std::string text_of(std::size_t words, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::uint64_t n = 3 + random() % 8; n > 0; --n) {
      text += static_cast<char>((random() % 8 == 0 ? 'A' : 'a') + random() % 26);
    }
    text += ' ';
  }
  return text;
}

/// A tokenizer with much instrumentation: for each word it records several nested operations, which
/// take a fraction of a microsecond each.
class tokenizer {
 public:
  std::uint64_t encode(std::string_view text) {
    LOTUS_SCOPE("Encode");
    std::uint64_t sum = 0;
    while (!text.empty()) {
      LOTUS_SCOPE("Word");
      const std::size_t end = std::min(text.find(' '), text.size());
      word_.assign(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      sum += segments();
    }
    return sum;
  }

 private:
  /// Splits the current word into letters and repeatedly merges the two neighbors whose hash is
  /// smallest. This is a simple model of byte pair encoding, which merges the most frequent pair.
  std::uint64_t segments() {
    LOTUS_SCOPE("Pieces");
    lower();
    parts_.assign(word_.begin(), word_.end());
    while (parts_.size() > 2) {
      std::size_t least = 0;
      for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
        if (merged(i) < merged(least)) least = i;
      }
      parts_[least] = merged(least);
      parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(least) + 1);
    }
    return look_up();
  }
  std::uint64_t merged(std::size_t i) const {
    return (parts_[i] * 0x9E3779B97F4A7C15U) ^ (parts_[i + 1] * 0xC2B2AE3D27D4EB4FU);
  }
  void lower() {
    LOTUS_SCOPE("Lower");
    for (char& c : word_) c = static_cast<char>(c | 0x20);
  }
  std::uint64_t look_up() {
    LOTUS_SCOPE("LookUp");
    return ids_.emplace(word_, ids_.size()).first->second;
  }

  std::string word_;
  std::vector<std::uint64_t> parts_;
  std::unordered_map<std::string, std::uint64_t> ids_;
};

/// Processes batches of 64 texts as fast as possible.
std::uint64_t tokenize() {
  const std::string text = text_of(200, 1);
  tokenizer tokens;
  std::uint64_t sum = 0;
  for (std::uint64_t batch = 0; batch < 300; ++batch) {
    LOTUS_BATCH_PREPROCESSED(batch);
    for (int i = 0; i < 64; ++i) sum += tokens.encode(text);
  }
  return sum;
}

/// Processes 2,000 requests per second, each of which stores six records.
std::uint64_t serve() {
  std::uint64_t sum = 0;
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t number = 0; number < 6'000; ++number) {
    next += std::chrono::microseconds{500};
    std::this_thread::sleep_until(next);
    LOTUS_STAGE("Request", number);
    std::string text;
    {
      LOTUS_SCOPE("Read");
      text = text_of(100, number);
    }
    LOTUS_COUNTER("bytes", static_cast<std::int64_t>(text.size()));
    for (const char* step : {"Check", "Rank", "Answer"}) {
      LOTUS_SCOPE_DYNAMIC(step);
      for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const work = argc == 2 ? argv[1] : "";
  std::uint64_t sum = 0;
  if (std::strcmp(work, "tokenizer") == 0) {
    sum = tokenize();
  } else if (std::strcmp(work, "service") == 0) {
    sum = serve();
  } else {
    std::fputs("usage: production_work tokenizer|service\n", stderr);
    return 2;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
