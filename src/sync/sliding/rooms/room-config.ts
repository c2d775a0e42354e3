import type { RequiredState } from './required-state.ts';

/** The events and the state that a client requests of a room. */
export interface RoomConfig {
  /** Maximum number of events of its timeline. */
  readonly timelineLimit: number;
  readonly state: RequiredState;
}

/** Returns a configuration that satisfies both. Source: MSC4186, "Combining room configs". */
export function combine(one: RoomConfig, other: RoomConfig): RoomConfig {
  return {
    timelineLimit: Math.max(one.timelineLimit, other.timelineLimit),
    state: one.state.and(other.state),
  };
}
