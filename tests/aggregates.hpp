// Reads files of aggregates: operations whose calls were counted instead of recorded. This code is
// independent of lotus-tool, so that an error in the tool cannot hide an error of the library.
#ifndef LOTUS_TESTS_AGGREGATES_HPP
#define LOTUS_TESTS_AGGREGATES_HPP

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support.hpp"

namespace support {

/// One line of a section in a file of aggregates: the calls of one operation on one thread.
struct aggregate {
  std::string name;
  std::uint64_t tid = 0;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t self_ns = 0;
  std::map<std::uint64_t, std::uint64_t> buckets;
};

/// Returns the lines of all complete sections in the files of aggregates of a directory. A section
/// is complete if a line "end" follows it. If several sections of a file have the same name, only
/// the last one counts. Throws if the buckets of a line do not add up to its count.
inline std::vector<aggregate> read_aggregates(const fs::path& directory) {
  std::vector<aggregate> all;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(".lotus_aggregated_", 0) != 0) continue;
    std::map<std::string, std::vector<aggregate>> sections;
    std::vector<aggregate> section;
    std::ifstream in{entry.path()};
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields{line};
      std::string word;
      std::getline(fields, word, ',');
      std::string field;
      if (word.empty()) continue;
      if (word == "begin" || word == "end") {
        std::getline(fields, field, ',');
        if (word == "end") sections[field] = section;
        section.clear();
        continue;
      }
      aggregate a;
      a.name = word;
      for (std::uint64_t* const to : {&a.tid, &a.count, &a.total_ns, &a.self_ns}) {
        std::getline(fields, field, ',');
        *to = std::stoull(field);
      }
      std::uint64_t sum = 0;
      while (fields >> field) {
        const std::uint64_t n = std::stoull(field.substr(field.find(':') + 1));
        a.buckets[std::stoull(field)] += n;
        sum += n;
      }
      if (sum != a.count) throw std::runtime_error("does not add up: " + line);
      section.push_back(a);
    }
    for (const auto& [name, lines] : sections) all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

inline aggregate aggregate_of(const fs::path& directory, const std::string& name) {
  aggregate sum;
  for (const aggregate& a : read_aggregates(directory)) {
    if (a.name != name) continue;
    sum.name = a.name;
    sum.count += a.count;
    sum.total_ns += a.total_ns;
    sum.self_ns += a.self_ns;
    for (const auto& [bucket, n] : a.buckets) sum.buckets[bucket] += n;
  }
  return sum;
}

}  // namespace support

#endif  // LOTUS_TESTS_AGGREGATES_HPP
