"""Weights in files: a GGUF file and a safetensors file written here by hand."""

import gc
import json
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np

import qdnn


def gguf(tensors, metadata):
    """A GGUF file of version 3: tensors as {name: (shape, type number, bytes)}, metadata as strings."""
    text = lambda value: struct.pack("<Q", len(value)) + value.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in metadata.items())
    data = b""
    for name, (shape, kind, content) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % 32)
    return head + bytes(-len(head) % 32) + data


def safetensors(tensors):
    """{name: (type name, shape, bytes)}"""
    at, entries, data = 0, {}, b""
    for name, (kind, shape, content) in tensors.items():
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(content)]}
        at, data = at + len(content), data + content
    head = json.dumps(entries).encode()
    return struct.pack("<Q", len(head)) + head + data


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")
        cls.folder = tempfile.TemporaryDirectory()
        cls.random = np.random.default_rng(5)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name, content):
        path = Path(self.folder.name) / name
        path.write_bytes(content)
        return path

    def test_gguf_weights_are_used_as_stored(self):
        w = self.random.standard_normal((3, 64), np.float32)
        q = self.device.quantize(w, qdnn.weights("gguf_q8_0"))
        blocks = q.parts["codes"].numpy().tobytes()
        path = self.path("m.gguf", gguf({"a.weight": ((3, 64), 8, blocks), "b": ((2,), 0, w[0, :2].tobytes())}, {"general.name": "m"}))
        file = qdnn.open(path)
        self.assertEqual((file.kind, list(file), file.metadata), ("gguf", ["a.weight", "b"], {"general.name": "m"}))
        stored = file["a.weight"]
        self.assertEqual((stored.shape, stored.bytes, file.is_transposed("a.weight")), ((3, 64), len(blocks), False))
        del file  # its memory stays as long as the parts are in use
        gc.collect()
        np.testing.assert_array_equal(self.device.dequantize(stored).numpy(), self.device.dequantize(q).numpy())

    def test_mistakes_name_the_file(self):
        with self.assertRaisesRegex(ValueError, "bad.gguf"):
            qdnn.open(self.path("bad.gguf", b"GGUF\x03\x00\x00\x00"))
        with self.assertRaises(KeyError):
            qdnn.open(self.path("e.safetensors", safetensors({"x": ("F32", (1,), bytes(4))})))["y"]

    def test_models_of_torch_load_checkpoints(self):
        try:
            import torch

            import qdnn.torch
        except ImportError:
            self.skipTest("torch is not installed")
        k, n, g = 32, 8, 32
        codes = self.random.integers(0, 16, (k, n)).astype(np.uint32)
        scales = self.random.random((1, n)).astype(np.float16) + np.float16(0.5)
        qweight = sum(codes[i::8] << np.uint32(4 * i) for i in range(8)).astype(np.uint32)
        qzeros = np.full((1, 1), 0x77777777, np.uint32)  # 8, stored minus one
        bias = np.arange(n, dtype=np.float32)
        folder = Path(self.folder.name) / "gptq"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(
            safetensors({
                "0.qweight": ("I32", qweight.shape, qweight.tobytes()), "0.qzeros": ("I32", (1, 1), qzeros.tobytes()),
                "0.scales": ("F16", (1, n), scales.tobytes()), "0.bias": ("F32", (n,), bias.tobytes()),
                "1.weight": ("F32", (2, n), np.ones((2, n), np.float32).tobytes()),
            })  # fmt: skip
        )
        config = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": g, "sym": True, "desc_act": False}}
        (folder / "config.json").write_text(json.dumps(config))
        model = torch.nn.Sequential(torch.nn.Linear(k, n), torch.nn.Linear(n, 2, bias=False))
        self.assertEqual(qdnn.torch.load_checkpoint(model, folder), [])
        self.assertIsInstance(model[0], qdnn.torch.Linear)
        self.assertIsInstance(model[1], torch.nn.Linear)
        x = torch.randn(3, k)
        w = (codes.astype(np.float32) - 8) * scales.astype(np.float32)
        expected = (x @ torch.from_numpy(w) + torch.from_numpy(bias)) @ torch.ones(n, 2)
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    unittest.main()
