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


def of_timm(name, compiled=False, **options):
    import timm
    model = timm.create_model(name, num_classes=1000)
    return trains_images(
        torch.compile(model) if compiled else model, channels_last=False, **options)


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


def steps_of(parameters, loss_of, kind=torch.optim.AdamW, autocast=True, dtype=BF16, **options):
    """A step that computes loss_of() and updates the parameters."""
    parameters = list(parameters)
    optimizer = kind(parameters, lr=1e-4, **options)

    def step():
        with torch.autocast(DEVICE, dtype, enabled=autocast):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def of_transformers(kind, config, inputs, checkpointing=False, **options):
    import transformers
    model = getattr(transformers, kind)(config).to(DEVICE).train()
    if checkpointing:
        model.gradient_checkpointing_enable()
    return steps_of(model.parameters(), lambda: model(**inputs).loss, **options)


def ids_of(*shape, words=1000):
    return torch.randint(words, shape, device=DEVICE)


def gpt2():
    import transformers
    ids = ids_of(16, 1024)
    return of_transformers("GPT2LMHeadModel", transformers.GPT2Config(),
                           {"input_ids": ids, "labels": ids})


def distilbert():
    import transformers
    return of_transformers("DistilBertForSequenceClassification", transformers.DistilBertConfig(),
                           {"input_ids": ids_of(64, 256), "labels": ids_of(64, words=2),
                            "attention_mask": ids_of(64, 256, words=2)})


def whisper():
    import transformers
    config = transformers.WhisperConfig(
        d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048)
    return of_transformers("WhisperForConditionalGeneration", config,
                           {"input_features": torch.randn(16, 80, 3000, device=DEVICE),
                            "labels": ids_of(16, 128)})


def wav2vec2():
    import transformers
    config = transformers.Wav2Vec2Config(mask_time_prob=0.0, layerdrop=0.0)
    return of_transformers("Wav2Vec2ForCTC", config,
                           {"input_values": torch.randn(8, 160000, device=DEVICE),
                            "labels": torch.randint(1, 31, (8, 40)).to(DEVICE)})


def clip():
    import transformers
    model = transformers.CLIPModel(transformers.CLIPConfig()).to(DEVICE)
    images, ids = torch.randn(128, 3, 224, 224, device=DEVICE), ids_of(128, 77)
    return steps_of(model.parameters(), lambda: model(
        input_ids=ids, pixel_values=images, return_loss=True).loss)


def phi3_checkpointed():
    import transformers
    config = transformers.Phi3Config(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=16, vocab_size=32064, pad_token_id=0)
    ids = ids_of(4, 4096)
    return of_transformers("Phi3ForCausalLM", config, {"input_ids": ids, "labels": ids},
                           checkpointing=True, fused=True)


def qwen3_experts():
    import transformers
    config = transformers.Qwen3MoeConfig(
        hidden_size=1024, intermediate_size=3072, moe_intermediate_size=384, num_hidden_layers=8,
        num_attention_heads=16, num_key_value_heads=4, num_experts=32, num_experts_per_tok=4,
        vocab_size=32000)
    ids = ids_of(4, 2048)
    return of_transformers("Qwen3MoeForCausalLM", config, {"input_ids": ids, "labels": ids},
                           fused=True)


def deeplab():
    import torchvision
    model = torchvision.models.segmentation.deeplabv3_resnet50(weights_backbone=None)
    model = model.to(DEVICE).to(memory_format=torch.channels_last)
    images = torch.randn(16, 3, 512, 512, device=DEVICE).to(memory_format=torch.channels_last)
    labels = ids_of(16, 512, 512, words=21)
    return steps_of(model.parameters(), lambda: F.cross_entropy(model(images)["out"], labels),
                    kind=torch.optim.SGD, momentum=0.9)


class DiffusionBlock(nn.Module):
    def __init__(self, width=768, heads=12):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(
            nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def attention(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.out(x.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x, condition):
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(condition)[:, None].chunk(6, -1)
        x = x + gate * self.attention(self.norms[0](x) * (1 + scale) + shift)
        return x + gate2 * self.mlp(self.norms[1](x) * (1 + scale2) + shift2)


def diffusion_transformer(batch=64, tokens=256, width=768):
    blocks = nn.ModuleList(DiffusionBlock(width) for _ in range(12)).to(DEVICE)
    x, condition = torch.randn(batch, tokens, width, device=DEVICE), torch.randn(
        batch, width, device=DEVICE)
    averages = [p.detach().clone() for p in blocks.parameters()]

    def loss_of():
        y = x
        for block in blocks:
            y = block(y, condition)
        return F.mse_loss(y, x)
    update = steps_of(blocks.parameters(), loss_of)

    def step():
        update()
        with torch.no_grad():
            torch._foreach_lerp_(averages, list(blocks.parameters()), 1e-4)
    return step


def graph_network(nodes=100_000, edges=1_000_000, width=128):
    layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3)).to(DEVICE)
    x = torch.randn(nodes, width, device=DEVICE)
    source, target = ids_of(2, edges, words=nodes)
    labels = ids_of(nodes, words=40)
    head = nn.Linear(width, 40).to(DEVICE)

    def loss_of():
        y = x
        for layer in layers:
            around = torch.zeros_like(y).index_add_(0, target, y[source])
            y = F.relu(layer(torch.cat([y, around], 1)))
        return F.cross_entropy(head(y), labels)
    return steps_of([*layers.parameters(), *head.parameters()], loss_of, kind=torch.optim.Adam,
                    autocast=False)


def adapted_llama(rank=16):
    """Low-rank adapters beside frozen weights of 16 bits."""
    import transformers
    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=32000)
    model = transformers.LlamaForCausalLM(config).to(DEVICE, BF16).requires_grad_(False)

    class Adapted(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.down = nn.Linear(base.in_features, rank, bias=False, device=DEVICE, dtype=BF16)
            self.up = nn.Linear(rank, base.out_features, bias=False, device=DEVICE, dtype=BF16)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x)) * 2.0
    for layer in model.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)))
    ids = ids_of(4, 2048)
    return steps_of([p for p in model.parameters() if p.requires_grad],
                    lambda: model(input_ids=ids, labels=ids).loss, autocast=False)


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
    "gpt2": gpt2,
    "distilbert": distilbert,
    "whisper base": whisper,
    "wav2vec2 base": wav2vec2,
    "clip": clip,
    "phi3 checkpointed": phi3_checkpointed,
    "qwen3 experts": qwen3_experts,
    "deeplabv3 bf16": deeplab,
    "mobilenet_v3 fp32": lambda: of_torchvision("mobilenet_v3_large", batch=128, autocast=False),
    "densenet121 bf16": lambda: of_torchvision("densenet121"),
    "mixer_b16 bf16": lambda: of_timm("mixer_b16_224"),
    "beit_base bf16": lambda: of_timm("beit_base_patch16_224"),
    "regnety_032 fp32": lambda: of_timm("regnety_032", autocast=False),
    "diffusion transformer": diffusion_transformer,
    "graph network fp32": graph_network,
    "llama with adapters": adapted_llama,
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
