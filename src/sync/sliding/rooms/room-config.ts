import type { RequiredState } from './required-state.ts';

/** The events and the state that a client requests of a room. */
export interface RoomConfig {
  /** Maximum number of events in the room's timeline. */
  readonly timelineLimit: number;
  readonly state: RequiredState;
}

/** Returns a configuration that satisfies both configurations. Source: MSC4186, "Combining room configs". */
export function combine(a: RoomConfig, b: RoomConfig): RoomConfig {
  return {
    timelineLimit: Math.max(a.timelineLimit, b.timelineLimit),
    state: a.state.union(b.state),
  };
}
