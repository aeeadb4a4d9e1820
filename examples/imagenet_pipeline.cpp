// The image-classification pipeline of the Lotus paper with real work. Worker threads or processes
// apply decoding, RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize and Collation to
// JPEG files. A consumer receives batches in order and simulates training.
//
// The source files are in imagenet/: preprocessing.cpp (what a worker does and records),
// batch_loader.cpp (the consumer), worker_threads.cpp and worker_processes.cpp, transforms.cpp.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <lotus/lotus.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "imagenet/batch_loader.hpp"
#include "imagenet/batch_slots.hpp"
#include "imagenet/image_source.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/options.hpp"
#include "imagenet/preprocessing.hpp"
#include "imagenet/workers.hpp"
#include "next_step.hpp"

namespace {

using steady_clock = std::chrono::steady_clock;

struct run_result {
  std::size_t batches = 0;
  std::size_t images = 0;
  std::size_t left_out = 0;
  std::size_t out_of_order = 0;
  double seconds = 0;
};

std::atomic<bool> interrupted{false};

/// After Ctrl-C, the run ends after the current batch and cleans up. A second Ctrl-C ends the
/// program immediately.
void end_early_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::unique_ptr<imagenet::workers> start_workers(const imagenet::pipeline_options& chosen,
                                                 const std::vector<imagenet::labelled_file>& files,
                                                 const imagenet::batch_slots& slots) {
  const auto new_maker = [&files, &slots, seed = chosen.seed] {
    return imagenet::new_batch_maker(files, slots, seed);
  };
  if (chosen.workers == 0) return imagenet::no_workers(new_maker);
  if (chosen.kind == imagenet::worker_kind::process) {
    return imagenet::start_worker_processes(chosen.workers, new_maker);
  }
  return imagenet::start_worker_threads(
      chosen.workers, imagenet::batch_loader::max_tasks(chosen.workers), new_maker);
}

run_result run_pipeline(const imagenet::pipeline_options& chosen,
                        const std::vector<imagenet::labelled_file>& files) {
  const imagenet::batch_slots slots{imagenet::batch_loader::slots_needed(chosen.workers),
                                    chosen.batch_size};
  const auto crew = start_workers(chosen, files, slots);
  imagenet::batch_loader loader{*crew, chosen.workers, slots};
  run_result result;
  const auto start = steady_clock::now();
  for (std::uint64_t epoch = 0; epoch < chosen.epochs && !interrupted; ++epoch) {
    loader.begin_epoch(files.size(), epoch, chosen.seed);
    while (loader.has_next() && !interrupted) {
      const imagenet::batch_slot batch = loader.next();
      // A GPU would train on batch.images and batch.labels at this point. Sleeping leaves the CPUs
      // free, as the GPU would.
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>{chosen.step_ms});
      ++result.batches;
      result.images += batch.size->made;
      result.left_out += batch.size->wanted - batch.size->made;
    }
  }
  result.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  result.out_of_order = loader.out_of_order();
  return result;
}

void print_summary(const imagenet::pipeline_options& chosen, const run_result& result,
                   bool recorded) {
  const bool processes = chosen.kind == imagenet::worker_kind::process;
  std::cout << std::fixed << std::setprecision(1) << result.images << " images in "
            << result.batches << " batches, " << result.seconds
            << " s: " << static_cast<double>(result.images) / result.seconds
            << " images/s (workers: " << chosen.workers << (processes ? ", process" : ", thread")
            << ")\nbatches that arrived out of order: " << result.out_of_order << "\n";
  if (result.left_out > 0) std::cout << "images left out: " << result.left_out << "\n";
  if (recorded) print_next_step(chosen.log_file);
}

}  // namespace

int main(int argc, char** argv) {
  int exit_status = 0;
  const std::optional<imagenet::pipeline_options> chosen =
      imagenet::parse_options(argc, argv, exit_status);
  if (!chosen) return exit_status;
  try {
    end_early_on_interrupt();
    const imagenet::image_source source{*chosen};
    const bool recorded = chosen->log_file != "none" && lotus::start(chosen->log_file);
    const run_result result = run_pipeline(*chosen, source.files());
    lotus::stop();
    print_summary(*chosen, result, recorded);
    if (interrupted) return 130;
    return result.images > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "imagenet_pipeline: " << error.what() << "\n";
    return 1;
  }
}
