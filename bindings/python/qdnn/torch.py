"""qdnn for torch: quantized Linear and Embedding layers, products and fake quantization as operators with gradients.

    import qdnn.torch
    model = qdnn.torch.replace_linears(model, "gguf_q4_0")       # every nn.Linear, quantized on the device
    layer = qdnn.torch.Linear.from_gptq(qweight, qzeros, scales) # weights as others store them

Tensors on a GPU are used in place. On the host the same code runs on ptxvm (or on the device that QDNN_DEVICE names), with the same
bits; weights are copied there once, activations at each call. Operators are torch.library's: torch.compile sees them whole.
"""

import itertools
import json
import os
import weakref

import numpy as np
import torch

from ._device import Device, training
from ._files import open as open_file
from ._plans import PARTS, Quantized, quantization, weights

__all__ = ["Embedding", "FakeQuantize", "Linear", "LsqQuantize", "device_of", "fake_quantize", "load_checkpoint", "lsq", "replace_linears"]

_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}
_devices = {}


def device_of(where):
    """The qdnn.Device that computes for tensors on a torch.device: that GPU, or what QDNN_DEVICE names ("vm" by default)."""
    name = f"cuda:{where.index or 0}" if where.type == "cuda" else os.environ.get("QDNN_DEVICE", "vm")
    if where.type not in ("cuda", "cpu"):
        raise ValueError(f"qdnn computes for tensors on cuda and cpu, not on {where.type}")
    if name not in _devices:
        _devices[name] = Device(name)
    return _devices[name]


def _type_of(dtype):
    if dtype not in _NAMES:
        raise TypeError(f"{dtype} is none of {', '.join(str(known) for known in _NAMES)}")
    return _NAMES[dtype]


def _result(like, shape, dtype):
    """A tensor to be written, and what qdnn writes: the tensor itself on a GPU, else an array that _give copies."""
    out = torch.empty(shape, dtype=dtype, device=like.device)
    return out, (out if like.is_cuda else device_of(like.device).empty(shape, _type_of(dtype)))


def _give(out, written):
    if written is not out and out.numel():
        bits = written.numpy()
        integers = {2: (np.int16, torch.int16), 4: (np.int32, torch.int32), 8: (np.int64, torch.int64)}[bits.dtype.itemsize]
        out.copy_(torch.from_numpy(bits.view(integers[0])).view(out.dtype))
    return out


def _on_stream(device, tensor):
    """Queues on the stream that torch uses for the tensor's GPU."""
    if tensor.is_cuda:
        stream = torch.cuda.current_stream(tensor.device).cuda_stream
        if device.handle.stream != stream:
            device.handle.set_stream(stream)


# ---- Weights: operators know a layer by its number, since the parts of its weights are no tensors of the graph ----

_numbers = itertools.count(1)
_layers = weakref.WeakValueDictionary()


class _Weights:
    """A layer's weights on the device of its buffers: copied to ptxvm, or described in place, once."""

    def __init__(self, layer):
        self.device, self.transpose_w, self.quantized = device_of(layer.codes.device), layer.transpose_w, layer.quantized
        self.quantized.on(self.device.handle)


@torch.library.custom_op("qdnn::linear", mutates_args=())
def _linear(x: torch.Tensor, bias: torch.Tensor | None, number: int, activation: str, algorithm: str) -> torch.Tensor:
    held = _layers[number].weights
    out, y = _result(x, (*x.shape[:-1], _layers[number].out_features), x.dtype)
    if out.numel():
        _on_stream(held.device, x)
        held.device.matmul(x.detach().contiguous(), held.quantized, held.transpose_w, activation=activation, algorithm=algorithm, out=y,
                           bias=None if bias is None else bias.detach().contiguous())  # fmt: skip
    return _give(out, y)


@_linear.register_fake
def _(x, bias, number, activation, algorithm):
    return x.new_empty((*x.shape[:-1], _layers[number].out_features))


@torch.library.custom_op("qdnn::dequantize", mutates_args=())
def _dequantize(like: torch.Tensor, number: int) -> torch.Tensor:
    """The weights as plain numbers of the type and on the device of `like`."""
    held = _layers[number].weights
    out, y = _result(like, held.quantized.shape, like.dtype)
    _on_stream(held.device, like)
    held.device.dequantize(held.quantized, out=y)
    return _give(out, y)


@_dequantize.register_fake
def _(like, number):
    return like.new_empty(_layers[number].shape)


def _linear_saves(ctx, inputs, output):
    x, bias, ctx.number, ctx.activation, _ = inputs
    ctx.has_bias = bias is not None
    if ctx.activation != "none":
        raise NotImplementedError("gradients of a product with an activation in it: apply the activation by torch")


def _linear_backward(ctx, dy):
    """By dequantizing and a plain product: qdnn has no product with the transpose of weights in rows."""
    w = _dequantize(dy, ctx.number)
    dx = dy @ (w if _layers[ctx.number].transpose_w else w.t())
    dbias = dy.reshape(-1, dy.shape[-1]).sum(0) if ctx.has_bias else None
    return dx, dbias, None, None, None


_linear.register_autograd(_linear_backward, setup_context=_linear_saves)


@torch.library.custom_op("qdnn::embedding", mutates_args=())
def _embedding(indices: torch.Tensor, number: int, dtype: torch.dtype) -> torch.Tensor:
    held = _layers[number].weights
    out, y = _result(indices, (*indices.shape, held.quantized.shape[1]), dtype)
    if out.numel():
        _on_stream(held.device, indices)
        held.device.gather(held.quantized, indices.to(torch.int32).contiguous(), out=y)
    return _give(out, y)


@_embedding.register_fake
def _(indices, number, dtype):
    return indices.new_empty((*indices.shape, _layers[number].shape[1]), dtype=dtype)


# ---- Layers ----


class _Layer(torch.nn.Module):
    """Weights as buffers, by the names of their parts, and what they are made of as extra state: state_dict holds all of it."""

    def __init__(self, quantized, transpose_w=True, device=None):
        super().__init__()
        self._describe(quantized, transpose_w)
        self._take_number()
        for name, part in quantized.numpy().items():
            self.register_buffer(name, torch.from_numpy(np.array(part)).to(device or "cpu"))

    def _describe(self, quantized, transpose_w):
        self.shape, self.quantization = tuple(quantized.shape), quantized.quantization
        self.transpose_w, self.prepacked = transpose_w, quantized.prepacked
        self._held = None

    @property
    def quantized(self):
        """The weights as a qdnn.Quantized over this layer's buffers."""
        return Quantized(self.shape, self.quantization, dict(self.named_buffers(recurse=False)), self.prepacked)

    @property
    def weights(self):
        if self._held is None:
            self._held = _Weights(self)
        return self._held

    def _take_number(self):
        self.number = next(_numbers)
        _layers[self.number] = self

    def dequantize(self, dtype=torch.float32):
        """The weights as a plain tensor."""
        return _dequantize(torch.empty((), dtype=dtype, device=self.codes.device), self.number)

    def _apply(self, fn, recurse=True):
        """Buffers may move; their bits stay, also where the module becomes float16."""
        for name, buffer in list(self._buffers.items()):
            moved = fn(buffer)
            self._buffers[name] = moved if moved.dtype == buffer.dtype else buffer.to(moved.device)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                parameter.data = fn(parameter.data)
        self._held = None
        return self

    @classmethod
    def from_state(cls, state, **settings):
        """A layer from its own part of a state_dict, whichever weights it holds."""
        shape, transpose_w, prepacked, how = _described(state["_extra_state"])
        parts = {name: _bits_of(state[name]) for name in PARTS if name in state}
        layer = cls(Quantized(shape, how, parts, prepacked), **settings)
        layer.transpose_w = transpose_w
        return layer

    def get_extra_state(self):
        named, attributes, floats = self.quantization.__reduce__()[1]
        text = json.dumps([self.shape, self.transpose_w, self.prepacked, named, attributes, floats])
        return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)

    def set_extra_state(self, state):
        shape, transpose_w, prepacked, how = _described(state)
        self._describe(Quantized(shape, how, {}, prepacked), transpose_w)

    def _load_from_state_dict(self, state, prefix, *arguments):
        """The parts may be others than those that this layer was made with, of other types and sizes."""
        where = self.codes.device
        for name in PARTS:
            self._buffers.pop(name, None)
            if prefix + name in state:
                self.register_buffer(name, torch.empty_like(state[prefix + name], device=where))
        super()._load_from_state_dict(state, prefix, *arguments)
        self._held = None

    def __getstate__(self):
        return {**self.__dict__, "_held": None}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._take_number()


def _described(state):
    """What get_extra_state wrote."""
    shape, transpose_w, prepacked, named, attributes, floats = json.loads(bytes(state.tolist()))
    how = (weights(*named) if named else quantization()).set(**attributes, **floats)
    return shape, transpose_w, prepacked, how


class Linear(_Layer):
    """y = act(x W^T + bias) with quantized W. `algorithm`: "auto", "exact" (the same bits on every GPU) or "tensor"."""

    def __init__(self, quantized, bias=None, transpose_w=True, activation="none", algorithm="auto", device=None):
        super().__init__(quantized, transpose_w, device)
        self.activation, self.algorithm = activation, algorithm
        bias = None if bias is None else torch.nn.Parameter(torch.as_tensor(bias).detach().clone().to(device or "cpu"))
        self.register_parameter("bias", bias)

    in_features = property(lambda self: self.shape[1 if self.transpose_w else 0])
    out_features = property(lambda self: self.shape[0 if self.transpose_w else 1])

    def forward(self, x):
        bias = None if self.bias is None else self.bias
        return _linear(x, bias, self.number, self.activation, self.algorithm)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, {self.quantization!r}"

    # ---- From weights as others have them ----

    @classmethod
    def quantize(cls, linear, how, **settings):
        """An nn.Linear with its weight quantized: `how` is a qdnn.Quantization or the name of a format."""
        how = weights(how) if isinstance(how, str) else how
        weight = linear.weight.detach()
        made = device_of(weight.device).quantize(weight.contiguous(), how)
        return cls(made, linear.bias, device=weight.device, **settings)

    @classmethod
    def from_parts(cls, format, extent, shape, parts, bias=None, transpose_w=True, attributes=None, **settings):
        """Any format by name, with its parts as tensors: docs/formats.md lists what each has."""
        how = weights(format, extent).set(**(attributes or {}))
        parts = {name: _bits_of(part) for name, part in parts.items() if part is not None}
        return cls(Quantized(shape, how, parts), bias, transpose_w, **settings)

    @classmethod
    def from_gptq(cls, qweight, qzeros, scales, g_idx=None, bits=4, group_size=128, version=1, bias=None, **settings):
        """GPTQ: qweight [K * bits / 32, N]; version 1 stores zeros minus one, version 2 as they are. g_idx where act-order is on."""
        n, k = qweight.shape[1], qweight.shape[0] * 32 // bits
        attributes = _scale_type(scales)
        if g_idx is not None and not torch.equal(g_idx.cpu(), torch.arange(k, dtype=g_idx.dtype) // (group_size if group_size > 0 else k)):
            attributes["group_index"] = 1
        parts = {"codes": qweight, "zero": qzeros, "scale": scales, "group_index": g_idx if "group_index" in attributes else None}
        name = f"gptq_{'v2_' if version == 2 else ''}{bits}bit"
        return cls.from_parts(name, group_size if group_size > 0 else k, (k, n), parts, bias, False, attributes, **settings)

    @classmethod
    def from_awq(cls, qweight, qzeros, scales, group_size=128, bias=None, **settings):
        """AWQ's GEMM layout: qweight [K, N / 8]."""
        k, n = qweight.shape[0], qweight.shape[1] * 8
        parts = {"codes": qweight, "zero": qzeros, "scale": scales}
        return cls.from_parts("awq", group_size if group_size > 0 else k, (k, n), parts, bias, False, _scale_type(scales), **settings)

    @classmethod
    def from_bitsandbytes(cls, codes, absmax, shape, kind="nf4", block_size=64, bias=None, nested=None, **settings):
        """bitsandbytes' 4-bit weights: packed codes, absmax; `nested`: (map, absmax of the absmax, offset) where absmax is bytes."""
        parts = {"codes": codes, "scale": absmax}
        if nested is not None:
            parts.update(zip(("nested_map", "nested_scale", "nested_offset"), nested))
        name = f"bnb_{kind}" + ("_nested" if nested is not None else "")
        return cls.from_parts(name, block_size, shape, parts, bias, **settings)

    @classmethod
    def from_compressed_tensors(cls, weight_packed, weight_scale, shape, bits=4, group_size=128, weight_zero_point=None, bias=None, **settings):
        """pack-quantized of compressed-tensors: words in rows, scales [N, K / g]."""
        parts = {"codes": weight_packed, "scale": weight_scale, "zero": weight_zero_point}
        name = f"compressed_tensors_{bits}bit" + ("_zp" if weight_zero_point is not None else "")
        extent = group_size if group_size > 0 else shape[1]
        return cls.from_parts(name, extent, shape, parts, bias, attributes=_scale_type(weight_scale), **settings)

    @classmethod
    def from_modelopt(cls, weight, weight_scale, weight_scale_2, bias=None, **settings):
        """ModelOpt's NVFP4: weight [N, K / 2] bytes, E4M3 scales [N, K / 16], one global scale."""
        parts = {"codes": weight, "scale": weight_scale, "global_scale": weight_scale_2.reshape(1).float()}
        return cls.from_parts("modelopt_nvfp4", 0, (weight.shape[0], weight.shape[1] * 2), parts, bias, **settings)

    @classmethod
    def from_gguf(cls, blocks, type, shape, bias=None, **settings):
        """Blocks of GGUF as bytes; type "Q4_K" and so on."""
        return cls.from_parts(f"gguf_{type}", 0, shape, {"codes": blocks}, bias, **settings)


def _scale_type(scales):
    return {"scale_type": _type_of(scales.dtype)}


def _bits_of(tensor):
    """A tensor as numpy sees its bits: bf16 and FP8 are bytes and words there."""
    tensor = torch.as_tensor(tensor).detach().cpu().contiguous()
    if tensor.dtype in (torch.float32, torch.float16, torch.int32, torch.uint8, torch.int8):
        return tensor.numpy()
    return tensor.view(torch.uint8 if tensor.element_size() == 1 else torch.int16).numpy().view(np.uint8)


class Embedding(_Layer):
    """Rows of a quantized table by index."""

    def __init__(self, quantized, dtype=torch.float32, device=None):
        super().__init__(quantized, True, device)
        self.dtype = dtype

    def forward(self, indices):
        return _embedding(indices, self.number, self.dtype)

    @classmethod
    def quantize(cls, embedding, how):
        how = weights(how) if isinstance(how, str) else how
        weight = embedding.weight.detach()
        return cls(device_of(weight.device).quantize(weight.contiguous(), how), weight.dtype, weight.device)

    @classmethod
    def from_gguf(cls, blocks, type, shape, dtype=torch.float32):
        return cls(Quantized(shape, weights(f"gguf_{type}"), {"codes": _bits_of(blocks)}), dtype)

    def extra_repr(self):
        return f"{self.shape[0]}, {self.shape[1]}, {self.quantization!r}"


def replace_linears(model, how, only=lambda name: True, **settings):
    """Replaces every nn.Linear whose name passes `only` by a quantized one; returns the model.

    Those whose shape the format does not take (K no multiple of its block) are an error that names the layer.
    """
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and only(name):
            try:
                made = Linear.quantize(module, how, **settings)
            except ValueError as error:
                raise ValueError(f"{name}: {error}; leave it out by `only`") from error
            if not name:
                return made
            put_in_place(model, name, module, made)
    return model


def put_in_place(model, name, old, new):
    """Replaces a layer; where accelerate moves tensors to the layer's device, it does so for the new one, too."""
    if hasattr(old, "_hf_hook"):
        from accelerate.hooks import add_hook_to_module

        add_hook_to_module(new, old._hf_hook)
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, new)


def load_checkpoint(model, path, dtype=None, only=lambda name: True, **settings):
    """Loads the weights of a model from a GGUF or safetensors file or a checkpoint's folder, in any format that qdnn reads.

    Names are those of the model (a checkpoint of transformers has them). An nn.Linear whose weight is quantized in the file becomes
    a Linear over it as stored, an nn.Embedding likewise; everything else is dequantized into the model's tensors. Returns the
    names of parameters and buffers that the file does not have.
    """
    file, loaded = open_file(path), set()
    for name, module in list(model.named_modules()):
        weight = f"{name}.weight"
        if weight in file and only(name) and isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) and _is_quantized(file[weight]):
            put_in_place(model, name, module, _layer_of(module, file, weight, dtype, settings))
            loaded.add(weight)
    missing = []
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        stem, _, part = name.rpartition(".")
        if f"{stem}.weight" in loaded and part in PARTS:
            continue
        if name in file:
            _fill(tensor, file[name])
        else:
            missing.append(name)
    return missing


def _is_quantized(quantized):
    return not (quantized.quantization.weights and quantized.quantization.weights[0] in ("f32", "f16", "bf16"))


def _layer_of(module, file, name, dtype, settings):
    quantized, where = file[name], module.weight.device if module.weight.device.type != "meta" else "cpu"
    if isinstance(module, torch.nn.Embedding):
        return Embedding(quantized, dtype or module.weight.dtype, where)
    bias = None if module.bias is None else torch.empty(module.out_features, dtype=dtype or module.weight.dtype)
    return Linear(quantized, bias, not file.is_transposed(name), device=where, **settings)


def _fill(tensor, quantized):
    """Dequantized on the device that computes for the tensor, to its type."""
    plain = device_of(tensor.device).dequantize(quantized, "f32").numpy()
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(plain).reshape(tensor.shape))


# ---- Training ----


@torch.library.custom_op("qdnn::fake_quantize", mutates_args=())
def _fake_quantize(x: torch.Tensor, settings: str) -> torch.Tensor:
    device = device_of(x.device)
    _on_stream(device, x)
    return _give(torch.empty_like(x), device.fake_quantize(x.detach().contiguous(), _train(settings)))


@_fake_quantize.register_fake
def _(x, settings):
    return torch.empty_like(x)


@torch.library.custom_op("qdnn::fake_quantize_backward", mutates_args=())
def _fake_quantize_backward(dy: torch.Tensor, x: torch.Tensor, settings: str) -> torch.Tensor:
    device, train = device_of(x.device), _train(settings)
    _on_stream(device, x)
    needs_x = json.loads(settings).get("backward") != "identity"
    return _give(torch.empty_like(x), device.fake_quantize_backward(dy.contiguous(), train, x=x.contiguous() if needs_x else None))


@_fake_quantize_backward.register_fake
def _(dy, x, settings):
    return torch.empty_like(x)


def _fake_saves(ctx, inputs, output):
    x, ctx.settings = inputs
    ctx.save_for_backward(x)


_fake_quantize.register_autograd(
    lambda ctx, dy: (_fake_quantize_backward(dy, ctx.saved_tensors[0], ctx.settings), None), setup_context=_fake_saves
)


@torch.library.custom_op("qdnn::lsq", mutates_args=())
def _lsq(x: torch.Tensor, scale: torch.Tensor, settings: str) -> torch.Tensor:
    device = device_of(x.device)
    _on_stream(device, x)
    return _give(torch.empty_like(x), device.lsq(x.detach().contiguous(), scale.detach().contiguous(), _train(settings)))


@_lsq.register_fake
def _(x, scale, settings):
    return torch.empty_like(x)


@torch.library.custom_op("qdnn::lsq_backward", mutates_args=())
def _lsq_backward(x: torch.Tensor, scale: torch.Tensor, dy: torch.Tensor, settings: str) -> tuple[torch.Tensor, torch.Tensor]:
    device = device_of(x.device)
    _on_stream(device, x)
    dx, dscale = device.lsq_backward(x.contiguous(), scale.contiguous(), dy.contiguous(), _train(settings))
    return _give(torch.empty_like(x), dx), _give(torch.empty_like(scale), dscale)


@_lsq_backward.register_fake
def _(x, scale, dy, settings):
    return torch.empty_like(x), torch.empty_like(scale)


def _lsq_saves(ctx, inputs, output):
    x, scale, ctx.settings = inputs
    ctx.save_for_backward(x, scale)


_lsq.register_autograd(lambda ctx, dy: (*_lsq_backward(*ctx.saved_tensors, dy, ctx.settings), None), setup_context=_lsq_saves)


def _train(settings):
    return training(**json.loads(settings))


def _text(settings):
    """As JSON, by what torch.compile traces: operators take numbers and text."""
    values = [f'"{name}": "{value}"' if isinstance(value, str) else f'"{name}": {value + 0}' for name, value in settings.items()]
    return "{" + ", ".join(values) + "}"


def fake_quantize(x, bits=8, **settings):
    """y = clamp(round(x / s)) * s with the scale of x itself; gradients by `backward`: "clipped", "identity", "tanh", "hard_tanh"."""
    return _fake_quantize(x, _text({"bits": bits, **settings}))


def lsq(x, scale, bits=8, **settings):
    """LSQ: fake quantization whose scale is a parameter, with its gradient."""
    return _lsq(x, scale, _text({"bits": bits, **settings}))


class FakeQuantize(torch.nn.Module):
    def __init__(self, bits=8, **settings):
        super().__init__()
        self.settings = {"bits": bits, **settings}

    def forward(self, x):
        return fake_quantize(x, **self.settings)


class LsqQuantize(torch.nn.Module):
    """LSQ with one learned scale, started at 2 mean |x| / sqrt(qmax) of the tensor it is given."""

    def __init__(self, like, bits=8, **settings):
        super().__init__()
        self.settings = {"bits": bits, **settings}
        qmax = 2 ** (bits - 1) - 1
        self.scale = torch.nn.Parameter((2 * like.detach().abs().mean() / qmax**0.5).reshape(1))

    def forward(self, x):
        return lsq(x, self.scale, **self.settings)
