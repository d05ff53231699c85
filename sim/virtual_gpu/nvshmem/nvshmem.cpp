// NVSHMEM is not played: its functions are refused. PyTorch takes it to be there because a library
// of its name is, so its question is answered here, where every process of torch finds the answer
// first.
namespace c10d::nvshmem_extension {

__attribute__((visibility("default"))) bool is_nvshmem_available();
bool is_nvshmem_available() { return false; }

}  // namespace c10d::nvshmem_extension
