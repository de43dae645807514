// Registers a do-nothing CUDA device guard and CUDA hooks inside a CPU-only
// PyTorch build, so that fake CUDA tensors can run forward AND backward.
// Built by bot/tracing/guard.py.
// It must be loaded BEFORE `import torch` (the hooks object is cached on first use).
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10::impl {
struct PretendCUDAGuard final : public DeviceGuardImplInterface {
  static Device dev() { return Device(DeviceType::CUDA, 0); }
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return dev(); }
  Device getDevice() const override { return dev(); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, dev()); }
  Stream getDefaultStream(Device) const override { return Stream(Stream::DEFAULT, dev()); }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, dev()); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const Stream&, const DeviceIndex, const EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
  void recordDataPtrOnStream(const DataPtr&, const Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, PretendCUDAGuard);
} // namespace c10::impl

namespace at {
struct PretendCUDAHooks : public CUDAHooksInterface {
  explicit PretendCUDAHooks(CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  void init() const override {}
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  int getNumGPUs() const override { return 1; }
};
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, PretendCUDAHooks)
} // namespace at
