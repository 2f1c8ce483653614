"""GGUF files through transformers: as it loads one, names and permutations included; then layers over the blocks of the file take
the place of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.integrations.gguf import kernels
from transformers.quantizers.quantizer_gguf import GgufHfQuantizer

from . import gguf_kernel
from ._files import open as open_file
from .torch import Embedding, Linear, _is_quantized, put_in_place


def use_for_gguf() -> None:
    """Makes the GGUF integration of transformers compute with qdnn.gguf_kernel, in place of a module from the hub. It asks for one
    once, and keeps it in a variable that has no setter: this sets the variable. On the host it unpacks embeddings, and products of
    more than 8 rows, by itself."""
    kernels._gguf_kernel = kernels.GgufKernel(gguf_kernel)


class QdnnGgufQuantizer(GgufHfQuantizer):
    """Architectures whose blocks transformers keeps get our layers over its parameters; of the others, which it dequantizes, those
    whose weights it takes as they are, or with rows in another order, get layers over the blocks in the file."""

    blocks: dict[str, tuple[str, np.ndarray | None]]  # a layer's name: its weight in the file, and the order of its rows

    def validate_environment(self, *arguments: Any, **others: Any) -> None:
        use_for_gguf()
        super().validate_environment(*arguments, **others)

    def get_state_dict(self, checkpoint_file: str, model: Any) -> Any:
        self.blocks = {} if self.supported else _plan(checkpoint_file, model)
        self.path = checkpoint_file
        return super().get_state_dict(checkpoint_file, model)

    def _process_model_after_weight_loading(self, model: Any, **others: Any) -> Any:
        model = super()._process_model_after_weight_loading(model, **others)
        for name, module in list(model.named_modules()):
            made = _layer_over_blocks(module)
            if made is not None:
                put_in_place(model, name, module, made)
        file = open_file(self.path) if self.blocks else {}
        for name, (weight, order) in self.blocks.items():
            module = model.get_submodule(name)
            put_in_place(model, name, module, _layer_of_file(module, file[weight], order))
        self.is_ours = not any(type(module).__name__.startswith("Gguf") for module in model.modules())
        if self.is_ours:
            from .transformers import QdnnConfig

            model.config.quantization_config = QdnnConfig()  # what save_pretrained writes
        return model

    def is_serializable(self, safe_serialization: bool | None = None) -> bool:
        """Where no layer of transformers' own is left; the checkpoint is one of the method "qdnn"."""
        return self.is_ours


def _layer_over_blocks(module):
    """A layer in the place of one of transformers' that holds blocks; None: it stays (experts, and a permuted input)."""
    kind = type(module).__name__
    if kind == "GgufLinear" and module.input_permutation is None:
        made = Linear(gguf_kernel.quantized(module.weight, module.ggml_type), None, device=module.weight.device)
        made.bias = module.bias
        return made
    if kind == "GgufEmbedding":
        return Embedding(gguf_kernel.quantized(module.weight, module.ggml_type), module.compute_dtype, module.weight.device)
    return None


def _layer_of_file(module, stored, order):
    if order is not None:  # a row of blocks is a row of the matrix
        blocks = stored.parts["codes"].reshape(stored.shape[0], -1)[order]
        stored = type(stored)(stored.shape, stored.quantization, {"codes": np.ascontiguousarray(blocks).reshape(-1)})
    if isinstance(module, torch.nn.Embedding):
        return Embedding(stored, module.weight.dtype, module.weight.device)
    made = Linear(stored, None, device=module.weight.device)
    made.bias = module.bias
    return made


def _plan(path, model):
    """The layers of the model whose weights in the file are quantized, and come to it whole."""
    from transformers import modeling_gguf_pytorch_utils as legacy

    file, read = open_file(path), legacy.load_gguf_checkpoint(path)
    kind = file.metadata.get("general.architecture", "")
    processor = legacy.TENSOR_PROCESSORS.get(kind, legacy.TensorProcessor)(config=read["config"])
    plan = {}
    for stored, name in legacy.get_gguf_hf_weights_map(model, processor).items():
        layer = name.removesuffix(".weight")
        if stored not in file or layer == name or not _is_quantized(file[stored]):
            continue
        module = model.get_submodule(layer)
        order = _order_of_rows(processor, stored, file[stored].shape)
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) and tuple(module.weight.shape) == file[stored].shape and order is not None:
            straight = np.array_equal(order, np.arange(len(order)))
            plan[layer] = (stored, None if straight else order)
    return plan


def _order_of_rows(processor, name, shape):
    """Where transformers puts the rows of a matrix, found by giving it a matrix of row numbers; None: it does more than that."""
    numbers = np.arange(shape[0], dtype=np.float64)[:, None]
    try:
        made = processor.process(weights=numbers.copy(), name=name, tensor_key_mapping={}, parsed_parameters={"tensors": {}}).weights
    except Exception:  # it needs the matrix itself
        return None
    if made is None or made.shape != numbers.shape or not np.array_equal(np.sort(made, 0), numbers):
        return None
    return made[:, 0].astype(np.int64)
