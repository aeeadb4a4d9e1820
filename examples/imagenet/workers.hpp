// Those who make batches: threads, processes, or the consumer itself.
#ifndef IMAGENET_WORKERS_HPP
#define IMAGENET_WORKERS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace imagenet {

enum class worker_kind { thread, process };

/// "Make batch `number` of `epoch` in `slot`", and the answer that it is made. Goes through pipes.
struct batch_task {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  std::uint64_t slot = 0;
};

/// Makes one batch. Each worker has one of its own.
using batch_maker = std::function<void(const batch_task&)>;

/// Each worker has a queue of tasks; all put what they have made into one queue.
/// Thread safety: one thread, the consumer's, calls.
class workers {
 public:
  workers() = default;
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;
  /// Stops all workers, without making what is still queued, and waits for their end.
  virtual ~workers() = default;

  /// Puts a task into a worker's queue.
  virtual void give(std::size_t worker, const batch_task& task) = 0;
  /// Waits for the next batch that any worker has made, in the order in which they were made.
  /// Errors: std::runtime_error when a worker has failed.
  virtual batch_task take() = 0;
};

/// @param new_maker  called once in each worker.
/// @param most_tasks  never are more tasks than that given and not yet taken.
std::unique_ptr<workers> start_worker_threads(std::size_t count, std::size_t most_tasks,
                                              const std::function<batch_maker()>& new_maker);
/// The same with forked processes. Errors: std::system_error.
std::unique_ptr<workers> start_worker_processes(std::size_t count,
                                                const std::function<batch_maker()>& new_maker);
/// The same without workers: take() makes the batch.
std::unique_ptr<workers> no_workers(const std::function<batch_maker()>& new_maker);

}  // namespace imagenet

#endif  // IMAGENET_WORKERS_HPP
