"""Every plan by its method, against plain numpy or the library's known answers; plans, memory and arrays of other libraries."""

import doctest
import gc
import pickle
import re
import sys
import unittest
from pathlib import Path

import numpy as np

import qdnn
from qdnn import _arrays, _attention, _copies, _device, _emit, _files, _plans, _program, _rows, _settings

HERE = Path(__file__).resolve().parent


class Operations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")
        cls.random = np.random.default_rng(20)

    def numbers(self, *shape):
        return self.random.integers(-8, 8, shape).astype(np.float32)

    def equal(self, array, expected):
        np.testing.assert_array_equal(array.numpy(), expected)

    def test_examples_of_docstrings(self):
        for module in (_arrays, _attention, _copies, _device, _emit, _files, _plans, _program, _rows, _settings):
            names = {"qdnn": qdnn, "np": np, "device": self.device}
            failed, tried = doctest.testmod(module, extraglobs=names)
            self.assertEqual(failed, 0)
            self.assertGreater(tried, 0)

    def test_rows_of_a_table(self):
        table = self.numbers(5, 32)
        q = self.device.quantize(table, qdnn.weights("gguf_q8_0"))
        rows = self.device.gather(q, np.array([[4, 0], [2, 4]], np.int32))
        self.equal(rows, self.device.dequantize(q).numpy()[[[4, 0], [2, 4]]])
        self.assertTrue(np.isnan(self.device.gather(q, np.array([5], np.int32)).numpy()).all())

    def test_repacking_keeps_values(self):
        w = self.numbers(64, 8)
        q = self.device.quantize(w, qdnn.quantization(storage="i4", granularity="tensor"))
        to = qdnn.quantization(storage="i4", granularity="tensor", nibble_order="high_first")
        again = self.device.repack(q, to)
        self.assertFalse(np.array_equal(again.parts["codes"].numpy(), q.parts["codes"].numpy()))
        self.equal(self.device.dequantize(again), self.device.dequantize(q).numpy())

    def test_prepacked_weights_give_the_same_products(self):
        x = self.numbers(3, 128).astype(np.float16)
        q = self.device.quantize(self.numbers(32, 128), qdnn.weights("gguf_q4_0"))
        packed = self.device.prepack(q)
        stored = self.device.matmul(x, q, algorithm="tensor").numpy()
        self.equal(self.device.matmul(x, packed, algorithm="tensor"), stored)
        self.equal(self.device.dequantize(self.device.unpack(packed)), self.device.dequantize(q).numpy())

    def test_auto_follows_the_type_of_x_and_the_math_of_the_device(self):
        exact = qdnn.Device("vm:sm_80", math="exact")
        x = (self.random.standard_normal((3, 512)) * 7).astype(np.float16)
        w = (self.random.standard_normal((8, 512)) * 7).astype(np.float32)
        of = {}
        for device in (self.device, exact):
            q = device.quantize(w, qdnn.weights("gguf_q4_0"))
            for algorithm in ("auto", "exact", "tensor"):
                of[device, algorithm] = device.matmul(x, q, algorithm=algorithm, type="f32").numpy()
        np.testing.assert_array_equal(of[self.device, "auto"], of[self.device, "tensor"])
        np.testing.assert_array_equal(of[exact, "auto"], of[exact, "exact"])
        self.assertTrue((of[exact, "exact"] != of[exact, "tensor"]).any())
        with self.assertRaisesRegex(ValueError, "'exakt' is none of: exact, family; did you mean 'exact'"):
            qdnn.Device("vm:sm_80", math="exakt")

    def test_experts_are_chosen_by_row(self):
        w, x = self.numbers(3, 4, 16), self.numbers(5, 16)
        stack = self.device.load((3, 4, 16), qdnn.weights("f32"), codes=w)
        index = np.array([2, 0, 1, 2, 2], np.int32)
        weight = np.array([1, 2, 0.5, 1, 4], np.float32)
        y = self.device.matmul(x, stack, expert_index=index, row_weight=weight)
        self.equal(y, np.einsum("mk,mnk->mn", x, w[index]) * weight[:, None])

    def test_lora_is_added(self):
        x, w, a, b = self.numbers(2, 16), self.numbers(4, 16), self.numbers(16, 2), self.numbers(2, 4)
        q = self.device.load((4, 16), qdnn.weights("f32"), codes=w)
        y = self.device.matmul(x, q, lora=(a.astype(np.float16), b.astype(np.float16), 0.5))
        self.equal(y, x @ w.T + 0.5 * (x @ a @ b))

    def test_fp8_by_fp8(self):
        x, w = self.numbers(4, 32).astype(np.float16), self.numbers(8, 32)
        q = self.device.quantize(w, qdnn.quantization(storage="f8e4m3", granularity="none"))
        y = self.device.matmul(x, q, algorithm="tensor", quantize_x="e4m3", type="f32").numpy()
        np.testing.assert_allclose(y, x.astype(np.float32) @ self.device.dequantize(q).numpy().T, rtol=0.1, atol=8)

    def test_activations_by_token_and_caches(self):
        x = self.numbers(6, 2, 8)
        per_head = qdnn.quantization(storage="i8", group_size=8)
        q = self.device.quantize_dynamic(x, per_head)
        np.testing.assert_allclose(self.device.dequantize(q).numpy(), x, atol=8 / 127)
        cache = qdnn.Tensor((16, 2, 8))
        slots = np.array([3, 0, 15, 7, 8, 9], np.int32)
        kept = self.device.quantize_kv(x, per_head, cache, slots)
        np.testing.assert_array_equal(self.device.dequantize(kept).numpy()[slots], self.device.dequantize(q).numpy())

    def test_integer_products(self):
        x, w = self.random.integers(-128, 128, (3, 40), np.int8), self.random.integers(-128, 128, (5, 40), np.int8)
        sums = x.astype(np.int32) @ w.T.astype(np.int32)
        self.equal(self.device.integer_matmul(x, w, "i32"), sums)
        codes = self.device.integer_matmul(x, w, "i8", multiplier=2.0**-9)
        self.equal(codes, np.clip(np.trunc(sums / 512 + np.copysign(0.5, sums)), -128, 127).astype(np.int8))
        scaled = self.device.integer_matmul(x, w, "f32", x_scale=np.full(3, 0.5, "f4"), scale=np.full(5, 0.25, "f4"))
        self.equal(scaled, sums.astype(np.float32) * 0.125)

    def test_top_scores(self):
        w = np.array([[0x11111111], [0x33333333], [0x22222222]], np.uint32)
        ones = np.ones(1, np.float32)
        scores, indices = self.device.integer_top(w[:1], w, 2, 8, ones, np.ones(3, np.float32))
        self.equal(scores, [[24, 16]])
        self.equal(indices, [[1, 2]])

    def test_training(self):
        x, dy = np.array([-2, -0.4, 0.3, 1], np.float32), np.array([1, 2, 3, 4], np.float32)
        train = qdnn.training(bits=2, scale_mode="fixed")
        state = np.ones(1, np.float32)
        self.equal(self.device.fake_quantize(x, train, state=state), [-1, 0, 0, 1])
        self.equal(self.device.fake_quantize_backward(dy, train, x=x, state=state), [0, 2, 3, 4])
        self.assertEqual(self.device.scale_count(x, train), 1)
        self.equal(self.device.lsq(x, state, train), [-1, 0, 0, 1])
        dx, dscale = self.device.lsq_backward(x, state, dy, train)
        self.equal(dx, [0, 2, 3, 4])
        psi = [-1, 0.4, -0.3, 0]
        np.testing.assert_allclose(dscale.numpy(), [np.dot(np.array(psi, np.float32), dy)], rtol=1e-6)

    def test_emitted_text_names_its_entry(self):
        text, entry, threads = qdnn.emit("quant.nf4.dequantize", "sm_90")
        self.assertIn(f".entry {entry}(", text.replace("visible ", ""))
        self.assertGreater(threads, 0)
        with self.assertRaisesRegex(ValueError, "quantize_nf5"):
            qdnn.emit("quantize_nf5", "sm_90")


class Packages(unittest.TestCase):
    def test_the_source_distribution_has_every_folder_that_cmake_reads(self):
        sys.path.insert(0, str(HERE.parent))
        import build_backend

        files = {str(path.relative_to(build_backend.SOURCE)) for path in build_backend.source_files()}
        folders = {name.split("/")[0] for name in files if "/" in name}
        included = set()
        for name in files:
            if name.endswith((".c", ".h")):
                included.update(re.findall(r'#include "(\w+)/', (build_backend.SOURCE / name).read_text(errors="replace")))
        top = {path.name for path in build_backend.SOURCE.iterdir() if path.is_dir()}
        self.assertLessEqual((included & top) - {"tests"}, folders)
        self.assertLessEqual({"bindings/python/qdnn/py.typed", "cmake/library.cmake"}, files)


class Plans(unittest.TestCase):
    def test_a_plan_is_made_once_and_serves_fewer_rows(self):
        device = qdnn.Device("vm:sm_80")
        w = device.load((2, 4), qdnn.weights("f32"), codes=np.arange(8, dtype=np.float32).reshape(2, 4))
        for _ in range(3):
            device.matmul(np.ones((3, 4), np.float32), w)
        self.assertEqual(len(device.plans), 1)
        device.matmul(np.ones((3, 4), np.float32), w, activation="relu")
        self.assertEqual(len(device.plans), 2)
        matmul, x, y = qdnn.Descriptor("Matmul"), qdnn.Tensor((3, 4)), qdnn.Tensor((3, 2))
        plan = device.plan("Matmul", matmul, x, qdnn.Tensor((2, 4)), w.quantization, y)
        out = device.array(np.full((3, 2), 7, np.float32))
        plan(rows=1, x=np.ones((3, 4), np.float32), codes=w.parts["codes"], y=out)
        np.testing.assert_array_equal(out.numpy(), [[6, 22], [7, 7], [7, 7]])
        self.assertIn("quant.", plan.info["operation"])
        with self.assertRaisesRegex(TypeError, "did you mean 'codes'"):
            plan(x=out, code=out, y=out)

    def test_devices_and_plans_go_in_any_order(self):
        device = qdnn.Device("vm:sm_80")
        array = device.array(np.ones(4, np.float32))
        plan = device.plan("Scale", qdnn.Tensor((4,)), qdnn.weights("int4_bytes"))
        del device
        gc.collect()
        np.testing.assert_array_equal(array.numpy(), np.ones(4))
        del plan, array
        gc.collect()

    def test_memory_is_used_again(self):
        device = qdnn.Device("vm:sm_80")
        first = device.empty((1000,))
        address = first.pointer.value
        del first
        self.assertEqual(device.empty((900,)).pointer.value, address)

    def test_errors_are_what_python_expects(self):
        device = qdnn.Device("vm:sm_80")
        with self.assertRaises(ValueError):
            device.array(np.ones((2, 3), np.float32)).reshape(7)
        with self.assertRaises(ValueError):
            device.quantize(np.ones(8, np.float32), qdnn.quantization(group_size=0))
        with self.assertRaises(NotImplementedError):
            device.quantize(np.ones((2, 256), np.float32), qdnn.weights("gguf_iq4_xs"))
        with self.assertRaises(TypeError):
            len(device.array(np.float32(1)))


class Arrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")

    def test_quantized_tensors_are_pickled(self):
        w = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
        for how in (qdnn.weights("gguf_q4_1"), qdnn.quantization(storage="i8", group_size=16, floor=0.5)):
            q = self.device.quantize(w, how)
            again = pickle.loads(pickle.dumps(q))
            self.assertIsInstance(again.parts["codes"], np.ndarray)
            self.assertEqual(again.quantization.key, q.quantization.key)
            np.testing.assert_array_equal(self.device.dequantize(again).numpy(), self.device.dequantize(q).numpy())

    def test_numpy_takes_arrays(self):
        array = self.device.array(np.arange(6, dtype=np.float32).reshape(2, 3))
        np.testing.assert_array_equal(np.asarray(array) + 1, np.arange(1, 7).reshape(2, 3))
        np.testing.assert_array_equal(np.from_dlpack(array), np.arange(6).reshape(2, 3))
        self.assertEqual((len(array), array.reshape(3, 2).shape), (2, (3, 2)))
        with self.assertRaises(AttributeError):
            array.__cuda_array_interface__

    def test_arrays_that_only_dlpack_knows(self):
        class Other:
            values = np.arange(6, dtype=np.float32).reshape(2, 3)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

            def __dlpack__(self, **how):
                return self.values.__dlpack__(**how)

        np.testing.assert_array_equal(self.device.array(Other()).numpy(), Other.values)
        np.testing.assert_array_equal(self.device.from_dlpack(self.device.array(Other())).numpy(), Other.values)

    def test_a_capsule_keeps_its_array(self):
        array = self.device.array(np.arange(4, dtype=np.float32))
        address = array.pointer.value
        capsule = _arrays.to_capsule(array, (2, 0))
        tensor = _arrays._DLTensor.from_address(_arrays._get_pointer(capsule, b"dltensor"))
        self.assertEqual((tensor.data, tensor.ndim, tensor.shape[0], tensor.bits), (address, 1, 4, 32))
        del array
        self.assertEqual(len(_arrays._lent), 1)
        del capsule
        self.assertEqual(len(_arrays._lent), 0)

    def test_narrow_types_by_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        x = np.array([1, -2, 0.5], ml_dtypes.bfloat16)
        array = self.device.array(x)
        self.assertEqual(array.type, "bf16")
        self.assertEqual(array.numpy().dtype, x.dtype)
        self.assertEqual(self.device.array(np.ones(2, ml_dtypes.float8_e4m3fn)).type, "e4m3")

    def test_tensors_of_torch_on_the_host(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        weight = torch.nn.Parameter(torch.arange(8.0).reshape(2, 4))
        self.assertEqual(self.device.array(weight.to(torch.bfloat16)).type, "bf16")
        w = self.device.load((2, 4), qdnn.weights("f32"), codes=weight)
        np.testing.assert_array_equal(self.device.matmul(torch.ones(1, 4), w).numpy(), [[6, 22]])


if __name__ == "__main__":
    unittest.main()
