"""qdnn for transformers: checkpoints of GPTQ, AWQ, bitsandbytes, compressed-tensors, ModelOpt and GGUF become models whose
linear layers are qdnn.torch.Linear, without the packages that those formats usually need.

    import qdnn.transformers
    qdnn.transformers.take_over()                                        # from now on, for every checkpoint of these methods:
    model = AutoModelForCausalLM.from_pretrained("a-gptq-model")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf")

    config = qdnn.transformers.config_of("a-gptq-model")                 # or for one model alone
    model = AutoModelForCausalLM.from_pretrained("a-gptq-model", config=config)

    how = qdnn.transformers.QdnnConfig("gguf_q4_0")                      # a model that is not quantized is, as it is loaded
    model = AutoModelForCausalLM.from_pretrained("a-model", quantization_config=how)

The method "qdnn" is registered by importing this module. Codes and scales are read from the checkpoint as they are; everything else
is loaded by transformers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig
from transformers.quantizers import HfQuantizer, auto, register_quantization_config, register_quantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ._files import open as open_file
from ._plans import weights
from .torch import Linear, _is_quantized, put_in_place

try:  # the GGUF integration of transformers 5
    from ._transformers_gguf import QdnnGgufQuantizer, use_for_gguf
except ImportError:
    QdnnGgufQuantizer = use_for_gguf = None

__all__ = ["METHODS", "QdnnConfig", "QdnnHfQuantizer", "config_of", "give_back", "take_over", "use_for_gguf"]

# The methods of checkpoints, by the names that transformers has for them.
METHODS = ("gptq", "awq", "bitsandbytes_4bit", "compressed-tensors", "modelopt", "gguf")


@register_quantization_config("qdnn")
class QdnnConfig(QuantizationConfigMixin):
    """How a model is loaded. `format` and `extent`: what a model that is not quantized becomes, as qdnn.weights has them; other
    models keep the format of their checkpoint. `modules_to_not_convert`: names that stay torch.nn.Linear, whole or a part between
    dots (None: the output embeddings and tied weights, where a model is quantized as it is loaded). `algorithm`: of qdnn.torch.Linear.
    `checkpoint`: what config.json has for its quantization."""

    def __init__(self, format: str | None = None, extent: int = 0, algorithm: str = "auto", modules_to_not_convert: list | None = None,
                 checkpoint: dict | None = None, **others: Any) -> None:  # fmt: skip
        self.quant_method = "qdnn"
        self.format, self.extent, self.algorithm = format, extent, algorithm
        self.modules_to_not_convert = modules_to_not_convert
        self.checkpoint = checkpoint
        others.pop("quant_method", None)
        if others:
            raise TypeError(f"QdnnConfig has no setting '{next(iter(others))}'")


def config_of(path: str, algorithm: str = "auto", **settings: Any) -> Any:
    """The configuration of a quantized checkpoint, with which from_pretrained(path, config=...) loads it by qdnn."""
    config = AutoConfig.from_pretrained(path, **settings)
    given = getattr(config, "quantization_config", None)
    if given is None:
        raise ValueError(f"{path} is not quantized; pass quantization_config=qdnn.transformers.QdnnConfig(format) to from_pretrained")
    config.quantization_config = {"quant_method": "qdnn", "algorithm": algorithm, "checkpoint": _plain(given)}
    return config


def _plain(config):
    return dict(config) if isinstance(config, dict) else config.to_dict()


class _Pending(torch.nn.Module):
    """Stands for a layer until transformers has loaded what the checkpoint holds as plain numbers: the bias."""

    def __init__(self, module: torch.nn.Linear, weight: str) -> None:
        super().__init__()
        self.module, self.name = [module], weight  # in a list: its parameters are no longer the model's
        self.bias = module.bias
        self.register_buffer("where", torch.empty(0), persistent=False)  # goes where the layer goes

    def forward(self, *_):
        raise RuntimeError(f"the quantized weight {self.name} has not been loaded")


@register_quantizer("qdnn")
class QdnnHfQuantizer(HfQuantizer):
    """Puts qdnn.torch.Linear in the place of torch.nn.Linear."""

    quantization_config: QdnnConfig

    def __init__(self, quantization_config: QdnnConfig, **others: Any) -> None:
        super().__init__(quantization_config, **others)
        if self.pre_quantized and quantization_config.checkpoint is None:
            raise ValueError("the checkpoint's config.json names qdnn, which writes no checkpoints of this kind")
        if not self.pre_quantized and quantization_config.format is None:
            raise ValueError("the model is not quantized; name a format: QdnnConfig('gguf_q4_0')")

    def _process_model_before_weight_loading(self, model: Any, checkpoint_files: list | None = None, **others: Any) -> Any:
        self.pending: dict[str, _Pending] = {}
        if not self.pre_quantized:
            return model
        self.file = open_file(_folder_of(checkpoint_files))
        for name, module in list(model.named_modules()):
            weight = self._stored(model, name)
            if weight is None or not isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                continue
            if isinstance(module, torch.nn.Embedding):
                raise NotImplementedError(f"{weight} is a quantized embedding ({self.file.format(weight)}); load it by qdnn.torch.load_checkpoint")
            self.pending[name] = _Pending(module, weight)
            model.set_submodule(name, self.pending[name])
        self._refuse_others(model)
        stored = [re.escape(p.name.removesuffix(".weight")) + r"\.(?!bias$)" for p in self.pending.values()]
        model._keys_to_ignore_on_load_unexpected = {*(model._keys_to_ignore_on_load_unexpected or ()), *stored}
        return model

    def _stored(self, model: Any, name: str) -> str | None:
        """The quantized weight of a layer, in the names of the checkpoint: with or without the base model's prefix."""
        prefix = model.base_model_prefix + "."
        for known in (f"{name}.weight", f"{prefix}{name}.weight", f"{name.removeprefix(prefix)}.weight"):
            if known in self.file and _is_quantized(self.file[known]):
                return known
        return None

    def _refuse_others(self, model: Any) -> None:
        """A quantized weight that no layer of the model takes would be missing from it."""
        taken = {p.name for p in self.pending.values()}
        left = [name for name in self.file if name not in taken and _is_quantized(self.file[name]) and not self._is_of_a_head(model, name)]
        if left:
            raise NotImplementedError(f"no linear layer of {type(model).__name__} has the quantized weight {left[0]}"
                                      f" ({self.file.format(left[0])}), nor {len(left) - 1} others")  # fmt: skip

    def _is_of_a_head(self, model: Any, name: str) -> bool:
        """The base model is loaded from a checkpoint with a head: what is outside of it is left alone."""
        prefix = model.base_model_prefix + "."
        return any(other.startswith(prefix) for other in self.file) and not name.startswith(prefix) and not hasattr(model, model.base_model_prefix)

    def _process_model_after_weight_loading(self, model: Any, **others: Any) -> Any:
        if not self.pre_quantized:
            return self._quantize(model)
        for name, pending in self.pending.items():
            quantized = self.file[pending.name]
            made = Linear(quantized, None, not self.file.is_transposed(pending.name), algorithm=self.quantization_config.algorithm,
                          device=pending.where.device)  # fmt: skip
            _check_size(name, made, pending.module[0])
            made.bias = pending.bias
            put_in_place(model, name, pending, made)
        self.pending, self.file = {}, None
        return model

    def _quantize(self, model: Any) -> Any:
        how = self.quantization_config
        kept = self.get_modules_to_not_convert(model, how.modules_to_not_convert, model._keep_in_fp32_modules)
        for name, module in list(model.named_modules()):
            if type(module) is torch.nn.Linear and not any(f".{skip}." in f".{name}." for skip in kept):
                try:
                    made = Linear.quantize(module, weights(how.format, how.extent), algorithm=how.algorithm)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}; name it in modules_to_not_convert") from error
                put_in_place(model, name, module, made)
        return model

    def is_serializable(self, *_: Any, **__: Any) -> bool:
        """False: the checkpoint that the model was loaded from is already the smallest one; `qdnn quantize` writes others."""
        return False

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True


def _folder_of(checkpoint_files: list | None) -> Path:
    """What qdnn.open is given: the folder, where config.json tells the method; files without one are opened themselves."""
    if not checkpoint_files:
        raise ValueError("the model is loaded without files; qdnn reads codes and scales from safetensors files")
    first = Path(checkpoint_files[0])
    if first.suffix != ".safetensors":
        raise ValueError(f"{first.name} is no safetensors file; qdnn reads no others")
    return first.parent


def _check_size(name, made, module):
    has, wanted = (made.out_features, made.in_features), (module.out_features, module.in_features)
    if has != wanted:
        raise ValueError(f"{name}: the checkpoint's weight is {has}, the model's {wanted}")


# ---- In the place of what transformers has for a method ----


_before: dict[tuple, Any] = {}


class _OfCheckpoint(QdnnConfig):
    """Made from what config.json has for its quantization, whichever method that is."""

    @classmethod
    def from_dict(cls, config_dict, return_unused_kwargs=False, **others):
        made = QdnnConfig(checkpoint=dict(config_dict))
        return (made, others) if return_unused_kwargs else made


def take_over(*methods: str) -> None:
    """From now on from_pretrained loads checkpoints of these methods by qdnn (none named: all of METHODS)."""
    for method in methods or METHODS:
        if method not in METHODS:
            raise ValueError(f"'{method}' is none of: {', '.join(METHODS)}")
        if method == "gguf":
            if QdnnGgufQuantizer is None:
                if methods:
                    raise NotImplementedError("this version of transformers has no quantizer for GGUF; use qdnn.torch.load_checkpoint")
                continue
            _put(auto.AUTO_QUANTIZER_MAPPING, method, QdnnGgufQuantizer)
        else:
            _put(auto.AUTO_QUANTIZATION_CONFIG_MAPPING, method, _OfCheckpoint)


def _put(table, method, value):
    _before.setdefault((id(table), method), (table, table.get(method)))
    table[method] = value


def give_back() -> None:
    """Undoes take_over."""
    for (_, method), (table, value) in _before.items():
        if value is None:
            table.pop(method, None)
        else:
            table[method] = value
    _before.clear()
