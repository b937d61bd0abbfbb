"""Sherpa, for real: with the weights of moonshine, which another package of the dev group has."""

import base64
from importlib.util import find_spec
from pathlib import Path

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.local.packages import package_folder
from belino.understanding.providers.local_sherpa import Config, Provider, SherpaKind, _file, _kind_of, missing
from understanding.local_context import local_context, silence, sound

WITH_WEIGHTS = pytest.mark.skipif(
    find_spec("moonshine_voice") is None, reason="the wheel of moonshine-voice does not fit this machine"
)


def model_in(folder: Path) -> Path:
    """The weights of moonshine, with the list of tokens that sherpa takes: each in base64, and its number."""
    package = package_folder("moonshine_voice")
    assert package is not None
    weights = package / "assets" / "tiny-en"
    folder.mkdir()
    for name in ("encoder_model.ort", "decoder_model_merged.ort"):
        (folder / name).symlink_to(weights / name)
    packed, at, tokens = (weights / "tokenizer.bin").read_bytes(), 0, []
    while at < len(packed):
        size, at = packed[at], at + 1
        if size >= 128:
            size, at = (size & 127) | packed[at] << 7, at + 1
        tokens.append(packed[at : at + size])
        at += size
    lines = (f"{base64.b64encode(token).decode()} {number}\n" for number, token in enumerate(tokens))
    (folder / "tokens.txt").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.mark.slow
@WITH_WEIGHTS
async def test_speech_becomes_words_with_times_and_silence_none(tmp_path: Path) -> None:
    model = model_in(tmp_path / "moonshine-tiny")
    spoken = sound(tmp_path, "I will call you back after lunch.")
    async with local_context(tmp_path) as context:
        provider = Provider(Config(model=str(model), languages=("en",)), context)
        read = await provider.read(Skill.TRANSCRIBE, [spoken], ReadingOptions())
        assert "call you back after lunch" in read.text.lower()
        assert all(0 <= one.start < one.end for one in read.segments)
        assert (read.model, provider.languages) == ("moonshine-tiny", frozenset({"en"}))
        quiet = await provider.read(Skill.TRANSCRIBE, [silence(tmp_path, loudness=3_000)], ReadingOptions())
        assert (quiet.text, quiet.segments) == ("", ())


@pytest.mark.slow
async def test_a_folder_without_a_model_says_what_it_lacks(tmp_path: Path) -> None:
    async with local_context(tmp_path) as context:
        for model, kind, reason in (
            (tmp_path / "nothing", SherpaKind.AUTO, "there is no folder 'nothing' with a model"),
            (tmp_path, SherpaKind.AUTO, "is not clear; set `kind`"),
            (tmp_path, SherpaKind.PARAFORMER, "has no model file"),
        ):
            with pytest.raises(ProviderError, match=reason):
                await Provider(Config(model=str(model), kind=kind), context).read(
                    Skill.TRANSCRIBE, [silence(tmp_path, seconds=1)], ReadingOptions()
                )


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("encoder-epoch-99.int8.onnx", "decoder-epoch-99.onnx", "joiner-epoch-99.onnx"), SherpaKind.TRANSDUCER),
        (("base-encoder.onnx", "base-decoder.onnx", "base-tokens.txt"), SherpaKind.WHISPER),
        (("encoder_model.ort", "decoder_model_merged.ort"), SherpaKind.MOONSHINE),
    ],
)
def test_the_family_of_a_model_is_known_by_its_files(tmp_path: Path, names: tuple[str, ...], kind: SherpaKind) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert _kind_of(tmp_path) == kind


def test_of_two_files_the_quantized_one_is_used(tmp_path: Path) -> None:
    for name in ("model.onnx", "model.int8.onnx"):
        (tmp_path / name).touch()
    assert _file(tmp_path, "model") == str(tmp_path / "model.int8.onnx")


def test_what_is_missing_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs `model`" in missing(Config())
    monkeypatch.setattr("belino.understanding.local.packages.find_spec", lambda name: None)
    assert "pip install 'belino[sherpa]'" in missing(Config(model="/models/mine"))
