"""Spreads partitions over brokers: racks, copies, bytes and leaders, with as little copying as may be. Pure.

Called by `move plan`, `broker add` and `broker remove`. The same input gives the same plan, and what
is spread well is left as it is. No partition gets more or fewer copies, or two on one broker, and none
ends in fewer racks than it has now. In this order: copies leave brokers that are no longer wanted, then
racks that hold two while another holds none; then numbers of copies are evened out, to a difference of
one where racks allow; then bytes, by swaps, while a swap is worth its copying; leaders last, for they
cost nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from twinlog.errors import UsageError
from twinlog.ops.assignment import Assignment, Peer, Replicas
from twinlog.wire.offsets import TopicPartition

WORTH_A_SWAP = 0.05  # of what a broker holds on average: less is not worth being copied twice


def balanced(
    current: Assignment, peers: Sequence[Peer], size_bytes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Replicas]:
    """Give every partition brokers out of `peers`."""
    widest = max(((len(replicas), place) for place, replicas in current.items()), default=(0, ("", 0)))
    if widest[0] > len(peers):
        (topic, index), count = widest[1], len(peers)
        raise UsageError(
            f"{topic}-{index} has {widest[0]} copies and there would be {count} broker{'s'[: count != 1]}",
            hint="are enough brokers up? twinlog broker list",
        )
    spread = _Spread(current, peers, size_bytes)
    spread.leave_unwanted()
    spread.use_racks()
    spread.even_out_copies()
    while spread.even_out_bytes():
        spread.even_out_copies()  # where a rack was in the way, a swap may have made room
    spread.even_out_leaders()
    return {place: tuple(spread.replicas[place]) for place in sorted(spread.replicas)}


class _Spread:
    """An assignment that is being changed, with what each broker has by it."""

    def __init__(
        self, current: Assignment, peers: Sequence[Peer], size_bytes: Mapping[TopicPartition, int]
    ) -> None:
        self.racks = {peer.id: peer.rack for peer in peers}
        self.ids = sorted(self.racks)
        self.replicas = {place: list(current[place]) for place in sorted(current)}
        self.size_bytes = {place: size_bytes.get(place, 0) for place in self.replicas}
        self.held: dict[int, set[TopicPartition]] = defaultdict(set)
        self.bytes: Counter[int] = Counter()
        self.of_topic: Counter[tuple[str, int]] = Counter()  # copies of a topic on a broker
        for place, replicas in self.replicas.items():
            for broker in replicas:
                self._count(place, broker)

    def _count(self, place: TopicPartition, broker: int) -> None:
        self.held[broker].add(place)
        self.bytes[broker] += self.size_bytes[place]
        self.of_topic[place[0], broker] += 1

    def _move(self, place: TopicPartition, source: int, target: int) -> None:
        replicas = self.replicas[place]
        replicas[replicas.index(source)] = target
        self.held[source].remove(place)
        self.bytes[source] -= self.size_bytes[place]
        self.of_topic[place[0], source] -= 1
        self._count(place, target)

    def _racks_of(self, brokers: Iterable[int]) -> int:
        """In how many racks brokers stand; one without a rack is one of its own, one unwanted in none."""
        return len({self.racks[broker] or broker for broker in brokers if broker in self.racks})

    def _fits(self, place: TopicPartition, source: int, target: int) -> bool:
        """True if a copy may go from one broker to another: not twice on one, not into fewer racks."""
        replicas = self.replicas[place]
        if target in replicas:
            return False
        after = [broker for broker in replicas if broker != source] + [target]
        return self._racks_of(after) >= self._racks_of(replicas)

    def _best_for(self, place: TopicPartition, source: int, targets: Iterable[int]) -> int:
        """The broker that should have a copy instead of `source`: another rack first, then who has least."""
        rest = [broker for broker in self.replicas[place] if broker != source]
        return min(
            (broker for broker in targets if broker not in rest),
            key=lambda broker: (
                -self._racks_of([*rest, broker]),
                len(self.held[broker]),
                self.of_topic[place[0], broker],
                self.bytes[broker],
                broker,
            ),
        )

    def leave_unwanted(self) -> None:
        """Take copies from brokers that are not among the peers."""
        for place, replicas in self.replicas.items():
            for source in [broker for broker in replicas if broker not in self.racks]:
                self._move(place, source, self._best_for(place, source, self.ids))

    def use_racks(self) -> None:
        """Have copies in as many racks as there can be."""
        racks = self._racks_of(self.ids)
        for place, replicas in self.replicas.items():
            while self._racks_of(replicas) < min(len(replicas), racks):
                taken = Counter(self.racks[broker] or broker for broker in replicas)
                crowded = [broker for broker in replicas if taken[self.racks[broker] or broker] > 1]
                source = max(crowded, key=lambda broker: (len(self.held[broker]), broker))
                free = [broker for broker in self.ids if (self.racks[broker] or broker) not in taken]
                self._move(place, source, self._best_for(place, source, free))

    def even_out_copies(self) -> None:
        """Move copies from who has most to who has least, until nobody has two more than another."""
        while (found := self._next_copy()) is not None:
            self._move(*found)

    def _next_copy(self) -> tuple[TopicPartition, int, int] | None:
        for source, target in self._unequal({broker: len(self.held[broker]) for broker in self.ids}):
            fitting = [place for place in self.held[source] if self._fits(place, source, target)]
            if fitting:
                apart = self.bytes[source] - self.bytes[target]
                place = min(
                    fitting,
                    key=lambda place: (
                        -(self.of_topic[place[0], source] - self.of_topic[place[0], target]),
                        abs(apart - 2 * self.size_bytes[place]),
                        place,
                    ),
                )
                return place, source, target
        return None

    def _unequal(self, counts: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Pairs of brokers whose counts differ by two or more, the most unequal first."""
        upwards = sorted(self.ids, key=lambda broker: (counts[broker], broker))
        downwards = sorted(self.ids, key=lambda broker: (-counts[broker], broker))
        pairs = [
            (source, target)
            for source in downwards
            for target in upwards
            if counts[source] - counts[target] > 1
        ]
        return iter(sorted(pairs, key=lambda pair: counts[pair[1]] - counts[pair[0]]))

    def even_out_bytes(self) -> bool:
        """Swap large copies for small ones between who holds most bytes and who holds least; True if any."""
        swapped = False
        mean = sum(self.bytes[broker] for broker in self.ids) / len(self.ids) if self.ids else 0
        # Every swap brings two brokers closer by this share at least, so there is an end.
        while mean and (found := self._next_swap(WORTH_A_SWAP * mean)) is not None:
            large, small, source, target = found
            self._move(large, source, target)
            self._move(small, target, source)
            swapped = True
        return swapped

    def _next_swap(self, worth: float) -> tuple[TopicPartition, TopicPartition, int, int] | None:
        upwards = sorted(self.ids, key=lambda broker: (self.bytes[broker], broker))
        for source in reversed(upwards):
            for target in upwards:
                apart = self.bytes[source] - self.bytes[target]
                if apart < 2 * worth:
                    break
                swap = self._best_swap(source, target, apart)
                if swap is not None and apart - abs(apart - 2 * self._gain(*swap)) >= 2 * worth:
                    return (*swap, source, target)
        return None

    def _gain(self, large: TopicPartition, small: TopicPartition) -> int:
        return self.size_bytes[large] - self.size_bytes[small]

    def _best_swap(
        self, source: int, target: int, apart: int
    ) -> tuple[TopicPartition, TopicPartition] | None:
        """The two copies whose swap brings two brokers closest."""
        smalls = sorted(
            (place for place in self.held[target] if self._fits(place, target, source)),
            key=lambda place: (self.size_bytes[place], place),
        )
        if not smalls:
            return None
        sizes = [self.size_bytes[place] for place in smalls]
        pairs = []
        for large in sorted(self.held[source]):
            if self._fits(large, source, target):
                at = bisect_left(sizes, self.size_bytes[large] - apart / 2)
                pairs += [(large, smalls[near]) for near in (at - 1, at) if 0 <= near < len(smalls)]
        return min(pairs, key=lambda pair: (abs(apart - 2 * self._gain(*pair)), pair), default=None)

    def even_out_leaders(self) -> None:
        """Let other brokers stand first, until nobody leads two more than one who could take some."""
        led: dict[int, set[TopicPartition]] = {broker: set() for broker in self.ids}
        for place, replicas in self.replicas.items():
            led[replicas[0]].add(place)
        while (shifts := self._next_leaders(led)) is not None:
            for place, source, target in shifts:
                replicas = self.replicas[place]
                replicas.remove(target)
                replicas.insert(0, target)
                led[source].remove(place)
                led[target].add(place)

    def _next_leaders(
        self, led: Mapping[int, set[TopicPartition]]
    ) -> list[tuple[TopicPartition, int, int]] | None:
        """Partitions to hand on, from one broker over others to one that leads two fewer or less."""
        counts = {broker: len(places) for broker, places in led.items()}
        of_topic = Counter((topic, broker) for broker, places in led.items() for topic, _ in places)
        for source in sorted(self.ids, key=lambda broker: (-counts[broker], broker)):
            came: dict[int, tuple[TopicPartition, int] | None] = {source: None}
            waiting = deque([source])
            while waiting:
                broker = waiting.popleft()
                if counts[source] - counts[broker] > 1:
                    return self._way(came, broker)
                for place in sorted(led[broker], key=lambda place: (-of_topic[place[0], broker], place)):
                    for other in self.replicas[place][1:]:
                        if other not in came:
                            came[other] = (place, broker)
                            waiting.append(other)
        return None

    @staticmethod
    def _way(
        came: Mapping[int, tuple[TopicPartition, int] | None], end: int
    ) -> list[tuple[TopicPartition, int, int]]:
        shifts = []
        step = came[end]
        while step is not None:
            place, source = step
            shifts.append((place, source, end))
            end, step = source, came[source]
        return shifts
