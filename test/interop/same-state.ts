import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../clients/eventually.ts';
import type { InteropUser, Json } from './interop-user.ts';

/** The fields of an event that both servers must agree on. */
const comparedFields = ['event_id', 'sender', 'origin_server_ts', 'content'] as const;

/** Returns the compared fields of each event of the room state, sorted by type and state key. */
async function comparedState(user: InteropUser, room: string): Promise<Record<string, Json>> {
  const state = [...(await user.state(room))].sort(([one], [other]) => (one < other ? -1 : 1));
  const comparedPart = (event: Json) =>
    Object.fromEntries(comparedFields.map((field) => [field, event[field]]));
  return Object.fromEntries(state.map(([key, event]) => [key, comparedPart(event)]));
}

/**
 * Checks that both servers hold the same state of the room, event by event. Each user must be a member of the room.
 */
export async function assertSameState(
  room: string,
  hearthUser: InteropUser,
  referenceUser: InteropUser,
): Promise<void> {
  let states: Record<string, Json>[] = [];
  await eventually('the same state', async () => {
    states = await Promise.all([comparedState(hearthUser, room), comparedState(referenceUser, room)]);
    return isDeepStrictEqual(states[0], states[1]);
  }).catch((error: unknown) => {
    assert.deepEqual(states[0], states[1], 'the servers hold different states');
    throw error;
  });
}
