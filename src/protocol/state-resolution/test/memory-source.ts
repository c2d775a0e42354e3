import { type RoomEvent, type StateMap, stateMapKey } from '../../event.ts';
import type { StateResolutionSource } from '../index.ts';

/** The events of a room, in memory. */
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

/** Returns the state that consists of these events. */
export function stateOf(events: Iterable<RoomEvent>): Map<string, string> {
  const state = new Map<string, string>();
  for (const event of events) state.set(stateMapKey(event.type, event.stateKey ?? ''), event.eventId);
  return state;
}

/** Returns the entries of a state sorted by key, so that states can be compared. */
export function sorted(state: StateMap<string>): [key: string, eventId: string][] {
  return [...state].sort(([a], [b]) => (a < b ? -1 : 1));
}
