import { type RoomEvent, type StateMap, stateMapKey } from '../../event.ts';
import type { StateResolutionSource } from '../index.ts';

/** Events of a room, in memory. */
export class MemorySource implements StateResolutionSource {
  readonly events = new Map<string, RoomEvent>();
  readonly rejected = new Set<string>();

  constructor(events: Iterable<RoomEvent> = []) {
    for (const event of events) this.add(event);
  }

  add(event: RoomEvent): void {
    this.events.set(event.eventId, event);
  }

  event(eventId: string): RoomEvent | undefined {
    return this.events.get(eventId);
  }

  isRejected(eventId: string): boolean {
    return this.rejected.has(eventId);
  }
}

/** The state that consists of these events. */
export function stateOf(events: Iterable<RoomEvent>): Map<string, string> {
  const state = new Map<string, string>();
  for (const event of events) state.set(stateMapKey(event.type, event.stateKey ?? ''), event.eventId);
  return state;
}

/** The entries of a state in an order that does not depend on how it was made. */
export function sorted(state: StateMap<string>): [key: string, eventId: string][] {
  return [...state].sort(([a], [b]) => (a < b ? -1 : 1));
}
