#!/usr/bin/env python3
"""Small training programs as people write them, to compare their steps on a real GPU with `onerank exec`.

    programs.py NAME [STEPS]

Runs the program for 8 steps and STEPS (10) more, and prints one line of JSON: milliseconds of each of
the latter, and the most bytes that PyTorch's allocator allocated and reserved. The models are those of
transformers, timm, torchvision and torch.nn, with random weights and inputs.
"""
import json
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = "cuda"
BF16 = torch.bfloat16


def trains_images(model, batch=64, autocast=True, channels_last=True):
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = model.to(DEVICE).to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(batch, 3, 224, 224, device=DEVICE).to(memory_format=layout)
    labels = torch.randint(1000, (batch,), device=DEVICE)

    def step():
        with torch.autocast(DEVICE, BF16, enabled=autocast):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step


def of_timm(name, compiled=False):
    import timm
    model = timm.create_model(name, num_classes=1000)
    return trains_images(torch.compile(model) if compiled else model, channels_last=False)


def of_torchvision(name, **options):
    import torchvision
    return trains_images(getattr(torchvision.models, name)(), **options)


def trains_tokens(kind, config, tokens, batch, compiled=False, autocast=True, dtype=None):
    import transformers
    model = getattr(transformers, kind)(config).to(DEVICE)
    if dtype:
        model = model.to(dtype)
    if compiled:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(1000, (batch, tokens), device=DEVICE)

    def step():
        with torch.autocast(DEVICE, BF16, enabled=autocast):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return step


def bert(**options):
    import transformers
    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    return trains_tokens("BertForMaskedLM", config, tokens=512, batch=16, **options)


def qwen2(**options):
    import transformers
    config = transformers.Qwen2Config(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
        num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True)
    return trains_tokens("Qwen2ForCausalLM", config, tokens=2048, batch=4, **options)


def t5():
    import transformers
    config = transformers.T5Config(
        d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_heads=12,
        feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    return trains_tokens("T5ForConditionalGeneration", config, tokens=512, batch=16)


def gemma3():
    import transformers
    config = transformers.Gemma3TextConfig(
        hidden_size=1152, intermediate_size=6912, num_hidden_layers=12, num_attention_heads=4,
        num_key_value_heads=1, head_dim=256, vocab_size=262144, sliding_window=512)
    return trains_tokens("Gemma3ForCausalLM", config, tokens=2048, batch=4)


def mixtral():
    import transformers
    config = transformers.MixtralConfig(
        hidden_size=1024, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=16,
        num_key_value_heads=4, num_local_experts=8, vocab_size=32000)
    return trains_tokens("MixtralForCausalLM", config, tokens=1024, batch=4)


def llama_fp32():
    import transformers
    config = transformers.LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
        vocab_size=32000)
    return trains_tokens("LlamaForCausalLM", config, tokens=1024, batch=4, autocast=False)


def llama_bf16(compiled=False):
    import transformers
    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=128256)
    return trains_tokens("LlamaForCausalLM", config, tokens=4096, batch=2, autocast=False,
                         dtype=BF16, compiled=compiled)


class LstmModel(nn.Module):
    def __init__(self, words=33278, width=650):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.LSTM(width, width, 2, dropout=0.5)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids))[0])


def lstm():
    model = LstmModel().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    ids = torch.randint(33278, (35, 40), device=DEVICE)

    def step():
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def translation():
    model = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True).to(DEVICE)
    head = nn.Linear(512, 37000).to(DEVICE)
    embedding = nn.Embedding(37000, 512).to(DEVICE)
    optimizer = torch.optim.Adam(
        [*model.parameters(), *head.parameters(), *embedding.parameters()])
    scaler = torch.amp.GradScaler()
    ids = torch.randint(37000, (64, 128), device=DEVICE)
    mask = nn.Transformer.generate_square_subsequent_mask(128, device=DEVICE)

    def step():
        with torch.autocast(DEVICE, torch.float16):
            loss = F.cross_entropy(
                head(model(embedding(ids), embedding(ids), tgt_mask=mask)).flatten(0, 1),
                ids.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return step


def layers_of(*widths):
    pairs = zip(widths, widths[1:])
    return [layer for i, o in pairs for layer in (nn.Linear(i, o), nn.ReLU())]


def dlrm(samples=8192):
    tables = nn.ModuleList(nn.EmbeddingBag(1_000_000, 64, mode="sum") for _ in range(8)).to(DEVICE)
    bottom = nn.Sequential(*layers_of(13, 512, 256, 64)).to(DEVICE)
    top = nn.Sequential(*layers_of(64 + 36, 512, 256), nn.Linear(256, 1)).to(DEVICE)
    optimizer = torch.optim.SGD(
        [*tables.parameters(), *bottom.parameters(), *top.parameters()], lr=0.1)
    dense = torch.randn(samples, 13, device=DEVICE)
    sparse = torch.randint(1_000_000, (8, samples, 4), device=DEVICE)
    labels = torch.rand(samples, 1, device=DEVICE)
    rows, columns = torch.tril_indices(9, 9, -1)

    def step():
        own = bottom(dense)
        features = torch.stack([own] + [table(ids) for table, ids in zip(tables, sparse)], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        loss = F.binary_cross_entropy_with_logits(
            top(torch.cat([own, products[:, rows, columns]], 1)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def convolutions(inputs, outputs):
    return nn.Sequential(*[
        layer for i in (inputs, outputs) for layer in
        (nn.Conv2d(i, outputs, 3, padding=1), nn.GroupNorm(32, outputs), nn.SiLU())])


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [128, 256, 512]
        self.first = nn.Conv2d(4, 128, 3, padding=1)
        self.down = nn.ModuleList(convolutions(i, o) for i, o in zip([128] + widths, widths))
        self.up = nn.ModuleList(
            convolutions(i + o, o) for i, o in ((512, 512), (512, 256), (256, 128)))
        self.last = nn.Conv2d(128, 4, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        skipped = []
        for block in self.down:
            x = block(x)
            skipped.append(x)
            x = F.avg_pool2d(x, 2)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2)
            x = block(torch.cat([x, skipped.pop()], 1))
        return self.last(x)


def unet(autocast):
    model = Unet().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    images = torch.randn(16, 4, 64, 64, device=DEVICE)

    def step():
        with torch.autocast(DEVICE, BF16, enabled=autocast):
            loss = F.mse_loss(model(images), images)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def dcgan(batch=128):
    ups = ((100, 512, 1, 0), (512, 256, 2, 1), (256, 128, 2, 1), (128, 64, 2, 1))
    generator = nn.Sequential(
        *[layer for i, o, stride, pad in ups for layer in
          (nn.ConvTranspose2d(i, o, 4, stride, pad, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))],
        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(DEVICE)
    downs = ((3, 64), (64, 128), (128, 256), (256, 512))
    critic = nn.Sequential(
        *[layer for i, o in downs for layer in
          (nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True))],
        nn.Conv2d(512, 1, 4)).to(DEVICE)
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    real = torch.randn(batch, 3, 64, 64, device=DEVICE)
    yes, no = torch.ones(batch, device=DEVICE), torch.zeros(batch, device=DEVICE)
    loss = F.binary_cross_entropy_with_logits

    def step():
        of_critic.zero_grad()
        fake = generator(torch.randn(batch, 100, 1, 1, device=DEVICE))
        loss(critic(real).flatten(), yes).backward()
        loss(critic(fake.detach()).flatten(), no).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss(critic(fake).flatten(), yes).backward()
        of_generator.step()
    return step


def mlp():
    model = nn.Sequential(*layers_of(*[4096] * 9)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(4096, 4096, device=DEVICE)

    def step():
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


PROGRAMS = {
    "vit_base bf16": lambda: of_timm("vit_base_patch16_224"),
    "vit_base compiled": lambda: of_timm("vit_base_patch16_224", compiled=True),
    "convnext_tiny bf16": lambda: of_timm("convnext_tiny"),
    "swin_t bf16": lambda: of_torchvision("swin_t"),
    "efficientnet_b0 bf16": lambda: of_torchvision("efficientnet_b0", batch=128),
    "resnet50 fp32 channels_last": lambda: of_torchvision("resnet50", autocast=False),
    "resnet50 bf16": lambda: of_torchvision("resnet50", batch=256),
    "vgg16 bf16": lambda: of_torchvision("vgg16"),
    "bert large": bert,
    "bert large compiled": lambda: bert(compiled=True),
    "qwen2 0.5B": qwen2,
    "qwen2 0.5B compiled": lambda: qwen2(compiled=True),
    "t5 base": t5,
    "gemma3": gemma3,
    "mixtral": mixtral,
    "llama fp32": llama_fp32,
    "llama bf16": llama_bf16,
    "llama bf16 compiled": lambda: llama_bf16(compiled=True),
    "lstm": lstm,
    "nn.Transformer fp16": translation,
    "dlrm": dlrm,
    "unet bf16": lambda: unet(autocast=True),
    "unet fp32": lambda: unet(autocast=False),
    "dcgan fp32": dcgan,
    "mlp fp32": mlp,
}


def main():
    name, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    torch.manual_seed(0)
    step = PROGRAMS[name]()
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    milliseconds = (time.perf_counter() - begin) / steps * 1e3
    print(json.dumps({"name": name, "milliseconds": round(milliseconds, 3),
                      "allocated_bytes": torch.cuda.max_memory_allocated(),
                      "reserved_bytes": torch.cuda.max_memory_reserved()}), flush=True)


if __name__ == "__main__":
    main()
