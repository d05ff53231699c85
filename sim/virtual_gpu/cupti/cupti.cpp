/// CUPTI's interface for activities, by which PyTorch's profiler is told of kernels. What the
/// device does, and when, the host program knows (cupti_control.h). Everything else that CUPTI
/// measures is refused.
#include <cstring>

#include "sim/virtual_gpu/cupti/activity_log.h"

using virtual_gpu::ActivityLog;

namespace {

enum CUptiResult { CUPTI_SUCCESS = 0, CUPTI_ERROR_MAX_LIMIT_REACHED = 12 };

// Of CUDA 12.9. kineto gives no buffers that are null to older ones.
constexpr uint32_t kVersion = 27;

struct Host {
  void (*starts)(void* context) = nullptr;
  void* context = nullptr;
};

ActivityLog& activities() {
  static auto* const log = new ActivityLog;
  return *log;
}

std::atomic<bool> is_tracing = false;

Host& host() {
  static Host host;
  return host;
}

}  // namespace

extern "C" {

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "refused by the virtual GPU";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = kVersion;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(ActivityLog::RequestBuffer request,
                                           ActivityLog::CompleteBuffer complete) {
  activities().set_buffers(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(ActivityLog::Now now) {
  activities().set_clock(now);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(uint32_t kind) {
  if (kind != virtual_gpu::kActivityConcurrentKernel) return CUPTI_SUCCESS;
  is_tracing = true;
  if (host().starts != nullptr) host().starts(host().context);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(uint32_t kind) {
  if (kind == virtual_gpu::kActivityConcurrentKernel) is_tracing = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  activities().flush();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  uint8_t* const next = *record == nullptr ? buffer : *record + ActivityLog::kRecordBytes;
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = next;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  ActivityLog::push_id(kind, id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  const uint64_t id = ActivityLog::pop_id(kind);
  if (last != nullptr) *last = id;
  return CUPTI_SUCCESS;
}

void onerank_cupti_set_host(void (*starts)(void*), void* context) { host() = {starts, context}; }

int onerank_cupti_is_tracing() { return is_tracing ? 1 : 0; }

uint32_t onerank_cupti_called(onerank_cupti_kind kind) { return activities().called(kind); }

void onerank_cupti_ran(const onerank_cupti_work* work) { activities().ran(*work); }
}
