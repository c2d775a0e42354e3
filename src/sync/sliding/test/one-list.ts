import type { SlidingRoomJson } from '../../../../test/support/users/sliding-client.ts';

/** A request for one list, of up to twenty rooms and three events each. @param options what is otherwise of the list */
export const oneList = (options: object = {}) => ({
  lists: { all: { ranges: [[0, 19]], timeline_limit: 3, required_state: [], ...options } },
});

/** The bodies of the messages that a client is told of a room. */
export const bodies = (room: SlidingRoomJson | undefined) =>
  room?.timeline?.map(({ content }) => content['body']) ?? [];

/** The types and state keys of the state that a client is told of a room. */
export const types = (room: SlidingRoomJson | undefined) =>
  (room?.required_state ?? []).map(({ type, state_key }) => `${type} ${state_key}`).sort();
