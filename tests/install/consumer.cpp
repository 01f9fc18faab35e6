// Finds the installed library, lists its stages and multiplies on the CPU device.
#include <iostream>

#include <tilegate/stage.hpp>

int main() {
  for (const tilegate::Stage* stage : tilegate::stages()) {
    std::cout << stage->name << ": " << stage->idea << '\n';
  }
  const tilegate::Stage* stage = tilegate::find_stage("Naive");
  const float a[] = {1.0F, 2.0F}, b[] = {3.0F, 4.0F};
  float c[] = {0.0F};
  const tilegate::KernelArgs args{
      .shape = {1, 1, 2}, .a = a, .lda = 2, .b = b, .ldb = 1, .c = c, .ldc = 1};
  if (stage == nullptr || !stage->prepare().ok() || !stage->launch(args).ok()) return 1;
  return c[0] == 11.0F ? 0 : 1;
}
