"""qdnn.torch on the host, through ptxvm."""

import copy
import io
import json
import os
import unittest

import numpy as np

import qdnn

os.environ["QDNN_DEVICE"] = "vm:sm_80"  # as in the other tests: a process emulates one SM

try:
    import torch

    import qdnn.torch as qt
except ImportError:
    torch = None


@unittest.skipUnless(torch, "torch is not installed")
class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(31)

    def plain(self, layer):
        """The same layer with its weights as plain numbers."""
        w = layer.dequantize()
        return w if layer.transpose_w else w.t()

    def test_a_quantized_linear_is_the_product_of_its_weights(self):
        linear = torch.nn.Linear(64, 10)
        layer = qt.Linear.quantize(linear, "gguf_q8_0", algorithm="exact")
        x = torch.randn(2, 3, 64)
        expected = x @ self.plain(layer).t() + linear.bias
        torch.testing.assert_close(layer(x), expected, rtol=1e-5, atol=1e-5)
        self.assertIn("gguf_q8_0", repr(layer))
        self.assertEqual(layer(torch.empty(0, 64)).shape, (0, 10))

    def test_bf16_and_f16_activations(self):
        layer = qt.Linear.quantize(torch.nn.Linear(64, 4, bias=False), "gguf_q4_0", algorithm="exact")
        x = torch.randn(3, 64)
        for dtype in (torch.bfloat16, torch.float16):
            y = layer(x.to(dtype))
            self.assertEqual(y.dtype, dtype)
            expected = (x.to(dtype).float() @ self.plain(layer).t()).to(dtype)
            torch.testing.assert_close(y, expected)

    def test_gradients_go_through(self):
        layer = qt.Linear.quantize(torch.nn.Linear(32, 5), "int4_bytes", algorithm="exact")
        x, dy = torch.randn(4, 32, requires_grad=True), torch.randn(4, 5)
        layer(x).backward(dy)
        torch.testing.assert_close(x.grad, dy @ self.plain(layer))
        torch.testing.assert_close(layer.bias.grad, dy.sum(0))

    def test_a_state_dict_holds_all(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
        other = qt.replace_linears(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3)), "gguf_q5_1")
        x = torch.randn(2, 64)
        model = qt.replace_linears(model, qdnn.quantization(storage="i8", group_size=32))
        y = model(x)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file))
        torch.testing.assert_close(other(x), y, rtol=0, atol=0)
        self.assertEqual(model.half()[0].codes.dtype, torch.uint8)

    def test_replacing_names_what_it_cannot(self):
        model = torch.nn.Sequential(torch.nn.Linear(33, 2), torch.nn.Linear(64, 2))
        with self.assertRaisesRegex(ValueError, "^0: "):
            qt.replace_linears(model, "gguf_q8_0")
        qt.replace_linears(model, "gguf_q8_0", only=lambda name: name == "1")
        self.assertIsInstance(model[1], qt.Linear)
        self.assertIsInstance(model[0], torch.nn.Linear)

    def test_compiling_breaks_no_graph(self):
        model = qt.replace_linears(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.SiLU(), torch.nn.Linear(32, 8)), "gguf_q8_0")
        x = torch.randn(3, 64)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
        again = copy.deepcopy(model)
        torch.testing.assert_close(again(x), model(x), rtol=0, atol=0)

    def test_operators_pass_torchs_own_checks(self):
        layer = qt.Linear.quantize(torch.nn.Linear(32, 4), "gguf_q8_0", algorithm="exact")
        x = torch.randn(2, 32, requires_grad=True)
        torch.library.opcheck(qt._linear, (x, layer.bias, layer.number, "none", "exact"))
        torch.library.opcheck(qt._dequantize, (torch.empty(()), layer.number))
        torch.library.opcheck(qt._embedding, (torch.tensor([1, 3]), layer.number, torch.float32))
        torch.library.opcheck(qt._fake_quantize, (x, '{"bits": 4}'))
        torch.library.opcheck(qt._lsq, (x, torch.tensor([0.1], requires_grad=True), '{"bits": 4}'))

    def test_compiled_training_breaks_no_graph(self):
        layer = qt.Linear.quantize(torch.nn.Linear(32, 4), "gguf_q8_0", algorithm="exact")
        quantize = qt.LsqQuantize(torch.randn(2, 32), bits=4)
        model = torch.nn.Sequential(qt.FakeQuantize(bits=4), quantize, layer)
        x, grads = torch.randn(2, 32), []
        for run in (model, torch.compile(model, backend="aot_eager", fullgraph=True)):
            given = x.clone().requires_grad_()
            run(given).square().sum().backward()
            grads.append((given.grad, quantize.scale.grad.clone(), layer.bias.grad.clone()))
            model.zero_grad()
        for plain, compiled in zip(*grads):
            torch.testing.assert_close(plain, compiled)
            self.assertGreater(plain.abs().max().item(), 0)

    def test_gptq_and_awq_layouts(self):
        codes = torch.randint(0, 16, (64, 16), dtype=torch.int64)
        zeros, scales = torch.randint(1, 16, (2, 16), dtype=torch.int64), torch.rand(2, 16).half() + 0.5
        group = torch.arange(64) // 32
        w = ((codes - zeros[group]) * scales.float()[group]).float()
        pack = lambda rows, order: sum(rows[..., place] << 4 * i for i, place in enumerate(order)).to(torch.int64)
        words = lambda value: torch.from_numpy(value.numpy().astype(np.uint32).view(np.int32))
        by_k = words(pack(codes.reshape(8, 8, 16).transpose(1, 2), range(8)))
        straight = words(pack((zeros - 1).reshape(2, 2, 8), range(8)))
        gptq = qt.Linear.from_gptq(by_k, straight, scales, group_size=32)
        torch.testing.assert_close(gptq.dequantize(), w, rtol=0, atol=0)
        shuffled = group[torch.randperm(64)].to(torch.int32)
        ordered = qt.Linear.from_gptq(by_k, straight, scales, g_idx=shuffled, group_size=32)
        expected = ((codes - zeros[shuffled.long()]) * scales.float()[shuffled.long()]).float()
        torch.testing.assert_close(ordered.dequantize(), expected, rtol=0, atol=0)
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        awq = qt.Linear.from_awq(words(pack(codes.reshape(64, 2, 8), order)), words(pack(zeros.reshape(2, 2, 8), order)), scales, 32)
        torch.testing.assert_close(awq.dequantize(), w, rtol=0, atol=0)
        x = torch.randn(3, 64)
        torch.testing.assert_close(awq(x), x @ w, rtol=1e-5, atol=1e-4)

    def test_weights_of_others_become_layers(self):
        import test_transformers as made  # which makes their parts

        torch.manual_seed(31)
        w, x = torch.randn(6, 64), torch.randn(3, 64)
        shape = tuple(w.shape)
        device = qt.device_of(w.device)

        def check(layer, back):
            torch.testing.assert_close(layer.dequantize(), back, rtol=0, atol=1e-6)
            torch.testing.assert_close(layer(x), x @ back.t(), rtol=1e-4, atol=1e-4)

        parts, back = made.compressed(w)
        check(qt.Linear.from_compressed_tensors(parts["weight_packed"], parts["weight_scale"], shape, group_size=32), back)
        parts, back = made.bnb(w)
        check(qt.Linear.from_bitsandbytes(parts["weight"], parts["weight.absmax"], shape), back)
        parts, back = made.bnb_nested(w)
        state = json.loads(bytes(parts["weight.quant_state.bitsandbytes__nf4"].tolist()))
        nested = (parts["weight.nested_quant_map"], parts["weight.nested_absmax"], torch.tensor([state["nested_offset"]]))
        check(qt.Linear.from_bitsandbytes(parts["weight"], parts["weight.absmax"], shape, nested=nested), back)
        parts, back = made.modelopt(w)
        check(qt.Linear.from_modelopt(parts["weight"], parts["weight_scale"], parts["weight_scale_2"]), back)
        q = device.quantize(w, qdnn.weights("gguf_q5_0"))
        blocks, back = torch.from_numpy(q.parts["codes"].numpy()), torch.from_numpy(device.dequantize(q).numpy())
        check(qt.Linear.from_gguf(blocks, "q5_0", shape), back)
        torch.testing.assert_close(qt.Embedding.from_gguf(blocks, "q5_0", shape)(torch.tensor([5, 0])), back[[5, 0]], rtol=0, atol=0)

    def test_embeddings(self):
        table = torch.nn.Embedding(10, 64)
        layer = qt.Embedding.quantize(table, "gguf_q8_0")
        indices = torch.tensor([[1, 9], [0, 1]])
        torch.testing.assert_close(layer(indices), layer.dequantize()[indices], rtol=0, atol=0)

    def test_training(self):
        x = torch.tensor([-2.0, -0.4, 0.3, 1.0], requires_grad=True)
        y = qt.fake_quantize(x, bits=2, backward="identity")
        torch.testing.assert_close(y, torch.tensor([-2.0, 0, 0, 2]))
        y.backward(torch.tensor([1.0, 2, 3, 4]))
        torch.testing.assert_close(x.grad, torch.tensor([1.0, 2, 3, 4]))
        layer = qt.LsqQuantize(x, bits=4)
        layer(x).sum().backward()
        self.assertTrue(torch.isfinite(layer.scale.grad).all())


if __name__ == "__main__":
    unittest.main()
