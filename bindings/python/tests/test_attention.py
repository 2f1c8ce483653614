"""Attention, copies, gathers and scatters, against plain numpy."""

import unittest

import numpy as np

import qdnn


def attention(q, k, v, sees, scale=None, bias=None, sink=None, cap=0.0):
    """Heads of q in front of those of k that they share; sees: [tokens, keys] of bool; bias: [heads, tokens, keys]."""
    share = q.shape[1] // k.shape[1]
    k, v = (np.repeat(part, share, 1).astype(np.float64) for part in (k, v))
    scores = np.einsum("thd,khd->htk", q.astype(np.float64), k) * (scale or 1 / np.sqrt(q.shape[-1]))
    if cap:
        scores = cap * np.tanh(scores / cap)
    scores = np.where(sees, scores + (0 if bias is None else bias), -np.inf)
    if sink is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink[:, None, None], (*scores.shape[:2], 1))], -1)
    top = scores.max(-1, keepdims=True, initial=-1e30)
    e = np.exp(scores - top)
    p = e / np.maximum(e.sum(-1, keepdims=True), 1e-300)
    return np.einsum("htk,khd->thd", p[..., : len(k)], v)


class Attention(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")
        cls.random = np.random.default_rng(37)

    def numbers(self, *shape):
        return self.random.standard_normal(shape, np.float32)

    def close(self, array, expected, tolerance=2e-5):
        np.testing.assert_allclose(array.numpy(), expected, rtol=tolerance, atol=tolerance)

    def test_causal_with_shared_heads(self):
        q, k, v = self.numbers(5, 4, 16), self.numbers(5, 2, 16), self.numbers(5, 2, 24)
        sees = np.tril(np.ones((5, 5), bool))
        y = self.device.attention(q, (k, v), key_index=np.arange(5, dtype=np.int32))
        self.assertEqual(y.shape, (5, 4, 24))
        self.close(y, attention(q, k, v, sees))
        windowed = sees & ~np.tril(np.ones((5, 5), bool), -2)
        self.close(self.device.attention(q, (k, v), key_index=np.arange(5, dtype=np.int32), window=2), attention(q, k, v, windowed))

    def test_masks_slopes_caps_and_sinks(self):
        q, k, v = self.numbers(3, 2, 8), self.numbers(6, 1, 8), self.numbers(6, 1, 8)
        every = np.ones((3, 6), bool)
        mask, slope, sink = self.numbers(3, 6), np.array([0.5, 0.25], np.float32), self.numbers(2)
        self.close(self.device.attention(q, (k, v), mask=mask), attention(q, k, v, every, bias=mask[None]))
        by_head = self.numbers(2, 3, 6)
        self.close(self.device.attention(q, (k, v), mask=by_head), attention(q, k, v, every, bias=by_head))
        sloped = slope[:, None, None] * mask
        self.close(self.device.attention(q, (k, v), mask=mask, slope=slope), attention(q, k, v, every, bias=sloped))
        alibi = slope[:, None, None] * (np.arange(6) - 5)[None, None]
        self.close(self.device.attention(q, (k, v), slope=slope), attention(q, k, v, every, bias=alibi))
        self.close(self.device.attention(q, (k, v), sink=sink, cap=2.0, scale=0.5), attention(q, k, v, every, 0.5, None, sink, 2.0))

    def test_which_keys_are_seen(self):
        q, k, v = self.numbers(3, 1, 8), self.numbers(2, 4, 1, 8), self.numbers(2, 4, 1, 8)
        sequence, lengths = np.array([0, 1, 1], np.int32), np.array([3, 1], np.int32)
        y = self.device.attention(q, (k, v), sequence=sequence, lengths=lengths)
        expected = [attention(q[t : t + 1], k[s], v[s], np.arange(4)[None] < lengths[s])[0] for t, s in enumerate(sequence)]
        self.close(y, np.array(expected))
        visible = np.array([[1, 2], [0, 3], [2, 1]], np.int32)
        y = self.device.attention(q, (k[0], v[0]), visible=visible)
        keys = np.arange(4)[None]
        self.close(y, attention(q, k[0], v[0], (keys >= visible[:, :1]) & (keys <= visible[:, 1:])))
        np.testing.assert_array_equal(y.numpy()[2], np.zeros((1, 8)))
        with self.assertRaisesRegex(ValueError, "one of them"):
            self.device.attention(q, (k, v), lengths=lengths, visible=visible)

    def test_a_paged_cache_that_rope_wrote(self):
        how = qdnn.quantization(storage="i8", group_size=8, scale_type="f16")
        cache = qdnn.KvCache(self.device, pages=4, page_slots=2, table_pages=2, heads=1, head_size=8, quantization=how)
        rows, tokens = self.numbers(3, 4, 8), np.array([0, 0, 1], np.int32)
        places, table = np.array([0, 1, 0], np.int32), np.array([[3, 0], [1, 2]], np.int32)
        q = self.device.rope(rows.reshape(3, -1), None, None, heads=2, cache=cache, sequence=tokens, key_index=places, page_table=table)
        np.testing.assert_array_equal(q.numpy(), rows[:, :2])
        keys, values = cache.numpy()
        slot = [(table[s][p // 2], p % 2) for s, p in zip(tokens, places)]
        np.testing.assert_allclose([keys[at] for at in slot], rows[:, 2:3], atol=0.02)
        y = self.device.attention(q, cache, sequence=tokens, key_index=places, page_table=table)
        expected = [attention(q.numpy()[t : t + 1], *(np.array([part[slot[i]] for i in seen]) for part in (keys, values)),
                              np.ones((1, len(seen)), bool))[0] for t, seen in enumerate(([0], [0, 1], [2]))]  # fmt: skip
        self.close(y, np.array(expected))

    def test_values_within_the_keys(self):
        cache = qdnn.KvCache(self.device, pages=1, page_slots=3, heads=1, head_size=16, value_head_size=0, type="f32")
        self.assertIsNone(cache.numpy()[1])
        q, k = self.numbers(2, 2, 16), self.numbers(3, 1, 16)
        y = self.device.attention(q, (k,), value_size=8)
        self.close(y, attention(q, k, k[..., :8], np.ones((2, 3), bool)))
        with self.assertRaisesRegex(ValueError, "value"):
            self.device.attention(q, cache)

    def test_tensor_cores(self):
        q, k, v = (self.numbers(20, 2, 64).astype(np.float16) for _ in range(3))
        y = self.device.attention(q, (k, v), key_index=np.arange(20, dtype=np.int32), mode="tensor")
        auto = self.device.attention(q, (k, v), key_index=np.arange(20, dtype=np.int32))
        np.testing.assert_array_equal(y.numpy(), auto.numpy())
        self.close(y, attention(q, k, v, np.tril(np.ones((20, 20), bool))), 5e-3)


class Copies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = qdnn.Device("vm:sm_80")
        cls.random = np.random.default_rng(41)

    def test_permutations_and_casts(self):
        x = self.random.standard_normal((3, 4, 5), np.float32)
        np.testing.assert_array_equal(self.device.copy(x, axes=(2, 0, 1)).numpy(), x.transpose(2, 0, 1))
        np.testing.assert_array_equal(self.device.copy(x, "f16").numpy(), x.astype(np.float16))
        out = np.zeros((4, 3, 5), np.float64)
        self.device.copy(x, axes=(1, 0, 2), out=out)
        np.testing.assert_array_equal(out, x.transpose(1, 0, 2).astype(np.float64))
        with self.assertRaisesRegex(TypeError, "f64; it must be f32"):
            self.device.add(x, 1, out=np.zeros((3, 4, 5)))
        codes = np.arange(12, dtype=np.int8).reshape(3, 4)
        np.testing.assert_array_equal(self.device.copy(codes, axes=(1, 0)).numpy(), codes.T)
        np.testing.assert_array_equal(self.device.copy(np.float32(3)).numpy(), np.float32(3))

    def test_views_are_checked(self):
        x = np.arange(10, dtype=np.float32)
        np.testing.assert_array_equal(self.device.copy(x, shape=(3, 2), strides=(3, 1), offset=2).numpy(), [[2, 3], [5, 6], [8, 9]])
        self.assertEqual(self.device.copy(x, shape=(0, 2), strides=(3, 1)).shape, (0, 2))
        for wrong in ({"shape": (3, 2), "strides": (3, 1), "offset": 3}, {"shape": (2,), "strides": (-1,), "offset": 4}):
            with self.assertRaisesRegex(ValueError, "the view reaches"):
                self.device.copy(x, **wrong)
        with self.assertRaisesRegex(ValueError, "one for each dimension"):
            self.device.copy(x, shape=(2, 2), strides=(1,))
        with self.assertRaisesRegex(ValueError, "axes are"):
            self.device.copy(x, axes=(1, 0))

    def test_rows_of_plain_tables(self):
        table = self.random.standard_normal((5, 2, 3)).astype(np.float32)
        indices = np.array([[4, 0], [2, 2]])
        np.testing.assert_array_equal(self.device.gather(table, indices).numpy(), table[indices])
        np.testing.assert_array_equal(self.device.gather(table, indices.astype(np.int32), "f16").numpy(), table[indices].astype("f2"))
        self.assertTrue(np.isnan(self.device.gather(table, np.array([5, -1])).numpy()).all())
        written = self.device.array(table)
        self.device.scatter(np.ones((3, 2, 3), np.float32), np.array([3, 9, 0]), written)
        expected = table.copy()
        expected[[3, 0]] = 1
        np.testing.assert_array_equal(written.numpy(), expected)

    def test_rows_are_quantized_into_a_table(self):
        x = self.random.standard_normal((2, 64), np.float32)
        for how in (qdnn.weights("gguf_q4_0"), qdnn.quantization(storage="i8", group_size=64)):
            table = self.device.quantize(np.zeros((4, 64), np.float32), how)
            self.device.quantize_rows(x, np.array([3, 1], np.int64), table)
            apart = self.device.dequantize(self.device.quantize(x, how)).numpy()
            np.testing.assert_array_equal(self.device.dequantize(table).numpy(), [np.zeros(64), apart[1], np.zeros(64), apart[0]])


if __name__ == "__main__":
    unittest.main()
