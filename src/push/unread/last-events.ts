import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Stream } from '../../kernel/streams/index.ts';
import type { RoomFact } from '../../room-engine/index.ts';

/** Of how many rooms the last event is remembered. */
const remembered = 50_000;

/** Where the last event of each room is on the stream, so that nothing is done for rooms in which nothing happens. */
export class LastEvents {
  readonly #positions: RecentlyUsed<string, number>;
  /** Rooms that are not remembered have had no event after this. */
  #floor: number;

  /** @param floor the position from which on `stream` is heard */
  constructor(stream: Stream<RoomFact>, floor: number) {
    this.#floor = floor;
    this.#positions = new RecentlyUsed({
      max: remembered,
      dispose: (position, _roomId, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, position);
      },
    });
    stream.subscribe(({ roomId, onTimeline }, position) => {
      if (onTimeline) this.#positions.set(roomId, position);
    });
  }

  /** A position after which the room has had no event. */
  of(roomId: string): number {
    return this.#positions.get(roomId) ?? this.#floor;
  }
}
