// Tests the batches of examples/imagenet: their contents must not depend on the number of workers,
// and the program must not hang if a worker fails.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <lotus/lotus.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "imagenet/batch_loader.hpp"
#include "imagenet/batch_slots.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/images/synthetic.hpp"
#include "imagenet/preprocessing.hpp"
#include "imagenet/workers.hpp"

using namespace imagenet;

namespace {

struct temporary_directory {
  temporary_directory() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() { std::filesystem::remove_all(path); }
  std::string path = (std::filesystem::temp_directory_path() / "lotus_test.XXXXXX").string();
};

using new_maker = std::function<batch_maker()>;

std::unique_ptr<workers> start(worker_kind kind, std::size_t count, const new_maker& maker) {
  if (count == 0) return no_workers(maker);
  if (kind == worker_kind::process) return start_worker_processes(count, maker);
  return start_worker_threads(count, batch_loader::max_tasks(count), maker);
}

/// The contents of all batches of a run with two epochs, in order.
struct contents {
  std::vector<std::int32_t> labels;
  std::vector<float> floats;
  std::vector<std::uint32_t> sizes;

  bool operator==(const contents& other) const {
    return labels == other.labels && floats == other.floats && sizes == other.sizes;
  }
};

contents run(const std::vector<labelled_file>& files, worker_kind kind, std::size_t count) {
  const batch_slots slots{batch_loader::slots_needed(count), 4};
  const auto crew = start(kind, count, [&] { return new_batch_maker(files, slots, 11); });
  batch_loader loader{*crew, count, slots};
  contents all;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(files.size(), epoch, 11);
    while (loader.has_next()) {
      const batch_slot batch = loader.next();
      all.sizes.push_back(batch.size->made);
      all.labels.insert(all.labels.end(), batch.labels, batch.labels + batch.size->made);
      all.floats.insert(all.floats.end(), batch.images,
                        batch.images + batch.size->made * image_floats);
    }
  }
  return all;
}

/// Returns the message of the exception that `call` throws; empty if it throws none.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Counts the lines of all logs by the kind of the log (main or worker) and the name in the line.
/// Batch numbers are removed from the names.
std::map<std::string, int> lines_by_name(const std::string& logs) {
  std::map<std::string, int> lines;
  for (const auto& entry : std::filesystem::directory_iterator{logs}) {
    const std::string file = entry.path().filename().string();
    if (!contains(file, "_pid_") || file[0] == '.') continue;
    const std::string kind = contains(file, "_main_pid_") ? "main " : "worker ";
    std::ifstream log{entry.path()};
    for (std::string line; std::getline(log, line);) {
      ++lines[kind + line.substr(0, line.find_first_of(",_"))];
    }
  }
  return lines;
}

bool no_child_is_left() {
  return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

}  // namespace

TEST_CASE("a generated image set has the file sizes of ImageNet", "[imagenet]") {
  const temporary_directory directory;
  make_images(directory.path + "/set", 60, 1);
  const file_sizes sizes = measure_images(directory.path + "/set");
  CHECK(sizes.count == 60);
  CHECK(sizes.mean_bytes == Approx(mean_bytes).epsilon(0.05));
  CHECK(sizes.std_bytes == Approx(std_bytes).epsilon(0.15));
  make_images(directory.path + "/again", 60, 1);
  CHECK(read_file(directory.path + "/set/class_3/image_13.jpg") ==
        read_file(directory.path + "/again/class_3/image_13.jpg"));
}

TEST_CASE("batches do not depend on the kind and number of workers", "[imagenet]") {
  const temporary_directory directory;
  make_images(directory.path + "/set", 26, 5);
  const std::vector<labelled_file> files = list_images(directory.path + "/set");
  const contents expected = run(files, worker_kind::thread, 0);
  CHECK(expected.sizes == std::vector<std::uint32_t>{4, 4, 4, 4, 4, 4, 2, 4, 4, 4, 4, 4, 4, 2});
  const auto half = static_cast<std::ptrdiff_t>(expected.floats.size() / 2);
  CHECK_FALSE(std::equal(expected.floats.begin(), expected.floats.begin() + half,
                         expected.floats.begin() + half));
  for (const std::size_t count : {1U, 2U, 5U, 20U}) {
    CHECK(run(files, worker_kind::thread, count) == expected);
    CHECK(run(files, worker_kind::process, count) == expected);
  }
  CHECK(no_child_is_left());
}

TEST_CASE("the loader skips a file that is not a JPEG", "[imagenet]") {
  const temporary_directory directory;
  make_images(directory.path + "/set", 10, 5);
  std::filesystem::resize_file(directory.path + "/set/class_2/image_2.jpg", 200);
  const std::vector<labelled_file> files = list_images(directory.path + "/set");
  CHECK(files.size() == 10);
  const contents all = run(files, worker_kind::process, 2);
  CHECK(all.labels.size() == 18);
  CHECK(all == run(files, worker_kind::thread, 3));
}

TEST_CASE("a failing worker ends the run with an error", "[imagenet]") {
  const batch_slots slots{batch_loader::slots_needed(3), 1};
  const auto error_with = [&](worker_kind kind, const std::function<void()>& failure) {
    return error_of([&] {
      const auto crew = start(kind, 3, [&] {
        return [&](const batch_task& task) {
          if (task.number == 7) failure();
        };
      });
      batch_loader loader{*crew, 3, slots};
      loader.begin_epoch(100, 0, 1);
      while (loader.has_next()) loader.next();
    });
  };
  const auto throws = [] { throw std::runtime_error{"no luck"}; };
  CHECK(error_with(worker_kind::thread, throws) == "no luck");
  CHECK(contains(error_with(worker_kind::process, throws), "failed with status 1"));
  CHECK(contains(error_with(worker_kind::process, [] { kill(getpid(), SIGKILL); }), "Killed"));
  CHECK(contains(error_with(worker_kind::process, [] { _exit(0); }), "ended too early"));
  CHECK(no_child_is_left());
}

TEST_CASE("the logs have a line for each operation and each batch", "[imagenet]") {
  const temporary_directory directory;
  make_images(directory.path + "/set", 26, 5);
  const std::vector<labelled_file> files = list_images(directory.path + "/set");
  for (const worker_kind kind : {worker_kind::thread, worker_kind::process}) {
    const std::string logs = directory.path + (kind == worker_kind::thread ? "/t" : "/p");
    REQUIRE(lotus::start(logs + "/lotustrace_log"));
    run(files, kind, 3);
    lotus::stop();
    const std::map<std::string, int> lines = lines_by_name(logs);
    const std::map<std::string, int> expected{{"worker SLoader", 52},
                                              {"worker SRandomResizedCrop", 52},
                                              {"worker SRandomHorizontalFlip", 52},
                                              {"worker SToTensor", 52},
                                              {"worker SNormalize", 52},
                                              {"worker STransform", 52},
                                              {"worker SCollation", 14},
                                              {"worker SBatchPreprocessed", 14},
                                              {"main SBatchQueued", 14},
                                              {"main SBatchWait", 14},
                                              {"main SBatchConsumed", 14}};
    CHECK(lines == expected);
  }
}

TEST_CASE("workers stop at once when they are no longer needed", "[imagenet]") {
  for (const worker_kind kind : {worker_kind::thread, worker_kind::process}) {
    const auto crew = start(kind, 2, [] { return [](const batch_task&) { usleep(20'000); }; });
    for (std::uint64_t i = 0; i < 4; ++i) crew->give(i % 2, {0, i, 0});
    crew->take();
  }
  CHECK(no_child_is_left());
}

TEST_CASE("the error for a directory without images names the directory", "[imagenet]") {
  const temporary_directory directory;
  CHECK(contains(error_of([&] { list_images(directory.path); }), directory.path + "/CLASS/*.jpg"));
  const std::string missing = directory.path + "/none";
  CHECK(error_of([&] { list_images(missing); }) == missing + ": No such file or directory");
}
