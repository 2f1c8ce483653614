"""Operations on rows, KV caches, selection, programs and schedules, against plain numpy."""

import re
import unittest
from pathlib import Path

import numpy as np

import qdnn
from qdnn import _program, _settings

INCLUDE = Path(__file__).resolve().parents[3] / "include" / "qdnn"


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")
        cls.random = np.random.default_rng(31)

    def numbers(self, *shape):
        return self.random.standard_normal(shape, np.float32)

    def close(self, array, expected, rtol=2e-6, atol=1e-6):
        np.testing.assert_allclose(array.numpy(), expected, rtol=rtol, atol=atol)

    def test_rms_norm_with_a_residual_in_front(self):
        x, residual, weight = self.numbers(3, 40), self.numbers(3, 40), self.numbers(40)
        y, h = self.device.rms_norm(x, weight, 1e-5, residual=residual, weight_plus_one=True)
        np.testing.assert_array_equal(h.numpy(), x + residual)
        expected = (x + residual) / np.sqrt(((x + residual) ** 2).mean(-1, keepdims=True) + 1e-5) * (1 + weight)
        self.close(y, expected)

    def test_layer_norm(self):
        x, weight, bias = self.numbers(2, 3, 24), self.numbers(24), self.numbers(24).astype(np.float16)
        expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias
        self.close(self.device.layer_norm(x, weight, bias), expected)
        half = self.device.layer_norm(x, weight, bias, type="f16").numpy()
        self.assertEqual(half.dtype, np.float16)
        np.testing.assert_allclose(half, expected, rtol=2e-3, atol=2e-3)

    def test_a_norm_is_quantized_as_by_a_plan_of_its_own(self):
        x, how = self.numbers(4, 64), qdnn.quantization(storage="i8", group_size=64)
        apart = self.device.quantize_dynamic(self.device.rms_norm(x), how)
        together = self.device.rms_norm(x, quantization=how)
        for part in ("codes", "scale"):
            np.testing.assert_array_equal(together.parts[part].numpy(), apart.parts[part].numpy())
        with self.assertRaisesRegex(ValueError, "quantized"):
            self.device.rms_norm(x, quantization=how, out=np.zeros((4, 64), np.float32))

    def test_each_element(self):
        x, b = self.numbers(3, 16), self.numbers(3, 16)
        np.testing.assert_array_equal(self.device.add(x, b).numpy(), x + b)
        np.testing.assert_array_equal(self.device.add(x, b[0].astype(np.float16)).numpy(), x + b[0].astype(np.float16))
        np.testing.assert_array_equal(self.device.multiply(x, 3).numpy(), x * np.float32(3))
        self.close(self.device.function(x, "silu"), silu(x))
        self.close(self.device.function(x, "softcap", limit=2.0), 2 * np.tanh(x / 2))
        with self.assertRaisesRegex(ValueError, "did you mean 'silu'"):
            self.device.function(x, "sillu")

    def test_gated_functions_take_b_from_anywhere(self):
        x, b = self.numbers(3, 16), self.numbers(3, 16)
        expected = silu(x) * b
        self.close(self.device.gated(x, b), expected)
        self.close(self.device.gated(np.concatenate([x, b], 1)), expected)
        self.close(self.device.gated(np.concatenate([b, x], 1), "first_half"), expected)
        self.close(self.device.gated(np.stack([x, b], 2).reshape(3, 32), "interleaved"), expected)

    def rotated(self, x, positions, cos, sin):
        c, s, half = cos[positions][:, None], sin[positions][:, None], x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * c - b * s, a * s + b * c], -1)

    def test_rope(self):
        tables = qdnn.rope_tables(16, 32, 500.0)
        i = np.arange(8)
        angles = np.arange(32)[:, None] * 500.0 ** (-2 * i / 16)
        np.testing.assert_allclose(tables[0], np.cos(angles), atol=1e-6)
        np.testing.assert_allclose(tables[1], np.sin(angles), atol=1e-6)
        x, positions = self.numbers(3, 2, 16), np.array([31, 0, 5], np.int32)
        self.close(self.device.rope(x, tables, positions), self.rotated(x, positions, *tables), atol=1e-5)
        far = qdnn.rope_tables(16, 1, rule="linear", factor=4.0, first=8)
        np.testing.assert_array_equal(far[0][0], qdnn.rope_tables(16, 3)[0][2])
        with self.assertRaisesRegex(ValueError, "must be \\(8,\\)"):
            qdnn.rope_tables(16, 4, divisors=np.ones(3))

    def test_keys_and_values_go_into_a_cache(self):
        positions = np.array([2, 9, 40], np.int32)
        x = self.numbers(3, 4 * 16)  # two heads of queries, one of keys, one of values
        slots = np.array([7, 0, 3], np.int32)
        int8 = qdnn.quantization(storage="i8", group_size=16)
        for how in ({"type": "f32"}, {"quantization": int8}, {"quantization": int8, "scales": "by_head"},
                    {"quantization": qdnn.quantization(storage="f8e4m3", group_size=32, scale_type="f16"), "head_size": 32}):  # fmt: skip
            with self.subTest(how=how):
                head_size = how.pop("head_size", 16)
                rows = np.tile(x, head_size // 16)
                tables = qdnn.rope_tables(head_size, 64)
                cache = qdnn.KvCache(self.device, pages=2, page_slots=4, heads=1, head_size=head_size, **how)
                y = self.device.rope(rows, tables, positions, heads=2, cache=cache, slots=slots)
                q, k, v = rows[:, : 2 * head_size].reshape(3, 2, head_size), rows[:, 2 * head_size : 3 * head_size], rows[:, 3 * head_size :]
                self.close(y, self.rotated(q, positions, *tables), atol=1e-5)
                keys, values = (kept.reshape(8, head_size) for kept in cache.numpy())
                atol = 1e-5 if "type" in how else 0.1
                np.testing.assert_allclose(keys[slots], self.rotated(k[:, None], positions, *tables)[:, 0], atol=atol)
                np.testing.assert_allclose(values[slots], v, atol=atol)
                self.assertEqual(np.abs(keys[[1, 2, 4, 5, 6]]).max(), 0)

    def test_slots_by_sequence_and_page_table(self):
        cache = qdnn.KvCache(self.device, pages=4, page_slots=2, table_pages=2, heads=1, head_size=8, type="f16")
        x = self.numbers(2, 16).astype(np.float16)
        table = np.array([[3, 1], [0, 2]], np.int32)
        where = {"sequence": np.array([0, 1], np.int32), "key_index": np.array([3, 0], np.int32), "page_table": table}
        self.assertIsNone(self.device.rope(x, None, None, cache=cache, **where))
        keys, values = cache.numpy()
        np.testing.assert_array_equal([keys[1, 1, 0], keys[0, 0, 0]], x[:, :8])
        np.testing.assert_array_equal([values[1, 1, 0], values[0, 0, 0]], x[:, 8:])
        with self.assertRaisesRegex(ValueError, "either a type or a quantization"):
            qdnn.KvCache(self.device, pages=1, page_slots=1, heads=1, head_size=8)

    def test_softmax(self):
        x, mask = self.numbers(2, 3, 20), self.numbers(3, 20)
        self.close(self.device.softmax(x), softmax(x))
        slope = np.array([0.5, 2], np.float32)
        self.close(self.device.softmax(x, mask=mask, scale=0.25, slope=slope), softmax(x * np.float32(0.25) + slope[:, None, None] * mask))
        sink = np.array([1, -1], np.float32)
        with_sink = np.concatenate([x, np.broadcast_to(sink[:, None, None], (2, 3, 1))], -1)
        self.close(self.device.softmax(x, mask=np.zeros((3, 20), np.float16), sink=sink), softmax(with_sink)[..., :-1])

    def test_the_largest(self):
        x = self.numbers(3, 50)
        values, indices = self.device.top_k(x, 4)
        order = np.argsort(-x, kind="stable")[:, :4]
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))

    def test_experts(self):
        logits, x, residual = self.numbers(5, 16), self.numbers(5, 3, 40), self.numbers(5, 40)
        experts, weights = self.device.route(logits, 3, renormalize=1, factor=2.0)
        order = np.argsort(-logits, kind="stable")[:, :3]
        np.testing.assert_array_equal(experts.numpy(), order)
        chosen = np.take_along_axis(softmax(logits), order, 1)
        self.close(weights, 2 * chosen / chosen.sum(-1, keepdims=True))
        bias = np.where(np.arange(16) < 4, 9, 0).astype(np.float32)
        experts, _ = self.device.route(logits, 3, expert_bias=bias, scores="sigmoid", expert_groups=4, kept_groups=1, group_score="two_largest")
        self.assertTrue((experts.numpy() < 4).all())
        weights = weights.numpy()
        self.close(self.device.combine(x, weights, residual), (x * weights[..., None]).sum(1) + residual)

    def test_samples_follow_their_seed(self):
        logits = np.tile(np.array([0, 1, 2, 3], np.float32), (400, 1))
        step = np.arange(400)
        first = self.device.sample(logits, seed=7, step=step).numpy()
        np.testing.assert_array_equal(self.device.sample(logits, seed=7, step=step).numpy(), first)
        share = np.bincount(first, minlength=4) / 400
        np.testing.assert_allclose(share, softmax(logits[0]), atol=0.06)
        self.assertEqual(set(self.device.sample(logits, seed=7, step=step, top_k=2).numpy()), {2, 3})
        counts = np.tile(np.array([0, 0, 0, 9], np.int32), (400, 1))
        held = self.device.sample(logits, seed=7, step=step, token_count=counts, presence=50.0).numpy()
        self.assertNotIn(3, held)
        with self.assertRaisesRegex(TypeError, "did you mean 'temperature'"):
            self.device.sample(logits, seed=1, temperatur=1)
        with self.assertRaisesRegex(ValueError, "pass a seed"):
            self.device.sample(logits, temperature=1.0)

    def test_typed_products(self):
        words = np.array([[0x87654321, 0]], np.uint32)
        kind = qdnn.QuantizedType(storage="i4", scale="none", zero="none")
        plan = self.device.plan("TypedMatmul", qdnn.Descriptor("Matmul"), qdnn.Tensor((1, 8)), kind, 2, qdnn.Tensor((1, 2)))
        y = self.device.empty((1, 2))
        plan(x=np.arange(1, 9, dtype=np.float32).reshape(1, 8), codes=words, y=y)
        np.testing.assert_array_equal(y.numpy(), [[204, 0]])

    def test_settings_are_named(self):
        with self.assertRaisesRegex(TypeError, "did you mean 'weight_type'"):
            qdnn.Norm(weight_typ="f16")
        with self.assertRaisesRegex(ValueError, "did you mean 'layer'"):
            qdnn.Norm(kind="layr")
        with self.assertRaisesRegex(ValueError, "takes a number"):
            qdnn.Norm(eps="small")

    def test_structures_are_those_of_the_headers(self):
        """The members of each structure, by name and order, as the header has them."""
        text = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in sorted(INCLUDE.glob("*.h")))
        found = {name: body for body, name in re.findall(r"typedef struct \{(.*?)\} (qdnn\w+);", text, re.S)}
        snake = lambda name: re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
        members = lambda name: [snake(m) for m in re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)?[;,]", found[name])]
        ours = {
            "qdnnNorm_t": qdnn.Norm, "qdnnPointwise_t": qdnn.Pointwise, "qdnnRope_t": qdnn.Rope, "qdnnKvCache_t": qdnn.KvDescription,
            "qdnnRopeTables_t": qdnn.RopeTables, "qdnnAttention_t": qdnn.Attention,
        }  # fmt: skip
        for name, made in ours.items():
            self.assertEqual(["size", *made.MEMBERS], members(name), name)
        self.assertEqual(list(qdnn.QuantizedType.MEMBERS), members("qdnnQuantizedType_t"))
        self.assertEqual(list(_settings.SAMPLING.names), members("qdnnSampling_t"))
        structures = {"qdnnProgramKernel_t": _program._Kernel, "qdnnProgramInfo_t": _program._ProgramInfo,
                      "qdnnProgramTensorInfo_t": _program._TensorInfo, "qdnnProgramBinding_t": _program._Binding,
                      "qdnnProgramArgument_t": _program._Argument}  # fmt: skip
        for name, made in structures.items():
            self.assertEqual([field for field, _ in made._fields_], members(name), name)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")

    def mlp(self, rows):
        """x -> silu(x W1^T) W2^T, weights kept."""
        random = np.random.default_rng(8)
        up, down = (self.device.quantize(random.standard_normal(shape, np.float32), qdnn.weights("gguf_q8_0")) for shape in ((64, 32), (32, 64)))
        program = qdnn.Program(self.device, rows)
        x, y = (program.external(name, (rows, 32), by_rows=True) for name in ("x", "y"))
        h = program.intermediate("h", (rows, 64), by_rows=True)
        for name, w, source, to, activation in (("up", up, x, h, "silu"), ("down", down, h, y, "none")):
            codes = program.external(f"{name}.codes", (w.bytes,), "u8", value=w.parts["codes"])
            shapes = [qdnn.Tensor((rows, w.shape[1])), qdnn.Tensor(w.shape), w.quantization, qdnn.Tensor((rows, w.shape[0]))]
            plan = self.device.plan("Matmul", qdnn.Descriptor("Matmul", activation=activation, algorithm="exact"), *shapes)
            program.add(plan, name, x=source, codes=codes, y=to)
        return program, lambda x: self.device.matmul(self.device.matmul(x, up, activation="silu"), down).numpy()

    def test_a_program_gives_what_its_plans_give(self):
        program, plainly = self.mlp(8)
        for rows in (8, 3, 1):
            x = np.random.default_rng(rows).standard_normal((rows, 32), np.float32)
            y = self.device.empty((8, 32))
            program.run({"x": x, "y": y}, rows=rows)
            np.testing.assert_array_equal(y.numpy()[:rows], plainly(x))
        self.assertEqual(program.info["steps"], 2)
        self.assertEqual(program.tensor_info("h")["last_step"], 1)
        self.assertIn("2 steps", repr(program))

    def test_mistakes_name_tensors(self):
        program, _ = self.mlp(4)
        x, y = np.zeros((4, 32), np.float32), self.device.empty((4, 32))
        with self.assertRaisesRegex(ValueError, "'y' has 0 bytes|'y'"):
            program.run({"x": x})
        with self.assertRaisesRegex(ValueError, "'x' has 128 bytes; 4 rows of the program need 512"):
            program.run({"x": x[:1], "y": y})
        with self.assertRaisesRegex(ValueError, "no tensor 'up.code'; did you mean 'up.codes'"):
            program.run({"x": x, "y": y, "up.code": x})
        with self.assertRaises(ValueError):
            program.run({"x": x, "y": y}, rows=5)

    def test_kernels_of_your_own_copies_and_fills(self):
        text = """.version 6.3
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n, .param .f32 by) {
.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .f32 %f<3>;
ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [n]; ld.param.f32 %f0, [by];
mov.u32 %r1, %tid.x; setp.ge.u32 %p, %r1, %r0; @%p ret;
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;
ld.global.f32 %f1, [%rd2]; mul.rn.f32 %f2, %f1, %f0; st.global.f32 [%rd2], %f2; ret; }
"""
        program = qdnn.Program(self.device, 4)
        x, y, z = (program.external(name, (4,), by_rows=True) for name in "xyz")
        program.copy(y, x, "copy")
        program.kernel(text, "twice", [("read_write", y), ("rows", 4), np.float32(2)], rows_per_block=32, block=(32,), name="twice")
        program.fill(z, 0, "clear")
        arrays = {"x": np.array([1, 2, 3, 4], np.float32), "y": self.device.empty((4,)), "z": self.device.array(np.ones(4, np.float32))}
        program.run(arrays, rows=3)
        np.testing.assert_array_equal(arrays["y"].numpy()[:3], [2, 4, 6])
        np.testing.assert_array_equal(arrays["z"].numpy(), [0, 0, 0, 1])
        with self.assertRaisesRegex(TypeError, "no number of numpy's"):
            qdnn.Program(self.device, 1).kernel(text, "twice", [2.0])

    def test_schedules_are_plans_in_order(self):
        schedule = qdnn.Schedule(self.device)
        x = self.device.array(np.arange(12, dtype=np.float32).reshape(3, 4))
        y, z = self.device.empty((3, 4)), self.device.array(np.zeros((3, 4), np.float32))
        rows = qdnn.Tensor((3, 4))
        square = self.device.plan("Pointwise", qdnn.Pointwise(kind="function", function="relu_squared"), rows, None, rows, None)
        schedule.add(square, x=x, y=y)
        schedule.add(square, rows=2, x=y, y=z)
        schedule.run()
        expected = x.numpy() ** 4
        expected[2] = 0
        np.testing.assert_array_equal(z.numpy(), expected)

    def test_an_emitted_operation_lists_its_launches(self):
        made = qdnn.emit_operation("train.fake_quantize", "sm_90", {"n": 100000})
        self.assertGreater(len(made.launches), 1)
        self.assertTrue(all(f".entry {launch.entry}(" in launch.ptx for launch in made.launches))
        self.assertEqual({operand.name: operand.bytes for operand in made.operands}, {"x": 400000, "y": 400000})
        self.assertIn(("operand", "x"), made.launches[0].arguments)


if __name__ == "__main__":
    unittest.main()
