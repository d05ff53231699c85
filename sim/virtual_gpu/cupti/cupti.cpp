/// CUPTI has nothing to trace: its functions are refused, and PyTorch's profiler goes on without
/// it.

enum CUptiResult { CUPTI_SUCCESS = 0, CUPTI_ERROR_NOT_SUPPORTED = 27 };

extern "C" CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "refused by the virtual GPU";
  return CUPTI_SUCCESS;
}
