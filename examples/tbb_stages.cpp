// A pipeline of stages on oneTBB's threads: read, decode, augment, collate. An image moves to
// another thread between stages, so each stage records the number of its image. LOTUS_BATCH_TAKES
// records which batch an image becomes part of. Argument: a folder of JPEGs with one subfolder per
// class, such as images/ of imagenet_pipeline.
#include <oneapi/tbb/parallel_pipeline.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <iostream>
#include <lotus/lotus.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/transforms.hpp"
#include "next_step.hpp"

namespace {

namespace tbb = oneapi::tbb;

/// An image in the pipeline. Each stage sets some of the members.
struct photo {
  std::size_t number = 0;
  std::vector<std::uint8_t> jpeg;
  imagenet::sample picture;
  imagenet::tensor values;
};
using photo_ptr = std::shared_ptr<photo>;

struct batch {
  std::size_t number = 0;
  std::vector<float> values;
};
using batch_ptr = std::shared_ptr<batch>;
constexpr std::size_t batch_images = 8;
constexpr std::size_t max_in_flight = 16;

/// Runs the pipeline until all files are processed. Rethrows exceptions of the stages.
void run_stages(const std::vector<imagenet::labelled_file>& files, bounded_queue<batch>& made) {
  std::size_t read = 0;
  batch current;

  const auto read_next = [&](tbb::flow_control& flow) -> photo_ptr {
    if (read == files.size()) {
      flow.stop();
      return nullptr;
    }
    LOTUS_STAGE("Read", read);
    auto p = std::make_shared<photo>();
    p->number = read++;
    p->jpeg = imagenet::read_file(files[p->number].path);
    return p;
  };
  const auto decode = [](photo_ptr p) {
    LOTUS_STAGE("Decode", p->number);
    p->picture = {imagenet::decode_jpeg(p->jpeg), imagenet::random_source{7, 0, p->number}};
    return p;
  };
  const auto augment = [](photo_ptr p) {
    LOTUS_STAGE("Augment", p->number);
    p->values = imagenet::training_transform()(std::move(p->picture));
    return p;
  };
  const auto collate = [&](const photo_ptr& p) -> batch_ptr {
    LOTUS_STAGE("Collate", p->number);
    LOTUS_BATCH_TAKES(current.number, p->number);
    const std::vector<float>& values = p->values.values;
    current.values.insert(current.values.end(), values.begin(), values.end());
    if ((p->number + 1) % batch_images != 0 && p->number + 1 != files.size()) return nullptr;
    const std::size_t next = current.number + 1;
    return std::make_shared<batch>(std::exchange(current, {next, {}}));
  };
  const auto delivery = [&](const batch_ptr& full) {
    if (!full) return;
    made.push(std::move(*full));
    LOTUS_COUNTER("batches ready", made.size());
  };

  using tbb::filter_mode;
  tbb::parallel_pipeline(
      max_in_flight,
      tbb::make_filter<void, photo_ptr>(filter_mode::serial_in_order, read_next) &
          tbb::make_filter<photo_ptr, photo_ptr>(filter_mode::parallel, decode) &
          tbb::make_filter<photo_ptr, photo_ptr>(filter_mode::parallel, augment) &
          tbb::make_filter<photo_ptr, batch_ptr>(filter_mode::serial_in_order, collate) &
          // The delivery is not recorded as a stage, because it may do nothing but wait for the
          // consumer.
          tbb::make_filter<batch_ptr, void>(filter_mode::serial_in_order, delivery));
}

float train(const batch& b) {
  LOTUS_SCOPE("Train");
  return std::accumulate(b.values.begin(), b.values.end(), 0.0F);
}

float run(const std::string& directory) {
  const std::vector<imagenet::labelled_file> files = imagenet::list_images(directory);
  bounded_queue<batch> made{2};
  auto stages = std::async(std::launch::async, [&] {
    try {
      run_stages(files, made);
    } catch (...) {
      made.finish();
      throw;
    }
    made.finish();
  });
  float loss = 0;
  while (true) {
    lotus::batch_wait wait;
    const std::optional<batch> b = made.pop();
    if (!b) break;  // there are no more batches; without consumed(), the wait is not recorded
    wait.consumed(b->number);
    loss += train(*b);
  }
  stages.get();
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (!lotus::start("run/lotustrace_log")) return 1;
    std::cout << "loss: " << run(argc > 1 ? argv[1] : "images") << "\n";
    print_next_step("run/lotustrace_log");
  } catch (const std::exception& error) {
    std::cerr << "tbb_stages: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
