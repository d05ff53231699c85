"""Fourier transforms: of a spectrogram, and of a field as Fourier neural operators have them."""

import torch

field = torch.randn(4, 8, 64, 64, device="cuda", requires_grad=True)
window = torch.hann_window(400, device="cuda")
optimizer = torch.optim.SGD([field], lr=0.1)
for _ in range(2):
    sound = torch.stft(torch.randn(2, 16000, device="cuda"), 400, 160, window=window, return_complex=True)
    modes = torch.fft.rfft2(field)
    torch.fft.irfft2(modes, s=(64, 64)).square().mean().backward()
    optimizer.step()
print("spectrogram", list(sound.shape), "modes", list(modes.shape), flush=True)
