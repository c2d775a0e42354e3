import type { SlidingRoomJson } from '../../../../test/support/users/sliding-client.ts';

/**
 * Returns a request for one list of at most twenty rooms with three events each.
 * @param options fields of the list that replace these values or are added
 */
export const oneList = (options: object = {}) => ({
  lists: { all: { ranges: [[0, 19]], timeline_limit: 3, required_state: [], ...options } },
});

/** Returns the bodies of the messages in a room's timeline. */
export const bodies = (room: SlidingRoomJson | undefined) =>
  room?.timeline?.map(({ content }) => content['body']) ?? [];

/** Returns types and state keys of a room's required state, sorted. */
export const types = (room: SlidingRoomJson | undefined) =>
  (room?.required_state ?? []).map(({ type, state_key }) => `${type} ${state_key}`).sort();
