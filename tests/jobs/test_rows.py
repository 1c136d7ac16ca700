"""Rows are read from every kind of file, and bad ones are reported where they stand."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reward_server.errors import InvalidRequest
from reward_server.offline import rows as rows_module
from reward_server.offline.rows import InputRow, read_rows


def read(path: Path, data: bytes) -> list[InputRow]:
    path.write_bytes(data)
    return list(read_rows(path))


def test_jsonl_rows_keep_their_line_numbers(tmp_path: Path) -> None:
    found = read(tmp_path / "a.jsonl", b'{"a": 1}\n\n{"a": 2}')
    assert found == [InputRow(1, {"a": 1}), InputRow(3, {"a": 2})]


def test_a_bad_line_is_a_row_with_a_problem(tmp_path: Path) -> None:
    first, bad, last = read(tmp_path / "a.jsonl", b'{"a": 1}\n{"a": \n{"a": 2}\n')
    assert (first.data, last.data) == ({"a": 1}, {"a": 2})
    assert bad.number == 2
    assert "not JSON" in str(bad.problem)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (b'{"a": [1, 2', "column 12"),
        (b'{"a": "cut', "column 11"),
        (b'{"a": 1} b', "column 10"),
        (b'{"a": nothing}', "column 7"),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_bad_line_tells_where_it_broke(tmp_path: Path, line: bytes, where: str, end: bytes) -> None:
    [bad] = read(tmp_path / "a.jsonl", line + end)
    assert bad.problem == f"not JSON at {where}"


def test_a_bad_file_tells_the_line_as_well(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="the file is not JSON at line 3, column 4"):
        read(tmp_path / "a.json", b'[\n{"a": 1},\n{"a\n')


@pytest.mark.parametrize(
    ("name", "bad"), [("a.jsonl", b'{"a": "\xff\xfe"}\n{"a": 2}'), ("a.csv", b"a\n\xff\xfe\n2\n")], ids=["jsonl", "csv"]
)
def test_bytes_that_are_not_utf8_are_a_problem_of_their_row(tmp_path: Path, name: str, bad: bytes) -> None:
    first, last = read(tmp_path / name, bad)
    assert (first.number, first.problem) == (1, "not UTF-8")
    assert last.problem is None
    assert read(tmp_path / "b.jsonl", b'{"a": "\\udcff"}') == [InputRow(1, {"a": "\udcff"})]
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        read(tmp_path / "c.json", b'[{"a": "\xff"}]')


def test_a_bottomless_line_is_a_row_with_a_problem(tmp_path: Path) -> None:
    deep, after = read(tmp_path / "a.jsonl", b"[" * 200_000 + b'\n{"a": 1}\n')
    assert deep.problem
    assert after.data == {"a": 1}


def test_a_line_beyond_the_limit_is_skipped_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAX_LINE_CHARACTERS", 20)
    long, after = read(tmp_path / "a.jsonl", b'{"a": "' + b"x" * 90 + b'"}\n{"a": 1}\n')
    assert "too long" in str(long.problem)
    assert after == InputRow(2, {"a": 1})


def test_gzip_is_read_like_plain_text(tmp_path: Path) -> None:
    assert read(tmp_path / "a.jsonl.gz", gzip.compress(b'{"a": 1}\n')) == [InputRow(1, {"a": 1})]


def test_a_broken_archive_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read(tmp_path / "a.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000)[:-20])


@pytest.mark.parametrize("text", [b'[{"a": 1}, {"a": 2}]', b'{"data": [{"a": 1}, {"a": 2}], "version": 1}'])
def test_json_lists_are_rows(tmp_path: Path, text: bytes) -> None:
    assert [row.data for row in read(tmp_path / "a.json", text)] == [{"a": 1}, {"a": 2}]


def test_one_json_conversation_is_one_row(tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", b'{"messages": [1]}') == [InputRow(1, {"messages": [1]})]


def test_a_broken_json_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="not JSON"):
        read(tmp_path / "a.json", b"[1,")


def test_csv_and_tsv_rows_are_read_by_their_headers(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", b'ID,dialogue\r\n1,"Doctor: Hi\nPatient: Hello"\r\n') == [
        InputRow(1, {"ID": "1", "dialogue": "Doctor: Hi\nPatient: Hello"})
    ]
    assert read(tmp_path / "a.tsv", b"a\tb\n1\t2\n") == [InputRow(1, {"a": "1", "b": "2"})]


def test_a_csv_row_with_too_many_fields_keeps_the_named_ones(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", b"a,b\n1,2,3\n") == [InputRow(1, {"a": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("text", "data"), [(b'{"a": 1}\n', {"a": 1}), (b'[{"a": 1}]', {"a": 1}), (b"a,b\n1,2\n", {"a": "1", "b": "2"})]
)
def test_a_file_without_a_known_ending_is_told_by_its_beginning(tmp_path: Path, text: bytes, data: object) -> None:
    assert read(tmp_path / "input", text)[0].data == data


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": "x"}\n')
    assert row.data == {"a": "x"}


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        list(read_rows(tmp_path / "absent.jsonl"))


def test_a_number_of_thousands_of_digits_is_one_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": ' + "9" * 5000 + '}\n{"a": 3}\n')
    assert [(row.data, row.problem) for row in read_rows(path)] == [
        ({"a": 1}, None),
        (None, "a number with too many digits"),
        ({"a": 3}, None),
    ]


def test_the_results_of_tau2_bench_are_their_simulations(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"tasks": [{"id": "0"}], "simulations": [{"id": "a"}, {"id": "b"}]}')
    assert [row.data for row in read_rows(path)] == [{"id": "a"}, {"id": "b"}]
