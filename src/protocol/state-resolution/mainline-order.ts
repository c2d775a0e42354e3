import type { RoomEvent } from '../event.ts';
import { powerLevelsEventOf } from './auth-events.ts';
import { compareByTime } from './power-order.ts';
import type { StateResolutionSource } from './source.ts';
import { eachInSteps } from './steps.ts';

/**
 * The mainline ordering of these events, based on that power levels event.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function* mainlineOrder(
  events: readonly RoomEvent[],
  powerLevels: RoomEvent | undefined,
  source: StateResolutionSource,
): Generator<void, RoomEvent[]> {
  const positions = new MainlinePositions(powerLevels, source);
  const placed: { event: RoomEvent; position: number }[] = [];
  yield* eachInSteps(events, (event) => placed.push({ event, position: positions.of(event) }));
  placed.sort((a, b) => {
    if (a.position !== b.position) return a.position > b.position ? -1 : 1;
    return compareByTime(a.event, b.event);
  });
  return placed.map(({ event }) => event);
}

/**
 * Mainline positions: where the power levels that an event cites, or those that they replaced, and so on, meet the
 * mainline. What is found for one power levels event is kept for all events that lead to it, so that each is
 * looked at once.
 */
class MainlinePositions {
  readonly #source: StateResolutionSource;
  /** Event id of a power levels event to its own index on the mainline, or to where its line meets it. */
  readonly #known = new Map<string, number>();

  constructor(powerLevels: RoomEvent | undefined, source: StateResolutionSource) {
    this.#source = source;
    let next = powerLevels;
    // An event that is already there would close a cycle.
    for (let index = 0; next !== undefined && !this.#known.has(next.eventId); index++) {
      this.#known.set(next.eventId, index);
      next = powerLevelsEventOf(next, source);
    }
  }

  /** `Infinity` if no power levels event on the way is in the mainline. */
  of(event: RoomEvent): number {
    const passed: string[] = [];
    let next = powerLevelsEventOf(event, this.#source);
    while (next !== undefined && !this.#known.has(next.eventId)) {
      passed.push(next.eventId);
      // What stands here while the line is followed is also right if the line is a cycle.
      this.#known.set(next.eventId, Number.POSITIVE_INFINITY);
      next = powerLevelsEventOf(next, this.#source);
    }
    const position = next === undefined ? Number.POSITIVE_INFINITY : this.#known.get(next.eventId)!;
    for (const id of passed) this.#known.set(id, position);
    return position;
  }
}
