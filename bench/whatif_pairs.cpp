#include "whatif_pairs.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "real_loader.hpp"

namespace bench {
namespace {

real_loader loader(int workers, std::vector<real_operation> operations, double step_sleep,
                   double step_cpu = 0) {
  real_loader l;
  l.workers = workers;
  l.operations = std::move(operations);
  l.step_sleep_ms = step_sleep;
  l.step_cpu_ms = step_cpu;
  return l;
}

class pair_list {
 public:
  std::vector<pair> all;

  void workers(const std::string& name, const real_loader& a, int now) {
    real_loader b = a;
    b.workers = now;
    add(name + ", " + std::to_string(a.workers) + " -> " + std::to_string(now) + " workers", a, b,
        "--workers " + std::to_string(now));
    pair& added = all.back();
    added.workers = static_cast<double>(now) / a.workers;
    added.more = now > a.workers;
    if (!added.more) return;
    // If `now` is more than twice `a.workers`, loader `between` has a number of workers between
    // those of `a` and `b`. Otherwise, it has more workers than both.
    real_loader between = a;
    between.workers = now > 2 * a.workers ? 2 * a.workers : 2 * now;
    added.also = run_of(between);
  }
  /// Adds a pair with different numbers of workers, where a lock, a device or another process
  /// limits the speedup.
  void contended(const std::string& name, const real_loader& a, int now) {
    workers(name, a, now);
    all.back().contended = true;
  }
  void prefetch(const std::string& name, const real_loader& a, int now) {
    real_loader b = a;
    b.prefetch = now;
    add(name + ", prefetch " + std::to_string(a.prefetch) + " -> " + std::to_string(now), a, b,
        "--prefetch " + std::to_string(now));
  }
  void unordered(const std::string& name, const real_loader& a) {
    real_loader b = a;
    b.ordered = false;
    add(name + ", in any order", a, b, "--unordered");
  }
  /// Adds a pair in which one operation becomes faster.
  /// @param share  the fraction of the operation's time that remains; 0: the operation is removed.
  void faster(const std::string& name, const real_loader& a, std::size_t op, double share) {
    real_loader b = a;
    b.operations[op].cpu_ms *= share;
    b.operations[op].sleep_ms *= share;
    const std::string& of = a.operations[op].name;
    add(name + ", " + of + (share > 0 ? " halved" : " gone"), a, b,
        share > 0 ? "--faster " + of + "=" + std::to_string(1 / share) : "--without " + of);
  }
  void loader_cpus(const std::string& name, const real_loader& a, int cpus) {
    real_loader b = a;
    b.loader_cpus = cpus;
    add(name + ", loader on " + std::to_string(cpus) + " CPU", a, b,
        "--loader-cpus " + std::to_string(cpus));
  }
  void step(const std::string& name, const real_loader& a, double factor) {
    real_loader b = a;
    b.step_cpu_ms *= factor;
    b.step_sleep_ms *= factor;
    add(name + ", step x " + std::to_string(factor).substr(0, 3), a, b,
        "--step " + std::to_string(factor));
  }

 private:
  void add(const std::string& name, const real_loader& a, const real_loader& b,
           const std::string& asked) {
    pair added;
    added.name = name;
    added.a = run_of(a);
    added.b = run_of(b);
    added.asked = asked;
    all.push_back(added);
  }

  static recorded_run run_of(const real_loader& loader) {
    return [loader](const std::string& folder) { run_real(loader, folder + "/run"); };
  }
};

}  // namespace

std::vector<pair> made_up_pairs() {
  pair_list pairs;
  const std::vector<real_operation> cpu{{"Decode", 5, 0, 0.3}, {"Crop", 2, 0, 0.2}};
  const std::vector<real_operation> disk{{"Read", 0, 9, 0.3}, {"Parse", 0.5, 0, 0}};
  const std::vector<real_operation> tail{{"Fetch", 0, 5, 1.0}, {"Parse", 0.3, 0, 0}};
  const std::vector<real_operation> both{{"Read", 0, 5, 0.3}, {"Decode", 3, 0, 0.3}};
  for (const int now : {2, 4}) pairs.workers("CPU", loader(1, cpu, 2), now);
  for (const int now : {1, 4}) pairs.workers("CPU", loader(2, cpu, 2), now);
  for (const int now : {1, 2, 8}) pairs.workers("CPU, more than CPUs", loader(4, cpu, 1), now);
  for (const int now : {2, 4}) pairs.workers("CPU, more than CPUs", loader(8, cpu, 1), now);
  for (const double share : {0.5, 0.0}) {
    for (const std::size_t op : {0U, 1U}) {
      pairs.faster("CPU, 2 workers", loader(2, cpu, 2), op, share);
      pairs.faster("CPU, 4 workers", loader(4, cpu, 1), op, share);
      pairs.faster("I/O + CPU, 4 workers", loader(4, both, 1), op, share);
      pairs.faster("CPU, consumer burns too", loader(2, cpu, 0, 3), op, share);
      pairs.faster("I/O + CPU, consumer burns too", loader(8, both, 0, 1), op, share);
    }
  }
  for (const double factor : {0.5, 2.0}) {
    pairs.step("CPU, 2 workers", loader(2, cpu, 6), factor);
    pairs.step("CPU, consumer burns too", loader(2, cpu, 0, 3), factor);
    pairs.step("I/O, 4 workers", loader(4, disk, 3), factor);
    pairs.step("heavy tail", loader(4, tail, 1), factor);
  }
  for (const int now : {1, 4, 8}) pairs.workers("I/O", loader(2, disk, 1), now);
  for (const int now : {2, 4}) pairs.workers("I/O", loader(8, disk, 1), now);
  for (const int now : {4, 8}) pairs.workers("I/O, consumer burns", loader(2, disk, 0, 2), now);
  for (const int now : {2, 8}) pairs.workers("I/O + CPU", loader(4, both, 1), now);
  for (const int now : {2, 4}) pairs.workers("I/O + CPU", loader(8, both, 1), now);
  for (const int now : {1, 2}) pairs.workers("heavy tail", loader(4, tail, 1), now);
  for (const int now : {8}) pairs.workers("heavy tail", loader(4, tail, 1), now);
  pairs.unordered("heavy tail, 4 workers", loader(4, tail, 1));
  pairs.unordered("heavy tail, 2 workers", loader(2, tail, 2));
  pairs.unordered("I/O + CPU, 4 workers", loader(4, both, 1));
  for (const int now : {1, 4}) pairs.prefetch("heavy tail, 4 workers", loader(4, tail, 2), now);
  for (const int now : {1, 4}) pairs.prefetch("CPU, 2 workers", loader(2, cpu, 4), now);
  real_loader narrow = loader(4, tail, 2);
  narrow.prefetch = 1;
  pairs.prefetch("heavy tail, 4 workers", narrow, 4);
  pairs.unordered("heavy tail, prefetch 1", narrow);
  for (const double share : {0.5, 0.0}) {
    real_loader stages =
        loader(1, {{"Read", 0, 3, 0.2}, {"Decode", 4, 0, 0.3}, {"Pack", 1, 0, 0}}, 1);
    stages.stages = true;
    pairs.faster("stages", stages, 1, share);
    pairs.faster("stages", stages, 0, share);
  }
  for (const double share : {0.5, 0.0})
    pairs.faster("I/O, 2 workers", loader(2, disk, 1), 0, share);
  for (const int channels : {1, 2}) {
    const std::vector<real_operation> limited{{"Fetch", 0, 4, 0.3, channels}, {"Crop", 0.6, 0, 0}};
    const std::string name = channels == 1 ? "lock" : "device of 2 channels";
    for (const int now : {2, 8}) pairs.contended(name, loader(1, limited, 0.2), now);
    for (const int now : {1, 4, 8}) pairs.contended(name, loader(2, limited, 0.2), now);
    for (const int now : {1, 2, 8}) pairs.contended(name, loader(4, limited, 0.2), now);
  }
  const real_operation decode{"Decode", 0, 3, 0.3, 0, 0, 2};
  for (const int workers : {2, 4, 8}) {
    real_loader locked = loader(workers, {decode, {"Crop", 0.3, 0, 0}}, 0.1);
    locked.batches = 1600;  // so that there are enough wait samples
    for (const int now : {1, 2, 4, 8}) {
      if (now != workers) pairs.contended("lock for a part of the time", locked, now);
    }
  }
  for (const int workers : {2, 4, 8}) {
    real_loader crowded = loader(workers, cpu, 1);
    crowded.neighbours = 2;
    for (const int now : {1, 2, 4, 8}) {
      if (now != workers) pairs.contended("crowded CPUs", crowded, now);
    }
  }
  for (const double share : {0.5, 0.0}) pairs.faster("heavy tail", loader(4, tail, 1), 0, share);
  const std::vector<real_operation> light{{"Decode", 3, 0, 0.3}};
  pairs.loader_cpus("CPU, consumer burns too", loader(2, cpu, 0, 3), 1);
  pairs.loader_cpus("CPU, 8 workers, consumer burns too", loader(8, cpu, 0, 6), 1);
  pairs.loader_cpus("light CPU, consumer burns more", loader(4, light, 0, 5), 1);
  pairs.loader_cpus("I/O + CPU, consumer burns too", loader(8, both, 0, 3), 1);
  pairs.loader_cpus("light CPU, step sleeps and burns", loader(8, light, 2, 3), 1);
  return pairs.all;
}

namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

recorded_run program(const std::string& command) {
  return [command](const std::string& folder) {
    const std::string all = "cd " + quoted(folder) + " && " + command + " >out 2>&1";
    if (std::system(all.c_str()) != 0) throw std::runtime_error("failed: " + all);
  };
}

/// Adds pairs of runs of a program that has the option --workers.
class program_pairs {
 public:
  /// @param usual  the program's options in pairs that differ only in the number of workers; the
  ///   option --workers itself is not among them.
  program_pairs(std::vector<pair>& all, std::string name, std::string command, std::string usual)
      : all_(all), name_(std::move(name)), command_(std::move(command)), usual_(std::move(usual)) {}

  void workers(int a, int b) {
    pair& p = add(std::to_string(a) + " -> " + std::to_string(b) + " workers", run(a, usual_),
                  run(b, usual_), "--workers " + std::to_string(b));
    p.workers = static_cast<double>(b) / a;
    p.more = b > a;
    if (p.more) p.also = run(2 * b, usual_);
  }
  void options(const std::string& name, const std::string& a, const std::string& b,
               const std::string& asked) {
    add(name, run(2, a), run(2, b), asked);
  }
  void cpus(const std::string& a, const std::string& b, const std::string& asked, bool more) {
    add("CPUs " + a + " -> " + b, program("taskset -c " + a + " " + command_),
        program("taskset -c " + b + " " + command_), asked)
        .more = more;
  }

 private:
  recorded_run run(int workers, const std::string& others) const {
    return program(command_ + " --workers " + std::to_string(workers) + " " + others);
  }
  pair& add(const std::string& what, const recorded_run& a, const recorded_run& b,
            const std::string& asked) {
    pair added;
    added.name = name_ + ", " + what;
    added.a = a;
    added.b = b;
    added.asked = asked;
    all_.push_back(added);
    return all_.back();
  }

  std::vector<pair>& all_;
  std::string name_;
  std::string command_;
  std::string usual_;
};

}  // namespace

std::vector<pair> example_pairs(const std::string& examples, const std::string& images) {
  std::vector<pair> all;
  const auto path_of = [&](const char* name) {
    const std::filesystem::path path = std::filesystem::absolute(examples) / name;
    if (std::filesystem::exists(path)) return quoted(path.string());
    std::printf("left out, as it is not built: %s\n", path.c_str());
    return std::string();
  };
  const auto both = [](program_pairs pairs) {
    for (const int now : {1, 4}) pairs.workers(2, now);
    pairs.workers(1, 2);
    pairs.workers(4, 2);
    return pairs;
  };
  const std::string imagenet = path_of("imagenet_pipeline");
  if (!imagenet.empty()) {
    program(imagenet + " --make-images " + quoted(images) +
            " --count 480 --workers 0 --step-ms 0 --log-file none")(images);
    for (const std::string kind : {"thread", "process"}) {
      const std::string command = std::string(imagenet)
                                      .append(" --images " + quoted(images))
                                      .append(" --epochs 2 --worker-kind " + kind);
      program_pairs pairs = both({all, "ImageNet, " + kind, command, "--batch-size 8 --step-ms 2"});
      pairs.options("step x 0.5", "--batch-size 8 --step-ms 40", "--batch-size 8 --step-ms 20",
                    "--step 0.5");
      pairs.options("step x 3", "--batch-size 8 --step-ms 10", "--batch-size 8 --step-ms 30",
                    "--step 3");
      pairs.options("batches x 2", "--batch-size 8 --step-ms 5", "--batch-size 16 --step-ms 10",
                    "--batch-size 2x");
    }
    const std::string stages = path_of("tbb_stages");
    if (!stages.empty()) {
      program_pairs pairs(all, "oneTBB stages", stages + " " + quoted(images), "");
      pairs.cpus("0,1", "0", "--cpus 1 --workers 1", false);
      pairs.cpus("0", "0,1", "--cpus 2 --workers 2", true);
    }
  }
  const std::string torch = path_of("torch_image_classification");
  if (!torch.empty()) {
    const std::string command =
        torch + " --data " + quoted(images + "/torch") + " --count 480 --model-width 8";
    program(command + " --log-file none")(images);
    both({all, "libtorch", command + " --epochs 2", "--batch-size 8"})
        .options("batches x 2", "--batch-size 8", "--batch-size 16", "--batch-size 2x");
  }
  return all;
}

}  // namespace bench
