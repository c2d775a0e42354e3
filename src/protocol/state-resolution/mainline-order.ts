import type { RoomEvent } from '../event.ts';
import { powerLevelsEventOf } from './auth-events.ts';
import { compareByTime } from './power-order.ts';
import type { StateResolutionSource } from './source.ts';
import { eachInSteps } from './steps.ts';

/**
 * Sorts events in mainline order, based on the given power levels event: by the mainline position, the
 * farthest from that event first, then by `origin_server_ts`, then by event id.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function* mainlineOrder(
  events: readonly RoomEvent[],
  powerLevels: RoomEvent | undefined,
  source: StateResolutionSource,
): Generator<void, RoomEvent[]> {
  const positions = new MainlinePositions(powerLevels, source);
  const positioned: { event: RoomEvent; position: number }[] = [];
  yield* eachInSteps(events, (event) => positioned.push({ event, position: positions.of(event) }));
  positioned.sort((a, b) => {
    if (a.position !== b.position) return a.position > b.position ? -1 : 1;
    return compareByTime(a.event, b.event);
  });
  return positioned.map(({ event }) => event);
}

/**
 * Computes mainline positions. Follows the chain of power levels events: from an event to the power levels event among
 * its auth events, and so on. The first event of the chain that is on the mainline determines the position. The
 * position is cached for every event of the chain, so that each is visited once.
 */
class MainlinePositions {
  readonly #source: StateResolutionSource;
  /**
   * Event id of a power levels event to its index on the mainline. For an event beside the mainline: to the index where
   * its chain of power levels events reaches the mainline.
   */
  readonly #known = new Map<string, number>();

  constructor(powerLevels: RoomEvent | undefined, source: StateResolutionSource) {
    this.#source = source;
    let next = powerLevels;
    // An event that is in the mainline already closes a cycle.
    for (let index = 0; next !== undefined && !this.#known.has(next.eventId); index++) {
      this.#known.set(next.eventId, index);
      next = powerLevelsEventOf(next, source);
    }
  }

  /**
   * Returns the mainline position of an event; `Infinity` if its chain of power levels events does not meet
   * the mainline.
   */
  of(event: RoomEvent): number {
    const passed: string[] = [];
    let next = powerLevelsEventOf(event, this.#source);
    while (next !== undefined && !this.#known.has(next.eventId)) {
      passed.push(next.eventId);
      // A placeholder while the chain is followed; if the chain is a cycle, it is the result.
      this.#known.set(next.eventId, Number.POSITIVE_INFINITY);
      next = powerLevelsEventOf(next, this.#source);
    }
    const position = next === undefined ? Number.POSITIVE_INFINITY : this.#known.get(next.eventId)!;
    for (const id of passed) this.#known.set(id, position);
    return position;
  }
}
