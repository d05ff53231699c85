#!/bin/bash
#SBATCH --nodes=2 --gres=gpu:h100:8
TP=${TP:-2}
ARGS=(--num-layers 4 --hidden-size 64 --num-attention-heads 4)
if [ -n "$X" ]; then ARGS+=(--bf16); else ARGS+=("--fp16"); fi
case $TP in 2|4) GBS=$((TP * 8)) ;; *) GBS=8 ;; esac
torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --seq-length 64 --vocab-size 512 \
  --tensor-model-parallel-size $TP --global-batch-size $GBS --lr 1e-4 --data-path "$1"
