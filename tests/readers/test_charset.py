"""Text is read in the character set it was written in, told or not."""

import random

import pytest

from belino.readers import charset

# Sentences of our own, none of which the letters in the module were chosen by.
WRITTEN = {
    "cp1252": (
        "Fünf Äpfel und drei Brötchen kosten heute weniger als gestern, sagt die Verkäuferin.",
        "À bientôt ! Le garçon a oublié son déjeuner dans le réfrigérateur.",
        "El señor Núñez llegará pasado mañana; ¿podrías recogerlo en la estación?",
        "A criança não quer ir à escola porque está com frio nas mãos.",
        "Jag har köpt två biljetter till båten som går på måndag.",
        "Bestil gærne et værelse på øen, før sæsonen går i gang.",
        "She wrote: “don’t wait for me” — so we didn’t…",
        "È perché la città è già così piena che nessuno può parcheggiare.",
    ),
    "cp1251": (
        "Поезд из Самары опаздывает на сорок минут, встречающих просят подождать.",
        "Ми приїдемо до вас у п'ятницю ввечері, якщо не буде дощу.",
        "Моля, изпратете ни копие от договора до края на седмицата.",
        "Счёт № 48 оплачен. Спасибо!",
    ),
    "koi8_r": (
        "Поезд из Самары опаздывает на сорок минут, встречающих просят подождать.",
        "Счёт оплачен. Спасибо!",
    ),
    "cp932": (
        "来週の金曜日までに報告書を提出してください。よろしくお願いします。",
        "駅前の喫茶店で友達とコーヒーを飲みながら話しました。",
        "請求書番号,金額,期日\n一〇二,五万円,月末",
    ),
    "euc_jp": (
        "来週の金曜日までに報告書を提出してください。よろしくお願いします。",
        "駅前の喫茶店で友達とコーヒーを飲みながら話しました。",
    ),
    "gb18030": (
        "请在下周五之前把报告发给我,谢谢。",
        "火车晚点了四十分钟,接站的人请耐心等候。",
        "订单号,金额,日期\n一百零二,五万元,月底",
    ),
    "big5hkscs": (
        "請在下週五之前把報告寄給我,謝謝。",
        "火車誤點了四十分鐘,接站的人請耐心等候。",
    ),
    "cp949": (
        "다음 주 금요일까지 보고서를 제출해 주세요. 감사합니다.",
        "기차가 사십 분 늦게 도착하니 기다려 주시기 바랍니다.",
    ),
    "cp1250": (
        "Wyślij mi proszę zdjęcia z wczorajszej wycieczki; były świetne.",
        "Děkuji vám za dopis, odpovím příští týden, až se vrátím z dovolené.",
        "Köszönöm szépen a gyors választ, jövő héten újra jelentkezem, időben.",
    ),
    "cp1253": ("Το τρένο από τη Θεσσαλονίκη έχει καθυστέρηση σαράντα λεπτών.",),
    "cp1254": ("Lütfen faturayı cuma gününe kadar gönderin, şimdiden teşekkür ederiz.",),
    "cp1255": ("הרכבת מחיפה מאחרת בארבעים דקות, אנא המתינו בסבלנות.",),
    "cp1256": ("القطار القادم من الإسكندرية متأخر أربعين دقيقة، يرجى الانتظار.",),
    "cp874": ("รถไฟจากเชียงใหม่ล่าช้าสี่สิบนาที โปรดรอสักครู่",),
}
ALL = [(codec, text) for codec, texts in WRITTEN.items() for text in texts]
UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


@pytest.mark.parametrize(("codec", "text"), ALL, ids=[f"{codec}-{at}" for at, (codec, _) in enumerate(ALL)])
def test_a_sentence_is_read_in_the_set_it_was_written_in(codec: str, text: str) -> None:
    assert charset.decode(text.encode(codec)) == text


@pytest.mark.parametrize("codec", UNICODE)
def test_unicode_is_read_with_and_without_a_mark(codec: str) -> None:
    for _, text in ALL:
        assert charset.decode(text.encode(codec)) == text


def test_a_word_of_the_document_is_taken_if_it_can_be_true() -> None:
    assert charset.decode("naïve".encode("iso8859_15"), declared="ISO-8859-15") == "naïve"
    assert charset.decode("ok – 3 €".encode("cp1252"), declared="iso-8859-1") == "ok – 3 €"
    assert charset.decode("Grüße aus Köln".encode(), declared="iso-8859-1") == "Grüße aus Köln"
    assert charset.decode("联通".encode("gb18030"), declared="gb2312") == "联通"
    assert charset.decode("Grüße aus Köln".encode("cp1252"), declared="utf-8") == "Grüße aus Köln"
    assert charset.decode("東京の天気は晴れです。".encode("euc_jp"), declared="utf-8") == "東京の天気は晴れです。"


def test_names_of_sets_that_are_no_sets_of_characters_are_not_followed() -> None:
    assert charset.codec_of("rot13") is None
    assert charset.codec_of("zlib") is None
    assert charset.codec_of("utf-7") is None
    assert charset.codec_of(" 'Shift_JIS' ") == "cp932"


def test_a_cut_or_a_flipped_byte_does_not_make_utf8_another_set() -> None:
    written = ("Zażółć gęślą jaźń. " * 40).encode()
    assert charset.detect(written[:-1])[0] == "utf-8"
    broken = written[:100] + b"\xff" + written[101:]
    assert charset.detect(broken)[0] == "utf-8"


def test_the_set_is_told_by_the_line_that_is_not_ascii_wherever_it_stands() -> None:
    text = "plain words\n" * 20_000 + "Le garçon a oublié son déjeuner.\n"
    assert charset.decode(text.encode("cp1252")) == text


def test_any_bytes_can_be_read() -> None:
    rng = random.Random(1)
    for size in (0, 1, 2, 3, 5, 64, 1000):
        for _ in range(40):
            assert isinstance(charset.decode(rng.randbytes(size)), str)


@pytest.mark.parametrize("start", ["<!DOCTYPE html>\n<p>", "\n <html><p>", '<?xml version="1.0"?><note>'])
def test_markup_in_ebcdic_is_read_in_it(start: str) -> None:
    page = f"{start}Hello, 100 <b>boxes</b> left"
    assert charset.decode(page.encode("cp037")) == page
