import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../clients/eventually.ts';
import type { Json, Someone } from './someone.ts';

/** What both must have of an event. */
const fields = ['event_id', 'sender', 'origin_server_ts', 'content'] as const;

/** The event behind each entry of the room's state. */
async function entries(person: Someone, room: string): Promise<Record<string, Json>> {
  const state = [...(await person.state(room))].sort(([one], [other]) => (one < other ? -1 : 1));
  const essence = (event: Json) => Object.fromEntries(fields.map((field) => [field, event[field]]));
  return Object.fromEntries(state.map(([key, event]) => [key, essence(event)]));
}

/** Both servers hold the same state of the room, event by event; users of both must be in it. */
export async function assertAgreement(room: string, one: Someone, other: Someone): Promise<void> {
  let states: Record<string, Json>[] = [];
  await eventually('the same state', async () => {
    states = await Promise.all([entries(one, room), entries(other, room)]);
    return isDeepStrictEqual(states[0], states[1]);
  }).catch((error: unknown) => {
    assert.deepEqual(states[0], states[1], 'the servers hold different states');
    throw error;
  });
}
