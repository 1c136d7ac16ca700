"""The bounded memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from personas.text.memory import PER_VALUE_BYTES, SHORT_CHARS, Memory, remembered


def room(size: int, size_bytes: int = 10**9) -> Memory[Any, Any]:
    return Memory(size, size_bytes=size_bytes, cost=lambda _key, value: value or 0)


def test_what_is_known_comes_back_and_nothing_else() -> None:
    memory: Memory[str, int | None] = room(4)
    memory.keep({"a": 1, "b": None})
    assert memory.recall(["b", "c", "a", "a"]) == {"a": 1, "b": None}


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    memory: Memory[str, int] = room(3)
    memory.keep({"a": 1, "b": 2, "c": 3})
    memory.recall(["a"])
    memory.keep({"d": 4, "c": 5})
    assert memory.recall("abcd") == {"a": 1, "c": 5, "d": 4}


def test_more_than_fits_at_once_leaves_the_last() -> None:
    memory: Memory[int, int] = room(2)
    memory.keep({n: n for n in range(5)})
    assert memory.recall(range(5)) == {3: 3, 4: 4}


def test_a_cleared_memory_knows_nothing_and_holds_nothing() -> None:
    memory: Memory[str, int] = room(4)
    memory.keep({"a": 1, "b": 2})
    memory.clear()
    assert memory.recall("ab") == {}
    assert (len(memory), memory.held_bytes) == (0, 0)
    memory.keep({"a": 3})
    assert memory.recall("ab") == {"a": 3}


def test_threads_share_it() -> None:
    memory: Memory[int, int] = room(50)

    def use(thread: int) -> bool:
        for n in range(400):
            key = (n * (thread + 1)) % 97
            if memory.recall([key]).get(key, key) != key:
                return False
            memory.keep({key: key})
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))
    assert len(memory) == 50


def test_a_function_of_texts_is_asked_once_unless_the_text_is_long() -> None:
    asked: list[str] = []

    @remembered(2, longest=3)
    def shout(text: str) -> str:
        """Louder."""
        asked.append(text)
        return text.upper()

    assert [shout(text) for text in ("ab", "ab", "abcd", "abcd", "b", "c", "ab")] == [
        *("AB", "AB", "ABCD", "ABCD", "B", "C", "AB"),
    ]
    assert asked == ["ab", "abcd", "abcd", "b", "c", "ab"]
    assert shout.__doc__ == "Louder."


def test_it_is_bounded_in_bytes_whatever_is_put_in() -> None:
    most = 10 * PER_VALUE_BYTES
    memory = room(1000, most)
    for number in range(200):
        memory.keep({number % 37: number * 13 % 900, f"n{number}": 5})
        assert memory.held_bytes <= most
    memory.keep({"too large": most})
    assert memory.recall(["too large", "n199"]) == {"n199": 5}
    memory.keep({name: 0 for name in range(50)})
    assert memory.held_bytes == PER_VALUE_BYTES * len(memory)


def test_of_long_texts_fewer_results_are_kept() -> None:
    asked: list[str] = []

    @remembered(16)
    def shout(text: str) -> str:
        asked.append(text)
        return text.upper()

    texts = [str(number) + "x" * SHORT_CHARS for number in range(3)]
    for text in [*texts, *texts[1:], texts[0]]:
        shout(text)
    assert asked == [*texts, texts[0]]
