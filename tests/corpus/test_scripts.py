"""Scripts without spaces between words: what is seen, and what is not mistaken for one."""

import logging
import unicodedata

import polars as pl
import pytest

from plant.corpus.build import build_corpus
from plant.corpus.scripts import word_warnings
from plant.ground.settings import parse_dataset

THAI, ACCENTS = "วันนี้ อากาศ ดี มาก เรา จึง ไป เดินเล่น ที่ สวนสาธารณะ", "Café société à la crème brûlée"
CHINESE, JAPANESE = "Chinese or Japanese", "東京は今日とても良い天気ですから、公園まで歩きました"
UNSPACED = {"今天天气很好，我们去公园散步": CHINESE, JAPANESE: CHINESE, THAI.replace(" ", ""): "Thai"}
CUT = {"Hindi": "हिन्दी भाषा में समाचार", "accents": unicodedata.normalize("NFD", ACCENTS), "Thai": THAI}
SPACED = {
    "English": "the patient was seen with pain",
    "long words": "Donaudampfschifffahrtsgesellschaftskapitän Rindfleischetikettierungsüberwachungsaufgabe",
    "Chinese that was cut": "今天 天气 很 好 我们 去 公园 散步",
    "Korean": "오늘은 날씨가 아주 좋아서 공원에서 산책을 했습니다",
    "English with some Chinese": "the sign above the door says 今天天气很好我们去公园散步 in large letters of gold",
    "accents that are part of their letter": unicodedata.normalize("NFC", ACCENTS),
    "no letters": "12 34",
    "nothing": "",
}


@pytest.mark.parametrize("text", UNSPACED)
def test_a_script_without_spaces_is_named(text):
    [said] = word_warnings(pl.Series([text] * 7 + ["short text"]))
    assert said.startswith(f"7 of 8 documents are in a script without spaces ({UNSPACED[text]}). ")
    assert not set(text) & set(said) - set(" ,")


@pytest.mark.parametrize("what", CUT)
def test_words_that_are_cut_at_their_marks_are_said_without_a_text(what):
    [said] = word_warnings(pl.Series([CUT[what]] * 3 + ["good day"]))
    assert said.startswith("3 of 4 documents have letters with combining marks")
    assert not any(word in said for word in CUT[what].split() if len(word) > 2)


@pytest.mark.parametrize("what", SPACED)
def test_words_with_spaces_between_them_give_no_warning(what):
    assert word_warnings(pl.Series([SPACED[what]])) == ()


def test_a_corpus_warns_once_of_a_training_split_without_spaces(tmp_path, caplog):
    texts = [f"今天天气很好，我们去公园散步{number}" for number in range(20)]
    table = pl.DataFrame({"id": range(20), "text": texts, "labels": ["a", "b"] * 10})
    table.write_csv(tmp_path / "mine.csv")
    with caplog.at_level(logging.WARNING, logger="plant"):
        build_corpus(parse_dataset({"source": "table", "path": str(tmp_path / "mine.csv")}), tmp_path / "corpus")
    warned = [record.getMessage() for record in caplog.records if "script without spaces" in record.getMessage()]
    assert len(warned) == 1 and "14 of 14 documents" in warned[0] and "今" not in warned[0]
