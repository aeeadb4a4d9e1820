// Measures how much sampling at 1 kHz slows down the ImageNet pipeline. Builds each batch three
// times, one directly after the other: without sampling, with the built-in collector, and with a
// timer of the same rate whose signal handler does nothing. The last one shows what the
// interruptions alone cost.
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigevent
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv
#include <time.h>    // NOLINT(modernize-deprecated-headers): timer_create

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <lotus/lotus.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "imagenet/batch_slots.hpp"
#include "imagenet/images/image_folder.hpp"
#include "imagenet/images/synthetic.hpp"
#include "imagenet/preprocessing.hpp"
#include "imagenet/workers.hpp"
#include "lotus/engine/engine.hpp"

namespace {

constexpr std::size_t images = 256;
constexpr std::size_t batch_size = 16;
constexpr std::size_t batches_an_epoch = images / batch_size;

enum mode : std::size_t { plain, sampled, bare_timer, modes };
using batch_seconds = std::array<double, modes>;

class timer {
 public:
  timer() {
    signal(SIGALRM, [](int) {});
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
  }
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() { timer_delete(timer_); }

  void every(long ns) {
    const itimerspec interval{{0, ns}, {0, ns}};
    timer_settime(timer_, 0, &interval, nullptr);
  }

 private:
  timer_t timer_{};
};

class measurement {
 public:
  explicit measurement(const std::string& directory)
      : files_(imagenet::list_images(directory)),
        slots_(1, batch_size),
        make_(imagenet::new_batch_maker(files_, slots_, 1)) {}

  batch_seconds make_batch(std::uint64_t number) {
    batch_seconds took{};
    for (std::size_t i = 0; i < modes; ++i) {
      const auto how = static_cast<mode>((number + i) % modes);
      switch_to(how, true);
      const auto start = std::chrono::steady_clock::now();
      make(number);
      took.at(how) =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      switch_to(how, false);
    }
    return took;
  }

 private:
  void switch_to(mode how, bool on) {
    constexpr long ms = 1'000'000;
    if (how == bare_timer) timer_.every(on ? ms : 0);
    if (how != sampled) return;
    if (on) {
      LOTUS_RESUME();
    } else {
      LOTUS_PAUSE();
    }
  }

  void make(std::uint64_t number) {
    const imagenet::batch_slot slot = slots_[0];
    slot.size->wanted = batch_size;
    for (std::size_t i = 0; i < batch_size; ++i) {
      slot.samples[i] = static_cast<std::uint32_t>(number % batches_an_epoch * batch_size + i);
    }
    make_({number / batches_an_epoch, number, 0});
  }

  std::vector<imagenet::labelled_file> files_;
  imagenet::batch_slots slots_;
  imagenet::batch_maker make_;
  timer timer_;
};

class temporary_folder {
 public:
  temporary_folder() {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "lotus-sampling-XXXXXX").string();
};

void print(const char* what, mode how, const std::vector<batch_seconds>& batches) {
  std::vector<double> ratios;
  double with = 0, without = 0;
  for (const batch_seconds& took : batches) {
    ratios.push_back(took.at(how) / took[plain]);
    with += took.at(how);
    without += took[plain];
  }
  std::sort(ratios.begin(), ratios.end());
  const auto quartile = [&](std::size_t which) {
    return 100 * (ratios[ratios.size() * which / 4] - 1);
  };
  std::printf("%-28s median %+.2f %% (quartiles %+.2f, %+.2f), all batches together %+.2f %%\n",
              what, quartile(2), quartile(1), quartile(3), 100 * (with / without - 1));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 480;
    if (count == 0) {
      std::fprintf(stderr, "usage: sampling_cost [BATCHES]\n");
      return 2;
    }
    setenv("LOTUS_COLLECTOR", "builtin", 1);
    // If the kernel forbids sampling, nothing can be measured. The library has then printed a
    // message.
    if (lotus::detail::find_collector() == nullptr) return 0;
    const temporary_folder folder;
    imagenet::make_images(folder / "images", images, 1);
    lotus::start(folder / "log/lotustrace_log");
    measurement m{folder / "images"};
    m.make_batch(0);
    std::vector<batch_seconds> batches;
    batches.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) batches.push_back(m.make_batch(i));
    LOTUS_DETACH();
    lotus::stop();
    print("built-in sampling at 1 kHz:", sampled, batches);
    print("a bare timer of 1 kHz:", bare_timer, batches);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sampling_cost: %s\n", error.what());
    return 1;
  }
  return 0;
}
