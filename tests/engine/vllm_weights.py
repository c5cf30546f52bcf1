"""Writes the embedded model as the folder that vLLM wants. Run by the Python that vLLM is installed in; not a test.

python vllm_weights.py tiny-reasoner.gguf FOLDER       needs transformers, gguf and accelerate
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main(source: Path, folder: Path) -> None:
    transformers: Any = import_module("transformers")
    tensors: Any = import_module("safetensors.torch")
    place: dict[str, str] = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**place)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    config = model.config
    del config.quantization_config
    config.architectures = [type(model).__name__]
    # Not read from GGUF by transformers, which takes the usual one.
    config.head_dim = weights["model.layers.0.self_attn.q_norm.weight"].shape[0]
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(**place).save_pretrained(folder)
    tensors.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
