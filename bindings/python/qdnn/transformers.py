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

    model.save_pretrained(folder)                                        # its layers as they are; from_pretrained(folder) has them again

The method "qdnn" is registered by importing this module. Codes and scales are read from the checkpoint as they are; everything else
is loaded by transformers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoConfig
from transformers.quantizers import HfQuantizer, auto, register_quantization_config, register_quantizer
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file
from transformers.utils.quantization_config import QuantizationConfigMixin

from ._files import open as open_file
from ._plans import weights
from .torch import Embedding, Linear, _is_quantized, put_in_place

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
    `checkpoint`: what config.json has for its quantization; None in models that save_pretrained wrote."""

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

    def __init__(self, module: torch.nn.Module, name: str) -> None:
        super().__init__()
        self.module, self.name = [module], name  # in a list: its parameters are no longer the model's
        self.bias = getattr(module, "bias", None)
        self.register_buffer("where", torch.empty(0), persistent=False)  # goes where the layer goes

    def forward(self, *_):
        raise RuntimeError(f"the quantized weight of {self.name} has not been loaded")


class _Foreign:
    """The quantized layers of a checkpoint in another library's format, by name."""

    def __init__(self, folder: Path) -> None:
        self.file = open_file(folder)
        self.names = list(self.file)
        self.layers = {name.removesuffix(".weight") for name in self.names if _is_quantized(self.file[name])}

    def make(self, name: str, module: Any, algorithm: str, where: Any) -> Any:
        weight = f"{name}.weight"
        if isinstance(module, torch.nn.Embedding):
            raise NotImplementedError(f"{weight} is a quantized embedding ({self.file.format(weight)}); load it by qdnn.torch.load_checkpoint")
        return Linear(self.file[weight], None, not self.file.is_transposed(weight), algorithm=algorithm, device=where)


class _Saved:
    """The quantized layers of a checkpoint that save_pretrained wrote: those with extra state."""

    def __init__(self, folder: Path) -> None:
        self.path_of = {}
        for path in sorted(folder.glob("*.safetensors")):
            with safe_open(path, "pt") as file:
                self.path_of.update(dict.fromkeys(file.keys(), path))
        self.names = list(self.path_of)
        self.layers = {name.removesuffix("._extra_state") for name in self.names if name.endswith("._extra_state")}
        if not self.layers:
            raise ValueError(f"{folder}: config.json names qdnn, but no layer is one that save_pretrained wrote")

    def make(self, name: str, module: Any, algorithm: str, where: Any) -> Any:
        state = {part.removeprefix(f"{name}."): self._tensor(part) for part in self.names if part.rpartition(".")[0] == name}
        if isinstance(module, torch.nn.Embedding):
            return Embedding.from_state(state, dtype=module.weight.dtype, device=where)
        return Linear.from_state(state, algorithm=algorithm, device=where)

    def _tensor(self, name: str) -> torch.Tensor:
        with safe_open(self.path_of[name], "pt") as file:
            return file.get_tensor(name)


@register_quantizer("qdnn")
class QdnnHfQuantizer(HfQuantizer):
    """Puts qdnn.torch.Linear in the place of torch.nn.Linear."""

    quantization_config: QdnnConfig

    def __init__(self, quantization_config: QdnnConfig, **others: Any) -> None:
        super().__init__(quantization_config, **others)
        if not self.pre_quantized and quantization_config.format is None:
            raise ValueError("the model is not quantized; name a format: QdnnConfig('gguf_q4_0')")

    def _process_model_before_weight_loading(self, model: Any, checkpoint_files: list | None = None, **others: Any) -> Any:
        self.pending: dict[str, _Pending] = {}
        if not self.pre_quantized:
            return model
        folder = _folder_of(checkpoint_files or _files_of(model))
        self.stored = _Saved(folder) if self.quantization_config.checkpoint is None else _Foreign(folder)
        for name, module in list(model.named_modules()):
            stored = self._name_in_checkpoint(model, name)
            if stored is not None and isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                self.pending[name] = _Pending(module, stored)
                model.set_submodule(name, self.pending[name])
                _untie(model, f"{name}.weight")
        self._refuse_others(model)
        stored = [re.escape(p.name) + r"\.(?!bias$)" for p in self.pending.values()]
        known = model._keys_to_ignore_on_load_unexpected  # a set in transformers 5, a list or None in 4
        model._keys_to_ignore_on_load_unexpected = known.union(stored) if isinstance(known, set) else [*(known or ()), *stored]
        return model

    def _name_in_checkpoint(self, model: Any, name: str) -> str | None:
        """The name that a checkpoint has for a quantized layer: with or without the base model's prefix."""
        prefix = model.base_model_prefix + "."
        return next((known for known in (name, f"{prefix}{name}", name.removeprefix(prefix)) if known in self.stored.layers), None)

    def _refuse_others(self, model: Any) -> None:
        """A quantized weight that no layer of the model takes would be missing from it."""
        left = self.stored.layers - {p.name for p in self.pending.values()}
        left = sorted(name for name in left if not self._is_of_a_head(model, name))
        if left:
            raise NotImplementedError(f"no linear layer of {type(model).__name__} has the quantized weight {left[0]}.weight, nor {len(left) - 1} others")

    def _is_of_a_head(self, model: Any, name: str) -> bool:
        """The base model is loaded from a checkpoint with a head: what is outside of it is left alone."""
        prefix = model.base_model_prefix + "."
        has_head = any(other.startswith(prefix) for other in self.stored.names) and not hasattr(model, model.base_model_prefix)
        return has_head and not name.startswith(prefix)

    def _process_model_after_weight_loading(self, model: Any, **others: Any) -> Any:
        how = self.quantization_config
        if not self.pre_quantized:
            self._quantize(model)
        for name, pending in self.pending.items():
            made = self.stored.make(pending.name, pending.module[0], how.algorithm, pending.where.device)
            _check_size(name, made, pending.module[0])
            if isinstance(made, Linear):
                made.bias = pending.bias
            put_in_place(model, name, pending, made)
        self.pending, self.stored = {}, None
        model.config.quantization_config = QdnnConfig(algorithm=how.algorithm)  # what save_pretrained writes
        return model

    def _quantize(self, model: Any) -> None:
        how = self.quantization_config
        kept = self.get_modules_to_not_convert(model, how.modules_to_not_convert, model._keep_in_fp32_modules)
        for name, module in list(model.named_modules()):
            if type(module) is torch.nn.Linear and not any(f".{skip}." in f".{name}." for skip in kept):
                try:
                    made = Linear.quantize(module, weights(how.format, how.extent), algorithm=how.algorithm)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}; name it in modules_to_not_convert") from error
                put_in_place(model, name, module, made)

    def is_serializable(self, safe_serialization: bool | None = None) -> bool:
        """As safetensors; transformers 4 can be asked for another format."""
        return safe_serialization is not False

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True


def _untie(model: Any, weight: str) -> None:
    """Transformers 5 lists the weights that are one: a quantized one is its layer's own."""
    tied = getattr(model, "all_tied_weights_keys", {})
    for one, other in list(tied.items()):
        if weight in (one, other):
            del tied[one]


def _files_of(model: Any) -> list:
    """The files that from_pretrained has found already: transformers 4 does not pass them."""
    path = model.config.name_or_path
    found = (cached_file(path, name, local_files_only=True, _raise_exceptions_for_missing_entries=False)
             for name in (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME))  # fmt: skip
    return [name for name in found if name]


def _folder_of(checkpoint_files: list) -> Path:
    """What qdnn.open is given: the folder, where config.json tells the method; files without one are opened themselves."""
    if not checkpoint_files:
        raise ValueError("the model is loaded without files; qdnn reads codes and scales from safetensors files")
    first = Path(checkpoint_files[0])
    if not first.name.endswith((".safetensors", ".safetensors.index.json")):
        raise ValueError(f"{first.name} is no safetensors file; qdnn reads no others")
    return first.parent


def _check_size(name, made, module):
    has = made.shape if isinstance(made, Embedding) else (made.out_features, made.in_features)
    wanted = tuple(module.weight.shape)
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
