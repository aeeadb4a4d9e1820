// Provides the workers, which build batches in threads, in processes, or in the consumer itself.
#ifndef IMAGENET_WORKERS_HPP
#define IMAGENET_WORKERS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace imagenet {

enum class worker_kind { thread, process };

/// A request to build batch `number` of `epoch` in slot `slot`. The worker returns the same struct
/// when the batch is built. It may be sent through a socket.
struct batch_task {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  std::uint64_t slot = 0;
};

/// A function that builds the batch of a task. Each worker has its own function object.
using batch_maker = std::function<void(const batch_task&)>;

/// A set of workers. Each worker has its own queue of tasks, and all workers put finished batches
/// into a common queue. Only one thread, the consumer, may call give() and take().
class workers {
 public:
  workers() = default;
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;
  /// Stops all workers and waits until they have ended. Batches that are still queued are not
  /// built.
  virtual ~workers() = default;

  /// Puts a task into a worker's queue.
  virtual void give(std::size_t worker, const batch_task& task) = 0;
  /// Returns the next finished batch of any worker, in the order in which batches are finished.
  /// Waits if there is none. Throws std::runtime_error if a worker has failed.
  virtual batch_task take() = 0;
};

/// Starts worker threads.
/// @param new_maker  called once in each worker; returns the worker's function.
/// @param max_tasks  maximum number of tasks that were passed to give() and not yet returned by
///   take().
std::unique_ptr<workers> start_worker_threads(std::size_t count, std::size_t max_tasks,
                                              const std::function<batch_maker()>& new_maker);
/// Starts worker processes with fork(). Throws std::system_error.
std::unique_ptr<workers> start_worker_processes(std::size_t count,
                                                const std::function<batch_maker()>& new_maker);
/// Returns workers that use no other threads or processes: take() itself builds the batch.
std::unique_ptr<workers> no_workers(const std::function<batch_maker()>& new_maker);

}  // namespace imagenet

#endif  // IMAGENET_WORKERS_HPP
