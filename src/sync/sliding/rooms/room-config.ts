import type { RequiredState } from './required-state.ts';

/** What a client wants to have of a room. */
export interface RoomConfig {
  /** Most events of its timeline. */
  readonly timelineLimit: number;
  readonly state: RequiredState;
}

/** What satisfies both. Source: MSC4186, "Combining room configs". */
export function combine(one: RoomConfig, other: RoomConfig): RoomConfig {
  return {
    timelineLimit: Math.max(one.timelineLimit, other.timelineLimit),
    state: one.state.and(other.state),
  };
}
