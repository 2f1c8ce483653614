"""The package on ptxvm: real values, from formulas or from the library's known answers."""

import contextlib
import ctypes
import io
import re
import unittest
import unittest.mock
from pathlib import Path

import numpy as np

import qdnn
from qdnn import _arrays, _library


class OnPtxvm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")

    def test_int4_goes_to_codes_and_back(self):
        x = (np.arange(1024, dtype=np.float32) % 15 - 7).reshape(8, 128)
        q = self.device.quantize(x, qdnn.weights("int4_bytes", 128))
        self.assertEqual(q.bytes, 1024 // 2 + 8 * 4)
        scales = q.parts["scale"].numpy().view(np.float32)
        np.testing.assert_array_equal(scales, np.ones(8, np.float32))
        codes = q.parts["codes"].numpy()
        np.testing.assert_array_equal(codes & 15, x.reshape(-1)[0::2] + 8)
        np.testing.assert_array_equal(codes >> 4, x.reshape(-1)[1::2] + 8)
        np.testing.assert_array_equal(self.device.dequantize(q).numpy(), x)
        np.testing.assert_array_equal(self.device.dequantize(q, "f16").numpy(), x.astype(np.float16))

    def test_out_is_written_or_refused(self):
        x, w = np.ones((3, 64), np.float32), np.arange(5 * 64, dtype=np.float32).reshape(5, 64)
        q = self.device.quantize(w, qdnn.weights("gguf_q8_0"))
        y = self.device.matmul(x, q).numpy()
        host, own = np.zeros((3, 5), np.float32), self.device.array(np.zeros((3, 5), np.float32))
        self.device.matmul(x, q, out=host)
        self.device.matmul(x, q, out=own)
        np.testing.assert_array_equal(host, y)
        np.testing.assert_array_equal(own.numpy(), y)
        plain = np.zeros((5, 64), np.float32)
        self.device.dequantize(q, out=plain)
        np.testing.assert_array_equal(plain, self.device.dequantize(q).numpy())
        fixed = np.zeros((3, 5), np.float32)
        fixed.flags.writeable = False
        for out, error in (
            (np.zeros((5, 3), np.float32), ValueError),
            (self.device.array(np.zeros(15, np.float32)), ValueError),
            (fixed, ValueError),
            ([[0.0] * 5] * 3, TypeError),
        ):
            with self.assertRaises(error):
                self.device.matmul(x, q, out=out)
        with self.assertRaises(TypeError):
            self.device.matmul(x, q, type="f16", out=host)
        with self.assertRaises((ValueError, qdnn.QdnnError)):
            self.device.matmul(x, q, out=np.zeros((3, 5), np.int64))

    def test_numbers_devices_and_names_are_checked(self):
        q8 = qdnn.weights("gguf_q8_0")
        for shape in ((-5, 64), (2**70, 64)):
            with self.assertRaises(ValueError):
                self.device.load(shape, q8, codes=np.zeros(10, np.uint8))
        with self.assertRaises(TypeError):
            self.device.load((5.0, 64), q8, codes=np.zeros(10, np.uint8))
        with self.assertRaises(ValueError):
            qdnn.weights("int4_bytes", 2**80)
        with self.assertRaises(ValueError):
            qdnn.quantization(group_size=2**70)
        other = qdnn.Device("vm:sm_80")  # arrays belong to the Device object that they were made on
        with self.assertRaisesRegex(ValueError, "another device"):
            self.device.quantize(other.array(np.zeros((1, 32), np.float32)), q8)
        for misspelt in (
            lambda: qdnn.weights("gguf_q8_O"),
            lambda: qdnn.quantization(group_sise=64),
            lambda: qdnn.quantization(layout="word_rows"),
        ):
            with self.assertRaisesRegex(ValueError, "did you mean"):
                misspelt()
        with self.assertRaisesRegex(TypeError, "did you mean 'codes'"):
            self.device.load((5, 64), q8, code=np.zeros(10, np.uint8))

    def test_a_name_has_no_nul(self):
        with self.assertRaisesRegex(ValueError, "no NUL"):
            qdnn.Device("vm\0:sm_80")

    def test_gguf_blocks_quantize_and_load(self):
        x = np.linspace(-1, 1, 4 * 64, dtype=np.float32).reshape(4, 64)
        q = self.device.quantize(x, qdnn.weights("gguf_q8_0"))
        blocks = q.parts["codes"].numpy()
        self.assertEqual(blocks.size, 4 * 2 * 34)
        loaded = self.device.load((4, 64), qdnn.weights("gguf_q8_0"), codes=blocks)
        y = self.device.dequantize(loaded).numpy()
        np.testing.assert_array_equal(y, self.device.dequantize(q).numpy())
        np.testing.assert_allclose(y, x, atol=1 / 127)

    def test_linear_4bit_has_its_known_answer(self):
        words = np.array([[0x87654321, 0]], np.uint32)  # column 0: 1..8, column 1: 0
        w = self.device.load((8, 2), qdnn.weights("int4_linear"), codes=words)
        y = self.device.matmul(np.arange(1, 9, dtype=np.float32).reshape(1, 8), w, transpose_w=False)
        np.testing.assert_array_equal(y.numpy(), [[204, 0]])

    def test_products_have_all_that_follows_the_sum(self):
        w = self.device.load((4, 3), qdnn.weights("f32"), codes=np.arange(12, dtype=np.float32).reshape(4, 3))
        x = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
        y = self.device.matmul(x, w, alpha=2.0, bias=np.array([1, 1, 1, -18], np.float32), activation="relu")
        np.testing.assert_array_equal(y.numpy(), [[1, 7, 13, 0], [3, 9, 15, 2]])
        gated = self.device.matmul(x, w, gated=True, residual=np.full((2, 2), 0.5, np.float32))
        np.testing.assert_array_equal(gated.numpy(), [[0.5, 27.5], [7.5, 40.5]])

    def test_bf16_is_seen_as_its_bits(self):
        x = self.device.array(np.full((2, 32), 0x3F80, np.uint16), "bf16")  # 1.0
        w = self.device.load((1, 32), qdnn.weights("f16"), codes=np.full((1, 32), 0.5, np.float16))
        y = self.device.matmul(x, w).numpy().view(np.uint16)
        np.testing.assert_array_equal(y, np.full((2, 1), 0x4180, np.uint16))  # 16.0

    def test_mistakes_are_told_in_sentences(self):
        with self.assertRaisesRegex(qdnn.QdnnError, "multiple of 256"):
            self.device.dequantize(qdnn.Quantized((1, 100), qdnn.weights("gguf_q4_k"), {}))
        with self.assertRaisesRegex(ValueError, "gguf_q4_k"):
            qdnn.weights("gguf_q4_z")
        with self.assertRaisesRegex(TypeError, "complex64"):
            self.device.array(np.zeros(3, np.complex64))

    def test_arrays_of_others_are_used_in_place(self):
        """What torch and CuPy give for a tensor on the device: a capsule. Here one is made by hand over ptxvm's memory."""
        mine = self.device.array(np.arange(6, dtype=np.float32).reshape(2, 3))

        class Foreign:
            shape = (ctypes.c_int64 * 2)(2, 3)
            tensor = _arrays._DLTensor(mine.pointer.value, 2, 0, 2, 2, 32, 1, shape, None, 0)
            ordinal, streams = 0, []

            def __dlpack_device__(self):
                return (2, self.ordinal)

            def __dlpack__(self, stream=None):
                self.streams.append(stream)
                new = ctypes.pythonapi.PyCapsule_New
                new.restype = ctypes.py_object
                new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
                return new(ctypes.addressof(self.tensor), b"dltensor", None)

        other = Foreign()
        with self.assertRaisesRegex(ValueError, "ptxvm cannot reach"):
            self.device.array(other)
        with unittest.mock.patch.object(_arrays, "_is_gpu", lambda device: True):
            foreign = self.device.from_dlpack(other)
            self.assertEqual(foreign.pointer.value, mine.pointer.value)
            with unittest.mock.patch.object(self.device.handle, "stream", 0x70):
                self.device.array(other)
            self.assertEqual(other.streams, [1, 0x70])  # the consumer's: the default one, and another
            other.ordinal = 1
            with self.assertRaisesRegex(ValueError, "on GPU 1, and this device is GPU 0"):
                self.device.array(other)
        with self.assertRaisesRegex(TypeError, "a list has no __dlpack__"):
            self.device.from_dlpack([1])
        self.assertEqual((foreign.shape, foreign.type), ((2, 3), "f32"))
        w = self.device.load((1, 3), qdnn.weights("f32"), codes=np.ones((1, 3), np.float32))
        np.testing.assert_array_equal(self.device.matmul(foreign, w).numpy(), [[3], [12]])

    def test_constants_are_found_wherever_a_line_ends(self):
        text = "QDNN_A = 1, QDNN_B =\n    0x10,\nQDNN_C\n    = -2,"
        self.assertEqual(_library._constants_in(text), {"A": 1, "B": 16, "C": -2})
        self.assertEqual(_library.constants["STATUS_NOT_SUPPORTED_LIBRARY_MISSING"], 3005)

    def test_every_format_by_name(self):
        x = np.random.default_rng(7).standard_normal((64, 256), dtype=np.float32)
        for name, extent in [("int4_bytes_zp", 64), ("nf4_bytes", 64), ("bnb_nf4", 64), ("fp8_e4m3", 0), ("nvfp4", 0), ("mxfp4", 0), ("gguf_q4_0", 0)]:
            with self.subTest(name=name):
                q = self.device.quantize(x, qdnn.weights(name, extent))
                error = np.abs(self.device.dequantize(q).numpy() - x).max()
                self.assertLess(error, 1.0)
                self.assertLess(q.bytes, x.nbytes / 3)

    def test_the_readme_prints_what_it_says(self):
        page = (Path(__file__).parent.parent / "README.md").read_text()
        program = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        expected = re.search(r"```text\n(.*?)```", page, re.S).group(1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "README.md", "exec"), {})
        self.assertEqual(printed.getvalue(), expected)


if __name__ == "__main__":
    unittest.main()
