// Provides a folder in memory, for fuzzers of functions that read folders.
#ifndef LOTUS_TESTS_FUZZ_FOLDER_HPP
#define LOTUS_TESTS_FUZZ_FOLDER_HPP

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "fuzz.hpp"

/// A folder whose destructor removes it with all files.
class fuzz_folder {
 public:
  explicit fuzz_folder(const std::string& name) {
    std::string path = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                       "/lotus_" + name + "_fuzz_XXXXXX";
    require(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~fuzz_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  fuzz_folder(const fuzz_folder&) = delete;
  fuzz_folder& operator=(const fuzz_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  void write(const std::string& file, const std::uint8_t* data, std::size_t size) const {
    std::ofstream out(path_ / file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));  // NOLINT
    require(out.flush().good());
  }

 private:
  std::filesystem::path path_;
};

#endif  // LOTUS_TESTS_FUZZ_FOLDER_HPP
