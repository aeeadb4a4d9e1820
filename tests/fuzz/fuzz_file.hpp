// Provides a file in memory, for fuzzers of functions that read files.
#ifndef LOTUS_TESTS_FUZZ_FILE_HPP
#define LOTUS_TESTS_FUZZ_FILE_HPP

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "fuzz.hpp"

/// A file whose destructor removes it.
class fuzz_file {
 public:
  explicit fuzz_file(const std::string& name)
      : path_(std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/lotus_" + name +
              "_fuzz_XXXXXX") {
    const int made = mkstemp(path_.data());
    require(made >= 0);
    close(made);
  }
  ~fuzz_file() { unlink(path_.c_str()); }
  fuzz_file(const fuzz_file&) = delete;
  fuzz_file& operator=(const fuzz_file&) = delete;

  const std::string& path() const noexcept { return path_; }

  void write(const std::uint8_t* data, std::size_t size) const {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));  // NOLINT
    require(out.flush().good());
  }

 private:
  std::string path_;
};

#endif  // LOTUS_TESTS_FUZZ_FILE_HPP
